"""Logic written once, as a coroutine that awaits steps, and carried out either blocking or on an event loop.

A step is one action in two forms. The logic awaits nothing but steps and other logic, so whoever carries it out
chooses the form: `run` calls the blocking one of each step, on no event loop at all; `arun` awaits the other.
"""

from __future__ import annotations

import types
from collections.abc import Awaitable, Callable, Coroutine, Generator
from functools import partial
from typing import Any, Generic, TypeVar

from rag_kit.concurrency.asynchronous import in_time
from rag_kit.concurrency.budget import check_abandoned, time_left
from rag_kit.concurrency.pool import shared_pool
from rag_kit.errors import BranchTimeoutError, BudgetExceededError, InvalidInputError

T = TypeVar("T")

Logic = Coroutine[Any, Any, T]
"""What an ``async def`` function returns that awaits steps and other logic only."""


class Step(Generic[T]):
    """One action, blocking and asynchronous; awaiting it gives its result, or raises what it raised.

    Attributes:
        name: Its name in messages about a branch that failed.
        sync: Does it, blocking; takes the context that was given to `run`.
        native: Does it without blocking the event loop; takes the context that was given to `arun`.
    """

    __slots__ = ("name", "native", "sync")

    def __init__(self, name: str, sync: Callable[[Any], T], native: Callable[[Any], Awaitable[T]]) -> None:
        self.name = name
        self.sync = sync
        self.native = native

    def __await__(self) -> Generator[Step[T], T, T]:
        return (yield self)


def run(logic: Logic[T], context: Any = None) -> T:
    """Carry out the logic, blocking.

    Args:
        logic: A coroutine that awaits steps.
        context: Given to each step: a config, a budget.

    Returns:
        What the coroutine returns.

    Raises:
        InvalidInputError: If the logic awaits something that is no step.
        Exception: What the logic raises.

    Example:
        >>> async def logic():
        ...     answer = await Step("ask", lambda name: f"question to {name}", None)
        ...     return answer + "!"
        >>> run(logic(), "Ada")
        'question to Ada!'
    """
    resume: Callable[[Any], Any] = logic.send
    value: Any = None
    while True:
        try:
            step = resume(value)
        except StopIteration as done:
            result: T = done.value
            return result
        try:
            value = _checked(step).sync(context)
            resume = logic.send
        except BaseException as error:  # noqa: BLE001 - raised where the logic awaits the step
            value, resume = error, logic.throw


async def arun(logic: Logic[T], context: Any = None) -> T:
    """As `run`, without blocking the event loop.

    Example:
        >>> import asyncio
        >>> async def ask(name):
        ...     return f"question to {name}"
        >>> async def logic():
        ...     return await Step("ask", None, ask)
        >>> asyncio.run(arun(logic(), "Ada"))
        'question to Ada'
    """
    return await _awaited(logic, context)


@types.coroutine
def _awaited(logic: Logic[T], context: Any) -> Generator[Any, Any, T]:
    resume: Callable[[Any], Any] = logic.send
    value: Any = None
    while True:
        try:
            step = resume(value)
        except StopIteration as done:
            result: T = done.value
            return result
        try:
            value = yield from _checked(step).native(context).__await__()
            resume = logic.send
        except BaseException as error:  # noqa: BLE001 - raised where the logic awaits the step
            value, resume = error, logic.throw


def _checked(step: Any) -> Step[Any]:
    if not isinstance(step, Step):
        raise InvalidInputError(
            f"a coroutine that also runs without an event loop awaited {step!r:.80}; it may await steps only "
            "(rag_kit.concurrency.steps.Step)"
        )
    return step


def call_in_time(func: Callable[[], T], timeout: float | None = None) -> T:
    """Call a function and wait no longer than allowed; its thread is abandoned then. Without a limit, call it here.

    Args:
        func: The function.
        timeout: Seconds that it may take; the deadlines of active budgets hold as well.

    Raises:
        BranchTimeoutError: The time-out comes first.
        BudgetExceededError: The deadline comes first.
        Exception: What the function raises.

    Example:
        >>> call_in_time(lambda: 1, timeout=5)
        1
    """
    limit = _limit(timeout)
    if limit is None:
        return func()
    seconds, late = limit
    call = shared_pool().start(func)
    try:
        if not call.wait(seconds):
            raise late()
    finally:  # late, or interrupted
        call.give_up()
    return call.future.result()


async def acall_in_time(func: Callable[[], Awaitable[T]], timeout: float | None = None) -> T:
    """As `call_in_time`; what is late is cancelled, and one second is waited for its end."""
    limit = _limit(timeout)
    if limit is None:
        return await func()
    seconds, late = limit
    return await in_time(func, seconds, late)


def _limit(timeout: float | None) -> tuple[float, Callable[[], Exception]] | None:
    """Seconds that a call may take, and what makes the error of one that takes longer."""
    check_abandoned()
    left, deadline = time_left()
    if left is not None and deadline is not None and (timeout is None or left < timeout):
        return left, partial(BudgetExceededError, "deadline", deadline)
    if timeout is None:
        return None
    return timeout, lambda: BranchTimeoutError(f"It took longer than {timeout:g} s.")
