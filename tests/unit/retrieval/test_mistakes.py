"""What a newcomer gets wrong is answered by a message that says what to do."""

from __future__ import annotations

import numpy as np
import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.language_models import FakeListChatModel
from langchain_core.vectorstores import InMemoryVectorStore

from rag_kit.documents import get_provenance
from rag_kit.errors import InvalidInputError
from rag_kit.indexing import DocumentIndex
from rag_kit.query_construction import SelfQueryRetriever
from rag_kit.retrieval import (
    BM25Retriever,
    EnsembleRetriever,
    MultiQueryRetriever,
    ParentDocumentRetriever,
    RerankRetriever,
    SentenceWindowRetriever,
)
from rag_kit.retrieval.rerank.retriever import ScoreGap


@pytest.mark.parametrize("wrong", [["a text"], "a text", 5, None, [None], Document("x")])
def test_documents_that_are_none_are_named(wrong, tmp_path):
    """Strings, or one document alone, are refused by the indexes too."""
    with (
        DocumentIndex.create(tmp_path / "index") as index,
        pytest.raises(InvalidInputError, match="documents"),
    ):
        index.upsert(wrong)
    for family in (ParentDocumentRetriever, SentenceWindowRetriever):
        with pytest.raises(InvalidInputError, match="give a list of LangChain Documents"):
            family.from_documents(wrong)


def test_the_same_document_twice_is_one():
    """One id names two documents only if they differ in more than their place in the call."""
    twice = [Document("The fan hums. Tea is hot.", id="a", metadata={"n": 1}) for _ in range(2)]
    for family in (ParentDocumentRetriever, SentenceWindowRetriever):
        with family.from_documents(twice) as retriever:
            assert len(retriever.invoke("fan")) == 1
        other = Document("The fan hums. Tea is hot.", id="a", metadata={"n": 2})
        with pytest.raises(InvalidInputError, match="two different documents"):
            family.from_documents([twice[0], other])


def test_parts_in_order_without_names_are_refused():
    """Retrievers take their arguments by name, and say so."""
    with pytest.raises(InvalidInputError, match="EnsembleRetriever takes its arguments by name"):
        EnsembleRetriever([BM25Retriever.from_texts(["a"])])


def test_a_vector_store_as_a_retriever():
    """Where only a retriever will do, the message says how to make one of a store."""
    store = InMemoryVectorStore(DeterministicFakeEmbedding(size=4))
    with pytest.raises(InvalidInputError, match="VectorRetriever"):
        MultiQueryRetriever.from_llm(FakeListChatModel(responses=["x"]), store)


def test_no_documents_and_odd_values_for_a_self_query():
    """An empty list is a collection; arrays in the metadata are values like others."""
    assert SelfQueryRetriever.from_rules([]).invoke("fans after 2010") == []
    odd = [Document("fan", metadata={"a": np.array([]), "b": np.array([1, 2]), "year": np.int64(2011)})]
    retriever = SelfQueryRetriever.from_rules(odd)
    assert [field.name for field in retriever.schema_in_use] == ["b", "year"]
    assert len(retriever.invoke("fan after 2010")) == 1


def test_equal_scores_are_no_drop():
    """Where all scores are the same, nothing is said of a drop."""
    words = BM25Retriever.from_texts([f"fan {number}" for number in range(9)])
    flat = RerankRetriever(
        retriever=words, reranker=lambda query, found: [0.9] * len(found), score_gap=ScoreGap(), k=2
    )
    found = flat.invoke("fan")
    assert len(found) == 2 and not any("drop" in note for note in get_provenance(found[0])["notes"])
