"""A graph as a tool of an agent, and as a chat over messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langchain_core.messages.ai import UsageMetadata
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.graph.state import CompiledStateGraph

from rag_kit.concurrency import Budget, use_budget
from rag_kit.documents import clean_text
from rag_kit.errors import ConfigurationError, InvalidInputError
from rag_kit.graphs.context import begin_turns, keep_settings, run_context
from rag_kit.graphs.guards import Guards, Refusal
from rag_kit.graphs.running import GraphNode, name_caps, run_graph
from rag_kit.graphs.state import MAX_TURNS, Turn, Update
from rag_kit.graphs.streaming import MessageCatcher
from rag_kit.graphs.wiring import uncompiled
from rag_kit.models.replies import estimate_tokens
from rag_kit.query_construction.statements.uses import question_tool
from rag_kit.text import check_question

_MAX_QUOTE = 300
_STATUS_NOTES = {
    "flagged": "A citation of this answer does not hold; do not rely on it without a check.",
    "undecided": "The check cannot tell whether a citation of this answer holds.",
    "incomplete": "Something could not be searched, or the answer was cut off; see the notes.",
    "uncited": "A statement of this answer has no citation.",
    "unsourced": "Nothing was looked up for this answer.",
    "clarify": "This is a question back: ask again, with what is missing.",
    "refused": "A guard refused.",
}


def as_tool(
    graph: CompiledStateGraph[Any, Any, Any, Any],
    *,
    name: str = "search_documents",
    description: str = "Answers a question from the documents, with the sources of each statement.",
    context: Mapping[str, Any] | None = None,
) -> BaseTool:
    """Make any graph of this package a tool for ``langchain.agents.create_agent`` and other agents.

    The tool takes one question, and gives the answer's text with its sources as data for the agent. Each call is a run
    of its own. The run's status, citations and notes are the tool message's ``artifact``. A question that cannot be
    asked is explained to the agent's model, which may ask again; other errors end the agent's run.

    Args:
        graph: A compiled graph with ``question`` in and ``answer`` out.
        name: The tool's name: letters, digits, ``_`` and ``-``.
        description: What the tool knows; models choose tools by it.
        context: Settings of each run, as in ``graph.invoke(..., context=...)``. The agent's own context is never
            used. A graph that may ask back (``clarify``) does not wait for a reply inside a tool, unless
            ``{"clarify": True}`` is given: its question is the tool's answer.

    Returns:
        A structured tool, for ``invoke`` and ``ainvoke`` alike.

    Raises:
        InvalidInputError: A setting is not allowed, or the graph is none of this package's.

    Example:
        >>> from rag_kit.graphs import build_plain_rag
        >>> from rag_kit.models import chat_model
        >>> from rag_kit.retrieval import BM25Retriever
        >>> texts = BM25Retriever.from_texts(["The fan starts at 60 degrees."])
        >>> tool = as_tool(build_plain_rag(texts, chat_model("extractive")), name="manual")
        >>> print(tool.invoke({"question": "When does the fan start?"}))
        The fan starts at 60 degrees.[1]
        <BLANKLINE>
        Sources:
        [1] "The fan starts at 60 degrees."
    """
    schema: Any = getattr(graph, "context_schema", None)
    if not hasattr(graph, "ainvoke") or schema is None or not hasattr(schema, "model_fields"):
        raise InvalidInputError(f"graph is a {type(graph).__name__}; give a graph of this package.")
    defaults = {"clarify": False} if "clarify" in schema.model_fields else {}
    settings = schema(**{**defaults, **(context or {})})
    # each call is a run of its own: a thread would mix the questions of whoever shares the tool
    graph = graph.copy({"checkpointer": None})

    async def answer(question: str, config: RunnableConfig) -> tuple[str, dict[str, Any]]:
        checked = check_question(question, example="{'question': 'How ...?'}")
        state = await graph.ainvoke({"question": checked}, config, context=settings)
        if "__interrupt__" in state:  # an agent's run waits by itself
            raise ConfigurationError(
                "a part of the graph asks a person (interrupt), and nobody can be waited for here: give the tool to an "
                "agent with a checkpointer."
            )
        return _tool_reply(state)

    return question_tool(answer, name, description)


def _tool_reply(state: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return the answer with its notes and sources as text, and the same as data."""
    status, citations = state.get("status", ""), list(state.get("citations") or [])
    parts = [str(state.get("answer", ""))]
    if status in _STATUS_NOTES:
        parts.append(f"Note: {_STATUS_NOTES[status]}")
    if citations:
        lines = dict.fromkeys(f"[{citation['number']}] {_name_source(citation)}" for citation in citations)
        parts.append("Sources:\n" + "\n".join(lines))
    artifact = {"status": status, "citations": citations, "notes": list(state.get("notes") or [])}
    return "\n\n".join(parts), artifact


