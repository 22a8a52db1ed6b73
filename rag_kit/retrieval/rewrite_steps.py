"""The steps of a rewriting retriever: batches of calls, each in both forms, and who carries them out."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from rag_kit import concurrency
from rag_kit.concurrency import Budget, FanOut, afan_out, fan_out, use_budget
from rag_kit.concurrency import steps as driver

T = TypeVar("T")


@dataclass(frozen=True)
class Call:
    """One thing to do, in both forms."""

    name: str
    sync: Callable[[], Any]
    native: Callable[[], Awaitable[Any]]


@dataclass(frozen=True)
class Batch:
    """Calls to make side by side; answered by their ``FanOut``.

    Attributes:
        calls: The calls.
        on_error: As for ``fan_out``.
        timeout: Seconds one call may take.
        deadline: Seconds all of them may take.
        max_concurrency: Most calls at a time.
        budget: A budget for these calls alone, beside that of the whole.
    """

    calls: Sequence[Call]
    on_error: Literal["raise", "skip"]
    timeout: float | None
    deadline: float | None
    max_concurrency: int | None
    budget: Budget | None = None


Steps = Generator[Batch, FanOut[Any], T]


def drive(steps: Steps[T], budget: Budget) -> T:
    """Carry out the steps on threads."""

    def carry_out(batch: Batch) -> FanOut[Any]:
        with _budgets(budget, batch):
            return fan_out([call.sync for call in batch.calls], **_settings(batch))

    return driver.drive(steps, carry_out)


async def adrive(steps: Steps[T], budget: Budget) -> T:
    """Carry out the steps without blocking the event loop."""

    async def carry_out(batch: Batch) -> FanOut[Any]:
        with _budgets(budget, batch):
            return await afan_out([call.native for call in batch.calls], **_settings(batch))

    return await driver.adrive(steps, carry_out)


def in_thread(name: str, work: Callable[[], Any]) -> Call:
    """A call that has no asynchronous form of its own."""
    return Call(name, work, lambda: concurrency.run_in_thread(work))


def _budgets(budget: Budget, batch: Batch) -> AbstractContextManager[Budget]:
    return use_budget(budget) if batch.budget is None else use_budget(budget, batch.budget)


def _settings(batch: Batch) -> dict[str, Any]:
    return {
        "names": [call.name for call in batch.calls],
        "on_error": batch.on_error,
        "timeout": batch.timeout,
        "deadline": batch.deadline,
        "max_concurrency": batch.max_concurrency,
    }
