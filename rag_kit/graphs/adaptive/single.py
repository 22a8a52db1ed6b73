"""Another graph as one node: under the parent's caps, with its usage counted once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from langchain_core.runnables import RunnableConfig, RunnableLambda
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Overwrite

from rag_kit.errors import BudgetExceededError
from rag_kit.graphs.adaptive.context import AdaptiveContext
from rag_kit.graphs.adaptive.nodes import forgotten
from rag_kit.graphs.adaptive.state import AdaptiveState
from rag_kit.graphs.running import run_context
from rag_kit.graphs.state import Update

_KEYS = ("search_query", "documents", "answer", "citations", "uncited", "status")


def single_node(graph: CompiledStateGraph[Any, Any, Any, Any]) -> RunnableLambda[Any, Any]:
    """A node that runs a compiled graph on the question.

    The graph gets the whole configuration, so that tokens, events, tracing and interrupts pass through, and what
    is left of the caps as its own context. It is called, and not added as it stands, since its settings are another
    class and its first node would forget the usage so far. LangGraph finds it in the function all the same: drawings
    with ``xray`` and ``get_state(..., subgraphs=True)`` show it.

    Args:
        graph: The graph; its state has the keys of `RagState`.
    """

    def sync(state: AdaptiveState, config: RunnableConfig) -> Update:
        with _whole_cap() as context:
            settings = settings_for(graph, state, context)
            return _update_from(graph.invoke({"question": state["search_query"]}, config, context=settings))

    async def native(state: AdaptiveState, config: RunnableConfig) -> Update:
        with _whole_cap() as context:
            settings = settings_for(graph, state, context)
            found = await graph.ainvoke({"question": state["search_query"]}, config, context=settings)
            return _update_from(found)

    return RunnableLambda(sync, native)


def settings_for(
    graph: CompiledStateGraph[Any, Any, Any, Any], state: Mapping[str, Any], context: AdaptiveContext
) -> Any:
    """The inner run's settings: the common ones, those given for it, and what is left of the caps.

    Raises:
        BudgetExceededError: Nothing is left.
        InvalidInputError: ``context.single`` holds a setting that the inner graph does not have.
    """
    schema: Any = graph.context_schema
    used = {"calls": 0, "tokens": 0, "seconds": 0.0, **(state.get("usage") or {})}
    if context.max_tokens is not None and context.max_tokens <= used["tokens"]:
        raise BudgetExceededError("tokens", context.max_tokens)
    if context.deadline is not None and context.deadline <= used["seconds"]:
        raise BudgetExceededError("deadline", context.deadline)
    common = {
        "k": context.k,
        "filter": context.filter,
        "citation_check": context.citation_check,
        "answer_instructions": context.answer_instructions,
        **(context.single or {}),
        "language": state["language"],
        "max_calls": None if context.max_calls is None else max(0, context.max_calls - used["calls"]),
        "max_tokens": None if context.max_tokens is None else context.max_tokens - used["tokens"],
        "deadline": None if context.deadline is None else context.deadline - used["seconds"],
    }
    return schema(**common)


@contextmanager
def _whole_cap() -> Iterator[AdaptiveContext]:
    """The run's settings; an error names the cap that the caller set, not what was left for the inner run."""
    context = run_context(AdaptiveContext)
    try:
        yield context
    except BudgetExceededError as error:
        caps = {"calls": context.max_calls, "tokens": context.max_tokens, "deadline": context.deadline}
        limit = caps.get(error.what)
        raise BudgetExceededError(error.what, error.limit if limit is None else limit) from None


def _update_from(found: Mapping[str, Any]) -> Update:
    """The result of the inner run as an update; its usage is added once, also after an interrupt inside it."""
    update: Update = {key: found[key] for key in _KEYS if key in found}
    notes = list(found.get("notes") or [])
    update["notes"] = notes
    update["usage"] = found["usage"]
    if found.get("status") == "refused":  # nothing of the run so far may tell what was refused
        asked = {key: value for key, value in forgotten().items() if key != "asked"}
        update.update(asked, notes=Overwrite(notes))
    return update