def _name_source(citation: Mapping[str, Any]) -> str:
    """Write the source of a citation on one line: ``manual.pdf, page 3, Fans: "The fan starts at 60 degrees."``."""
    page = f"page {citation['page']}" if citation["page"] else None
    location = [citation["file"] or citation["title"], page, citation["heading"]]
    text = ", ".join(str(field) for field in location if field)
    quote = " ".join((citation["quote"] or "").split())
    if len(quote) > _MAX_QUOTE:
        quote = f"{quote[: _MAX_QUOTE - 1]}…"
    if quote:
        text = f'{text}: "{quote}"' if text else f'"{quote}"'
    if citation["status"] not in ("supported", "undecided"):
        text += " (does not support the statement)"
    return clean_text(text)


def as_chat(
    graph: CompiledStateGraph[Any, Any, Any, Any],
) -> CompiledStateGraph[MessagesState, Any, Any, Any]:
    """Wrap a graph of this kit in one over ``MessagesState``, as chat front ends and other graphs expect it.

    The last human message is the question. The answer is appended as an ``AIMessage`` whose ``additional_kwargs`` hold
    ``status``, ``citations``, ``notes`` and ``asked``, the question as the guards left it; it has the id of the chunks
    in which it was streamed. Earlier messages are the history, so it does not matter whether the front end sends all of
    them each time or the checkpointer keeps them; turns that a guard refused are left out. A question back
    (``clarify``) is a message like any other, unless the run's context has ``clarify=True``.

    Args:
        graph: What a builder of this kit gave; its checkpointer and store are those of the chat.

    Returns:
        A compiled graph with the same settings, named as the graph with ``_chat`` after it. Tokens:
        ``stream(..., stream_mode="messages", subgraphs=True)``.

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
    # so that it takes the earlier turns too, and tells what was asked
    inner.input_schema = inner.output_schema = inner.state_schema
    schema: Any = inner.context_schema
    guards = inner.options.get("guards") or Guards()

    async def answer(state: MessagesState, rag: Any) -> Update:
        messages, catcher = state["messages"], MessageCatcher(streamed=True)
        context = run_context(schema)
        kept_settings = keep_settings(context)
        # a chat gets a message instead of an interrupt, unless it asked for one
        if "clarify" in schema.model_fields and "clarify" not in context.model_fields_set:
            context = context.model_copy(update={"clarify": False})
        with name_caps(context), use_budget(Budget(deadline=context.deadline)):
            question = await _read_question(messages, guards)
        result = await run_graph(rag, question, context, catcher)
        return {**_chat_update(result, messages, catcher.message), **kept_settings}

    schemas = {"input_schema": MessagesState, "output_schema": MessagesState}
    chat: Any = StateGraph(_ChatState, context_schema=schema, **schemas)
    chat.add_node("rag", GraphNode(inner.compile(), answer))
    chat.add_edge(START, "rag")
    chat.add_edge("rag", END)
    name = f"{graph.name}_chat"  # a server with both tells them apart by it
    compiled: Any = chat.compile(checkpointer=graph.checkpointer, store=graph.store, name=name)
    begin_turns(compiled, schema)
    return compiled  # type: ignore[no-any-return]


class _ChatState(MessagesState):
    turn_settings: dict[str, Any]


async def _read_question(messages: Sequence[AnyMessage], guards: Guards) -> dict[str, Any]:
    """Return the input of the graph: the last question, and the answered turns before it that no guard refused."""
    indices = [index for index, message in enumerate(messages) if isinstance(message, HumanMessage)]
    if not indices:
        raise InvalidInputError(
            'messages hold none of the user\'s; give {"messages": [("user", "How ...?")]}.'
        )
    turns = []
    for start, end in pairwise(indices[-MAX_TURNS - 1 :]):
        question, *others = messages[start:end]
        replies = [message for message in others if isinstance(message, AIMessage) and message.text]
        if not replies or replies[-1].additional_kwargs.get("status") == "refused":
            continue
        asked = replies[-1].additional_kwargs.get("asked")
        if not asked:  # a front end that sends the whole conversation dropped what the guards made of it
            asked = await guards.check_question(question.text)
        if not isinstance(asked, Refusal):
            turns.append(Turn(question=asked, answer=replies[-1].text))
    return {"question": messages[indices[-1]].text, "history": turns}


def _chat_update(result: Mapping[str, Any], messages: Sequence[AnyMessage], streamed: Any) -> dict[str, Any]:
    """Make the chat's update: the answer, with the id of the ``streamed`` message, so that it is shown once."""
    details = {key: result.get(key) for key in ("asked", "status", "citations", "notes")}
    answer, message_id = result["answer"], getattr(streamed, "id", None)
    if message_id in {message.id for message in messages}:
        message_id = None  # a model that gives each message the same id; it would replace an earlier one
    usage = getattr(streamed, "usage_metadata", None)
    if usage is None:  # the model does not give the tokens of its answer, so these are estimated
        tokens = result["usage"]["tokens"]
        output = min(tokens, estimate_tokens(answer))
        usage = UsageMetadata(input_tokens=tokens - output, output_tokens=output, total_tokens=tokens)
    return {"messages": [AIMessage(answer, id=message_id, usage_metadata=usage, additional_kwargs=details)]}
