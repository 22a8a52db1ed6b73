"""Settings shared by all tests: no telemetry, no network beyond loopback, the data folder."""

from __future__ import annotations

import gc
import importlib
import os
import signal
import sys
import tempfile
import threading
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# How long an example takes says how busy the machine is. Most tests say nothing about the number of examples.
settings.register_profile(
    "rag_kit", max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("rag_kit")


TESTS = Path(__file__).resolve().parent
ROOT = TESTS.parent
sys.path.insert(0, str(TESTS))

for _name, _value in {
    "LANGSMITH_TRACING": "false",
    "LANGCHAIN_TRACING_V2": "false",
    "RAGAS_DO_NOT_TRACK": "true",
    "ANONYMIZED_TELEMETRY": "False",
    "HF_HUB_OFFLINE": "1",
}.items():
    os.environ.setdefault(_name, _value)
# No test speaks TLS. Each HTTP client would read 140 root certificates, 25 ms and more, and a chat model makes two.
os.environ.pop("SSL_CERT_FILE", None)
os.environ["SSL_CERT_DIR"] = str(TESTS / "support")
for _name in ("RAG_KIT_CHAT_MODEL", "RAG_KIT_EMBEDDING_MODEL", "RAG_KIT_BASE_URL", "RAG_KIT_PROMPTS"):
    os.environ.pop(_name, None)

# What tests keep goes into a cache that ends with them; the weights in the user's cache are found there.
if "RAG_KIT_TESTS_WEIGHTS" not in os.environ:  # else the process that started this one did so
    _named = os.environ.get("RAG_KIT_CACHE") or Path(
        os.environ.get("XDG_CACHE_HOME") or "~/.cache", "rag_kit"
    )
    _users, _cache = Path(_named).expanduser(), tempfile.TemporaryDirectory(prefix="rag_kit_tests_")
    with suppress(OSError):  # no such folder, or a system without links
        for _folder in _users.iterdir():
            if _folder.name != "replies":
                Path(_cache.name, _folder.name).symlink_to(_folder, target_is_directory=True)
    os.environ |= {"RAG_KIT_CACHE": _cache.name, "RAG_KIT_TESTS_WEIGHTS": str(_users)}

# A shell's background job ignores Ctrl-C, and so would the processes that tests start and interrupt.
if (
    signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    and threading.current_thread() is threading.main_thread()
):
    signal.signal(signal.SIGINT, signal.default_int_handler)


def data_folder() -> Path:
    """The folder of public data sets (``RAG_KIT_DATA``, default ``../shared/data``)."""
    return Path(os.environ.get("RAG_KIT_DATA", ROOT.parent / "shared" / "data"))


def pytest_collection(session: pytest.Session) -> None:
    """Collect no garbage while tests are collected: nearly all that is made then stays.

    Each process of xdist begins at another place of the files to import: otherwise each would write the byte code of
    every file at the same time as the others.
    """
    gc.disable()
    worker = getattr(session.config, "workerinput", None)
    if worker is not None:
        places = [session.config.invocation_params.dir / name.split("::")[0] for name in session.config.args]
        files = sorted(
            {file for place in places for file in (place, *place.rglob("test_*.py")) if file.is_file()}
        )
        start = len(files) * int(worker["workerid"].removeprefix("gw")) // worker["workercount"]
        for file in files[start:] + files[:start]:
            if file.is_relative_to(TESTS):
                with suppress(Exception, pytest.skip.Exception):  # collection says it again
                    importlib.import_module(".".join(file.relative_to(ROOT).with_suffix("").parts))


def pytest_collection_finish() -> None:
    """Keep tests and imported modules out of garbage collections: millions of objects, a second each time."""
    gc.freeze()
    gc.enable()


@pytest.fixture(autouse=True)
def no_outage() -> None:
    """Each test starts with no part failing."""
    notes = sys.modules.get("rag_kit.concurrency.notes")
    if notes is not None:
        notes.outages.clear()


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Retries of model calls pause for hundredths of seconds, not for seconds."""
    calls = sys.modules.get("rag_kit.models.calls")
    if calls is not None:
        monkeypatch.setattr(calls, "FIRST_PAUSE", 0.02)


@pytest.fixture(autouse=True)
def lent_readers(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reader processes serve one test after another, except where they are what is tested."""
    readers = sys.modules.get("rag_kit.indexing.readers.api")
    if readers is not None and request.node.get_closest_marker("own_reader") is None:
        from support.readers import LentProcess

        monkeypatch.setattr(readers, "ReaderProcess", LentProcess)


@pytest.fixture
def data_sets() -> Path:
    """Folder of the public data sets; the test is skipped where it is absent."""
    folder = data_folder()
    if not folder.is_dir():
        pytest.skip(f"the public data sets are not at {folder}; name them with RAG_KIT_DATA")
    return folder
