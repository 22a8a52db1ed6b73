"""Branches side by side, on threads (`fan_out`) or on the event loop (`afan_out`), and what came out of them."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, nullcontext
from contextvars import copy_context
from dataclasses import dataclass
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any, Generic, Literal, NamedTuple, TypeVar, cast

from rag_kit._redact import error_text
from rag_kit.concurrency.budget import check_count, check_seconds
from rag_kit.concurrency.notes import outages, write_note
from rag_kit.concurrency.pool import MAX_WIDTH, PooledCall, check_abandoned, pool_is_full
from rag_kit.concurrency.steps import TimeLimit, acall_in_time, cancel_tasks, is_control_flow, time_limit
from rag_kit.errors import BranchError, BranchTimeoutError, BudgetExceededError, InvalidInputError

T = TypeVar("T")
S = TypeVar("S")
OnError = Literal["raise", "skip"]


@dataclass(frozen=True)
class Outcome(Generic[T]):
    """How one branch ended: what it returned, or why it failed."""

    name: str
    value: T | None = None
    error: BaseException | None = None

    @property
    def ok(self) -> bool:
        """Whether the branch returned."""
        return self.error is None

    @property
    def value_or_error(self) -> Any:
        """The branch's value, or its error if it failed."""
        return self.value if self.error is None else self.error


@dataclass(frozen=True)
class FanOut(Generic[T]):
    """How all branches ended, in the order of the tasks."""

    outcomes: list[Outcome[T]]

    @property
    def values(self) -> list[T]:
        """The values of the successful branches, in order."""
        return [cast("T", outcome.value) for outcome in self.outcomes if outcome.ok]

    @property
    def degradations(self) -> list[str]:
        """One line for each branch that failed."""
        return [describe_failure(each.name, each.error) for each in self.outcomes if not each.ok]


def describe_failure(name: str, error: BaseException | None) -> str:
    """Describe a failed branch in one line, shortened and without keys."""
    if isinstance(error, BranchTimeoutError):
        return f"{name} did not answer in time: {error}"
    return f"{name} failed: {error_text(cast('BaseException', error), max_chars=300)}"


def note_fallback(
    name: str, error: Exception, then: str = "the search went on without it", *, unsearched: bool = True
) -> None:
    """Write a note of what was done after a failure, and log it once a minute: LangChain does neither."""
    text = f"degraded: {describe_failure(name, error)}; {then}"
    outages.failed(logging.getLogger("rag_kit"), name, text)
    outages.worked(name)  # the fallback takes over: the next failure is logged as a new outage
    write_note(text, unsearched=unsearched)


def fan_out(
    tasks: Iterable[Callable[[], T]],
    *,
    max_concurrency: int | None = None,
    timeout: float | None = None,
    on_error: OnError = "raise",
    names: Sequence[str] | None = None,
) -> FanOut[T]:
    """Run functions side by side, each in a copy of the caller's context (so callbacks and budgets arrive).

    A branch that is too slow is abandoned: its thread runs on in the background until its next model call or nested
    fan-out, and does not count towards ``max_concurrency``. At most 256 abandoned branches may hang at a time in a
    process. The deadlines of active budgets bound the whole.

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
        BudgetExceededError: An active budget's deadline has passed, or a branch used it up (``on_error="raise"``).
        InvalidInputError: An argument is not allowed.

    Example:
        >>> fan_out([lambda: 1, lambda: 2]).values
        [1, 2]
        >>> result = fan_out([lambda: 1 / 0, lambda: 2], on_error="skip", names=["first", "second"])
        >>> result.values, result.degradations
        ([2], ['first failed: ZeroDivisionError: division by zero'])
    """
    branches = _make_branches(tasks, max_concurrency, timeout, on_error, names)
    width = min(len(branches), max_concurrency or MAX_WIDTH)
    if width <= 1 and time_limit(timeout).seconds is None:  # no other branch, no time limit: no thread
        return FanOut([copy_context().run(branch.call) for branch in branches])
    return FanOut(_call_on_threads(branches, width))


async def afan_out(
    tasks: Iterable[Callable[[], Awaitable[T]]],
    *,
    max_concurrency: int | None = None,
    timeout: float | None = None,
    on_error: OnError = "raise",
    names: Sequence[str] | None = None,
) -> FanOut[T]:
    """Run coroutine functions side by side on the event loop; arguments, result and errors are those of `fan_out`.

    Nothing outlives the call: branches that are late, or not needed any more because one failed or the caller
    was cancelled, are cancelled and waited for (one second at most, should one refuse to end).

    Example:
        >>> async def double(x):
        ...     return 2 * x
        >>> asyncio.run(afan_out([lambda: double(1), lambda: double(2)])).values
        [2, 4]
    """
    branches = _make_branches(tasks, max_concurrency, timeout, on_error, names)
    if not branches:
        return FanOut([])
    if len(branches) == 1:  # a task for it would take longer than it
        return FanOut([await branches[0].acall(nullcontext())])
    slots = asyncio.Semaphore(max_concurrency or len(branches))
    running = [asyncio.create_task(branch.acall(slots)) for branch in branches]
    try:
        done, _ = await asyncio.wait(running, return_when=asyncio.FIRST_EXCEPTION)
    finally:
        await cancel_tasks(running)
    # a failed branch raises here; the others, cancelled because it failed, are not done
    return FanOut([task.result() for task in running if task in done])


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


