"""A disk that fails while files are ingested: what was committed stays, and the error says what to do."""

from __future__ import annotations

import os
import random
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from langchain_core.documents import Document
from support.embedding import WordEmbeddings

import rag_kit.indexing.document_index.writing as writing
import rag_kit.indexing.ingestion.run as run
from rag_kit.errors import DocumentIndexError
from rag_kit.indexing import DocumentIndex, ingest

FILES = 40


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    """Files of 20 chunks of rare words."""
    folder, chance = tmp_path / "docs", random.Random(0)
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


@pytest.mark.parametrize("size", ["2m", "4m"])
def test_no_room_on_the_device(docs: Path, small: Path, monkeypatch: pytest.MonkeyPatch, size: str) -> None:
    """Whether the store or what is derived finds no room: searches go on, and the next run finishes."""
    monkeypatch.setattr(run, "_GROUP", 100)
    resized(small, size)
    with pytest.raises(
        DocumentIndexError, match=r"(cannot be read or written|cannot be saved).*[Mm]ake room"
    ):
        ingest(docs, small / "index", embeddings=WordEmbeddings())
    held = whole(small / "index")
    assert 0 < held <= FILES
    resized(small, "64m")
    report = ingest(docs, small / "index", embeddings=WordEmbeddings())
    assert (report.unchanged, report.added) == (held, FILES - held) and whole(small / "index") == FILES


def test_a_store_that_fails_half_way(docs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
            ingest(docs, tmp_path / "index", embeddings=WordEmbeddings())
    assert whole(tmp_path / "index") == 10
    assert ingest(docs, tmp_path / "index", embeddings=WordEmbeddings()).added == FILES - 10
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
