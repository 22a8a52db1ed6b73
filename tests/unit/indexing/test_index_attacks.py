"""What must never happen to files beside an index, or to an index that was tampered with or damaged."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from langchain_core.documents import Document

from rag_kit.errors import InvalidInputError
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


def test_a_failing_ingest_keeps_an_index_that_lost_its_manifest(docs: Path, tmp_path: Path) -> None:
    """Rows written without a source, in an index without its manifest, survive an ingest that fails."""
    folder = tmp_path / "index"
    with DocumentIndex.create(folder) as index:
        index.upsert([Document("quokka", id="q")])
    (folder / "manifest.json").unlink()
    for paths, options in ((tmp_path / "nowhere", {}), (docs, {"chunk_size": 0})):
        with pytest.raises(InvalidInputError):
            ingest(paths, folder, **options)
    assert ingest(docs, folder).added == 2
    with DocumentIndex.open(folder) as index:
        assert [document.id for document, _ in index.search_keyword("quokka")] == ["q"]


def test_a_failing_ingest_removes_only_what_it_made(docs: Path, tmp_path: Path) -> None:
    """What comes into the new folder during the run stays; without it the folder is gone, or empty as before."""
    folder = tmp_path / "index"

    def fail(file: str, *_: int, **__: int) -> None:
        if plant:
            (folder / "letter.txt").write_text("dear")
            (folder / "chroma-old").mkdir()
        raise OSError("interrupted")

    for plant, there in ((False, None), (True, ["chroma-old", "letter.txt"])):  # noqa: B007 - fail reads it
        with pytest.raises(OSError, match="interrupted"):
            ingest(docs, folder, progress=fail)
        assert (sorted(os.listdir(folder)) if folder.exists() else None) == there
    (tmp_path / "empty").mkdir()
    folder, plant = tmp_path / "empty", False
    with pytest.raises(OSError, match="interrupted"):
        ingest(docs, folder, progress=fail)
    assert os.listdir(folder) == []
