from __future__ import annotations

from typing import Any

import chromadb
import pytest
from chromadb.config import Settings
from langchain_chroma import Chroma
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.vectorstores import InMemoryVectorStore, VectorStore

from rag_kit.documents import get_provenance
from rag_kit.retrieval import VectorRetriever

EMBEDDING = DeterministicFakeEmbedding(size=8)
DOCS = [Document(f"text {n}", id=str(n), metadata={"n": n, "odd": bool(n % 2)}) for n in range(30)]


@pytest.fixture(scope="module")
def chroma() -> Any:
    client = chromadb.EphemeralClient(Settings(anonymized_telemetry=False))
    store = Chroma("vector_retriever", EMBEDDING, client=client, collection_metadata={"hnsw:space": "cosine"})
    store.add_documents(DOCS)
    yield store
    client.delete_collection("vector_retriever")


@pytest.fixture
def memory() -> InMemoryVectorStore:
    store = InMemoryVectorStore(EMBEDDING)
    store.add_documents(DOCS)
    return store


async def test_scores_and_ids(chroma: Chroma, memory: InMemoryVectorStore) -> None:
    """Results carry the id and a score that is higher for better hits, whatever the store counts in."""
    for store in (chroma, memory):
        retriever = VectorRetriever(vectorstore=store, k=3, name="dense")
        found = retriever.invoke("text 7")
        assert found == await retriever.ainvoke("text 7")
        records = [get_provenance(doc) for doc in found]
        assert found[0].id == "7" and records[0]["score"] == pytest.approx(1.0, abs=1e-4)
        assert records[0]["score"] > records[1]["score"] >= records[2]["score"]
        assert [record["rank"] for record in records] == [1, 2, 3]
        assert records[0]["stages"][0]["stage"] == "dense"
    assert get_provenance(VectorRetriever(vectorstore=chroma).invoke("text 7")[0])["stages"][0][
        "store_score"
    ] == pytest.approx(0.0, abs=1e-4)


async def test_a_store_without_scores() -> None:
    """A store that tells no scores still works; the score is None."""

    class Bare(VectorStore):
        def similarity_search(self, query: str, k: int = 4, **kwargs: Any) -> list[Document]:
            return DOCS[:k]

        @classmethod
        def from_texts(cls, *args: Any, **kwargs: Any) -> Bare:  # type: ignore[override]
            return cls()

    retriever = VectorRetriever(vectorstore=Bare(), k=2)
    assert retriever.invoke("q") == await retriever.ainvoke("q")
    assert get_provenance(retriever.invoke("q")[0])["score"] is None
    filtered = retriever.invoke("q", None, filter={"n": {"$gte": 20}})
    assert [doc.id for doc in filtered] == ["20", "21"]


async def test_a_store_whose_own_coroutine_refuses() -> None:
    """A native search with scores that is not implemented is passed over, as the blocking one is."""

    class Refusing(InMemoryVectorStore):
        def similarity_search_with_score(self, query: str, k: int = 4, **kwargs: Any) -> Any:
            raise NotImplementedError

        async def asimilarity_search_with_score(self, query: str, k: int = 4, **kwargs: Any) -> Any:
            raise NotImplementedError

        def similarity_search(self, query: str, k: int = 4, **kwargs: Any) -> list[Document]:
            return DOCS[:k]

    retriever = VectorRetriever(vectorstore=Refusing(EMBEDDING), k=2)
    assert [doc.id for doc in retriever.invoke("text 3")] == ["0", "1"]
    assert [doc.id for doc in await retriever.ainvoke("text 3")] == ["0", "1"]
