"""Results of every retriever fit into any vector store: their provenance is one string, written once."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from langchain_chroma import Chroma
from langchain_core.documents import Document
from langchain_core.runnables import RunnableLambda
from support import tenants
from support.embedding import WordEmbeddings

import rag_kit.retrieval as kit
from rag_kit.documents import PROVENANCE_KEY, get_provenance

QUESTION = "Why is the fan loud at night?"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Every retriever by name."""
    found = {name: make(k=6) for name, make in tenants.leaves(tmp_path_factory.mktemp("index")).items()}
    inner = found["bm25"]
    return found | {f"{name} over bm25": wrap(inner, k=6) for name, wrap in tenants.wrappers().items()}


async def test_every_retriever_returns_one_string(made: dict[str, Any]) -> None:
    """Each retriever, sync and async, writes a record that reads back with its stages."""
    for name, retriever in made.items():
        for found in (retriever.invoke(QUESTION), await retriever.ainvoke(QUESTION)):
            assert found, name
            for doc in found:
                assert isinstance(doc.metadata[PROVENANCE_KEY], str), name
                assert get_provenance(doc)["stages"], name


@pytest.mark.parametrize("question", ["Why is the fan loud?", "风扇为什么吵？"])
async def test_stages_survive_a_chain_of_ones_own(question: str) -> None:
    """A user's own steps between two retrievers read the record too, and no stage is lost on either side."""
    seen: list[Any] = []

    def look(found: list[Document]) -> list[Document]:
        seen.extend(get_provenance(doc)["stages"][-1]["stage"] for doc in found)
        return found

    words = kit.BM25Retriever.from_texts(["The fan is loud. 风扇很吵。", "Tea. 茶。"])
    outer = kit.CompressionRetriever(retriever=words | RunnableLambda(look))
    for found in (outer.invoke(question), await outer.ainvoke(question)):
        stages = [stage["stage"] for stage in get_provenance(found[0])["stages"]]
        assert stages[0] == "bm25" and len(stages) > 1
        again = kit.RerankRetriever(
            retriever=RunnableLambda(lambda _, found=found: found),
            reranker=lambda query, docs: [1.0] * len(docs),
        ).invoke(question)
        assert [one["stage"] for one in get_provenance(again[0])["stages"]][: len(stages)] == stages
    assert set(seen) == {"bm25"}


async def test_what_a_store_keeps_of_an_earlier_search_is_not_of_this_one() -> None:
    """Results written to Chroma as they are and found there again tell of the search that found them now."""
    found = kit.BM25Retriever.from_texts(["The fan is loud.", "The fan is old."]).invoke("fan")
    store = Chroma(f"p{uuid.uuid4().hex}", WordEmbeddings())
    store.add_documents(found)
    dense = kit.VectorRetriever(vectorstore=store)
    for again in (dense.invoke("old fan"), await dense.ainvoke("old fan")):
        assert [[stage["query"] for stage in get_provenance(doc)["stages"]] for doc in again] == [
            ["old fan"]
        ] * 2
