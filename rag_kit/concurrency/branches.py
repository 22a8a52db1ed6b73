"""Branches side by side: the checks of a fan-out, what came out of it, and the one on threads."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextvars import copy_context
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, Literal, NoReturn, TypeVar, cast

from rag_kit._redact import redact
from rag_kit.concurrency.budget import (
    Branch,
    brief,
    check_abandoned,
    check_seconds,
    current_branch,
    tightest_deadline,
)
from rag_kit.concurrency.pool import Call, Pool, shared_pool
from rag_kit.errors import BranchError, BranchTimeoutError, BudgetExceededError, InvalidInputError

T = TypeVar("T")
S = TypeVar("S")
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
    width: int | None,
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


def fan_out(
    tasks: Sequence[Callable[[], T]],
    *,
    max_concurrency: int | None = None,
    timeout: float | None = None,
    on_error: Literal["raise", "skip"] = "raise",
    names: Sequence[str] | None = None,
    deadline: float | None = None,
) -> FanOut[T]:
    """Run functions side by side, each in a copy of the caller's context (so callbacks and budgets arrive).

    A branch that is too slow is abandoned: its thread runs on in the background, but nobody waits for it; it
    ends at its next model call or nested fan-out. It no longer counts towards ``max_concurrency``. At most
    256 abandoned branches may hang at a time in a process.

    Args:
        tasks: Functions without arguments.
        max_concurrency: Most branches at a time; ``None`` for as many as there are (256 in a process).
        timeout: Seconds each branch may take from its own start.
        on_error: ``"raise"`` the first failure at once, or ``"skip"`` failed branches and report them.
        names: One name a branch, for the report.
        deadline: Seconds the whole may take. The deadlines of active budgets hold as well.

    Returns:
        Outcomes in the order of the tasks.

    Raises:
        BranchError: A branch failed and ``on_error="raise"``; its own error is the ``__cause__``.
        BranchTimeoutError: The same for one that was too slow.
        BudgetExceededError: The deadline of an active budget has passed, or (``on_error="raise"``) a branch
            used its budget up.
        InvalidInputError: An argument is not allowed.

    Example:
        >>> fan_out([lambda: 1, lambda: 2]).values
        [1, 2]
        >>> result = fan_out([lambda: 1 / 0, lambda: 2], on_error="skip", names=["first", "second"])
        >>> result.values, result.degradations
        ([2], ['first failed: ZeroDivisionError: division by zero'])
    """
    the_plan = plan(tasks, max_concurrency, timeout, on_error, names, deadline)
    check_abandoned()
    if not tasks:
        return FanOut([])
    if the_plan.width == 1 and the_plan.timeout is None and the_plan.seconds is None:
        return FanOut(_one_by_one(tasks, the_plan))
    return FanOut(_Run(tasks, the_plan, shared_pool()).result())


def fan_out_map(func: Callable[[S], T], items: Sequence[S], **options: Any) -> FanOut[T]:
    """Apply a function to items side by side; options and errors are those of `fan_out`.

    Example:
        >>> fan_out_map(len, ["a", "bc"]).values
        [1, 2]
    """
    check_map(func, items)
    return fan_out([partial(func, item) for item in items], **options)


def _one_by_one(tasks: Sequence[Callable[[], T]], the_plan: Plan) -> list[Outcome[T]]:
    """Without a time-out and at most one at a time, no thread is needed."""
    base, parent = copy_context(), current_branch.get()
    outcomes: list[Outcome[T]] = []
    for name, task in zip(the_plan.names, tasks, strict=True):
        check_abandoned()
        started = time.monotonic()
        try:
            value = Branch(parent).context(base).run(task)
        except Exception as error:  # noqa: BLE001 - the caller's policy decides
            outcome = Outcome[T](name, error=error, seconds=time.monotonic() - started)
            if the_plan.on_error == "raise":
                raise_failure(outcome)
        else:
            outcome = Outcome(name, value=value, seconds=time.monotonic() - started)
        outcomes.append(outcome)
    return outcomes


class _Run(Generic[T]):
    """One fan-out on the pool. A branch that ends starts the next one; the caller only watches the clock."""

    def __init__(self, tasks: Sequence[Callable[[], T]], the_plan: Plan, pool: Pool) -> None:
        self._tasks, self._plan, self._pool = tasks, the_plan, pool
        self._base, self._parent = copy_context(), current_branch.get()
        self._condition = threading.Condition()
        self._pending = deque(range(len(tasks)))
        self._running: dict[int, Call[T]] = {}
        self._outcomes: list[Outcome[T] | None] = [None] * len(tasks)
        self._left = len(tasks)
        self._failed = False
        self._crash: BaseException | None = None

    def result(self) -> list[Outcome[T]]:
        self._pool.check_room()
        ends = None if self._plan.seconds is None else time.monotonic() + self._plan.seconds
        try:
            for _ in range(min(self._plan.width, self._pool.max_active)):
                self._start_next()
            with self._pool.waiting(), self._condition:
                while self._left and not self._finished_early():
                    now = time.monotonic()
                    if ends is not None and now >= ends:
                        self._give_up_all()
                        break
                    self._give_up_late(now)
                    if self._left and not self._finished_early():
                        self._condition.wait(self._patience(now, ends))
        finally:
            # On success nothing is left; on an error or Ctrl-C the rest is dropped or given up.
            with self._condition:
                self._pending.clear()
                for call in self._running.values():
                    call.give_up()
        if self._crash is not None:
            raise self._crash
        found = [outcome for outcome in self._outcomes if outcome is not None]
        if self._plan.on_error == "raise":
            for outcome in found:
                if not outcome.ok:
                    raise_failure(outcome)
        return found

    def _finished_early(self) -> bool:
        return self._crash is not None or (self._failed and self._plan.on_error == "raise")

    def _start_next(self) -> None:
        """Start the next branch, if one is left."""
        with self._condition:
            if not self._pending or self._finished_early():
                return
            index = self._pending.popleft()
            done = partial(self._done, index)
            call = self._running[index] = Call(self._tasks[index], done, self._base, self._parent, self._pool)
        call.start()  # without the lock, which the branch needs at its end

    def _done(self, index: int, value: T | None, error: BaseException | None) -> None:
        """Take what a branch gave, on its thread; one that was late meanwhile is not there any more."""
        with self._condition:
            call = self._running.pop(index, None)
            if call is None:
                return
            if error is not None and not isinstance(error, Exception):
                self._crash = error
            self._settle(index, call, value, error)
            if not self._left or self._finished_early():
                self._condition.notify()
            if not self._pending:
                return
        try:
            self._start_next()
        except BranchError as refused:  # no thread for the next one: raised for the caller
            with self._condition:
                self._crash = refused
                self._condition.notify()

    def _settle(self, index: int, call: Call[T] | None, value: T | None, error: BaseException | None) -> None:
        began = None if call is None else call.started
        seconds = 0.0 if began is None else time.monotonic() - began
        self._outcomes[index] = Outcome(self._plan.names[index], value=value, error=error, seconds=seconds)
        self._left -= 1
        self._failed = self._failed or error is not None

    def _patience(self, now: float, ends: float | None) -> float | None:
        """How long to wait: a branch that starts meanwhile cannot be late before one time-out from now."""
        waits = [] if ends is None else [ends - now]
        if (timeout := self._plan.timeout) is not None:
            waits += [
                timeout,
                *(call.started + timeout - now for call in self._running.values() if call.started),
            ]
        return max(0.0, min(waits)) if waits else None

    def _give_up_late(self, now: float) -> None:
        timeout = self._plan.timeout
        for index, call in [] if timeout is None else list(self._running.items()):
            if call.started is not None and now - call.started >= (timeout or 0.0):
                self._give_up(index, whole=False)
                self._start_next()

    def _give_up_all(self) -> None:
        for index in [*self._running, *self._pending]:
            self._give_up(index, whole=True)
        self._pending.clear()

    def _give_up(self, index: int, *, whole: bool) -> None:
        """Settle a branch that was not done in time."""
        call = self._running.pop(index, None)
        if call is not None:
            call.give_up()
        self._settle(index, call, None, self._plan.late(self._plan.names[index], whole=whole))
