"""ingest on a Dask cluster: the same index and report as of one process, whatever happens to workers."""

from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest
from langchain_core.embeddings import Embeddings
from support.embedding import WordEmbeddings
from support.later import later
from support.openai_server import OpenAIServer
from support.representing import reply

from rag_kit.cli import exits
from rag_kit.cli.main import main
from rag_kit.errors import ConfigurationError, InvalidInputError, MissingExtraError, ReadError
from rag_kit.indexing import DocumentIndex, IngestOptions, ingest, register_reader
from rag_kit.models import chat_model, embedding_model

later("distributed")


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    """A client of one worker of one thread; each more takes seconds of processor time to start."""
    from rag_kit.indexing.cluster.connecting import cluster_client

    with cluster_client(1, None) as client:
        yield client


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    (folder / "sub").mkdir(parents=True)
    for number in range(40):
        parts = "\n\n".join(f"## Part {part}\n\nItem{number} has value{part}." for part in range(4))
        (folder / f"file{number:02}.md").write_text(f"# File {number}\n\n{parts}\n")
    (folder / "sub" / "泵.txt").write_text("水泵在四十度时启动。", encoding="utf-8")
    (folder / "sub" / "copy.txt").write_text("水泵在四十度时启动。", encoding="utf-8")
    (folder / "empty.txt").write_text("")
    (folder / "broken.pdf").write_text("%PDF-1.4 this is none")
    return folder


def dump(folder: Path) -> Any:
    """All that an index holds, and what it says about itself."""
    with DocumentIndex.open(folder) as index:
        ids = index.ids()
        rows = [(one.id, one.page_content, one.metadata) for one in index.get(ids)]
        vectors = index.vectors(ids)
        files = {source: record.sha256 for source, record in index.source_records().items()}
        return rows, vectors, files, str(index.verify())


def told(report: Any) -> dict[str, Any]:
    return {name: value for name, value in report.as_dict().items() if name != "seconds"}


def on(
    client: Any, docs: Path, index: Path, embeddings: Any = None, progress: Any = None, **options: Any
) -> Any:
    """The report of an ingest on a cluster, or without a client in this process."""
    settings = IngestOptions(scheduler=client, **options)
    return ingest(docs, index, embeddings=embeddings, options=settings, on_progress=progress)


def test_the_index_and_the_report_are_those_of_one_process(client: Any, docs: Path, tmp_path: Path) -> None:
    """English and Chinese, failures, copies, readers of the caller: all as without workers, also the second time."""

    def shout(path: Path) -> str:
        return path.read_text().upper()

    (docs / "a.loud").write_text("a whisper")
    (docs / "b.other").write_text("another")
    register_reader("*.other", shout)
    try:
        for times in range(2):
            seen: list[str] = []
            readers, model = {"*.loud": shout}, WordEmbeddings()
            one = on(None, docs, tmp_path / "one", WordEmbeddings(), readers=readers)

            def note(name: str, done: int, total: int, seen: list[str] = seen, **_: Any) -> None:
                seen.append(f"{done} of {total}")

            two = on(client, docs, tmp_path / "two", model, note, readers=readers)
            assert told(one) == told(two)
            assert len(one.failed) == 2 and len(one.duplicates) == 1 and one.added == (0 if times else 43)
            assert dump(tmp_path / "one") == dump(tmp_path / "two")
            assert not model.texts, "the workers embedded"
            assert seen[-1] == ("45 of 45" if times else "46 of 46")
            (docs / "file07.md").write_text("# Changed\n\nItem seven is another.")
            (docs / "file08.md").unlink(missing_ok=True)
    finally:
        register_reader("*.other", None)
    assert "b.other" in dict(on(client, docs, tmp_path / "three").failed), "workers forget readers"


