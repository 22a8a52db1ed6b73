"""The conversational graph, put together."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.retrievers import BaseRetriever
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import END, START
from langgraph.graph.state import CompiledStateGraph
from langgraph.store.base import BaseStore

from rag_kit.errors import InvalidInputError
from rag_kit.graphs.answering import check_parts
from rag_kit.graphs.conversational.context import ConversationalContext, ConversationalState
from rag_kit.graphs.conversational.extras import ExtraNodes, remember_capped, suggest_capped
from rag_kit.graphs.conversational.nodes import ConversationalNodes
from rag_kit.graphs.guards import Guards
from rag_kit.graphs.state import QuestionInput
from rag_kit.graphs.wiring import READY, REFUSED, Output, RagGraph

ConversationalRag = CompiledStateGraph[ConversationalState, Any, QuestionInput, Any]
MAX_FACTS = 1_000


def build_conversational_rag(
    retriever: BaseRetriever,
    llm: BaseChatModel,
    *,
    remember: bool = False,
    max_facts: int = 50,
    prompts: Path | None = None,
    max_passage_chars: int = 12_000,
    guards: Guards | None = None,
    output: Output = "answer",
    checkpointer: BaseCheckpointSaver[Any] | None = None,
    store: BaseStore | None = None,
) -> ConversationalRag:
    """Build plain RAG for conversations: threads of any length, facts about a user, questions to ask next.

    As in `build_plain_rag`, and besides:

    - A thread that outgrows ``max_history_turns`` or ``max_history_chars`` is summarised under a cap: the older
      half joins what was summarised before (``summary``), the newer turns stay word for word. Below the caps no
      call is made for it.
    - With ``remember=True``, a store, and ``user_id`` in the run's context, lasting facts that the user states are
      kept across threads, and help to understand and to answer later questions. They are no source.
    - With ``related_questions`` in the context, up to five questions are offered that the passages answer.

    Args:
        retriever: Any LangChain retriever.
        llm: Any LangChain chat model; the answer's tokens are streamed where it streams.
        remember: Whether facts about users may be kept at all.
        max_facts: How many are kept of one user, the newest; 1 to 1000.
        prompts: Folder whose prompt files replace the packaged ones of the same name.
        max_passage_chars: Characters of retrieved text that go into a prompt.
        guards: Functions that see each question, passage, answer and offered question; see `Guards`.
        output: ``"answer"``: `invoke` gives back question, answer, status, citations, documents, notes and usage;
            ``"full"``: the whole state, with ``related_questions``.
        checkpointer: Memory of threads; leave it out for LangGraph Studio, which brings its own.
        store: LangGraph's long-term store, for facts; Studio brings its own.

    Returns:
        A compiled graph. Per-run settings are `ConversationalContext`.

    Raises:
        PromptError: A prompt file is wrong.
        InvalidInputError: A part is of the wrong kind, or ``max_facts`` out of range.

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
        ('When did Jane Austen die?', 'Jane Austen died in 1817.[1]')
    """
    check_parts(retriever, llm)
    if isinstance(max_facts, bool) or not isinstance(max_facts, int) or not 1 <= max_facts <= MAX_FACTS:
        raise InvalidInputError(f"max_facts is {max_facts!r}; give a whole number from 1 to {MAX_FACTS}.")
    nodes = ConversationalNodes(retriever, llm, prompts, guards or Guards(), max_passage_chars, remember)
    extras = ExtraNodes(nodes, max_facts)
    graph = RagGraph(ConversationalState, ConversationalContext, output, "conversational_rag")
    ends = {END: REFUSED} if nodes.guards.question else {}
    known = {"summarise": "over a cap", "condense": "history or facts", "retrieve": "first question"}
    graph.add_edge(START, "begin")
    graph.add_step("begin", nodes.begin, {**known, **ends}, first=True)
    graph.add_step("summarise", nodes.summarise, "condense")
    graph.add_step("condense", nodes.condense, {"retrieve": READY, **ends})
    graph.add_step("retrieve", nodes.retrieve, "answer", fetches=True)
    graph.add_step("answer", nodes.answer, "cite")
    kept = {"remember": "user_id"} if remember else {}
    graph.add_step("cite", nodes.cite, {**kept, "suggest": "related_questions", END: "answered"})
    if remember:
        graph.add_step("remember", extras.remember, END, on_cap=remember_capped)
    graph.add_step("suggest", extras.suggest, END, on_cap=suggest_capped)
    return graph.compile(checkpointer, store=store)
