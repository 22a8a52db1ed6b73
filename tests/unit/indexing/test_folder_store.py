"""An index in a folder: forks, kills while it is made, files that were tampered with, disks that fail or are full."""

from __future__ import annotations

import ctypes
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from support.embedding import WordEmbeddings
from support.forked import FORK, in_child, needs_fork

import rag_kit.indexing.document_index.writing as writing
import rag_kit.indexing.ingestion.run as run
from rag_kit.errors import (
    DocumentIndexError,
    IndexFormatError,
    IndexMismatchError,
    IndexMissingError,
    InvalidInputError,
    LockedError,
)
from rag_kit.indexing import DocumentIndex, ingest
from rag_kit.indexing.document_index.folder import explanation


def found(index: DocumentIndex) -> list[str]:
    """The ids of the chunks with the word pump."""
    return sorted(str(document.id) for document, _ in index.search_keyword("pump", 10))


def replace_index(folder: Path, text: str, embeddings: Any = None) -> None:
    """Put another index in the place of the one in a folder."""
    shutil.rmtree(folder)
    with DocumentIndex.create(folder, embeddings=embeddings) as other:
        other.upsert([Document(text, id="new", metadata={"year": 2})])


def test_a_reader_reads_the_index_that_took_the_place_of_its_own(tmp_path: Path) -> None:
    """Text, filters and vectors are those of the new index, also where both have as many writes."""
    folder, words = tmp_path / "index", WordEmbeddings()
    with DocumentIndex.create(folder, embeddings=words) as first:
        first.upsert([Document("The pump starts.", id="old", metadata={"year": 1})])
    with DocumentIndex.open(folder, embeddings=words) as reader:
        assert found(reader) == ["old"] and not reader.search_dense(words.embed_query("pump"), 1, {"year": 2})
        replace_index(folder, "The pump stops.", words)
        assert found(reader) == ["new"]
        dense = reader.search_dense(words.embed_query("pump"), 1, {"year": 2})
        assert [document.page_content for document, _ in dense] == ["The pump stops."]
        shutil.rmtree(folder)
        with pytest.raises(IndexMissingError, match="There is no index"):
            found(reader)


@pytest.mark.parametrize("rest", [None, b""])
def test_an_index_without_its_store_is_told_from_no_index(rest: bytes | None, tmp_path: Path) -> None:
    """The error names the file that was lost or emptied; a folder that never was an index has another."""
    replace_index(tmp_path, "The pump starts.", WordEmbeddings())
    (tmp_path / "store.sqlite3").unlink()
    if rest is not None:
        (tmp_path / "store.sqlite3").write_bytes(rest)
    for mode in ("r", "w"):
        with pytest.raises(
            IndexMissingError, match=r"store\.sqlite3 is lost or empty.*backup.*rag-kit ingest"
        ):
            DocumentIndex.open(tmp_path, mode=mode, embeddings=WordEmbeddings())


def test_an_index_of_another_model_in_its_place_is_refused(tmp_path: Path) -> None:
    """Each search is refused, not only the first, since the query's vectors would mean something else."""
    folder = tmp_path / "index"
    DocumentIndex.create(folder, embeddings=WordEmbeddings()).close()
    with DocumentIndex.open(folder, embeddings=WordEmbeddings()) as reader:
        replace_index(folder, "The pump stops.", DeterministicFakeEmbedding(size=8))
        for _ in range(2):
            with pytest.raises(IndexMismatchError, match="was built with the embedding model"):
                found(reader)


def test_a_writer_whose_index_was_replaced_writes_nothing(tmp_path: Path) -> None:
    """Rows would go into a file that nobody can open any more."""
    folder = tmp_path / "index"
    writer = DocumentIndex.create(folder)
    writer.upsert([Document("The pump starts.", id="old")])
    replace_index(folder, "The pump stops.")
    before = sorted(folder.iterdir())
    with pytest.raises(DocumentIndexError, match="was replaced by another one"):
        writer.upsert([Document("The pump hums.", id="lost")])
    with pytest.raises(DocumentIndexError, match="was replaced by another one"):
        writer.close()
    assert sorted(folder.iterdir()) == before
    with DocumentIndex.open(folder) as reader:
        assert found(reader) == ["new"]


