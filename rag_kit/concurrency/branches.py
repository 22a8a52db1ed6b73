"""Branches side by side: the checks of a fan-out, what came out of it, and the one on threads."""

from __future__ import annotations

import logging
import re
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any, Generic, Literal, TypeVar, cast

from rag_kit._redact import error_text
from rag_kit.concurrency.budget import (
    Branch,
    check_abandoned,
    check_count,
    check_seconds,
    time_left,
)
from rag_kit.concurrency.pool import Call, shared_pool
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


class Plan:
    """The checked arguments of a fan-out.

    Attributes:
        names: One name a branch.
        width: Most branches at a time.
        timeout: Seconds a branch may take.
        seconds: Seconds the whole may take, by the active budgets.

    Raises:
        InvalidInputError: If an argument is not allowed.
        BudgetExceededError: If the deadline of an active budget has passed.
        BranchTimeoutError: If the caller itself runs in a branch that was abandoned.
    """

    def __init__(
        self,
        tasks: Sequence[Any],
        width: int | None,
        timeout: float | None,
        on_error: str,
        names: Sequence[str] | None,
    ) -> None:
        check_list("tasks", tasks)
        for number, task in enumerate(tasks):
            if not callable(task):
                raise InvalidInputError(
                    f"tasks[{number}] is {task!r:.60}, which cannot be called; give the function, not what it "
                    "returned, e.g. lambda: search(query)."
                )
        check_count("max_concurrency", width, least=1)
        if on_error not in ("raise", "skip"):
            raise InvalidInputError(f"on_error={on_error!r:.60} was given; allowed: 'raise', 'skip'.")
        if names is None:
            names = [f"branch {number + 1}" for number in range(len(tasks))]
        check_list("names", names)
        if len(names) != len(tasks):
            raise InvalidInputError(f"{len(names)} names were given for {len(tasks)} tasks; give one each.")
        self.names = names
        self.width = min(len(tasks), width or len(tasks))
        self.timeout = check_seconds("timeout", timeout)
        self._skip = on_error == "skip"
        check_abandoned()
        left = time_left()
        self.seconds: float | None = left[0]
        self._deadline: float | None = left[1]

    def late(self, name: str) -> Exception:
        """The error of a branch that took longer than its time-out."""
        return BranchTimeoutError(f"Branch {name!r} took longer than timeout={self.timeout:g} s.")

    def over(self) -> Exception:
        """The error of a branch that was not done at the deadline."""
        return BudgetExceededError("deadline", self._deadline or 0)

    def check(self, outcome: Outcome[Any]) -> None:
        """Raise what a failed branch means for the whole, unless failed branches are skipped.

        Raises:
            BranchError: With the branch's own error as its cause.
            BudgetExceededError: As it is: a used-up budget stops the caller, not the branch.
        """
        error = outcome.error
        if error is None or self._skip:
            return
        if isinstance(error, (BranchTimeoutError, BudgetExceededError)):
            raise error
        raise BranchError(f"Branch {describe_failure(repr(outcome.name), error)}") from error


def check_list(name: str, value: Any) -> None:
    """See that an argument is a list: nobody knows how many items a generator holds.

    Raises:
        InvalidInputError: If not.
    """
    listed = hasattr(value, "__len__") and hasattr(value, "__getitem__")
    if not listed or isinstance(value, (str, bytes, dict)):
        raise InvalidInputError(
            f"{name} is {value!r:.60} ({type(value).__name__}); give a list (list(...) makes one of a generator)."
        )


def bound(func: Callable[..., T], items: Sequence[Any]) -> list[Callable[[], T]]:
    """A task for each item.

    Raises:
        InvalidInputError: If there is no function, or no list of items.
    """
    check_list("items", items)
    if not callable(func):
        raise InvalidInputError(f"func is {func!r:.60}, which cannot be called; give a function of one item.")
    return [partial(func, item) for item in items]


def describe_failure(name: str, error: BaseException | None) -> str:
    """One line about a failed branch, without line breaks, keys or more length than needed."""
    if isinstance(error, BranchTimeoutError):
        return f"{name} did not answer in time: {error}"
    return f"{name} failed: {error_text(cast('BaseException', error), most=_MAX_MESSAGE)}"


