"""Plain RAG as a graph: condense -> retrieve -> answer -> cite."""

from __future__ import annotations

from typing import Any, Unpack

from langchain_core.documents import Document
from langchain_core.runnables import Runnable
from langgraph.graph import END

from rag_kit.graphs.context import PlainRagContext
from rag_kit.graphs.nodes import RagNodes
from rag_kit.graphs.state import RagState
from rag_kit.graphs.wiring import READY, CompiledRag, GraphOptions, RagGraph


def build_plain_rag(
    retriever: Runnable[str, list[Document]], llm: Runnable[Any, Any], **options: Unpack[GraphOptions]
) -> CompiledRag[RagState]:
    """Build plain RAG: retrieve, answer from the passages, check each citation.

    What comes back is `RagOutput`: the answer, its citations with verbatim quotes, a status, the documents, notes and
    usage. With a checkpointer the turns of a thread are remembered and a follow-up question is made to stand alone
    before it is searched for; ``question`` itself is never changed.

    Args:
        retriever: Any LangChain retriever, or another runnable from a string to documents.
        llm: Any LangChain chat model; tokens are streamed where it streams.
        **options: Those of all graphs: prompts, guards, output, checkpointer and others; see `GraphOptions`.

    Returns:
        A compiled graph. Per-run settings are `PlainRagContext`: ``invoke({"question": ...}, context={"k": 3})``.

    Raises:
        InvalidInputError: A prompt file is wrong, or the retriever or the model is something else.

    Example:
        >>> from rag_kit.models import chat_model
        >>> from rag_kit.retrieval import BM25Retriever
        >>> texts = ["The index is written to the folder named by --index.", "Bananas are yellow."]
        >>> graph = build_plain_rag(BM25Retriever.from_texts(texts, k=1), chat_model("extractive"))
        >>> result = graph.invoke({"question": "Which folder is the index written to?"})
        >>> result["answer"], result["status"]
        ('The index is written to the folder named by --index.[1]', 'grounded')
    """
    nodes = RagNodes(retriever, llm, options)
    graph = RagGraph(RagState, PlainRagContext, "plain_rag", options)
    ways = {"retrieve": READY}
    graph.add_step("condense", nodes.begin, ways, route="retrieve", first=True, refused_by="question")
    graph.add_step("retrieve", nodes.retrieve, "answer", gives=["documents"], fetches=True)
    graph.add_step("answer", nodes.answer, "cite", gives=["answer"], streams=True)
    graph.add_step("cite", nodes.cite, END, gives=["status"])
    return graph.compile_with_options()
