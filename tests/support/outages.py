"""Retrievers of which a part is down, and the notes of one call."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_openai import OpenAIEmbeddings

from rag_kit import retrieval
from rag_kit.concurrency.notes import Notes, use_notes
from rag_kit.indexing import DocumentIndex
from rag_kit.query_construction import SelfQueryRetriever
from support.openai_server import OpenAIServer, reset
from support.rewriters import Scripted

DOCUMENTS = [
    Document("The fan starts at 60 degrees.", id="en", metadata={"year": 2024}),
    Document("风扇在六十度启动。", id="zh", metadata={"year": 2025}),
]
#: Questions whose answer the documents hold, and others, of which no word is in the documents.
ANSWERED = ("When does the fan start?", "风扇几度启动？")
UNANSWERED = ("How long is the lease?", "租约多长？")
HISTORY = [("user", "Tell me of the house."), ("assistant", "It is old.")]


class Down(BaseRetriever):
    """A store that is down, at least for each query that holds ``on``."""

    on: str = ""

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Document]:
        if self.on in query:
            raise ConnectionError("the store is down")
        return []


def words() -> retrieval.BM25Retriever:
    """Keyword search over the documents, which always works."""
    return retrieval.BM25Retriever.from_documents(DOCUMENTS)


def ask(retriever: Any, question: str, way: str, **call: Any) -> tuple[list[Document], Notes]:
    """One call, ``"sync"`` or ``"async"``: what was found, and the notes of the run."""
    if "history" in getattr(retriever, "call_arguments", ()):
        call["history"] = HISTORY
    with use_notes() as notes:
        if way == "sync":
            return retriever.invoke(question, **call), notes
        return asyncio.run(retriever.ainvoke(question, **call)), notes


def embedded(make: Callable[[OpenAIEmbeddings], Any]) -> Any:
    """Give what is made with an embedding endpoint on loopback that goes away afterwards."""
    with OpenAIServer() as server:
        options = {"base_url": server.url, "api_key": "sk-test", "check_embedding_ctx_length": False}
        made = make(OpenAIEmbeddings(model="test", max_retries=0, **options))
        server.embeddings[:] = [reset()]  # for connections that are open
    return made


def hybrid(embeddings: OpenAIEmbeddings) -> retrieval.HybridRetriever:
    """Keywords and vectors of documents in memory."""
    dense = retrieval.ExactVectorRetriever.from_documents(DOCUMENTS, embeddings)
    return retrieval.HybridRetriever(retrievers=[words(), dense])


def index_hybrid(folder: Path) -> Callable[[OpenAIEmbeddings], Any]:
    """Keywords and vectors of an index."""

    def make(embeddings: OpenAIEmbeddings) -> Any:
        index = DocumentIndex.create(folder / "index", embeddings=embeddings)
        index.upsert(DOCUMENTS)
        return retrieval.index_retriever(index, "hybrid")

    return make


def family(cls: Any) -> Callable[[OpenAIEmbeddings], Any]:
    """A retriever that makes its own index of the documents."""
    return lambda embeddings: cls.from_documents(DOCUMENTS, index=None, embeddings=embeddings)


def rewriting(cls: Any) -> Callable[[Path], Any]:
    """A retriever that rewrites the question, whose model is down."""
    return lambda folder: cls.from_llm(Scripted(script=ConnectionError("the model is down")), words())


def one_of_several(cls: Any) -> Any:
    """A retriever of several queries, one of which the second store fails for."""
    queries = ["fan X9", "fan degrees", "风扇 X9", "风扇度数"]
    both = retrieval.EnsembleRetriever(retrievers=[words(), Down(on="X9")])
    return cls.from_llm(Scripted(script=json.dumps({"queries": queries})), both)


class Outage(NamedTuple):
    """A retriever of which a part is down."""

    part: str  # as a pattern: how a note names the part
    make: Callable[[Path], Any]


OUTAGES = {
    "ensemble": Outage("Down", lambda folder: retrieval.EnsembleRetriever(retrievers=[words(), Down()])),
    "hybrid": Outage("ExactVectorRetriever|dense", lambda folder: embedded(hybrid)),
    "index hybrid": Outage("dense", lambda folder: embedded(index_hybrid(folder))),
    "parent": Outage("dense", lambda folder: embedded(family(retrieval.ParentDocumentRetriever))),
    "sentence window": Outage("dense", lambda folder: embedded(family(retrieval.SentenceWindowRetriever))),
    "representations": Outage(
        "dense", lambda folder: embedded(family(retrieval.MultiRepresentationRetriever))
    ),
    "multi-query": Outage("multi_query", rewriting(retrieval.MultiQueryRetriever)),
    "step-back": Outage("step_back", rewriting(retrieval.StepBackRetriever)),
    "HyDE": Outage("hyde", rewriting(retrieval.HyDERetriever)),
    "Query2Doc": Outage("query2doc", rewriting(retrieval.Query2DocRetriever)),
    "decomposition": Outage("decompose", rewriting(retrieval.DecompositionRetriever)),
    "conversational": Outage("condense", rewriting(retrieval.ConversationalRetriever)),
    "self-query": Outage("self_query", rewriting(SelfQueryRetriever)),
}
