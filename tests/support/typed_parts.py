"""Parts as a typed application hands them over: models with fallbacks, retrievers that retry, and misspelt settings.

A type checker reads this file: it accepts `use` and `mistakes` but for the lines that end in `# refused`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from langchain_core.documents import Document
from langchain_core.language_models import BaseChatModel

from rag_kit.graphs import (
    build_adaptive_rag,
    build_conversational_rag,
    build_crag,
    build_plain_rag,
    build_self_rag,
)
from rag_kit.models import chat_model, structured_call
from rag_kit.prompts import load_prompt
from rag_kit.query_construction import SelfQueryRetriever
from rag_kit.retrieval import (
    BM25Retriever,
    CompressionRetriever,
    ConversationalRetriever,
    DecompositionRetriever,
    EnsembleRetriever,
    ExactVectorRetriever,
    ExpansionRetriever,
    HyDERetriever,
    MultiQueryRetriever,
    MultiRepresentationRetriever,
    ParentDocumentRetriever,
    PointwiseReranker,
    Query2DocRetriever,
    RerankRetriever,
    RoutingRetriever,
    SentenceWindowRetriever,
    SparseRetriever,
    StepBackRetriever,
    TrigramRetriever,
)

DOCUMENTS = [Document("The pump starts at 40 degrees.", metadata={"year": 2024}), Document("Tea is hot.")]


def use(question: str) -> list[str]:
    """The statuses of graphs over a retriever that retries, with a model that has fallbacks."""
    llm: BaseChatModel = chat_model("extractive")
    safe = llm.with_fallbacks([llm])
    words = BM25Retriever.from_documents(DOCUMENTS)
    again, other = words.with_retry(), words.with_fallbacks([words])
    retrievers = [
        EnsembleRetriever(retrievers=[words, again, other]),
        RerankRetriever(retriever=again, reranker=PointwiseReranker(llm=safe)),
        CompressionRetriever(retriever=other),
        RoutingRetriever(sources={"a": (again, "Pumps"), "b": (other, "Tea")}, how="model", llm=safe),
        MultiQueryRetriever.from_llm(safe, again),
        StepBackRetriever.from_llm(safe, other),
        HyDERetriever.from_llm(safe, again),
        Query2DocRetriever.from_llm(safe, other),
        DecompositionRetriever.from_llm(safe, again),
        ConversationalRetriever.from_llm(safe, other),
        ExpansionRetriever.from_llm(safe, again),
        SelfQueryRetriever.from_llm(safe, other),
        SelfQueryRetriever.from_rules(again),
    ]
    structured_call(safe, load_prompt("condense"), {"history": "", "question": question})
    graphs: list[Any] = [
        build_plain_rag(again, safe),
        build_conversational_rag(other, safe),
        build_crag(again, safe),
        build_self_rag(other, safe),
        build_adaptive_rag(again, safe),
        *[build_plain_rag(retriever, llm) for retriever in retrievers],
    ]
    return [str(graph.invoke({"question": question})["status"]) for graph in graphs]


def mistakes(llm: BaseChatModel, words: BM25Retriever, embeddings: Any) -> list[Callable[[], object]]:
    """Misspelt settings, each beside the right one."""
    made: list[Any] = [
        lambda: MultiQueryRetriever.from_llm(llm, words, max_calls=3),
        lambda: MultiQueryRetriever.from_llm(llm, words, maxcalls=3),  # refused
        lambda: StepBackRetriever.from_llm(llm, words, include_original=True),
        lambda: StepBackRetriever.from_llm(llm, words, includeoriginal=True),  # refused
        lambda: HyDERetriever.from_llm(llm, words, n=2),
        lambda: HyDERetriever.from_llm(llm, words, m=2),  # refused
        lambda: Query2DocRetriever.from_llm(llm, words, timeout=2),
        lambda: Query2DocRetriever.from_llm(llm, words, time_out=2),  # refused
        lambda: DecompositionRetriever.from_llm(llm, words, fetch_k=9),
        lambda: DecompositionRetriever.from_llm(llm, words, fetchk=9),  # refused
        lambda: ConversationalRetriever.from_llm(llm, words, on_error="raise"),
        lambda: ConversationalRetriever.from_llm(llm, words, on_errors="raise"),  # refused
        lambda: SelfQueryRetriever.from_llm(llm, words, filter={"year": 2024}),
        lambda: SelfQueryRetriever.from_llm(llm, words, filters={"year": 2024}),  # refused
        lambda: SelfQueryRetriever.from_rules(words, filter={"year": 2024}),
        lambda: SelfQueryRetriever.from_rules(words, filters={"year": 2024}),  # refused
        lambda: BM25Retriever.from_documents(DOCUMENTS, k=2),
        lambda: BM25Retriever.from_documents(DOCUMENTS, kk=2),  # refused
        lambda: BM25Retriever.from_texts(["tea"], id_key="id"),
        lambda: BM25Retriever.from_texts(["tea"], idkey="id"),  # refused
        lambda: ExactVectorRetriever.from_documents(DOCUMENTS, embeddings, k=2),
        lambda: ExactVectorRetriever.from_documents(DOCUMENTS, embeddings, kk=2),  # refused
        lambda: CompressionRetriever.from_llm(llm, words, fetch_k=9),
        lambda: CompressionRetriever.from_llm(llm, words, fetchk=9),  # refused
        lambda: RoutingRetriever.from_llm(llm, {"a": (words, "Pumps")}, most=2),
        lambda: RoutingRetriever.from_llm(llm, {"a": (words, "Pumps")}, mots=2),  # refused
        lambda: EnsembleRetriever(retrievers=[words, words], c=60),
        lambda: EnsembleRetriever(retrievers=[words, words], cc=60),  # refused
        lambda: RerankRetriever.from_llm(llm, words, mode="pointwise", score_threshold=0.5),
        lambda: RerankRetriever.from_llm(llm, words, mode="pointwise", scorethreshold=0.5),  # refused
        lambda: TrigramRetriever.from_documents(DOCUMENTS, min_match=0.3),
        lambda: SparseRetriever.from_documents(DOCUMENTS, min_match=0.3),  # refused
        lambda: TrigramRetriever.from_documents(DOCUMENTS, ids=["1", "2"]),
        lambda: ExactVectorRetriever.from_documents(DOCUMENTS, embeddings, min_match=0.3),  # refused
        lambda: ParentDocumentRetriever.from_documents(DOCUMENTS, child_size=40),
        lambda: ParentDocumentRetriever.from_documents(DOCUMENTS, childsize=40),  # refused
        lambda: SentenceWindowRetriever.from_documents(DOCUMENTS, window=1),
        lambda: SentenceWindowRetriever.from_documents(DOCUMENTS, windows=1),  # refused
        lambda: MultiRepresentationRetriever.from_documents(DOCUMENTS, represent=["children:40"]),
        lambda: MultiRepresentationRetriever.from_documents(DOCUMENTS, representation=["summary"]),  # refused
    ]
    return made
