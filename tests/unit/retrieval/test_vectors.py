"""Embedding models that give anything but vectors."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding, Embeddings
from langchain_core.vectorstores import InMemoryVectorStore
from support.rewriters import Scripted, both_raise

from rag_kit.documents import get_provenance
from rag_kit.errors import InvalidInputError, ModelOutputError
from rag_kit.retrieval import HyDERetriever
from rag_kit.retrieval.exact import ExactVectorRetriever

GOOD = DeterministicFakeEmbedding(size=4)
DOCS = [Document("sun", id="sun"), Document("moon", id="moon")]
PASSAGES = '{"passages": ["The moon."]}'


class Odd(Embeddings):
    """Gives the same for every text; for several texts perhaps something else for the last."""

    def __init__(self, one: Any, last: Any = ...) -> None:
        self.one = one
        self.last = one if last is ... else last

    def embed_query(self, text: str) -> Any:
        return self.one

    def embed_documents(self, texts: list[str]) -> Any:
        return [self.one] * (len(texts) - 1) + [self.last]


class Nothing(Odd):
    """Gives nothing at all."""

    def embed_documents(self, texts: list[str]) -> Any:
        return None


WRONG = [
    (Odd(None), "Odd gave "),
    (Odd("vector"), "Odd gave "),
    (Odd([None, 1.0, 2.0, 3.0]), "Odd gave list"),
    (Odd(["1", "2", "3", "4"]), "Odd gave list"),
    (Odd([[1.0, 2.0]]), "Odd gave list"),
    (Odd([]), "Odd gave list"),
    (Odd([1.0, float("nan"), 0.0, 0.0]), "Odd gave list"),
]
WRONG_FOR_SEVERAL = [
    *WRONG,
    (Nothing(None), "Nothing gave NoneType"),
    (Odd([1.0, 2.0, 3.0, 4.0], [1.0]), "Odd gave list"),
]


@pytest.mark.parametrize(("model", "message"), WRONG)
async def test_exact_search_names_the_model_and_what_it_gave(model: Embeddings, message: str) -> None:
    """A query that is no vector is an error of the kit, sync and async."""
    retriever = ExactVectorRetriever.from_documents(DOCS, GOOD, k=1)
    retriever.embeddings = model
    for question in ("moon", "sun"):
        await both_raise(ModelOutputError, message, retriever, question)


@pytest.mark.parametrize(("model", "message"), WRONG_FOR_SEVERAL)
def test_documents_without_vectors_are_refused(model: Embeddings, message: str) -> None:
    """Vectors of documents are checked before they are searched."""
    with pytest.raises(ModelOutputError, match=message):
        ExactVectorRetriever.from_documents(DOCS, model)


def test_another_dimension_is_refused_by_name() -> None:
    """A query of another length than the documents' is refused; the message names the model."""
    retriever = ExactVectorRetriever.from_documents(DOCS, GOOD, k=1)
    retriever.embeddings = Odd([1.0, 2.0])
    with pytest.raises(InvalidInputError, match="has 2 dimensions, the documents' have 4; it is of Odd"):
        retriever.invoke("moon")


@pytest.mark.parametrize(("model", "message"), WRONG_FOR_SEVERAL)
async def test_hyde_goes_back_to_the_plain_search(model: Embeddings, message: str) -> None:
    """Vectors that are none cost HyDE its passages, not the search; the results say so."""
    store = InMemoryVectorStore(GOOD)
    store.add_documents(DOCS)
    retriever = HyDERetriever.from_llm(Scripted(script=PASSAGES), store, embeddings=model, k=1)
    for found in (retriever.invoke("moon"), await retriever.ainvoke("moon")):
        assert [doc.id for doc in found] == ["moon"]
        notes = get_provenance(found[0])["notes"]
        assert any(message in note for note in notes)
        assert "degraded: hyde: searched with the question alone" in notes
