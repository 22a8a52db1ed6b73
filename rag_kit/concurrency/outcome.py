"""What came out of a fan-out, and the checks that the threaded and the asynchronous one share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Generic, Literal, NoReturn, TypeVar, cast

from rag_kit._redact import redact
from rag_kit.concurrency.budget import brief, check_seconds, tightest_deadline
from rag_kit.errors import BranchError, BranchTimeoutError, BudgetExceededError, InvalidInputError

T = TypeVar("T")
OnError = Literal["raise", "skip"]
_MAX_MESSAGE = 300


@dataclass(frozen=True)
class Outcome(Generic[T]):
    """How one branch ended.

    Attributes:
        name: The branch's name.
        value: What it returned; ``None`` if it failed.
        error: Why it failed, or ``None``.
        seconds: How long it ran (0 if it never started).
    """

    name: str
    value: T | None = None
    error: BaseException | None = None
    seconds: float = 0.0

    @property
    def ok(self) -> bool:
        """Whether the branch returned."""
        return self.error is None


@dataclass(frozen=True)
class FanOut(Generic[T]):
    """How all branches ended, in the order of the tasks."""

    outcomes: list[Outcome[T]]

    @property
    def values(self) -> list[T]:
        """What the successful branches returned, in order."""
        return [cast("T", outcome.value) for outcome in self.outcomes if outcome.ok]

    @property
    def degradations(self) -> list[str]:
        """One line for each branch that failed."""
        return [describe_failure(o.name, o.error) for o in self.outcomes if o.error is not None]


@dataclass(frozen=True)
class Plan:
    """The checked arguments of a fan-out.

    Attributes:
        names: One name a branch.
        width: Most branches at a time.
        timeout: Seconds a branch may take.
        seconds: Seconds the whole may take: the tighter of ``deadline`` and the active budgets.
        budget_limit: The budget's own deadline, if that is the tighter one.
        on_error: What to do when a branch fails.
    """

    names: Sequence[str]
    width: int
    timeout: float | None
    seconds: float | None
    budget_limit: float | None
    on_error: OnError

    def late(self, name: str, *, whole: bool) -> Exception:
        """The error of a branch that was not done in time."""
        if not whole:
            return BranchTimeoutError(f"Branch {name!r} took longer than timeout={self.timeout:g} s.")
        if self.budget_limit is not None:
            return BudgetExceededError("deadline", self.budget_limit)
        return BranchTimeoutError(f"Branch {name!r} was not done within deadline={self.seconds:g} s.")


def plan(
    tasks: Sequence[Any],
    *,
    max_concurrency: int | None,
    timeout: float | None,
    on_error: str,
    names: Sequence[str] | None,
    deadline: float | None,
) -> Plan:
    """Check the arguments of a fan-out.

    Raises:
        InvalidInputError: If one is not allowed.
        BudgetExceededError: If the deadline of an active budget has passed.
    """
    width = max_concurrency
    if width is not None and (isinstance(width, bool) or not isinstance(width, int) or width < 1):
        raise InvalidInputError(
            f"max_concurrency={brief(width)} was given; it must be a whole number >= 1, or None."
        )
    check_seconds("timeout", timeout)
    check_seconds("deadline", deadline)
    if on_error not in ("raise", "skip"):
        raise InvalidInputError(f"on_error={brief(on_error)} was given; allowed: 'raise', 'skip'.")
    count = _count(tasks)
    if names is not None:
        if isinstance(names, str) or not isinstance(names, Sequence):
            raise InvalidInputError(f"names={brief(names)} was given; it must be a list of names, or None.")
        if len(names) != count:
            raise InvalidInputError(f"{len(names)} names were given for {count} tasks; give one each.")
    seconds, budget_limit = deadline, None
    tightest = tightest_deadline()
    if tightest is not None and (seconds is None or tightest[0] < seconds):
        seconds, budget_limit = tightest
        if seconds <= 0:
            raise BudgetExceededError("deadline", budget_limit)
    return Plan(
        names=names if names is not None else [f"branch {number}" for number in range(1, count + 1)],
        width=min(count, width or count),
        timeout=timeout,
        seconds=seconds,
        budget_limit=budget_limit,
        on_error=cast("OnError", on_error),
    )


def check_map(func: Any, items: Any) -> None:
    """See that there are a function and a list to apply it to: nobody knows how many items a generator holds.

    Raises:
        InvalidInputError: If not.
    """
    if not callable(func):
        raise InvalidInputError(
            f"func is {brief(func)}, which cannot be called; give a function of one item."
        )
    _check_list(items, "items")


def _check_list(items: Any, what: str) -> None:
    listed = hasattr(items, "__len__") and hasattr(items, "__getitem__")
    if not listed or isinstance(items, (str, bytes, dict)):
        raise InvalidInputError(
            f"{what} is {brief(items)} ({type(items).__name__}); give a list (list(...) makes one of a generator)."
        )


def _count(tasks: Any) -> int:
    """How many tasks there are, each of which can be called."""
    _check_list(tasks, "tasks")
    for number, task in enumerate(tasks):
        if not callable(task):
            advice = (
                "give the function, not what it returned when called"
                if hasattr(task, "__await__")
                else "each must be a function without arguments, e.g. lambda: search(query)"
            )
            raise InvalidInputError(f"tasks[{number}] is {brief(task)}, which cannot be called; {advice}.")
    return len(tasks)


def describe_failure(name: str, error: BaseException | None) -> str:
    """One line about a failed branch, without line breaks, keys or more length than needed."""
    if isinstance(error, BranchTimeoutError):
        return f"{name} did not answer in time: {error}"
    text = redact(" ".join(str(error).split()))
    if len(text) > _MAX_MESSAGE:
        text = text[: _MAX_MESSAGE - 3] + "..."
    return f"{name} failed: {type(error).__name__}" + (f": {text}" if text else "")


def raise_failure(outcome: Outcome[T]) -> NoReturn:
    """Raise what a failed branch means for the whole.

    Raises:
        BranchError: With the branch's own error as its cause.
        BudgetExceededError: As it is: a used-up budget stops the caller, not the branch.
    """
    error = outcome.error
    if isinstance(error, (BranchTimeoutError, BudgetExceededError)):
        raise error
    raise BranchError(f"Branch {describe_failure(repr(outcome.name), error)}") from error