@pytest.mark.slow
def test_models_behind_endpoints_are_called_by_this_process(
    client: Any, docs: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Embeddings and representations come over HTTP as in one process; no key leaves it."""

    caplog.set_level(logging.DEBUG)
    with OpenAIServer([lambda request: reply(request.prompt)], key="sk-secret") as server:
        common = {"base_url": server.url, "api_key": "sk-secret"}
        found = {}
        for name, where in (("one", None), ("two", client)):
            model, llm = embedding_model("openai:test", **common), chat_model("openai:test", **common)
            report = on(where, docs, tmp_path / name, model, llm=llm, represent=["summary"])
            found[name] = told(report), dump(tmp_path / name)
        assert found["one"] == found["two"]
        assert found["one"][0]["calls"] > 0 and found["one"][0]["embedded"] > 0
    logs = caplog.text + str(client.get_worker_logs()) + str(client.get_scheduler_logs())
    assert "sk-secret" not in logs


@pytest.mark.slow
def test_a_file_that_kills_its_worker_three_times_is_left_out_alone(
    client: Any, docs: Path, tmp_path: Path
) -> None:
    """Poison is named in the report; no other file fails for it."""
    deaths = tmp_path / "deaths"
    deaths.mkdir()

    def poison(path: Path) -> str:
        (deaths / f"{path.name}-{os.getpid()}").touch()
        os.kill(os.getpid(), signal.SIGKILL)
        return ""

    (docs / "file25.poison").write_text("x")
    two = on(client, docs, tmp_path / "two", WordEmbeddings(), readers={"*.poison": poison})
    failed = dict(two.failed)
    assert sorted(failed) == ["broken.pdf", "empty.txt", "file25.poison"]
    assert "died 3 times" in failed["file25.poison"]
    assert len(list(deaths.iterdir())) == 3
    (docs / "file25.poison").unlink()
    ingest(docs, tmp_path / "one", embeddings=WordEmbeddings())
    assert dump(tmp_path / "one") == dump(tmp_path / "two")


@pytest.mark.slow
def test_a_bounded_number_of_files_is_on_the_cluster_at_a_time(client: Any, tmp_path: Path) -> None:
    """However many files there are, the scheduler knows of few; all of them are read, in their order."""
    docs = tmp_path / "docs"
    docs.mkdir()
    for number in range(150):
        (docs / f"{number:03}.txt").write_text(f"note {number}")
    most = [0]

    def progress(name: str, done: int, total: int, *, bytes: int) -> None:  # noqa: A002
        if name.endswith("0.txt"):
            most.append(client.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.tasks)))

    report = on(client, docs, tmp_path / "index", progress=progress)
    assert report.added == 150 and 0 < max(most) < 100


class Locked(Embeddings):
    def __init__(self) -> None:
        self.lock = threading.Lock()

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [[1.0]] * len(texts)

    def embed_query(self, text: str) -> list[float]:
        return [1.0]


class Refused(Locked):
    """Says its key, in several lines, where it cannot be sent or made on a worker."""

    def __init__(self, place: str) -> None:
        self.place, self.api_key = place, "sk-thisisakey"

    def __getstate__(self) -> dict[str, Any]:
        if self.place == "here":
            raise ValueError(f"not sent:\napi_key={self.api_key}")
        return {"api_key": self.api_key}

    def __setstate__(self, state: dict[str, Any]) -> None:
        raise ValueError(f"not made:\napi_key={state['api_key']}")


def test_what_cannot_work_is_said_in_one_line(
    client: Any, docs: Path, tmp_path: Path, monkeypatch: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """A scheduler that is not there, both arguments, a model that cannot be sent, other versions, a file not seen.

    Neither a message nor the log says the key of a model.
    """
    from rag_kit.indexing.cluster import connecting, worker

    index = tmp_path / "index"
    monkeypatch.setattr(connecting, "_CONNECT_SECONDS", 1.0)
    for given, error, words in (
        (
            {"scheduler": "tcp://127.0.0.1:9"},
            ConfigurationError,
            "No Dask scheduler answers at tcp://127.0.0.1:9",
        ),
        ({"scheduler": "nonsense://x"}, ConfigurationError, "No Dask scheduler answers"),
        ({"scheduler": "tcp://me:thisisakey@127.0.0.1:9"}, ConfigurationError, r"at \*\*\*@127.0.0.1:9"),
        ({"scheduler": client, "workers": 2}, InvalidInputError, "give one of them"),
        ({"workers": 0}, InvalidInputError, "workers=0"),
        ({"scheduler": client, "embeddings": Refused("here")}, ConfigurationError, "not sent: api_key="),
        ({"scheduler": client, "embeddings": Refused("there")}, ConfigurationError, "cannot take part"),
        (
            {"scheduler": client, "embeddings": Locked()},
            ConfigurationError,
            "embeddings=Locked cannot be sent",
        ),
    ):
        embeddings = given.pop("embeddings", None)
        with pytest.raises(error, match=words) as caught:
            ingest(docs, index, embeddings=embeddings, options=IngestOptions(**given))
        assert "\n" not in str(caught.value)
        assert "thisisakey" not in str(caught.value) + caplog.text
    with monkeypatch.context() as patch:
        patch.setattr(worker, "__version__", "9.9")
        with pytest.raises(ConfigurationError, match="Install the same"):
            on(client, docs, index)

    # a worker that came later, on which Dask keeps the parts although it refused them
    late = SimpleNamespace(
        address="tcp://late", plugins={"run": worker.WorkerParts(None, None, versions="others")}
    )
    monkeypatch.setattr(worker, "get_worker", lambda: late)
    assert "cannot do the work of this run" in str(worker.embed("run", ["text"]))

    def progress(name: str, done: int, total: int, *, bytes: int) -> None:  # noqa: A002
        (docs / "file39.md").unlink(missing_ok=True)

    (docs / "file39.md").write_text("# Seen by this process only")
    report = on(client, docs, index, progress=progress, readers={"*.md": lambda path: "text"})
    assert "does not see it at" in dict(report.failed).get("file39.md", "")
    with pytest.raises(ReadError, match="Nothing was changed"):
        on(client, docs, tmp_path / "strict", strict=True)


def processes_of(folder: Path) -> list[psutil.Process]:
    """Processes of clusters that were started by scripts in a folder."""
    return [
        process
        for process in psutil.process_iter(["environ"])
        if (process.info["environ"] or {}).get("CLUSTER_TEST") == str(folder)
    ]


def test_a_client_that_is_closed(client: Any, docs: Path, tmp_path: Path) -> None:
    """Before an ingest or in its midst: one line says so, and the next one finishes."""
    from distributed import Client

    own = Client(client.scheduler.address, set_as_default=False)
    for _ in range(2):
        with pytest.raises(ConfigurationError, match="client was closed"):
            on(own, docs, tmp_path / "index", progress=lambda *_, **__: own.close())
    assert on(client, docs, tmp_path / "index").chunks > 40


@pytest.mark.slow
@pytest.mark.parametrize("stop", [signal.SIGINT, pytest.param(signal.SIGKILL, marks=pytest.mark.slow)])
def test_a_plain_script_starts_workers_and_leaves_none(docs: Path, tmp_path: Path, stop: Any) -> None:
    """It needs no ``if __name__ == "__main__"``; interrupted or killed in the middle, its workers end with it."""
    (docs / "zz.last").write_text("last")
    script = tmp_path / "script.py"
    script.write_text(
        "import sys, time\n"
        "from rag_kit.indexing import IngestOptions, ingest\n"
        "def slow(path):\n"
        "    time.sleep(30)\n"
        "    return 'last'\n"
        "def told(name, done, total, bytes):\n"
        "    if name == 'zz.last': print('last', flush=True)\n"
        "options = IngestOptions(workers=2, readers={'*.last': slow})\n"
        "print(ingest(sys.argv[1], sys.argv[2], options=options, on_progress=told).summary())\n"
    )
    command = [sys.executable, str(script), str(docs), str(tmp_path / "index")]
    environment = {**os.environ, "CLUSTER_TEST": str(tmp_path)}
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None and process.stderr is not None
        assert process.stdout.readline() == "last\n"
        time.sleep(1)
        assert len(processes_of(tmp_path)) > 3
        begun = time.monotonic()
        process.send_signal(stop)
        process.wait(30)
        assert time.monotonic() - begun < 20, "it does not wait for the file"
        assert process.stderr.read().count("Traceback") == (stop == signal.SIGINT)
    deadline = time.monotonic() + 30
    while left := processes_of(tmp_path):
        assert time.monotonic() < deadline, left
        time.sleep(0.1)


def test_the_command_line_names_a_scheduler_or_starts_workers(
    client: Any, docs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """``--scheduler`` works as ``scheduler=``; beside ``--workers`` it is refused."""
    given = ["ingest", str(docs), "--index", str(tmp_path / "index"), "--embedding-model", "none"]
    assert main([*given, "--scheduler", client.scheduler.address, "--json"]) == exits.PARTIAL
    assert json.loads(capsys.readouterr().out)["added"] == 41
    assert main([*given, "--scheduler", "tcp://a:1", "--workers", "2"]) == exits.USAGE
    assert "not allowed with" in capsys.readouterr().err


def test_without_the_extra_the_message_names_it(
    docs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The package of workers is imported first of all, and says how it is installed."""
    for module in ("work", "worker"):
        monkeypatch.delitem(sys.modules, f"rag_kit.indexing.cluster.{module}", raising=False)
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(MissingExtraError, match=r"rag-kit\[distributed\]"):
        ingest(docs, tmp_path / "index", options=IngestOptions(workers=1))