@needs_fork
def test_a_reader_in_a_forked_process_reads_on(tmp_path: Path) -> None:
    """By its own connection: also what is written later, and after the parent has closed its index."""
    with DocumentIndex.create(tmp_path) as writer:
        writer.upsert([Document("The pump starts.", id="first")])
        reader = DocumentIndex.open(tmp_path)
        assert found(reader) == ["first"] == in_child(lambda: found(reader))
        writer.upsert([Document("The pump stops.", id="second")])
        assert in_child(lambda: found(reader)) == ["first", "second"] == found(reader)
    assert in_child(lambda: found(reader)) == ["first", "second"]
    assert in_child(lambda: reader.verify().ok) and reader.verify().ok
    reader.close()


@needs_fork
def test_a_writer_in_a_forked_process_is_refused(tmp_path: Path) -> None:
    """It reads, and says of a write that it belongs to the parent, which goes on writing and keeps the lock."""

    def write() -> str:
        try:
            writer.upsert([Document("The pump leaks.", id="child")])
        except DocumentIndexError as error:
            return f"{type(error).__name__}: {error}"
        finally:
            writer.close()
        return "written"

    def take_over() -> str:
        try:
            DocumentIndex.open(tmp_path, mode="w").close()
        except LockedError:
            return "locked"
        return "opened"

    with DocumentIndex.create(tmp_path) as writer:
        writer.upsert([Document("The pump starts.", id="first")])
        answer = in_child(write)
        assert answer.startswith("DocumentIndexError") and "was forked from" in answer
        assert in_child(lambda: found(writer)) == ["first"]
        assert in_child(take_over) == "locked"
        writer.upsert([Document("The pump stops.", id="second")])
    assert in_child(take_over) == "opened"
    with DocumentIndex.open(tmp_path) as reader:
        assert found(reader) == ["first", "second"] and reader.verify().ok


@needs_fork
def test_a_fork_inside_a_write_leaves_the_write_to_the_parent(tmp_path: Path) -> None:
    """The child sees what is committed; the parent commits the rest."""
    with DocumentIndex.create(tmp_path) as writer:
        writer.upsert([Document("The pump starts.", id="first")])
        with writer.transaction():
            writer.upsert([Document("The pump stops.", id="second")])
            assert in_child(lambda: found(writer)) == ["first"]
        assert found(writer) == ["first", "second"]


def test_another_format_is_told_apart_from_damage(tmp_path: Path) -> None:
    """One to come, none, as the oldest had, tables that lack a column: refused with what to do, also for repair."""
    DocumentIndex.create(tmp_path).close()
    [store] = tmp_path.glob("*.sqlite*")
    connection = sqlite3.connect(store)
    for statement, told in (
        ("UPDATE meta SET value = '9' WHERE key = 'version'", "has format version 9"),
        ("DELETE FROM meta WHERE key = 'version'", "has no format version, as the oldest had"),
    ):
        connection.execute(statement)
        connection.commit()
        for mode in ("r", "w"):
            with pytest.raises(IndexFormatError, match=f"{told}.*ingest again") as caught:
                DocumentIndex.open(tmp_path, mode=mode, check=False)  # type: ignore[arg-type]
            assert "damaged" not in str(caught.value)
    for statement in (
        "SELECT absent FROM chunks",
        "SELECT 1 FROM nowhere",
        "INSERT INTO meta (x) VALUES (1)",
    ):
        with pytest.raises(sqlite3.OperationalError) as failed:
            connection.execute(statement)
        told = str(explanation(failed.value, store))
        assert "the tables of another format" in told and "damaged" not in told
    connection.close()


# kill -9 while an index is made: there is none then, or a whole one, and making it again works


def create(folder: Path) -> None:
    DocumentIndex.create(folder).discard()


def begin(folder: Path) -> None:
    """Die in the first transaction of a store, with pages of it in the file already."""
    folder.mkdir()
    connection = sqlite3.connect(folder / "store.sqlite3", isolation_level=None)
    connection.executescript("PRAGMA cache_size=1; BEGIN; CREATE TABLE meta (key, value);")
    connection.executemany("INSERT INTO meta VALUES (?, randomblob(5000))", [(n,) for n in range(50)])
    os.kill(os.getpid(), signal.SIGKILL)


def check(folder: Path) -> bool:
    """Whether there is an index; where there is none, one can be made."""
    try:
        DocumentIndex.open(folder).close()
    except IndexMissingError:
        create(folder)
        DocumentIndex.open(folder).close()
        return False
    return True


@needs_fork
def test_a_kill_in_the_first_transaction_leaves_no_index(tmp_path: Path) -> None:
    """The journal that is left, which a reader cannot roll back, is no damage."""
    process = FORK.Process(target=begin, args=(tmp_path / "index",))
    process.start()
    process.join()
    assert (tmp_path / "index" / "store.sqlite3-journal").exists()
    assert not check(tmp_path / "index")


