"""Run coroutines side by side, with the same rules as the threaded fan-out."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, Literal, TypeVar

from rag_kit.concurrency.branches import FanOut, Outcome, Plan, bound
from rag_kit.concurrency.budget import Branch, current_branch

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
) -> FanOut[T]:
    """Run coroutine functions side by side; the arguments mean what they mean in ``fan_out``.

    Nothing outlives the call: branches that are late, or not needed any more because one failed or the caller
    was cancelled, are cancelled and waited for (one second at most, should one refuse to end).

    Args:
        tasks: Functions without arguments that return an awaitable.
        max_concurrency: As for `fan_out`, as are all others and what is returned and raised.
        timeout: Seconds each branch may take.
        on_error: ``"raise"`` or ``"skip"``.
        names: One name a branch.

    Example:
        >>> import asyncio
        >>> async def double(x):
        ...     return 2 * x
        >>> asyncio.run(afan_out([lambda: double(1), lambda: double(2)])).values
        [2, 4]
    """
    the_plan = Plan(tasks, max_concurrency, timeout, on_error, names)
    if len(tasks) == 1 and the_plan.timeout is None and the_plan.seconds is None:
        return FanOut([await _alone(the_plan.names[0], tasks[0], the_plan)])
    slots, begun = asyncio.Semaphore(max(1, the_plan.width)), time.monotonic()
    branches = [
        asyncio.create_task(_branch(name, task, the_plan, slots), context=Branch().context())
        for name, task in zip(the_plan.names, tasks, strict=True)
    ]
    late = set(branches)
    try:
        if branches:
            _, late = await asyncio.wait(
                branches, timeout=the_plan.seconds, return_when=asyncio.FIRST_EXCEPTION
            )
    finally:
        await _cancel_and_wait([each for each in branches if not each.done()])
        for each in branches:
            each.add_done_callback(_retrieve)
    ended = {each: each.result() for each in branches if each not in late}  # raises the first failure
    seconds = time.monotonic() - begun
    outcomes = []
    for name, each in zip(the_plan.names, branches, strict=True):
        error = the_plan.over() if each in late else None
        outcomes.append(ended.get(each) or Outcome[T](name, error=error, seconds=seconds))
        the_plan.check(outcomes[-1])
    return FanOut(outcomes)


async def afan_out_map(func: Callable[[S], Awaitable[T]], items: Sequence[S], **options: Any) -> FanOut[T]:
    """Apply a coroutine function to items side by side; options and errors are those of `afan_out`."""
    return await afan_out(bound(func, items), **options)


async def _alone(name: str, task: Callable[[], Awaitable[T]], the_plan: Plan) -> Outcome[T]:
    """A single branch that no clock watches, in the caller's own task: a task for it would take longer than it."""
    started, value, error = time.monotonic(), None, None
    own = asyncio.current_task()
    before = 0 if own is None else own.cancelling()
    token = current_branch.set(Branch())
    try:
        value = await task()
    except (Exception, asyncio.CancelledError) as raised:
        if own is not None and own.cancelling() > before:
            raise
        error = raised
    finally:
        current_branch.reset(token)
    if own is not None and own.cancelling() > before:
        raise asyncio.CancelledError  # the branch swallowed it, but the caller was meant
    outcome = Outcome(name, value, error, time.monotonic() - started)
    the_plan.check(outcome)
    return outcome


async def _branch(
    name: str, task: Callable[[], Awaitable[T]], the_plan: Plan, slots: asyncio.Semaphore
) -> Outcome[T]:
    """What a branch gave; its failure is raised unless failed branches are skipped."""
    async with slots:
        started, value, error = time.monotonic(), None, None
        try:
            if the_plan.timeout is None:
                value = await task()
            else:
                value = await in_time(task, the_plan.timeout, partial(the_plan.late, name))
        except (Exception, asyncio.CancelledError) as raised:
            own = asyncio.current_task()
            if isinstance(raised, asyncio.CancelledError) and own is not None and own.cancelling():
                raise
            error = raised
    outcome = Outcome(name, value, error, time.monotonic() - started)
    the_plan.check(outcome)
    return outcome


async def in_time(func: Callable[[], Awaitable[T]], seconds: float, late: Callable[[], Exception]) -> T:
    """Await a function in a task and a branch of its own; what is late is cancelled, and ``late()`` is raised.

    The clock runs outside the task, so that one which swallows cancellation cannot stop it.
    """

    async def body() -> T:
        return await func()

    task = asyncio.create_task(body(), context=Branch().context())
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
