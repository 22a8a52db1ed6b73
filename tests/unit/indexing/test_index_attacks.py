"""Files beside an index stay as they are, and a damaged or tampered index is refused."""

from __future__ import annotations

import ctypes
import os
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from langchain_core.documents import Document
from support.embedding import WordEmbeddings

from rag_kit.errors import DocumentIndexError, IndexFormatError, InvalidInputError
from rag_kit.indexing import DocumentIndex, ingest


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    """Two small files."""
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "pump.md").write_text("The pump starts at 40 degrees.")
    (folder / "valve.md").write_text("The valve opens at 3 bar.")
    return folder


def tree(folder: Path) -> dict[str, bytes]:
    """All files below a folder with their bytes."""
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def test_a_failing_ingest_keeps_the_files_of_a_folder_that_is_no_index(docs: Path, tmp_path: Path) -> None:
    """A file with the store's name does not make a folder an index: it is refused, and all files stay."""
    folder = tmp_path / "downloads"
    (folder / "sub").mkdir(parents=True)
    (folder / "important.txt").write_text("precious")
    (folder / "sub" / "more.txt").write_text("precious too")
    (folder / "store.sqlite3").touch()
    before = tree(folder)
    with pytest.raises(InvalidInputError, match="nowhere"):
        ingest(tmp_path / "nowhere", folder)
    with pytest.raises(InvalidInputError, match=r"important\.txt"):
        ingest(docs, folder)
    with pytest.raises(InvalidInputError, match=r"important\.txt"):
        DocumentIndex.create(folder)
    assert tree(folder) == before and (folder / "sub").is_dir()


@pytest.fixture
def index_folder(docs: Path, tmp_path: Path) -> Path:
    """A closed index of the two files, with vectors."""
    ingest(docs, tmp_path / "index", embeddings=WordEmbeddings())
    return tmp_path / "index"


def execute(folder: Path, statement: str, *values: Any) -> None:
    """Change the store behind the index's back."""
    connection = sqlite3.connect(folder / "store.sqlite3")
    with connection:
        assert connection.execute(statement, values).rowcount == 1
    connection.close()


@pytest.mark.parametrize(
    "damage",
    ["deleted", "short", "link", "NaN", "huge", "garbled"],
)
def test_damaged_vector_files_are_named_and_mended(index_folder: Path, tmp_path: Path, damage: str) -> None:
    """Vector files gone, cut short, garbled or links: searches find the same, verify says so, repair mends them."""
    [path] = index_folder.glob("vectors-*.index")
    target = tmp_path / "elsewhere"
    content = path.read_bytes()
    path.unlink()
    if "link" in damage:
        target.write_bytes(content[:-1])
        path.symlink_to(target)
    elif damage in ("NaN", "huge"):
        path.write_bytes(content[:64] + (b"\xff" if damage == "NaN" else b"\x60") * 8 + content[72:])
    elif damage == "garbled":
        path.write_bytes(b"\xff" * len(content))
    elif not damage.endswith("deleted"):
        path.write_bytes(content[:-7])
    for mode in ("r", "w"):
        with DocumentIndex.open(index_folder, embeddings=WordEmbeddings(), mode=mode) as index:  # type: ignore[arg-type]
            assert index.search_dense("The pump starts", 1)[0][0].page_content.startswith("The pump")
            if mode == "r":
                report = index.verify()
                assert not report.ok and "vectors:" in str(report)
            else:
                assert index.repair().ok
    with DocumentIndex.open(index_folder, embeddings=WordEmbeddings()) as index:
        assert index.verify().ok
        assert index.search_dense("The pump starts", 1)[0][0].page_content.startswith("The pump")
    assert not target.exists() or target.read_bytes() == content[:-1]


@pytest.mark.parametrize(
    ("column", "old", "new"),
    [("text", b"pump", b"qump"), ("text", b"pump", b"\xf0ump"), ("metadata", b"{", b"[")],
)
def test_a_flipped_byte_is_mended_by_repair_and_ingest(
    docs: Path, index_folder: Path, column: str, old: bytes, new: bytes
) -> None:
    """After a repair the next ingest writes the damaged row again: text, vector, and both search structures."""
    model = WordEmbeddings()
    execute(
        index_folder,
        f"UPDATE chunks SET {column} = replace({column}, ?, CAST(? AS TEXT)) WHERE text LIKE '%pump%'",
        old.decode(),
        new,
    )
    with DocumentIndex.open(index_folder, mode="w", check=False) as index:
        assert "1 rows of chunks are not what was written" in str(index.verify())
        index.repair()
    report = ingest(docs, index_folder, embeddings=model)
    assert (report.added, report.unchanged, report.embedded) == (1, 1, 1)
    with DocumentIndex.open(index_folder, embeddings=model) as index:
        assert index.verify().ok, str(index.verify())
        text = "The pump starts at 40 degrees."
        assert [d.page_content for d, _ in index.search_keyword("pump")] == [text]
        assert index.search_dense(text, 1)[0][0].page_content == text


