"""A graph as a tool of an agent."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, StructuredTool, ToolException
from langgraph.graph.state import CompiledStateGraph
from pydantic import BaseModel, Field

from rag_kit.documents import clean_text
from rag_kit.errors import InvalidInputError
from rag_kit.text import check_question

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
_MAX_QUOTE = 300
_STATUS = {
    "flagged": "A citation of this answer does not hold; do not rely on it without a check.",
    "undecided": "The check cannot tell whether a citation of this answer holds.",
    "uncited": "A statement of this answer has no citation.",
    "unsourced": "Nothing was looked up for this answer.",
    "clarify": "This is a question back: ask again, with what is missing.",
    "refused": "A guard refused.",
}


class _Question(BaseModel):
    """What the tool takes."""

    question: str = Field(description="One question in plain words, complete in itself.")


def as_tool(
    graph: CompiledStateGraph[Any, Any, Any, Any],
    *,
    name: str = "search_documents",
    description: str = "Answers a question from the documents, with the sources of each statement.",
    context: Mapping[str, Any] | None = None,
) -> BaseTool:
    """Make any graph of this package a tool for ``langchain.agents.create_agent`` and other agents.

    The tool takes one question, and gives the answer's text with its sources as data for the agent; what the
    documents say can neither call another tool nor change this one. Each call is a run of its own, also of a graph that
    has a checkpointer. The run's status, citations and notes are the
    tool message's ``artifact``. A question that cannot be asked (empty, too long) is explained to the agent's model,
    which may ask again; other errors end the agent's run.

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
        InvalidInputError: The name or a setting is not allowed, or the graph is none of this package's.

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
    if not _NAME.fullmatch(name) or not description.strip():
        raise InvalidInputError(
            f"name is {name!r}, description {description!r:.40}; a tool's name has 1 to 64 letters, digits, _ or -, a "
            "letter first, and its description says what it knows, for models choose tools by it."
        )
    schema: Any = getattr(graph, "context_schema", None)
    if not hasattr(graph, "ainvoke") or schema is None or not hasattr(schema, "model_fields"):
        raise InvalidInputError(f"graph is a {type(graph).__name__}; give a graph of this package.")
    waits = {"clarify": False} if "clarify" in schema.model_fields else {}
    settings = schema(**{**waits, **(context or {})})
    # each call is a run of its own: a thread would mix the questions of whoever shares the tool
    graph = graph.copy({"checkpointer": None})

    def ask(question: str, config: RunnableConfig) -> tuple[str, dict[str, Any]]:
        return _reply(graph.invoke(_input(question), config, context=settings))

    async def aask(question: str, config: RunnableConfig) -> tuple[str, dict[str, Any]]:
        return _reply(await graph.ainvoke(_input(question), config, context=settings))

    return StructuredTool.from_function(
        func=ask,
        coroutine=aask,
        name=name,
        description=description,
        args_schema=_Question,
        response_format="content_and_artifact",
        handle_tool_error=True,
    )


def _input(question: str) -> dict[str, str]:
    """The graph's input; an agent's model can mend what it asks, so it is given the error."""
    try:
        return {"question": check_question(question, example="{'question': 'How ...?'}")}
    except InvalidInputError as error:
        raise ToolException(str(error)) from None


def _reply(state: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """The answer, what is to be known about it, and its sources; then the same as data."""
    status, citations = state.get("status", ""), list(state.get("citations") or [])
    parts = [str(state.get("answer", ""))]
    if status in _STATUS:
        parts.append(f"Note: {_STATUS[status]}")
    if citations:
        lines = dict.fromkeys(f"[{citation['number']}] {_place(citation)}" for citation in citations)
        parts.append("Sources:\n" + "\n".join(lines))
    artifact = {"status": status, "citations": citations, "notes": list(state.get("notes") or [])}
    return "\n\n".join(parts), artifact


def _place(citation: Mapping[str, Any]) -> str:
    """File, page, heading and quote on one line; control characters are made visible."""
    page = citation["page"]
    where = [citation["file"] or citation["title"], page and f"page {page}", citation["heading"]]
    quote = " ".join((citation["quote"] or "").split())
    quote = quote if len(quote) <= _MAX_QUOTE else f"{quote[: _MAX_QUOTE - 1]}…"
    parts = [", ".join(str(part) for part in where if part), quote and f'"{quote}"']
    text = ": ".join(part for part in parts if part)
    supported = citation["status"] in ("supported", "undecided")
    return clean_text(text if supported else f"{text} (does not support the statement)")
