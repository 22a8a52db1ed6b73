"""Filters in the language of a store, ANDed with the store's own."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.runnables import RunnableLambda
from langchain_core.structured_query import Comparator, Comparison, Operation, Operator
from langchain_core.vectorstores import VectorStore

from rag_kit.concurrency.notes import use_notes
from rag_kit.documents.filter_translations import to_qdrant
from rag_kit.errors import FilterError
from rag_kit.retrieval import VectorRetriever
from rag_kit.retrieval.inner import call_retriever
from rag_kit.retrieval.stores import native_filter, to_directive

EMBED = DeterministicFakeEmbedding(size=4)


def test_langchains_translators_serve_other_stores() -> None:
    """A store without a translation of the kit's own gets plain comparisons by LangChain's translator."""
    pytest.importorskip("langchain_classic")
    vectorstores = pytest.importorskip("langchain_community.vectorstores")
    store = object.__new__(vectorstores.Pinecone)
    where = {"$and": [{"year": {"$gte": 2010}}, {"topic": {"$in": ["a", "b"]}}]}
    assert native_filter(store, where) == where
    for refused in (
        {"year": {"$ne": 1}},
        {"$not": {"year": 1}},
        {"tags": {"$contains": "a"}},
        {"a": {"$in": []}},
    ):
        assert native_filter(store, refused) is None
    assert native_filter(store, where, static={"tenant": "a"}) is None


class Own(VectorStore):
    """A store that cannot filter; it has any number of documents."""

    @classmethod
    def from_texts(cls, texts: Any, embedding: Any, metadatas: Any = None, **kwargs: Any) -> Own:
        return cls()

    def similarity_search(self, query: str, k: int = 4, **kwargs: Any) -> list[Document]:
        assert not kwargs
        return [Document(str(n), metadata={"n": n}) for n in range(k)]


def test_stores_that_nobody_knows_are_filtered_afterwards() -> None:
    """A store of the user's own class gets no filter; the results are filtered."""
    store = Own()
    assert native_filter(store, {"n": 1}) is None
    found = call_retriever(store.as_retriever(), "q", k=2, filter={"n": {"$gte": 5}})
    assert [doc.page_content for doc in found] == ["5", "6"]


@pytest.mark.parametrize("kind", ["a store", "a store of the kit", "a function"])
def test_a_list_cut_before_the_filter_counts_as_not_searched(kind: str) -> None:
    """More may be behind what was found, where fewer than wanted pass a filter that comes too late."""
    retrievers = {
        "a store": Own().as_retriever(),
        "a store of the kit": VectorRetriever(vectorstore=Own()),
        "a function": RunnableLambda(lambda query: Own().similarity_search(query, k=8), name="theirs"),
    }
    every = {"n": {"$gte": 0}}
    rows = (({"n": 1}, 2, 1), ({"n": 1}, 1, 0), (every, 2, 0), ({"n": 1}, None, 1), (every, None, 0))
    for where, k, unsearched in rows:
        with use_notes() as notes:
            found = call_retriever(retrievers[kind], "q", k=k, filter=where)
        assert found and len(notes.unsearched) == unsearched, where


def test_qdrants_own_filter_is_kept() -> None:
    """A filter that the retriever holds already is ANDed with the caller's; one of another kind is not lost."""
    pytest.importorskip("langchain_qdrant", reason="langchain-qdrant is not installed")
    from langchain_qdrant import QdrantVectorStore
    from qdrant_client import QdrantClient, models

    client = QdrantClient(":memory:")
    client.create_collection(
        "rows", vectors_config=models.VectorParams(size=4, distance=models.Distance.COSINE)
    )
    store = QdrantVectorStore(client, "rows", EMBED)
    store.add_documents(
        [Document(f"{t}{n}", metadata={"t": t, "n": n, "a.b": n}) for t in "xy" for n in range(3)]
    )
    static = models.Filter(must=[models.FieldCondition(key="metadata.t", match=models.MatchValue(value="x"))])
    retriever = store.as_retriever(search_kwargs={"filter": static})
    found = call_retriever(retriever, "q", k=10, filter={"n": {"$gte": 1}})
    assert sorted(doc.page_content for doc in found) == ["x1", "x2"]
    dotted = call_retriever(store.as_retriever(), "q", k=10, filter={"a.b": 2, "t": "y"})
    assert [doc.page_content for doc in dotted] == ["y2"]
    with pytest.raises(FilterError, match="Qdrant cannot ask"):
        to_qdrant({'a"]b': 1})
    client.close()


@pytest.mark.parametrize("name", ["PGVectorStore", "PGVector"])
def test_stores_in_postgres_are_filtered_afterwards(name: str) -> None:
    """They would fail in the search, or find nothing, for keys and values that they cannot ask."""
    store = object.__new__(getattr(pytest.importorskip("langchain_postgres"), name))
    assert native_filter(store, {"year": 2010}) is None
    assert native_filter(store, {"year": 2010}, static={"tenant": "a"}) is None


def test_a_filter_in_langchains_form() -> None:
    """Joins, negations, lists and missing keys are comparisons and operations of LangChain."""
    where = {"$or": [{"a": {"$in": [1, 2]}}, {"$not": {"b": {"$contains": "x"}}}, {"c": {"$exists": False}}]}
    assert to_directive(where) == Operation(
        Operator.OR,
        [
            Comparison(Comparator.IN, "a", [1, 2]),
            Operation(Operator.NOT, [Comparison(Comparator.CONTAIN, "b", "x")]),
            Comparison(Comparator.EQ, "c", None),
        ],
    )
    assert to_directive({"$not": {"a": {"$in": [1]}, "b": 2}}) == Operation(
        Operator.OR, [Comparison(Comparator.NIN, "a", [1]), Comparison(Comparator.NE, "b", 2)]
    )
    assert to_directive({}) is None
    with pytest.raises(FilterError, match="No document can pass"):
        to_directive({"a": {"$in": []}})
