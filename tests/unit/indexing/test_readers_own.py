"""Readers of one's own, and what is refused by name."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_community.document_loaders import TextLoader
from langchain_core.documents import Document

from rag_kit.errors import InvalidInputError, ReadError
from rag_kit.indexing import DocumentIndex, IngestOptions, ingest, read, register_reader
from rag_kit.indexing.readers.api import Reader


@pytest.fixture
def registered() -> Iterator[Any]:
    """Registers readers for one test."""
    patterns: list[str] = []

    def register(pattern: str, reader: Any) -> None:
        patterns.append(pattern)
        register_reader(pattern, reader)

    yield register
    for pattern in patterns:
        register_reader(pattern, None)


def says(word: str) -> Any:
    return lambda path: f"{word}: {path.name}"


def test_own_readers_win_and_of_patterns_the_last(tmp_path: Path, registered: Any) -> None:
    """And of patterns that of a Reader; a pattern may name a folder."""
    for name in ("letters/invoice-7.txt", "letters/note.txt", "other.txt", "Q.DAT"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("plain")
    registered("*.txt", says("registered"))
    registered("letters/*.txt", says("letters"))
    registered("invoice-7*.txt", says("invoice"))
    registered(".dat", says("dat"))
    with Reader() as reader:
        got = {
            p.name: reader.read(p, root=tmp_path)[0].page_content.split(":")[0] for p in tmp_path.rglob("*.*")
        }
    assert got == {
        "invoice-7.txt": "invoice",
        "note.txt": "letters",
        "other.txt": "registered",
        "Q.DAT": "dat",
    }
    registered("*.dat", lambda path: [Document(path.read_text().upper(), metadata={"page": 3}), "more"])
    first, second = read(tmp_path / "Q.DAT")
    assert (first.page_content, first.metadata["page"]) == ("PLAIN", 3)
    assert (second.page_content, second.metadata["file"]) == ("more", "Q.DAT")
    with Reader(readers={"*.txt": says("own")}) as reader:
        assert reader.read(tmp_path / "other.txt")[0].page_content == "own: other.txt"
        assert reader.read(tmp_path / "letters" / "note.txt")[0].page_content == "own: note.txt"


def test_a_langchain_loader_class_is_enough(tmp_path: Path) -> None:
    """For ``ingest`` too; its documents get the metadata of all others, and keep their own."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.notes").write_text("The pump starts at 40 degrees. 水泵。", encoding="utf-8")
    report = ingest(
        tmp_path / "docs", tmp_path / "index", options=IngestOptions(readers={"*.notes": TextLoader})
    )
    assert (report.added, report.failed) == (1, [])
    with DocumentIndex.open(tmp_path / "index") as index:
        (found, _score), *_ = index.search_keyword("pump")
        assert found.metadata["file"] == "a.notes" and found.metadata["format"] == "notes"


@pytest.mark.parametrize("wrong", ["", "eml", "*", "*.", 3])
def test_a_pattern_that_is_none_is_refused(wrong: Any) -> None:
    """With an example of one."""
    with pytest.raises(InvalidInputError, match=r"\*\.eml"):
        register_reader(wrong, str)


@pytest.mark.parametrize(
    ("own", "reason"),
    [
        (lambda path: 1 / 0, "ZeroDivisionError"),
        (lambda path: [3], "gave int"),
        (lambda path: " ", "no text found"),
    ],
)
def test_failures_of_an_own_reader_are_named(tmp_path: Path, registered: Any, own: Any, reason: str) -> None:
    """Whatever it raises or returns; without it the file is not read, and the error says what to do."""
    (tmp_path / "a.shout").write_text("hello")
    with pytest.raises(ReadError, match=r"not among the supported.*register_reader"):
        read(tmp_path / "a.shout")
    registered(".Shout", own)
    with pytest.raises(ReadError, match=reason):
        read(tmp_path / "a.shout")


@pytest.mark.parametrize("relative", [False, True])
def test_paths_of_an_own_reader_do_not_leave_the_machine(
    tmp_path: Path, relative: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever field a reader puts them in, ingest keeps what is below the folder; other texts stay."""
    (tmp_path / "docs" / "letters").mkdir(parents=True)
    (tmp_path / "docs" / "letters" / "a.own").write_text("own pump")
    monkeypatch.chdir(tmp_path)

    def own(path: Path) -> Document:
        paths = {"file_path": str(path), "file_directory": str(path.parent), "place": path}
        return Document(path.read_text(), metadata={**paths, "note": f"from {path.name}", "page": 3})

    ingest(
        [Path("docs") if relative else tmp_path / "docs"],
        tmp_path / "index",
        options=IngestOptions(readers={"*.own": own}),
    )
    with DocumentIndex.open(tmp_path / "index") as index:
        found = index.get(index.ids())[0].metadata
    assert str(tmp_path) not in str(found)
    assert (found["file_path"], found["place"], found["file_directory"]) == (
        "letters/a.own",
        "letters/a.own",
        "letters",
    )
    assert (found["note"], found["page"]) == ("from a.own", 3)
