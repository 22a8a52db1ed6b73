"""The filter that a retriever holds by itself."""

from __future__ import annotations

import pytest
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.runnables import ConfigurableField
from langchain_core.vectorstores import InMemoryVectorStore

from rag_kit.errors import FilterError
from rag_kit.retrieval import BM25Retriever, EnsembleRetriever, RerankRetriever
from rag_kit.retrieval.inside import own_filter

A, B = {"tenant": "a"}, {"tenant": "b"}


def words(**settings):
    return BM25Retriever.from_texts(["x"], **settings)


def test_several_inside_hold_what_one_of_them_holds():
    """Of two different filters either may have let a document through; none holds if one leg has none."""
    both = EnsembleRetriever(retrievers=[words(filter=A), words(filter=B)])
    assert own_filter(both) == {"$or": [A, B]}
    assert own_filter(EnsembleRetriever(retrievers=[words(filter=A), words(filter=A)])) == A
    assert own_filter(EnsembleRetriever(retrievers=[words(filter=A), words()])) is None


def test_the_config_of_the_call_may_set_the_filter():
    """A configurable filter counts as the call sets it."""
    inner = words(filter=A).configurable_fields(filter=ConfigurableField("who"))
    outer = RerankRetriever(retriever=inner, reranker=lambda query, documents: [1.0] * len(documents))
    assert own_filter(outer) == A
    assert own_filter(outer, {"configurable": {"who": B}}) == B


def test_what_cannot_be_read_is_passed_over_or_refused():
    """A filter in a store's own language is no mapping."""
    store = InMemoryVectorStore(DeterministicFakeEmbedding(size=4))
    inner = store.as_retriever(search_kwargs={"filter": lambda document: True})
    assert own_filter(inner) is None
    with pytest.raises(FilterError, match="cannot be read"):
        own_filter(inner, strict=True)
