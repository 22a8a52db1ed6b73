"""An index in a folder, and processes that are forked while it is open."""

from __future__ import annotations

import multiprocessing
import os
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from langchain_core.documents import Document

from rag_kit.errors import DocumentIndexError, IndexFormatError, LockedError
from rag_kit.indexing import DocumentIndex
from rag_kit.indexing.document_index.folder import explanation

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
FORK = multiprocessing.get_context("fork") if hasattr(os, "fork") else None


def in_child(function: Callable[[], Any]) -> Any:
    """Call a function in a forked process and give what it returns."""
    assert FORK is not None
    answers = FORK.Queue()
    process = FORK.Process(target=lambda: answers.put(function()), daemon=True)
    process.start()
    answer = answers.get(timeout=60)
    process.join(60)
    assert process.exitcode == 0
    return answer


def found(index: DocumentIndex) -> list[str]:
    """The ids of the chunks with the word pump."""
    return sorted(str(document.id) for document, _ in index.search_keyword("pump", 10))


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


def test_a_fork_inside_a_write_leaves_the_write_to_the_parent(tmp_path: Path) -> None:
    """The child sees what is committed; the parent commits the rest."""
    with DocumentIndex.create(tmp_path) as writer:
        writer.upsert([Document("The pump starts.", id="first")])
        with writer.transaction():
            writer.upsert([Document("The pump stops.", id="second")])
            assert in_child(lambda: found(writer)) == ["first"]
        assert found(writer) == ["first", "second"]


def test_a_folder_without_a_format_version_is_of_the_oldest(tmp_path: Path) -> None:
    """It is refused with what to do, and so is one whose tables lack a column; neither is called damaged."""
    DocumentIndex.create(tmp_path).close()
    [store] = tmp_path.glob("*.sqlite*")
    connection = sqlite3.connect(store)
    connection.execute("DELETE FROM meta WHERE key = 'version'")
    connection.commit()
    with pytest.raises(
        IndexFormatError, match=r"has no format version, as the oldest had.*ingest again"
    ) as caught:
        DocumentIndex.open(tmp_path)
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
