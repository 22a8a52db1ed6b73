"""What every node shares: one node for ``invoke`` and ``ainvoke``, the run's settings, its budget."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

from langchain_core.runnables import RunnableConfig, RunnableLambda
from langgraph.runtime import get_runtime
from pydantic import BaseModel

from rag_kit.concurrency import Budget, use_budget
from rag_kit.errors import BudgetExceededError, InvalidInputError
from rag_kit.graphs.state import Update, Usage

ContextT = TypeVar("ContextT", bound=BaseModel)


def node(
    sync: Callable[[Any, RunnableConfig], Update],
    asynchronous: Callable[[Any, RunnableConfig], Awaitable[Update]],
) -> RunnableLambda[Any, Update]:
    """One node that runs natively under ``invoke`` and under ``ainvoke``."""
    return RunnableLambda(sync, asynchronous)


def run_context(schema: type[ContextT]) -> ContextT:
    """The settings of this run: what the caller gave, else the defaults.

    LangGraph passes None in plain Python and an instance on the server.

    Raises:
        InvalidInputError: A setting is unknown or out of range.
    """
    given: Any = get_runtime().context
    if given is None:
        return schema()
    if isinstance(given, schema):
        return given
    if not isinstance(given, Mapping):
        raise InvalidInputError(
            f"context is a {type(given).__name__}; give a dict. Allowed: {', '.join(schema.model_fields)}."
        )
    return schema(**given)


def report(event: str, **details: Any) -> None:
    """Tell listeners of ``stream_mode="custom"`` how far the run is."""
    get_runtime().stream_writer({"event": event, **details})


class Meter:
    """Measures one node against the run's caps; `usage` holds the run's total after it."""

    def __init__(self, before: Usage) -> None:
        self.usage = before

    def add(self, budget: Budget, seconds: float) -> None:
        """Count what the node used."""
        self.usage = Usage(
            calls=self.usage["calls"] + budget.calls,
            tokens=self.usage["tokens"] + budget.tokens,
            seconds=self.usage["seconds"] + seconds,
        )


@contextmanager
def metered(
    used: Mapping[str, Any] | None, *, max_calls: int | None, max_tokens: int | None, deadline: float | None
) -> Iterator[Meter]:
    """Run a node's body under what is left of the run's caps.

    The caps are kept in the state and not in a context variable, so that they hold across nodes, threads and a
    resume from a checkpoint; time spent waiting between nodes (an interrupt, a restart) is not counted.

    Args:
        used: The state's ``usage``; None at the first node.
        max_calls: Model calls the run may make.
        max_tokens: Tokens, in and out, the run may use.
        deadline: Seconds the run may spend inside its nodes.

    Raises:
        BudgetExceededError: A cap is reached.
    """
    before = Usage(calls=0, tokens=0, seconds=0.0)
    if used:
        before = Usage(calls=used["calls"], tokens=used["tokens"], seconds=used["seconds"])
    left_seconds = None if deadline is None else deadline - before["seconds"]
    if left_seconds is not None and left_seconds <= 0:
        raise BudgetExceededError("deadline", deadline or 0)
    budget = Budget(
        max_calls=None if max_calls is None else max(0, max_calls - before["calls"]),
        max_tokens=None if max_tokens is None else max(0, max_tokens - before["tokens"]),
        deadline=left_seconds,
    )
    meter = Meter(before)
    start = time.perf_counter()
    with use_budget(budget):
        try:
            yield meter
        except BudgetExceededError as error:
            # the budget knows only what was left for this node; the caller knows the cap of the whole run
            limit = {"calls": max_calls, "tokens": max_tokens, "deadline": deadline}.get(error.what)
            raise BudgetExceededError(error.what, error.limit if limit is None else limit) from None
        finally:
            meter.add(budget, time.perf_counter() - start)
