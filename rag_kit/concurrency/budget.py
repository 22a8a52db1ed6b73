"""Caps on calls, tokens and time, in a context variable, for all inside a block."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from rag_kit.concurrency.pool import check_abandoned
from rag_kit.errors import BudgetExceededError, InvalidInputError

#: About 31 years; the clocks of some systems cannot wait much longer.
MAX_SECONDS = 1e9

_lock = threading.Lock()
#: The budgets of the blocks around this code.
active_budgets: ContextVar[tuple[Budget, ...]] = ContextVar("rag_kit_budgets", default=())


@dataclass(kw_only=True, eq=False)
class Budget:
    """Counts model calls and tokens, and caps them; safe to share between threads and tasks.

    Args:
        max_calls: Most model calls, or ``None`` for any number.
        max_tokens: Most tokens, known after a call only: the call that goes over is kept, the next one is refused.
        deadline: Seconds from now.

    Attributes:
        calls: Calls charged so far.
        tokens: Tokens charged so far.
        ends: When the deadline is, by ``time.monotonic``; infinity without one.

    Raises:
        InvalidInputError: If a cap is negative, or not a number.

    Example:
        >>> budget = Budget(max_calls=1)
        >>> budget.charge_call()
        >>> budget.charge_call()
        Traceback (most recent call last):
        ...
        rag_kit.errors.BudgetExceededError: The budget of calls is used up (max_calls=1). Raise max_calls ...
    """

    max_calls: int | None = None
    max_tokens: int | None = None
    deadline: float | None = None
    calls: int = field(default=0, init=False)
    tokens: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        check_count("max_calls", self.max_calls)
        check_count("max_tokens", self.max_tokens)
        check_seconds("deadline", self.deadline, zero=True)
        self.ends = math.inf if self.deadline is None else time.monotonic() + self.deadline

    def remaining_seconds(self) -> float | None:
        """Return the seconds until the deadline, never below 0; ``None`` without a deadline."""
        return None if self.deadline is None else max(0.0, self.ends - time.monotonic())

    def charge_call(self) -> None:
        """Count a call that is about to be made; if no call, token or time is left, raise `BudgetExceededError`."""
        _charge_call((self,))

    def charge_tokens(self, n: int) -> None:
        """Count tokens that were used, also above the cap: a reply that was paid for is kept."""
        check_count("n", n)
        with _lock:
            self.tokens += n

    def check_call(self) -> None:
        """Raise `BudgetExceededError` if no call, token or time is left."""
        if self.max_calls is not None and self.calls >= self.max_calls:
            raise BudgetExceededError("calls", self.max_calls)
        if self.max_tokens is not None and self.tokens >= self.max_tokens:
            raise BudgetExceededError("tokens", self.max_tokens)
        if time.monotonic() >= self.ends:
            raise BudgetExceededError("deadline", self.deadline or 0)


@contextmanager
def use_budget(*budgets: Budget) -> Iterator[Budget]:
    """Charge these budgets, and those of blocks around this one, for everything done in the block; yield the last.

    Example:
        >>> with use_budget(Budget(max_calls=5)) as budget:
        ...     charge_call()
        >>> budget.calls
        1
    """
    if not budgets:
        raise InvalidInputError("use_budget() was given no budget; give one, e.g. Budget(max_calls=5).")
    token = active_budgets.set(active_budgets.get() + budgets)
    try:
        yield budgets[-1]
    finally:
        active_budgets.reset(token)


def charge_call() -> None:
    """Count a call in every active budget; raise an error if one has no call left, or this branch was abandoned."""
    check_abandoned()
    _charge_call(active_budgets.get())


def _charge_call(budgets: tuple[Budget, ...]) -> None:
    """Count a call in all budgets, or raise BudgetExceededError and count it in none."""
    with _lock:
        for budget in budgets:
            budget.check_call()
        for budget in budgets:
            budget.calls += 1


def return_call() -> None:
    """Subtract a call that was counted from every active budget, since a cache had the reply and nothing was sent."""
    with _lock:
        for budget in active_budgets.get():
            budget.calls -= 1


def charge_tokens(n: int) -> None:
    """Count tokens in every active budget."""
    for budget in active_budgets.get():
        budget.charge_tokens(n)


def remaining_seconds() -> float | None:
    """Return the seconds until the nearest deadline of the active budgets; ``None`` without one."""
    ends = min((budget.ends for budget in active_budgets.get()), default=math.inf)
    return None if ends == math.inf else max(0.0, ends - time.monotonic())


def check_count(name: str, value: Any, *, minimum: int = 0) -> Any:
    """Return a cap; refuse one that is too small or not a whole number. ``None`` is no limit."""
    if value is not None and (type(value) is not int or value < minimum):
        raise InvalidInputError(
            f"{name}={value!r:.60} was given; it must be a whole number >= {minimum}, or None."
        )
    return value


def check_seconds(name: str, value: Any, *, zero: bool = False) -> float | None:
    """Return a time-out as a float, None as None; refuse all but positive numbers (and 0 if ``zero``)."""
    if value is None:
        return None
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not 0 <= value <= MAX_SECONDS or (value == 0 and not zero):
        low = ">= 0" if zero else "> 0"
        raise InvalidInputError(
            f"{name}={value!r:.60} was given; it must be seconds {low} and at most {MAX_SECONDS:g}, or None."
        )
    return float(value)
