"""Calls side by side, as one step of a retriever's logic."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Literal

from rag_kit.concurrency import Budget, afan_out, fan_out, use_budget
from rag_kit.concurrency.bridge import run_in_thread
from rag_kit.concurrency.outcome import FanOut
from rag_kit.concurrency.steps import Step


@dataclass(frozen=True)
class Call:
    """One thing to do, in both forms."""

    name: str
    sync: Callable[[], Any]
    native: Callable[[], Awaitable[Any]]


def side_by_side(
    calls: Sequence[Call],
    on_error: Literal["raise", "skip"],
    timeout: float | None,
    deadline: float | None,
    max_concurrency: int | None,
    budget: Budget | None = None,
) -> Step[FanOut[Any]]:
    """Make calls side by side; gives their ``FanOut``. The context of the run is the budget of the whole.

    Args:
        calls: The calls.
        on_error: As for ``fan_out``.
        timeout: Seconds one call may take.
        deadline: Seconds all of them may take.
        max_concurrency: Most calls at a time.
        budget: A budget for these calls alone, beside that of the whole.
    """
    settings: dict[str, Any] = {
        "names": [call.name for call in calls],
        "on_error": on_error,
        "timeout": timeout,
        "deadline": deadline,
        "max_concurrency": max_concurrency,
    }

    def budgets(whole: Budget) -> AbstractContextManager[Budget]:
        return use_budget(whole) if budget is None else use_budget(whole, budget)

    def sync(whole: Budget) -> FanOut[Any]:
        with budgets(whole):
            return fan_out([call.sync for call in calls], **settings)

    async def native(whole: Budget) -> FanOut[Any]:
        with budgets(whole):
            return await afan_out([call.native for call in calls], **settings)

    return Step("side by side", sync, native)


def in_thread(name: str, work: Callable[[], Any]) -> Call:
    """A call that has no asynchronous form of its own."""
    return Call(name, work, lambda: run_in_thread(work))
