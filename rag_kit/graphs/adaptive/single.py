"""Another graph as one node: under the parent's caps, with its usage counted once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from langchain_core.runnables import RunnableConfig, RunnableLambda
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Overwrite

from rag_kit.errors import BudgetExceededError
from rag_kit.graphs.adaptive.context import AdaptiveContext
from rag_kit.graphs.adaptive.state import AdaptiveState, forgotten
from rag_kit.graphs.running import caps_left, naming_caps, run_context
from rag_kit.graphs.state import Update

_KEYS = ("search_query", "documents", "answer", "citations", "uncited", "status", "usage")


def single_node(graph: CompiledStateGraph[Any, Any, Any, Any]) -> RunnableLambda[Any, Any]:
    """A node that runs a compiled graph on the question.

    The graph gets the whole configuration, so that tokens, events, tracing and interrupts pass through, and what
    is left of the caps as its own context. It is called, and not added as it stands, since its settings are another
    class and its first node would forget the usage so far. LangGraph finds it in the function all the same: drawings
    with ``xray`` and ``get_state(..., subgraphs=True)`` show it.
    """

    def sync(state: AdaptiveState, config: RunnableConfig) -> Update:
        with naming_caps(run_context(AdaptiveContext)):
            settings = _settings(graph, state)
            return _update_from(graph.invoke({"question": state["search_query"]}, config, context=settings))

    async def native(state: AdaptiveState, config: RunnableConfig) -> Update:
        with naming_caps(run_context(AdaptiveContext)):
            given = {"question": state["search_query"]}
            return _update_from(await graph.ainvoke(given, config, context=_settings(graph, state)))

    return RunnableLambda(sync, native)


def _settings(graph: CompiledStateGraph[Any, Any, Any, Any], state: Mapping[str, Any]) -> Any:
    """The inner run's settings: the common ones, those given for it, and what is left of the caps."""
    context = run_context(AdaptiveContext)
    left = caps_left(state.get("usage"), context)
    for cap, what in (("max_tokens", "tokens"), ("deadline", "deadline")):
        if left[cap] is not None and left[cap] <= 0:
            raise BudgetExceededError(what, left[cap])
    schema: Any = graph.context_schema
    common = ("k", "filter", "citation_check", "answer_instructions")
    given = {name: getattr(context, name) for name in common}
    return schema(**{**given, **(context.single or {}), "language": state["language"], **left})


def _update_from(found: Mapping[str, Any]) -> Update:
    """The result of the inner run as an update; its usage is added once, also after an interrupt inside it."""
    notes = list(found.get("notes") or [])
    update: Update = {"notes": notes, **{key: found[key] for key in _KEYS if key in found}}
    if found.get("status") == "refused":  # nothing of the run so far may tell what was refused
        asked = {key: value for key, value in forgotten().items() if key != "asked"}
        update.update(asked, notes=Overwrite(notes))
    return update
