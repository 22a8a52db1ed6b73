"""The CRAG graph, put together."""

from __future__ import annotations

from typing import Any, Unpack

from langchain_core.documents import Document
from langchain_core.runnables import Runnable
from langgraph.graph import END

from rag_kit.graphs.crag.nodes import CragNodes, nodes_for_action, to_the_web
from rag_kit.graphs.crag.state import CragContext, CragState
from rag_kit.graphs.crag.web import WebSearch
from rag_kit.graphs.wiring import READY, CompiledRag, GraphOptions, RagGraph, choice_of

#: Nodes on the longest path, with room for a user's own.
STEPS = 25


def build_crag(
    retriever: Runnable[str, list[Document]],
    llm: Runnable[Any, Any],
    *,
    evaluator: Any = None,
    web_search: Any = None,
    **options: Unpack[GraphOptions],
) -> CompiledRag[CragState]:
    """Build Corrective RAG: an evaluator judges what was retrieved, and one of three actions follows.

    *Correct*: the passages are cut into strips, and those that help are kept. *Incorrect*: they are put aside, the
    question becomes keywords for a web search, and strips of its results are selected. *Ambiguous*: both, side by
    side. Then the question is answered from what is left, and each citation is checked. With ``output="full"`` the
    state that comes back holds, besides that of every graph, ``gradings``, ``action``, ``strips`` (kept and dropped,
    with confidence), ``web_query`` and ``notes`` that say in words what was done.

    Paper: Yan et al., Corrective Retrieval Augmented Generation, arXiv 2401.15884.

    Args:
        retriever: Any LangChain retriever, or another runnable from a string to documents; about ten in the paper.
        llm: Any LangChain chat model: it answers, and writes the keywords.
        evaluator: An `Evaluator`, a chat model, a LangChain cross-encoder, an embedding model (evidence of words and
            vectors), or a function or chain (`FunctionEvaluator`). None: ``llm`` itself grades, several passages in a
            call (``LLMEvaluator``), and beside ``extractive``, which is not a language model, ``LexicalEvaluator``.
        web_search: Any LangChain tool or retriever. None: nothing ever leaves; the run says that it could not look
            outside, and answers from what it has (ambiguous) or declines (incorrect).
        **options: Those of all graphs: prompts, guards, output, checkpointer and others; see `GraphOptions`.

    Returns:
        A compiled graph. Per-run settings are `CragContext`: ``invoke({"question": ...}, context={"upper": 0.4})``.

    Raises:
        InvalidInputError: A part is of the wrong kind, or a prompt file is wrong.

    Example:
        >>> from rag_kit.models import chat_model
        >>> from rag_kit.retrieval import BM25Retriever
        >>> texts = ["The index is written to the folder named by --index.", "Bananas are yellow."]
        >>> graph = build_crag(BM25Retriever.from_texts(texts, k=2), chat_model("extractive"))
        >>> result = graph.invoke({"question": "Which folder is the index written to?"})
        >>> result["answer"], result["status"]
        ('The index is written to the folder named by --index.[1]', 'grounded')
    """
    web = None if web_search is None else WebSearch(web_search)
    nodes = CragNodes(retriever, llm, options, evaluator=evaluator, web=web)
    graph = RagGraph(CragState, CragContext, "crag", options, STEPS)
    ways = {"retrieve": READY, **nodes.refusal_edge}
    graph.add_step("begin", nodes.begin, ways, route="retrieve", first=True)
    graph.add_step("retrieve", nodes.retrieve, "grade", gives=["documents"], fetches=True)
    by_action = {"refine": "correct, ambiguous", "rewrite_query": "incorrect, ambiguous"}
    graph.add_step("grade", nodes.grade, by_action, route=nodes_for_action, gives=["action"])
    graph.add_step("refine", nodes.refine, "generate", gives=["documents"])
    ways = {"approve": "approve_web", "web_search": "keywords", "generate": "no web search"}
    # a node that does not say so leads by way of the approval, which nobody is asked for unless the run wants it
    route = to_the_web(choice_of("rewrite_query", "approve"))
    graph.add_step("rewrite_query", nodes.rewrite_query, ways, route=route)
    ways = {"web_search": "approved", "generate": "refused"}
    graph.add_step("approve", nodes.approve, ways, route=to_the_web("web_search"))
    graph.add_step("web_search", nodes.web_search, "select_external", gives=["web_documents"])
    graph.add_step("select_external", nodes.select_external, "generate", gives=["web_documents"])
    # defer: with two branches of unequal length it would run twice
    graph.add_step("generate", nodes.generate, "cite", gives=["answer"], streams=nodes.streams, defer=True)
    graph.add_step("cite", nodes.cite, END, gives=["status"])
    return graph.compile_with_options()
