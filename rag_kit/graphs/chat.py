"""A graph for chat front ends: the last message is the question, the answer is appended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langchain_core.runnables import RunnableConfig, RunnableLambda
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.graph.state import CompiledStateGraph

from rag_kit.errors import InvalidInputError
from rag_kit.graphs.context import RagContext
from rag_kit.graphs.running import run_context
from rag_kit.graphs.state import MAX_TURNS, Turn
from rag_kit.graphs.wiring import uncompiled

Chat = CompiledStateGraph[MessagesState, Any, Any, Any]


def as_chat(graph: CompiledStateGraph[Any, Any, Any, Any]) -> Chat:
    """Wrap a graph of this kit in one over ``MessagesState``, as chat front ends and other graphs expect it.

    The last human message is the question. The answer is appended as an ``AIMessage`` whose ``additional_kwargs`` hold
    ``status``, ``citations`` and ``notes``. Earlier messages are the history, so it does not matter whether the front
    end sends all of them each time or the checkpointer keeps them. A turn that a guard refused is left out of it. A
    question back (``clarify``) is a message like any other, unless the run's context has ``clarify=True``.

    Args:
        graph: What a builder of this kit gave; its checkpointer and store are those of the chat.

    Returns:
        A compiled graph with the same settings of a run. Tokens come with ``stream(..., stream_mode="messages",
        subgraphs=True)``.

    Raises:
        InvalidInputError: It is another graph.

    Example:
        >>> from rag_kit.graphs import build_plain_rag
        >>> from rag_kit.models import chat_model
        >>> from rag_kit.retrieval import BM25Retriever
        >>> retriever = BM25Retriever.from_texts(["The fan starts at 60 degrees."])
        >>> chat = as_chat(build_plain_rag(retriever, chat_model("extractive")))
        >>> reply = chat.invoke({"messages": [("user", "When does the fan start?")]})["messages"][-1]
        >>> reply.text, reply.additional_kwargs["status"]
        ('The fan starts at 60 degrees.[1]', 'grounded')
    """
    inner = uncompiled(graph)
    inner.input_schema = inner.state_schema  # so that it takes the earlier turns too
    rag: Any = inner.compile()
    schema: Any = inner.context_schema

    def sync(state: MessagesState, config: RunnableConfig) -> dict[str, Any]:
        return _reply(rag.invoke(_input_of(state["messages"]), config, context=_settings(schema)))

    async def native(state: MessagesState, config: RunnableConfig) -> dict[str, Any]:
        return _reply(await rag.ainvoke(_input_of(state["messages"]), config, context=_settings(schema)))

    chat = StateGraph(MessagesState, context_schema=schema)
    chat.add_node("rag", RunnableLambda(sync, native))
    chat.add_edge(START, "rag")
    chat.add_edge("rag", END)
    compiled: Any = chat.compile(checkpointer=graph.checkpointer, store=graph.store, name=graph.name)
    return compiled  # type: ignore[no-any-return]


def _settings(schema: type[RagContext]) -> RagContext:
    """The settings of the run, with ``clarify`` off unless given: a chat gets a message instead of an interrupt."""
    given = run_context(schema)
    asks_back = "clarify" in schema.model_fields and "clarify" not in given.model_fields_set
    return given.model_copy(update={"clarify": False}) if asks_back else given


def _input_of(messages: Sequence[AnyMessage]) -> dict[str, Any]:
    """The input of the graph: the last question and the turns before it."""
    asked = [at for at, message in enumerate(messages) if isinstance(message, HumanMessage)]
    if not asked:
        raise InvalidInputError(
            'messages hold none of the user\'s; give {"messages": [("user", "How ...?")]}.'
        )
    turns = []
    for at, following in pairwise(asked):
        replies = [one for one in messages[at:following] if isinstance(one, AIMessage) and one.text]
        if replies and replies[-1].additional_kwargs.get("status") != "refused":
            turns.append(Turn(question=messages[at].text, answer=replies[-1].text))
    return {"question": messages[asked[-1]].text, "history": turns[-MAX_TURNS:]}


def _reply(found: Mapping[str, Any]) -> dict[str, Any]:
    about = {key: found.get(key) for key in ("status", "citations", "notes")}
    return {"messages": [AIMessage(found["answer"], additional_kwargs=about)]}