class Full:
    """A connection that finds no room to write."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)

    def execute(self, statement: str, *values: Any) -> Any:
        """Refuse what needs room."""
        if statement.startswith(("INSERT", "PRAGMA wal_checkpoint")):
            error = sqlite3.OperationalError("database or disk is full")
            error.sqlite_errorcode = sqlite3.SQLITE_FULL
            raise error
        return self._connection.execute(statement, *values)


def test_a_full_disk_at_close_does_not_hide_the_first_error(
    index_folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """When neither the write nor the clean-up finds room, the user sees the write's error, and the lock goes."""
    model = WordEmbeddings()
    with (  # noqa: PT012 - the error must come out of the with of the index
        pytest.raises(DocumentIndexError, match="make room"),
        DocumentIndex.open(index_folder, embeddings=model, mode="w") as index,
    ):
        index._store._writer = Full(index._store._writer)  # type: ignore[assignment]
        index.upsert([Document("valve", metadata={"source": "x"}, id="q")])
    assert "keeps its log" in caplog.text
    with DocumentIndex.open(index_folder, embeddings=model, mode="w") as index:
        assert len(index.ids()) == 2


@pytest.mark.parametrize(
    ("key", "value"), [("uid", '"../../x"'), ("generation", "-1"), ("generation", '"x"'), ("settings", "[")]
)
def test_the_advice_about_a_wrong_fact_holds(index_folder: Path, key: str, value: str) -> None:
    """Repair, which cannot help, is not recommended; what helps is."""
    execute(index_folder, "UPDATE meta SET value = ? WHERE key = ?", value, key)
    with pytest.raises(IndexFormatError, match="meta") as caught:
        DocumentIndex.open(index_folder, embeddings=WordEmbeddings())
    assert "rag-kit repair" not in str(caught.value)
    assert "backup" in str(caught.value) and "ingest again into a new folder" in str(caught.value)
    with pytest.raises(IndexFormatError, match="backup"):
        DocumentIndex.open(index_folder, mode="w", check=False)


def obey_modes() -> None:
    """Give up, for the program that starts, root's right to write where the mode of a file forbids it."""
    if sys.platform == "linux" and os.geteuid() == 0:
        drop, dac_override = 24, 1  # PR_CAPBSET_DROP and CAP_DAC_OVERRIDE of Linux
        ctypes.CDLL(None).prctl(drop, dac_override, 0, 0, 0)


def test_a_folder_that_cannot_be_written_to(index_folder: Path) -> None:
    """Keyword and dense search work in a read-only folder, and writing is refused in plain words."""
    code = (
        "import os, sys\n"
        "from support.embedding import WordEmbeddings\n"
        "from rag_kit.indexing import DocumentIndex\n"
        "from rag_kit.errors import RagKitError\n"
        "if os.access(sys.argv[1], os.W_OK): sys.exit('root')\n"
        "with DocumentIndex.open(sys.argv[1], embeddings=WordEmbeddings()) as index:\n"
        "    print(len(index.search_keyword('pump')), len(index.search_dense('The pump starts')))\n"
        "try:\n"
        "    DocumentIndex.open(sys.argv[1], embeddings=WordEmbeddings(), mode='w')\n"
        "except RagKitError as error:\n"
        "    print(error)\n"
    )
    paths = [index_folder, *index_folder.rglob("*")]
    modes = [path.stat().st_mode for path in paths]
    for path in paths:
        path.chmod(0o555 if path.is_dir() else 0o444)
    tests = str(Path(__file__).resolve().parents[2])
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([tests, os.environ.get("PYTHONPATH", "")])}
    command = [sys.executable, "-c", code, str(index_folder)]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, preexec_fn=obey_modes)
    for path, mode in zip(paths, modes, strict=True):
        path.chmod(mode)
    if run.stderr.strip() == "root":
        pytest.skip("root may write everywhere, and cannot give that up here")
    assert run.returncode == 0, run.stderr
    first, second = run.stdout.splitlines()
    assert first == "1 2" and "Nothing can be written" in second


@pytest.mark.parametrize("name", ["store.sqlite3", "store.sqlite3-wal", "writer.lock"])
@pytest.mark.parametrize("mode", ["r", "w"])
def test_a_link_in_the_place_of_a_file_is_refused(tmp_path: Path, name: str, mode: Any) -> None:
    """The target of the link stays as it is."""
    folder, target = tmp_path / "index", tmp_path / "target"
    DocumentIndex.create(folder).close()
    target.write_text("not yours")
    (folder / name).unlink(missing_ok=True)
    (folder / name).symlink_to(target)
    with pytest.raises(InvalidInputError, match=f"{name} is a link"):
        DocumentIndex.open(folder, mode=mode)
    assert target.read_text() == "not yours"