def fan_out(
    tasks: Sequence[Callable[[], T]],
    *,
    max_concurrency: int | None = None,
    timeout: float | None = None,
    on_error: Literal["raise", "skip"] = "raise",
    names: Sequence[str] | None = None,
) -> FanOut[T]:
    """Run functions side by side, each in a copy of the caller's context (so callbacks and budgets arrive).

    A branch that is too slow is abandoned: its thread runs on in the background, but nobody waits for it; it
    ends at its next model call or nested fan-out. It no longer counts towards ``max_concurrency``. At most
    256 abandoned branches may hang at a time in a process. The deadlines of active budgets bound the whole.

    Args:
        tasks: Functions without arguments.
        max_concurrency: Most branches at a time; ``None`` for as many as there are (256 in a process).
        timeout: Seconds each branch may take from its own start.
        on_error: ``"raise"`` the first failure at once, or ``"skip"`` failed branches and report them.
        names: One name a branch, for the report.

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
    the_plan = Plan(tasks, max_concurrency, timeout, on_error, names)
    if the_plan.width <= 1 and the_plan.timeout is None and the_plan.seconds is None:
        return FanOut(_one_by_one(tasks, the_plan))
    return FanOut(_Run(tasks, the_plan).result())


def fan_out_map(func: Callable[[S], T], items: Sequence[S], **options: Any) -> FanOut[T]:
    """Apply a function to items side by side; options and errors are those of `fan_out`.

    Example:
        >>> fan_out_map(len, ["a", "bc"]).values
        [1, 2]
    """
    return fan_out(bound(func, items), **options)


def _one_by_one(tasks: Sequence[Callable[[], T]], the_plan: Plan) -> list[Outcome[T]]:
    """Without a time-out and at most one at a time, no thread is needed."""
    outcomes: list[Outcome[T]] = []
    for name, task in zip(the_plan.names, tasks, strict=True):
        check_abandoned()
        started = time.monotonic()
        value, error = None, None
        try:
            value = Branch().context().run(task)
        except Exception as raised:  # noqa: BLE001 - the caller's policy decides
            error = raised
        outcomes.append(Outcome(name, value, error, time.monotonic() - started))
        the_plan.check(outcomes[-1])
    return outcomes


class _Run(Generic[T]):
    """One fan-out on the pool: the caller starts the branches, takes what they gave, and watches the clock."""

    def __init__(self, tasks: Sequence[Callable[[], T]], the_plan: Plan) -> None:
        self._tasks, self._plan, self._pool = tasks, the_plan, shared_pool()
        self._pending = deque(range(len(tasks)))
        self._running: dict[int, Call[T]] = {}
        self._ended: SimpleQueue[int] = SimpleQueue()
        self._outcomes: dict[int, Outcome[T]] = {}
        self._ends = None if the_plan.seconds is None else time.monotonic() + the_plan.seconds

    def result(self) -> list[Outcome[T]]:
        try:
            with self._pool.waiting():
                while len(self._outcomes) < len(self._tasks):
                    self._start()
                    with suppress(Empty):
                        self._take(self._ended.get(timeout=self._patience()))
                    self._give_up_late()
        finally:  # on success nothing is left; on an error or Ctrl-C the rest is given up
            for call in self._running.values():
                call.give_up()
        return [self._outcomes[index] for index in range(len(self._tasks))]

    def _start(self) -> None:
        width = min(self._plan.width, self._pool.max_active)
        while self._pending and len(self._running) < width:
            index = self._pending.popleft()
            call = self._running[index] = self._pool.start(self._tasks[index])
            call.future.add_done_callback(lambda _, index=index: self._ended.put(index))  # type: ignore[misc]

    def _take(self, index: int) -> None:
        """Take what a branch gave; one that was late meanwhile is not there any more."""
        call = self._running.pop(index, None)
        if call is None:
            return
        error = call.future.exception()
        if error is not None and not isinstance(error, Exception):
            raise error
        self._settle(index, call, None if error else call.future.result(), error)

    def _settle(self, index: int, call: Call[T] | None, value: T | None, error: Exception | None) -> None:
        seconds = 0.0 if call is None or call.started is None else time.monotonic() - call.started
        outcome = self._outcomes[index] = Outcome(self._plan.names[index], value, error, seconds)
        self._plan.check(outcome)

    def _patience(self) -> float | None:
        """How long to wait: a branch that starts meanwhile cannot be late before one time-out from now."""
        now, timeout = time.monotonic(), self._plan.timeout
        ends = [] if self._ends is None else [self._ends]
        if timeout is not None:
            ends += [(call.started or now) + timeout for call in self._running.values()]
        return max(0.0, min(ends) - now) if ends else None

    def _give_up_late(self) -> None:
        """Settle the branches that were not done in time."""
        now, timeout = time.monotonic(), self._plan.timeout
        over = self._ends is not None and now >= self._ends
        if timeout is None and not over:
            return
        for index, call in list(self._running.items()):
            late = timeout is not None and call.started is not None and now - call.started >= timeout
            if (over or late) and not call.future.done():
                call.give_up()
                del self._running[index]
                error = self._plan.over() if over else self._plan.late(self._plan.names[index])
                self._settle(index, call, None, error)
        while over and self._pending:
            self._settle(self._pending.popleft(), None, None, self._plan.over())


_NUMBERS = re.compile(r"\d+(?:\.\d+)?")
_MOST_LOGGED = 256
_logged: set[tuple[str, str, str]] = set()


def log_degraded(log: logging.Logger, name: str, note: str) -> None:
    """Log a note about a degraded search as a warning once for each cause; then as debug lines.

    The same cause is the same note of the same retriever, whatever numbers stand in it. The note on each document
    is not touched by this.

    Args:
        log: The logger of the module.
        name: Name of the retriever.
        note: ``"degraded: ..."``.

    Example:
        >>> log_degraded(logging.getLogger("quiet"), "MultiQuery", "degraded: multi_query failed: TimeoutError")
    """
    cause = (log.name, name, _NUMBERS.sub("#", note))
    level = logging.DEBUG if cause in _logged else logging.WARNING
    if len(_logged) >= _MOST_LOGGED:
        _logged.clear()
    _logged.add(cause)
    log.log(level, "%s: %s (this warning comes once; the notes of each document say it too)", name, note)
