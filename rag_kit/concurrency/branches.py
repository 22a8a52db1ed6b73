"""Branches side by side, on threads (`fan_out`) or on the event loop (`afan_out`), and what came out of them."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextvars import copy_context
from dataclasses import dataclass
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any, Generic, Literal, TypeVar, cast

from rag_kit._redact import error_text
from rag_kit.concurrency.budget import check_abandoned, check_count, check_seconds, time_limit
from rag_kit.concurrency.pool import MAX_WIDTH, Call, is_full
from rag_kit.concurrency.steps import acall_in_time, cancel_tasks
from rag_kit.errors import BranchError, BranchTimeoutError, BudgetExceededError, InvalidInputError

T = TypeVar("T")
S = TypeVar("S")
OnError = Literal["raise", "skip"]


@dataclass(frozen=True)
class Outcome(Generic[T]):
    """How one branch ended.

    Attributes:
        name: The branch's name.
        value: What it returned; ``None`` if it failed.
        error: Why it failed, or ``None``.
    """

    name: str
    value: T | None = None
    error: BaseException | None = None

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


def describe_failure(name: str, error: BaseException | None) -> str:
    """One line about a failed branch, without line breaks, keys or more length than needed."""
    if isinstance(error, BranchTimeoutError):
        return f"{name} did not answer in time: {error}"
    return f"{name} failed: {error_text(cast('BaseException', error), most=300)}"


def fan_out(
    tasks: Iterable[Callable[[], T]],
    *,
    max_concurrency: int | None = None,
    timeout: float | None = None,
    on_error: OnError = "raise",
    names: Sequence[str] | None = None,
) -> FanOut[T]:
    """Run functions side by side, each in a copy of the caller's context (so callbacks and budgets arrive).

    A branch that is too slow is abandoned: its thread runs on in the background, but nobody waits for it; it
    ends at its next model call or nested fan-out. It no longer counts towards ``max_concurrency``. At most
    256 abandoned branches may hang at a time in a process. The deadlines of active budgets bound the whole.

    Args:
        tasks: Functions without arguments.
        max_concurrency: Most branches at a time; default: 256.
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
    tasks = list(tasks)
    names = _check_arguments(tasks, max_concurrency, timeout, on_error, names)
    width = min(len(tasks), max_concurrency or MAX_WIDTH)
    if width <= 1 and time_limit(timeout) is None:  # no thread is needed
        return FanOut([_call_branch(*pair, on_error) for pair in zip(names, tasks, strict=True)])
    return FanOut(_Threads(tasks, names, width, timeout, on_error).outcomes())


async def afan_out(
    tasks: Iterable[Callable[[], Awaitable[T]]],
    *,
    max_concurrency: int | None = None,
    timeout: float | None = None,
    on_error: OnError = "raise",
    names: Sequence[str] | None = None,
) -> FanOut[T]:
    """Run coroutine functions side by side; the arguments mean what they mean in `fan_out`.

    Nothing outlives the call: branches that are late, or not needed any more because one failed or the caller
    was cancelled, are cancelled and waited for (one second at most, should one refuse to end).

    Example:
        >>> async def double(x):
        ...     return 2 * x
        >>> asyncio.run(afan_out([lambda: double(1), lambda: double(2)])).values
        [2, 4]
    """
    tasks = list(tasks)
    names = _check_arguments(tasks, max_concurrency, timeout, on_error, names)
    if len(tasks) == 1:  # a task for it would take longer than it
        return FanOut([await _await_branch(names[0], tasks[0], timeout, on_error)])
    slots = asyncio.Semaphore(max_concurrency or max(1, len(tasks)))

    async def run_branch(name: str, task: Callable[[], Awaitable[T]]) -> Outcome[T]:
        async with slots:
            return await _await_branch(name, task, timeout, on_error)

    branches = [asyncio.create_task(run_branch(*pair)) for pair in zip(names, tasks, strict=True)]
    done: set[asyncio.Task[Outcome[T]]] = set()
    try:
        if branches:
            done, _ = await asyncio.wait(branches, return_when=asyncio.FIRST_EXCEPTION)
    finally:
        await cancel_tasks(branches)
    return FanOut([branch.result() for branch in branches if branch in done])  # raises the first failure


def fan_out_map(func: Callable[[S], T], items: Iterable[S], **options: Any) -> FanOut[T]:
    """Apply a function to items side by side; options and errors are those of `fan_out`.

    Example:
        >>> fan_out_map(len, ["a", "bc"]).values
        [1, 2]
    """
    return fan_out([partial(func, item) for item in items], **options)


async def afan_out_map(func: Callable[[S], Awaitable[T]], items: Iterable[S], **options: Any) -> FanOut[T]:
    """Apply a coroutine function to items side by side; options and errors are those of `afan_out`."""
    return await afan_out([partial(func, item) for item in items], **options)


