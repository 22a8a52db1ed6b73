"""Exact dense search in memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.runnables import ConfigurableField, RunnableConfig

from rag_kit.documents import get_provenance
from rag_kit.errors import InvalidInputError
from rag_kit.indexing.document_index.vectors import unit
from rag_kit.retrieval.exact import ExactVectorRetriever, nearest_rows

EMBEDDING = DeterministicFakeEmbedding(size=16)
DOCS = [Document(f"text {n}", id=f"id{n}", metadata={"odd": bool(n % 2)}) for n in range(120)]
RANDOM = np.random.default_rng(7)
ROWS = RANDOM.normal(size=(3000, 24)).astype(np.float32) * RANDOM.uniform(0.1, 50, size=(3000, 1)).astype(
    "f4"
)
QUERIES = RANDOM.normal(size=(5, 24)).astype(np.float32)


def by_hand(rows: Any, query: Any) -> Any:
    """Cosine distances in float64, by the definition."""
    rows, query = rows.astype(np.float64), query.astype(np.float64)
    return 1 - (rows / np.linalg.norm(rows, axis=1, keepdims=True)) @ (query / np.linalg.norm(query))


@pytest.mark.parametrize("share", [None, 0.9, 0.0005, 0.0])
def test_equal_to_the_definition(share: float | None) -> None:
    """Rows and cosines are those of a plain sort, for any share of rows that pass."""
    mask = None if share is None else RANDOM.random(len(ROWS)) < share
    for query in QUERIES:
        hits = nearest_rows(unit(ROWS), query, 10, mask)
        distances = by_hand(ROWS, query)
        allowed = np.arange(len(ROWS)) if mask is None else np.flatnonzero(mask)
        expected = sorted(allowed, key=lambda row: distances[row])[:10]
        assert [row for row, _ in hits] == expected
        assert [score for _, score in hits] == pytest.approx(1 - distances[expected], abs=2e-6)
        assert all(type(row) is int and type(score) is float for row, score in hits)


def test_ties_small_and_empty() -> None:
    """Ties come in the order of the rows; fewer rows than k, no rows, rows of zeros."""
    rows = unit(np.repeat(RANDOM.normal(size=(40, 300)), 30, axis=0).astype(np.float32))
    first = [row for row, _ in nearest_rows(rows, RANDOM.normal(size=300), 30)]
    assert first == sorted(first)
    assert [row for row, _ in nearest_rows(np.eye(3, dtype="f4"), [0, 1, 0], 9)] == [1, 0, 2]
    assert nearest_rows(np.zeros((0, 0), "f4"), [1.0, 2.0], 2) == []
    assert nearest_rows(np.zeros((2, 3), "f4"), [1, 0, 0], 2) == [(0, 0.0), (1, 0.0)]


async def test_made_by_its_fields() -> None:
    """The constructor embeds the documents, and a configurable field does not lose their vectors."""
    retriever = ExactVectorRetriever(documents=DOCS, embeddings=EMBEDDING, k=3)
    expected = ExactVectorRetriever.from_documents(DOCS, EMBEDDING, k=2).invoke("text 8")
    configurable = retriever.configurable_fields(k=ConfigurableField(id="k"))
    config: RunnableConfig = {"configurable": {"k": 2}}
    assert configurable.invoke("text 8", config) == await configurable.ainvoke("text 8", config) == expected


async def test_over_documents() -> None:
    """`ExactVectorRetriever` over documents: cosines, ties in their order, filters, and fitting vectors."""
    retriever = ExactVectorRetriever.from_documents(DOCS, EMBEDDING, k=3)
    found = retriever.invoke("text 8", filter={"odd": False})
    assert found == await retriever.ainvoke("text 8", filter={"odd": False})
    assert found[0].id == "id8" and get_provenance(found[0])["score"] == pytest.approx(1.0)
    assert all(not doc.metadata["odd"] for doc in found)
    twins = ExactVectorRetriever.from_documents([Document("a", id=i) for i in "cab"], EMBEDDING)
    assert [doc.id for doc in twins.invoke("a")] == ["c", "a", "b"]
    assert ExactVectorRetriever.from_documents([], EMBEDDING).invoke("a") == []
    with pytest.raises(InvalidInputError, match="give one row a document"):
        ExactVectorRetriever.from_documents(DOCS, EMBEDDING, vectors=np.eye(3))
    wrong = ExactVectorRetriever.from_documents(DOCS[:3], EMBEDDING, vectors=np.eye(3))
    with pytest.raises(InvalidInputError, match="16 dimensions, the documents' have 3"):
        wrong.invoke("a")
