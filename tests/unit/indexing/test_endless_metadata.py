"""Metadata that hold themselves are refused where documents are written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from langchain_core.documents import Document

from rag_kit.errors import InvalidInputError
from rag_kit.indexing import BM25Index, DocumentIndex
from rag_kit.indexing.sparse.index import SparseIndex
from rag_kit.retrieval import BM25Retriever


def circular() -> list[Document]:
    inner: dict[str, Any] = {"name": "loop"}
    inner["self"] = [inner]
    return [Document("a cat", id="fine"), Document("a dog", id="loop", metadata={"more": inner})]


def deep() -> list[Document]:
    value: Any = "end"
    for _ in range(5_000):
        value = [value]
    return [Document("a cat", id="fine"), Document("a dog", id="loop", metadata={"more": value})]


@pytest.mark.parametrize(
    ("documents", "message"),
    [(circular, r"\['more'\]\['self'\]\[0\] holds itself"), (deep, "nested deeper than 100")],
)
def test_a_document_that_cannot_be_copied_is_named(documents: Any, message: str, tmp_path: Path) -> None:
    """Every way in refuses it by number and id, and holds nothing afterwards."""
    named = rf"documents\[1\] \(id 'loop'\): metadata.*{message}"
    for way in (BM25Index.from_documents, SparseIndex.from_documents, BM25Retriever.from_documents):
        with pytest.raises(InvalidInputError, match=named):
            way(documents())
    words = BM25Index.from_texts(["one"])
    with pytest.raises(InvalidInputError, match=named):
        words.update(documents())
    assert len(words) == 1
    with DocumentIndex.create(tmp_path / "i") as index:
        with pytest.raises(InvalidInputError, match=named):
            index.upsert(documents())
        assert index.stats()["chunks"] == 0


def test_values_that_are_shared_are_no_loop(tmp_path: Path) -> None:
    """The same list in several places, however often, is written, and quickly."""
    shared: Any = ["tag"]
    for _ in range(12):
        shared = [shared, shared]
    document = Document("a cat", metadata={"a": shared, "b": shared, "c": {"d": shared}})
    assert len(BM25Index.from_documents([document])) == 1