def _check_arguments(
    tasks: Sequence[Any], width: int | None, timeout: float | None, on_error: str, names: Sequence[str] | None
) -> Sequence[str]:
    """The names of the branches, or the error for a wrong argument or a deadline that has passed."""
    for number, task in enumerate(tasks):
        if not callable(task):
            raise InvalidInputError(
                f"tasks[{number}] is {task!r:.60}, which cannot be called; give the function, not what it returned, "
                "e.g. lambda: search(query)."
            )
    check_count("max_concurrency", width, minimum=1)
    check_seconds("timeout", timeout)
    if on_error not in ("raise", "skip"):
        raise InvalidInputError(f"on_error={on_error!r:.60} was given; allowed: 'raise', 'skip'.")
    if names is None:
        names = [f"branch {number + 1}" for number in range(len(tasks))]
    if len(names) != len(tasks):
        raise InvalidInputError(f"{len(names)} names were given for {len(tasks)} tasks; give one each.")
    time_limit()
    return names


def _check_outcome(outcome: Outcome[T], on_error: str) -> Outcome[T]:
    """The outcome, unless its branch failed and that is to be raised.

    A used-up budget or time-out is raised as it is: it stops the caller, not the branch.
    """
    error = outcome.error
    if error is None or on_error == "skip":
        return outcome
    if isinstance(error, (BranchTimeoutError, BudgetExceededError)):
        raise error
    raise BranchError(f"Branch {describe_failure(repr(outcome.name), error)}") from error


def _call_branch(name: str, task: Callable[[], T], on_error: str) -> Outcome[T]:
    """How a branch ended that runs on the caller's thread."""
    check_abandoned()
    value, error = None, None
    try:
        value = copy_context().run(task)
    except Exception as raised:  # noqa: BLE001 - the caller's policy decides
        error = raised
    return _check_outcome(Outcome(name, value, error), on_error)


async def _await_branch(
    name: str, task: Callable[[], Awaitable[T]], timeout: float | None, on_error: str
) -> Outcome[T]:
    """How a branch ended that runs in the current task; cancelling this task is no failure of the branch."""
    current = cast("asyncio.Task[Any]", asyncio.current_task())
    cancelled_before = current.cancelling()
    value, error = None, None
    try:
        value = await acall_in_time(task, timeout, f"Branch {name!r}")
    except (Exception, asyncio.CancelledError) as raised:  # noqa: BLE001 - the caller's policy decides
        error = raised
    if current.cancelling() > cancelled_before:
        raise asyncio.CancelledError  # also if the branch swallowed it
    return _check_outcome(Outcome(name, value, error), on_error)


class _Threads(Generic[T]):
    """One fan-out on threads: the caller starts the branches, takes what they gave, and watches the clock."""

    def __init__(
        self,
        tasks: Sequence[Callable[[], T]],
        names: Sequence[str],
        width: int,
        timeout: float | None,
        on_error: str,
    ) -> None:
        self._names, self._width, self._timeout, self._on_error = names, width, timeout, on_error
        self._pending = deque(enumerate(tasks))
        #: By number, oldest first: the call, and its time limit.
        self._running: dict[int, tuple[Call[T], tuple[float, Callable[[], Exception]] | None]] = {}
        self._ended: SimpleQueue[int] = SimpleQueue()
        self._outcomes: dict[int, Outcome[T]] = {}

    def outcomes(self) -> list[Outcome[T]]:
        """How all branches ended, in their order."""
        try:
            while self._pending or self._running:
                if self._may_start():
                    self._start(*self._pending.popleft())
                else:
                    self._wait()
        finally:  # on success nothing is left; on an error or Ctrl-C the rest is given up
            for call, _ in self._running.values():
                call.give_up()
        return [self._outcomes[number] for number in sorted(self._outcomes)]

    def _may_start(self) -> bool:
        room = not self._running or (len(self._running) < self._width and not is_full())
        return bool(self._pending) and room

    def _start(self, number: int, task: Callable[[], T]) -> None:
        """Start a branch on a thread; one that a deadline forbids ends at once."""
        try:
            limit = time_limit(self._timeout, f"Branch {self._names[number]!r}")
        except BudgetExceededError as error:
            self._settle(number, error=error)
            return
        call = Call(task)
        self._running[number] = call, limit
        call.future.add_done_callback(lambda _: self._ended.put(number))

    def _wait(self) -> None:
        """Wait for the end of a branch, or for the oldest one's time limit: no other comes before it."""
        oldest, (call, limit) = next(iter(self._running.items()))
        patience = None if limit is None else max(0.0, call.started + limit[0] - time.monotonic())
        try:
            number = self._ended.get(timeout=patience)
        except Empty:
            call.give_up()
            del self._running[oldest]
            self._settle(oldest, error=limit[1]() if limit else None)
            return
        if number in self._running:  # else it was given up before
            call, _ = self._running.pop(number)
            error = call.future.exception()
            if error is not None and not isinstance(error, Exception):
                raise error
            self._settle(number, None if error else call.future.result(), error)

    def _settle(self, number: int, value: T | None = None, error: Exception | None = None) -> None:
        self._outcomes[number] = _check_outcome(Outcome(self._names[number], value, error), self._on_error)
