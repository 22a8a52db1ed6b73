"""The conversational graph, put together."""

from __future__ import annotations

from typing import Any, Unpack

from langchain_core.documents import Document
from langchain_core.runnables import Runnable
from langgraph.graph import END

from rag_kit.graphs.conversational.nodes import (
    ConversationalContext,
    ConversationalNodes,
    ConversationalState,
    note_when_capped,
)
from rag_kit.graphs.wiring import READY, CompiledRag, GraphOptions, RagGraph
from rag_kit.retrieval.fields import check_count


def build_conversational_rag(
    retriever: Runnable[str, list[Document]],
    llm: Runnable[Any, Any],
    *,
    remember: bool = False,
    max_facts: int = 50,
    **options: Unpack[GraphOptions],
) -> CompiledRag[ConversationalState]:
    """Build plain RAG for conversations: threads of any length, facts about a user, questions to ask next.

    As in `build_plain_rag`, and besides:

    - A thread that outgrows ``max_history_turns`` or ``max_history_chars`` is summarised: the older half joins what
      was summarised before (``summary``), the newer turns stay word for word.
    - With ``remember=True``, a store, and ``user_id`` in the run's context, lasting facts that the user states are
      kept across threads, and help to understand and to answer later questions. They are not a source.
    - With ``related_questions`` in the context, up to five questions are offered that the passages answer.

    Args:
        retriever: Any LangChain retriever, or another runnable from a string to documents.
        llm: Any LangChain chat model; the answer's tokens are streamed where it streams.
        remember: Whether facts about users may be kept at all.
        max_facts: How many are kept of one user, the newest.
        **options: Those of all graphs: prompts, guards, output, checkpointer and others; see `GraphOptions`.

    Returns:
        A compiled graph. Per-run settings are `ConversationalContext`.

    Raises:
        InvalidInputError: A part is of the wrong kind, ``max_facts`` below 1, or a prompt file wrong.

    Example:
        >>> from langgraph.checkpoint.memory import InMemorySaver
        >>> from rag_kit.models import chat_model
        >>> from rag_kit.retrieval import BM25Retriever
        >>> texts = BM25Retriever.from_texts(["Emma was written by Jane Austen.", "Jane Austen died in 1817."], k=1)
        >>> memory = InMemorySaver()
        >>> graph = build_conversational_rag(texts, chat_model("extractive"), output="full", checkpointer=memory)
        >>> thread = {"configurable": {"thread_id": "1"}}
        >>> _ = graph.invoke({"question": "Who wrote Emma?"}, thread)
        >>> result = graph.invoke({"question": "When did she die?"}, thread)
        >>> result["search_query"], result["answer"]
        ('When did she die? (Jane Austen)', 'Jane Austen died in 1817.[1]')
    """
    max_facts = check_count("max_facts", max_facts) if remember else 0
    nodes = ConversationalNodes(retriever, llm, options, max_facts=max_facts)
    graph = RagGraph(ConversationalState, ConversationalContext, "conversational_rag", options)
    ways = {"summarise": "over a cap", "condense": "history or facts", "retrieve": "first question"}
    ways |= nodes.refusal_edge
    graph.add_step("begin", nodes.begin, ways, first=True)
    graph.add_step("summarise", nodes.summarise, "condense")
    ways = {"retrieve": READY, **nodes.refusal_edge}
    graph.add_step("condense", nodes.condense, ways, route="retrieve")
    graph.add_step("retrieve", nodes.retrieve, "answer", gives=["documents"], fetches=True)
    graph.add_step("answer", nodes.answer, "cite", gives=["answer"], streams=nodes.streams)
    remembering = {"remember": "user_id"} if remember else {}
    ways = {**remembering, "suggest": "related_questions", END: "answered"}
    graph.add_step("cite", nodes.cite, ways, gives=["status"])
    if remember:
        graph.add_step("remember", nodes.remember, END, on_cap=note_when_capped("remember"))
    graph.add_step("suggest", nodes.suggest, END, on_cap=note_when_capped("related questions"))
    return graph.compile_with_options()
