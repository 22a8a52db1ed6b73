"""The same chunks in two stores: one document where the stores made up the ids, else a note."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.language_models import FakeListChatModel
from langchain_core.retrievers import BaseRetriever
from langchain_core.vectorstores import InMemoryVectorStore

from rag_kit.documents import get_provenance
from rag_kit.retrieval import BM25Retriever, EnsembleRetriever, MultiQueryRetriever, VectorRetriever

TEXTS = ["The fan is loud.", "The pump hums.", "风扇很吵。"]
NOTE = "same text under 2 ids; in Python id_key= makes them one"


def chunks(prefix: str = "", page: int = 0) -> list[Document]:
    """Without ids, as splitters give them, or with ids of one's own."""
    return [
        Document(text, id=f"{prefix}{n}" if prefix else None, metadata={"page": page + n, "chunk": text})
        for n, text in enumerate(TEXTS)
    ]


def stored(documents: list[Document]) -> VectorRetriever:
    """A store, which makes up an id for each document that has none."""
    store = InMemoryVectorStore(DeterministicFakeEmbedding(size=4))
    store.add_documents(documents)
    return VectorRetriever(vectorstore=store)


@pytest.mark.parametrize("fusion", ["rrf", "convex"])
async def test_ids_that_two_stores_made_up_are_one_document(fusion: str) -> None:
    """Each chunk comes once, with the stages of both stores; a third list without ids joins in."""
    both = EnsembleRetriever(retrievers=[stored(chunks()), stored(chunks())], k=9, fusion=fusion)
    for found in (both.invoke("fan 风扇"), await both.ainvoke("fan 风扇")):
        assert sorted(doc.page_content for doc in found) == sorted(TEXTS)
        assert [len(get_provenance(doc)["stages"]) for doc in found] == [3, 3, 3]
    three = EnsembleRetriever(retrievers=[*both.retrievers, BM25Retriever.from_documents(chunks())], k=9)
    assert sorted(doc.page_content for doc in three.invoke("fan 风扇")) == sorted(TEXTS)


Make = Callable[[], list[BaseRetriever]]


@pytest.mark.parametrize(
    "make",
    [
        lambda: [stored(chunks("a")), stored(chunks("b"))],
        lambda: [stored(chunks("a")), stored(chunks())],
        lambda: [stored(chunks()), stored(chunks(page=5))],  # the same sentence of two pages
    ],
)
def test_other_ids_stay_apart_and_a_note_says_so(make: Make) -> None:
    """Ids that somebody gave, or metadata that differ, may be meant; ``id_key`` settles it."""
    retrievers = make()
    found = EnsembleRetriever(retrievers=retrievers, k=9).invoke("fan")
    assert len(found) == 6 and all(NOTE in get_provenance(doc)["notes"] for doc in found)
    named = EnsembleRetriever(retrievers=retrievers, k=9, id_key="chunk").invoke("fan")
    assert len(named) == 3 and not any(NOTE in get_provenance(doc)["notes"] for doc in named)


def test_a_text_that_one_store_holds_twice_stays_two_documents() -> None:
    """Within one list ids are what they are, also in the searches of several versions of a question."""
    twice = stored([*chunks(), *chunks()])
    model = FakeListChatModel(responses=['{"queries": ["loud fan"]}'])
    found = MultiQueryRetriever.from_llm(model, twice, k=9, fetch_k=9).invoke("fan")
    assert len(found) == 6 and NOTE in get_provenance(found[0])["notes"]
