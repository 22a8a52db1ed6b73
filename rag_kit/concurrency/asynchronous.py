"""Run coroutines side by side, with the same rules as the threaded fan-out."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import nullcontext
from contextvars import Context, copy_context
from functools import partial
from typing import Any, Generic, Literal, TypeVar

from rag_kit.concurrency.branches import FanOut, Outcome, Plan, check_map, plan, raise_failure
from rag_kit.concurrency.budget import Branch, check_abandoned, current_branch

T = TypeVar("T")
S = TypeVar("S")

# A cancelled branch gets this long to clean up; one that refuses to end is then left to itself.
GRACE_SECONDS = 1.0


async def afan_out(
    tasks: Sequence[Callable[[], Awaitable[T]]],
    *,
    max_concurrency: int | None = None,
    timeout: float | None = None,
    on_error: Literal["raise", "skip"] = "raise",
    names: Sequence[str] | None = None,
    deadline: float | None = None,
) -> FanOut[T]:
    """Run coroutine functions side by side; the arguments mean what they mean in ``fan_out``.

    Nothing outlives the call: branches that are late, or not needed any more because one failed or the caller
    was cancelled, are cancelled and waited for (one second at most, should one refuse to end). Where no limit of
    time is set and all branches are waited for, the last one runs in the caller's own task.

    Args:
        tasks: Functions without arguments that return an awaitable.
        max_concurrency: As for `fan_out`, as are all others and what is returned and raised.
        timeout: Seconds each branch may take.
        on_error: ``"raise"`` or ``"skip"``.
        names: One name a branch.
        deadline: Seconds the whole may take.

    Example:
        >>> import asyncio
        >>> async def double(x):
        ...     return 2 * x
        >>> asyncio.run(afan_out([lambda: double(1), lambda: double(2)])).values
        [2, 4]
    """
    the_plan = plan(tasks, max_concurrency, timeout, on_error, names, deadline)
    check_abandoned()
    if not tasks:
        return FanOut([])
    if len(tasks) == 1 and the_plan.timeout is None and the_plan.seconds is None:
        return FanOut([await _alone(tasks[0], the_plan)])
    return FanOut(await _AsyncRun(tasks, the_plan).result())


async def afan_out_map(func: Callable[[S], Awaitable[T]], items: Sequence[S], **options: Any) -> FanOut[T]:
    """Apply a coroutine function to items side by side; options and errors are those of `afan_out`."""
    check_map(func, items)
    return await afan_out([partial(func, item) for item in items], **options)


class _Failed(Exception):
    """Tells the waiting caller that a branch failed; the outcome holds why."""


async def _alone(function: Callable[[], Awaitable[T]], the_plan: Plan, index: int = 0) -> Outcome[T]:
    """One branch that no clock has to watch: a task of its own would only cost time."""
    name, started = the_plan.names[index], time.monotonic()
    task = asyncio.current_task()
    before = 0 if task is None else task.cancelling()
    token = current_branch.set(Branch(current_branch.get()))
    try:
        value = await function()
    except (Exception, asyncio.CancelledError) as error:
        if isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling() > before:
            raise
        outcome = Outcome[T](name, error=error, seconds=time.monotonic() - started)
        if the_plan.on_error == "raise":
            raise_failure(outcome)
        return outcome
    finally:
        current_branch.reset(token)
    if task is not None and task.cancelling() > before:
        raise asyncio.CancelledError  # the branch took it for itself, but the caller was meant
    return Outcome(name, value=value, seconds=time.monotonic() - started)


class _AsyncRun(Generic[T]):
    def __init__(self, tasks: Sequence[Callable[[], Awaitable[T]]], the_plan: Plan) -> None:
        self._tasks = tasks
        self._plan = the_plan
        self._outcomes: list[Outcome[T] | None] = [None] * len(tasks)
        limited = the_plan.width < len(tasks)
        self._slots = asyncio.Semaphore(the_plan.width) if limited else nullcontext()

    async def result(self) -> list[Outcome[T]]:
        base, parent = copy_context(), current_branch.get()
        started = time.monotonic()
        mine = self._run_by_caller()
        branches = [
            asyncio.create_task(self._branch(index), context=Branch(parent).context(base))
            for index in range(len(self._tasks))
            if index != mine
        ]
        try:
            if mine is not None:
                self._outcomes[mine] = await _alone(self._tasks[mine], self._plan, mine)
            if not all(branch.done() for branch in branches):
                await asyncio.wait(
                    branches,
                    timeout=self._plan.seconds,
                    return_when=asyncio.FIRST_EXCEPTION
                    if self._plan.on_error == "raise"
                    else asyncio.ALL_COMPLETED,
                )
        finally:
            try:
                await _cancel_and_wait([task for task in branches if not task.done()])
            finally:
                for branch in branches:
                    _retrieve(branch) if branch.done() else branch.add_done_callback(_retrieve)
        for branch in branches:
            if branch.done() and not branch.cancelled() and isinstance(branch.exception(), GeneratorExit):
                raise GeneratorExit  # as where the branch has no task of its own
        failures = [outcome for outcome in self._outcomes if outcome is not None and not outcome.ok]
        if failures and self._plan.on_error == "raise":
            raise_failure(failures[0])
        for index, outcome in enumerate(self._outcomes):
            if outcome is None:
                name = self._plan.names[index]
                late = self._plan.late(name, whole=True)
                outcome = Outcome[T](name, error=late, seconds=time.monotonic() - started)
                if self._plan.on_error == "raise":
                    raise_failure(outcome)
                self._outcomes[index] = outcome
        return [outcome for outcome in self._outcomes if outcome is not None]

    def _run_by_caller(self) -> int | None:
        """The branch that the caller's own task runs: the last one, if all are to be waited for anyway."""
        waits = self._plan.on_error == "skip" and self._plan.seconds is None and self._plan.timeout is None
        return len(self._tasks) - 1 if waits and self._plan.width == len(self._tasks) else None

    async def _branch(self, index: int) -> None:
        async with self._slots:
            name, started = self._plan.names[index], time.monotonic()
            try:
                value = await self._call(index)
            except (Exception, asyncio.CancelledError) as error:
                task = asyncio.current_task()
                if isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling():
                    raise
                self._outcomes[index] = Outcome(name, error=error, seconds=time.monotonic() - started)
                if self._plan.on_error == "raise":
                    raise _Failed from None
            else:
                self._outcomes[index] = Outcome(name, value=value, seconds=time.monotonic() - started)

    async def _call(self, index: int) -> T:
        if self._plan.timeout is None:
            return await self._tasks[index]()
        late = partial(self._plan.late, self._plan.names[index], whole=False)
        return await in_time(self._tasks[index], self._plan.timeout, late)


async def in_time(
    func: Callable[[], Awaitable[T]],
    seconds: float,
    late: Callable[[], Exception],
    context: Context | None = None,
) -> T:
    """Await a function in a task of its own; what is late is cancelled, and ``late()`` is raised.

    The clock runs outside the task, so that one which swallows cancellation cannot stop it.
    """

    async def body() -> T:
        return await func()

    task = asyncio.create_task(body(), context=context)
    try:
        done, _ = await asyncio.wait({task}, timeout=seconds)
    finally:
        await _cancel_and_wait([] if task.done() else [task])
    if not done:
        raise late()
    return task.result()


async def _cancel_and_wait(tasks: Sequence[asyncio.Task[Any]]) -> None:
    """Cancel tasks; one that refuses to end is left to itself after `GRACE_SECONDS`."""
    for task in tasks:
        task.cancel()
        task.add_done_callback(_retrieve)
    if tasks:
        await asyncio.wait(tasks, timeout=GRACE_SECONDS)


def _retrieve(task: asyncio.Task[Any]) -> None:
    """Take a branch's error, so that asyncio does not report it as lost; the outcome holds it."""
    if not task.cancelled():
        task.exception()