def test_what_a_kill_left_without_facts_is_no_index(tmp_path: Path) -> None:
    """Without the facts that `create` writes last there is no index, for readers and writers."""
    create(tmp_path / "index")
    with closing(sqlite3.connect(tmp_path / "index" / "store.sqlite3")) as connection, connection:
        connection.execute("DELETE FROM meta WHERE key != 'uid'")
    with pytest.raises(IndexMissingError):
        DocumentIndex.open(tmp_path / "index", mode="w")
    assert not check(tmp_path / "index")


@needs_fork
def test_kills_at_any_moment(tmp_path: Path) -> None:
    """A reader finds no index or a whole one; a second create finds the same."""
    chance = random.Random(20261123)
    duration = 0.0
    for number in range(11):
        process = FORK.Process(target=create, args=(tmp_path / str(number),))
        started = time.monotonic()
        process.start()
        if number:
            time.sleep(chance.random() * duration)
            process.kill()
        process.join()
        duration = duration or time.monotonic() - started
        assert check(tmp_path / str(number)) or number


# Files that were tampered with or damaged


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    """Two small files."""
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "pump.md").write_text("The pump starts at 40 degrees.")
    (folder / "valve.md").write_text("The valve opens at 3 bar.")
    return folder


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


def mend(docs: Path, folder: Path, damage: str, repaired: str) -> Any:
    """Repair an index and ingest again: text, vector and both search structures are those of the files."""
    model, text = WordEmbeddings(), "The pump starts at 40 degrees."
    with DocumentIndex.open(folder, mode="w", check=False) as index:
        assert damage in str(index.verify()) and repaired in str(index.repair())
    report = ingest(docs, folder, embeddings=model)
    with DocumentIndex.open(folder, embeddings=model) as index:
        assert index.verify().ok, str(index.verify())
        assert [d.page_content for d, _ in index.search_keyword("pump")] == [text]
        assert index.search_dense(text, 1)[0][0].page_content == text
    return report


@pytest.mark.parametrize(
    ("column", "old", "new"),
    [("text", b"pump", b"qump"), ("text", b"pump", b"\xf0ump"), ("metadata", b"{", b"[")],
)
def test_a_flipped_byte_is_mended_by_repair_and_ingest(
    docs: Path, index_folder: Path, column: str, old: bytes, new: bytes
) -> None:
    """After a repair the next ingest writes the damaged row again."""
    statement = f"UPDATE chunks SET {column} = replace({column}, ?, CAST(? AS TEXT)) WHERE text LIKE '%pump%'"
    execute(index_folder, statement, old.decode(), new)
    report = mend(docs, index_folder, "1 rows of chunks are not what was written", "will be read again")
    assert (report.added, report.unchanged, report.embedded) == (1, 1, 1)


@pytest.mark.parametrize("copy", [0, 1])
def test_a_flipped_bit_of_a_hash_is_mended_by_repair_and_ingest(
    docs: Path, index_folder: Path, copy: int
) -> None:
    """The table and SQLite's index of hashes no longer agree, whichever of the two was hit."""
    file = index_folder / "store.sqlite3"
    with closing(sqlite3.connect(file)) as connection:
        [(digest,)] = connection.execute("SELECT hash FROM chunks WHERE text LIKE '%pump%'")
    data = file.read_bytes()
    place = [found for found in range(len(data)) if data.startswith(digest, found)][copy]
    file.write_bytes(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])
    mend(docs, index_folder, "store.sqlite3 is damaged", "rebuilt the indexes within store.sqlite3")


def test_a_repair_says_that_nothing_mends_damaged_tables(index_folder: Path) -> None:
    """Zeros in the rows of a store: ``repair`` says that only a backup helps."""
    file = index_folder / "store.sqlite3"
    data = file.read_bytes()
    place = data.index(b"The pump starts")
    file.write_bytes(data[: place - 120] + bytes(120) + data[place:])
    with DocumentIndex.open(index_folder, mode="w", check=False) as index:
        assert not index.verify().ok
        with pytest.raises(IndexFormatError, match=r"nothing can rebuild it: put a backup in its place"):
            index.repair()


