"""The caps of a run, and which work they cut short: such work is done again, not taken for a result."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from rag_kit.concurrency import Budget
from rag_kit.errors import BudgetExceededError

_refused: ContextVar[list[BudgetExceededError] | None] = ContextVar(
    "rag_kit_evaluation_refused", default=None
)


class RunBudget(Budget):
    """A budget that tells the work in whose course it refused a call.

    Graphs go on with less when a call is refused: what they give then is not what they give.
    """

    def charge_call(self) -> None:
        """As `Budget.charge_call`; a refusal is noted."""
        try:
            super().charge_call()
        except BudgetExceededError as error:
            noted = _refused.get()
            if noted is not None:
                noted.append(error)
            raise


@contextmanager
def refusals() -> Iterator[list[BudgetExceededError]]:
    """Refusals in the course of the block, tasks and threads that it starts included."""
    noted: list[BudgetExceededError] = []
    token = _refused.set(noted)
    try:
        yield noted
    finally:
        _refused.reset(token)