@dataclass
class _Branch(Generic[T]):
    """A task of a fan-out, which makes its outcome; an asynchronous task returns an awaitable."""

    name: str
    task: Callable[[], T]
    timeout: float | None
    on_error: OnError

    def call(self) -> Outcome[T]:
        """Run the task on this thread, and return its outcome."""
        check_abandoned()
        try:
            return Outcome(self.name, self.task())
        except Exception as error:  # noqa: BLE001 - the caller's policy decides
            return self.fail(error)

    async def acall(self: _Branch[Awaitable[S]], slot: AbstractAsyncContextManager[None]) -> Outcome[S]:
        """Await the task while holding a slot, and return its outcome; if the caller is cancelled, so is this call."""
        caller = cast("asyncio.Task[Any]", asyncio.current_task())
        cancellations_before = caller.cancelling()
        value, failure = None, None
        async with slot:
            try:
                value = await acall_in_time(self.task, self.timeout, f"Branch {self.name!r}")
            except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001 - a task may cancel itself too
                failure = error
        if caller.cancelling() > cancellations_before:  # also if the task swallowed the CancelledError
            raise asyncio.CancelledError
        return Outcome(self.name, value) if failure is None else self.fail(failure)

    def fail(self, error: BaseException) -> Outcome[Any]:
        """Return the outcome of a failed task (``on_error="skip"``), or raise: time-outs as such, else BranchError."""
        if is_control_flow(error):
            raise error
        if self.on_error == "skip":
            return Outcome(self.name, error=error)
        if isinstance(error, (BranchTimeoutError, BudgetExceededError)):
            raise error
        raise BranchError(f"Branch {describe_failure(repr(self.name), error)}") from error


def _make_branches(
    tasks: Iterable[Callable[[], T]],
    max_concurrency: int | None,
    timeout: float | None,
    on_error: OnError,
    names: Sequence[str] | None,
) -> list[_Branch[T]]:
    """Check the arguments of a fan-out, and make its branches."""
    tasks = list(tasks)
    for number, task in enumerate(tasks):
        if not callable(task):
            raise InvalidInputError(
                f"tasks[{number}] is {task!r:.60}, which cannot be called; give the function, not what it returned, "
                "e.g. lambda: search(query)."
            )
    if max_concurrency is not None or timeout is not None:
        check_count("max_concurrency", max_concurrency, minimum=1)
        check_seconds("timeout", timeout)
    if on_error not in ("raise", "skip"):
        raise InvalidInputError(f"on_error={on_error!r:.60} was given; allowed: 'raise', 'skip'.")
    if names is None:
        names = [f"branch {number + 1}" for number in range(len(tasks))]
    if len(names) != len(tasks):
        raise InvalidInputError(f"{len(names)} names were given for {len(tasks)} tasks; give one each.")
    time_limit()  # raises if the deadline has passed
    return [_Branch(name, task, timeout, on_error) for name, task in zip(names, tasks, strict=True)]


class _Running(NamedTuple):
    """A branch on a thread, by its position among the branches."""

    position: int
    call: PooledCall[Any]
    limit: TimeLimit

    def seconds_left(self) -> float | None:
        """Return the seconds until the branch is late, never below 0; None without a time limit."""
        seconds = self.limit.seconds
        return None if seconds is None else max(0.0, self.call.started + seconds - time.monotonic())


def _call_on_threads(branches: Sequence[_Branch[T]], width: int) -> list[Outcome[T]]:
    """Run branches on threads, ``width`` at a time; the caller starts them, collects results and watches the clock."""
    pending = deque(enumerate(branches))
    # in the order of their starts; all have the same time-out, so the first one is the first to be late
    running: dict[Future[Outcome[T]], _Running] = {}
    ended: SimpleQueue[Future[Outcome[T]]] = SimpleQueue()
    outcomes: dict[int, Outcome[T]] = {}  # by the position of the branch
    try:
        while pending or running:  # each turn starts a branch, or waits for one
            # one branch runs always, also while other fan-outs fill the pool
            may_start = not running or (len(running) < width and not pool_is_full())
            if pending and may_start:
                position, branch = pending.popleft()
                try:
                    limit = time_limit(branch.timeout, f"Branch {branch.name!r}")
                except BudgetExceededError as error:
                    outcomes[position] = branch.fail(error)
                    continue
                call = PooledCall(branch.call)
                running[call.future] = _Running(position, call, limit)
                call.future.add_done_callback(ended.put)
                continue
            oldest = next(iter(running.values()))
            try:
                future = ended.get(timeout=oldest.seconds_left())
            except Empty:  # no branch ended in time: the oldest is late
                del running[oldest.call.future]
                oldest.call.give_up()
                outcomes[oldest.position] = branches[oldest.position].fail(oldest.limit.make_error())
            else:
                if future in running:  # a late branch, given up before, may end too
                    outcomes[running.pop(future).position] = future.result()
    finally:  # on success nothing is left; on an error or Ctrl-C the rest is given up
        for branch_on_thread in running.values():
            branch_on_thread.call.give_up()
    return [outcomes[position] for position in range(len(branches))]