def test_repair_names_a_folder_in_place_of_a_file_of_a_leg(index_folder: Path) -> None:
    """It is not removed."""
    [file] = index_folder.glob("bm25-*.index")
    file.unlink()
    file.mkdir()
    with (
        DocumentIndex.open(index_folder, mode="w", check=False) as index,
        pytest.raises(DocumentIndexError, match=r"bm25-.*cannot be removed"),
    ):
        index.repair()
    assert file.is_dir()


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


# A disk that fails while files are ingested: what was committed stays, and the error says what to do


FILES = 40


@pytest.fixture
def many(tmp_path: Path) -> Path:
    """Files of 20 chunks of rare words."""
    folder, chance = tmp_path / "many", random.Random(0)
    folder.mkdir()
    for number in range(FILES):
        parts = (" ".join(f"word{chance.randrange(30_000)}" for _ in range(100)) for _ in range(20))
        (folder / f"{number:02}.txt").write_text("\n\n".join(parts))
    return folder


def mount(*arguments: str) -> bool:
    """Whether it worked."""
    return subprocess.run(["mount", *arguments], capture_output=True, check=False).returncode == 0


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own; ``resized`` gives it its size."""
    folder = tmp_path / "small"
    folder.mkdir()
    if sys.platform != "linux" or os.geteuid() != 0 or not mount("-t", "tmpfs", "tmpfs", str(folder)):
        pytest.skip("needs the rights to mount a small file system")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=False)


def resized(folder: Path, size: str) -> None:
    """Give the file system another size."""
    assert mount("-o", f"remount,size={size}", str(folder))


def whole(index: Path) -> int:
    """How many files an index holds, which is whole."""
    with DocumentIndex.open(index, embeddings=WordEmbeddings()) as opened:
        assert opened.verify().ok and len(opened.vectors(opened.ids())) == len(opened.ids())
        assert all(opened.search_keyword(opened.get(opened.ids())[0].page_content, 1))
        return len(opened.sources())


@pytest.mark.slow
@pytest.mark.parametrize("size", ["2m", "4m"])
def test_no_room_on_the_device(many: Path, small: Path, monkeypatch: pytest.MonkeyPatch, size: str) -> None:
    """Whether the store or what is derived finds no room: searches go on, and the next run finishes."""
    monkeypatch.setattr(run, "_GROUP", 100)
    resized(small, size)
    with pytest.raises(
        DocumentIndexError, match=r"(cannot be read or written|cannot be saved).*[Mm]ake room"
    ):
        ingest(many, small / "index", embeddings=WordEmbeddings())
    held = whole(small / "index")
    assert 0 < held <= FILES
    resized(small, "64m")
    report = ingest(many, small / "index", embeddings=WordEmbeddings())
    assert (report.unchanged, report.added) == (held, FILES - held) and whole(small / "index") == FILES


@pytest.mark.slow
def test_a_store_that_fails_half_way(many: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the midst of the third group: the two before stay, and the next run does the rest."""
    monkeypatch.setattr(run, "_GROUP", 100)
    write, groups = writing._write_vectors, 0

    def failing(*arguments: Any) -> None:
        nonlocal groups
        groups += 1
        if groups == 3:
            error = sqlite3.OperationalError("disk I/O error")
            error.sqlite_errorcode = sqlite3.SQLITE_IOERR_WRITE
            raise error
        write(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(writing, "_write_vectors", failing)
        with pytest.raises(
            DocumentIndexError, match=r"disk I/O error.*check the disk.*, then run the same again"
        ):
            ingest(many, tmp_path / "index", embeddings=WordEmbeddings())
    assert whole(tmp_path / "index") == 10
    assert ingest(many, tmp_path / "index", embeddings=WordEmbeddings()).added == FILES - 10
    assert whole(tmp_path / "index") == FILES


def test_a_closed_index_is_read_on_a_full_disk(small: Path) -> None:
    """It was closed cleanly, so nothing needs to be written; what is written later is seen, too."""
    resized(small, "4m")
    with DocumentIndex.create(small / "index") as index:
        index.upsert([Document("The pump starts.", id="first")])
    filler = os.open(small / "filler", os.O_CREAT | os.O_WRONLY)
    with suppress(OSError):
        while True:
            os.write(filler, bytes(4096))
    os.close(filler)
    with DocumentIndex.open(small / "index") as reader:
        assert [document.id for document, _ in reader.search_keyword("pump")] == ["first"]
        assert reader.verify().ok
        (small / "filler").unlink()
        with DocumentIndex.open(small / "index", mode="w") as writer:
            writer.upsert([Document("The pump stops.", id="second")])
        assert {document.id for document, _ in reader.search_keyword("pump")} == {"first", "second"}
