"""Searches that one question leads to, made side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from langchain_core.documents import Document
from langchain_core.runnables import Runnable

from rag_kit.retrieval.batching import groups_of
from rag_kit.retrieval.bounded import raise_all_failed
from rag_kit.retrieval.compose import acall_retriever, call_retriever
from rag_kit.retrieval.merging import Found
from rag_kit.retrieval.query_call import Call, QueryCall


@dataclass(frozen=True)
class Search:
    """One search to make.

    Attributes:
        query: The text to search for.
        role: ``"original"``, ``"variant"``, ``"passage"``...; stands in the provenance; ``None`` for the question.
        retriever: Asked instead of the inner retriever.
        shown: Stands in the provenance for the query.
        weight: Its weight in the fusion, above 0.
        route: The stage that led to this search, with its ``source``; see ``Found``.
    """

    query: str
    role: str | None
    retriever: Runnable[str, list[Document]] | None = None
    shown: str | None = None
    weight: float = 1.0
    route: Mapping[str, Any] = field(default_factory=dict)


async def search_all(
    call: QueryCall, retriever: Any, searches: Sequence[Search], k: int | None, *, first: int = 1
) -> list[Found]:
    """Search side by side; what fails is noted.

    Args:
        call: The call.
        retriever: The retriever that is asked, where a search names no other.
        searches: The searches.
        k: How many documents each is asked for.
        first: Number of the first one; from the second on, all may fail.

    Raises:
        BranchError: One failed (``on_error="raise"``), or all did.
        BudgetExceededError: The same, for a used-up budget.
    """
    asked = [search.retriever or retriever for search in searches]
    groups = groups_of([(one, search.query) for one, search in zip(asked, searches, strict=True)])
    calls = []
    for number, (search, one, group) in enumerate(zip(searches, asked, groups, strict=True), start=first):
        config = call.request.child(f"query_{number}")
        settings: dict[str, Any] = {"config": config, "k": k, "filter": call.request.filter}
        sync = partial(group.call, call_retriever, one, search.query, **settings)
        native = partial(group.acall, acall_retriever, one, search.query, **settings)
        source = search.route.get("source")
        name = f"{one.get_name()}, query {number}" if source is None else f"source {source!r}"
        calls.append(Call(name, sync, native))
    result = await call.do_all(calls, on_error=call.owner.on_error)
    if first == 1 and not result.values:
        raise_all_failed(f"searches of {call.owner.get_name()}", result)
    for line in result.degradations:
        call.note(f"degraded: {line}")
    return [
        Found(
            search.shown or search.query,
            search.role,
            one.get_name(),
            search.weight,
            outcome.value or [],
            route=search.route,
        )
        for search, one, outcome in zip(searches, asked, result.outcomes, strict=True)
        if outcome.ok
    ]
