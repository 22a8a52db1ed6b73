"""Logic written once, as a generator of steps, and carried out either blocking or natively asynchronous."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator
from typing import Any, TypeVar

S = TypeVar("S")
T = TypeVar("T")


def drive(steps: Generator[S, Any, T], carry_out: Callable[[S], Any]) -> T:
    """Carry out the steps that a generator yields, one after the other, and send back what came of each.

    Args:
        steps: The logic.
        carry_out: Does one step; what it raises ends the whole.

    Returns:
        What the generator returns.

    Example:
        >>> def logic():
        ...     answer = yield "question"
        ...     return answer + "!"
        >>> drive(logic(), str.upper)
        'QUESTION!'
    """
    reply: Any = None
    while True:
        try:
            step = steps.send(reply)
        except StopIteration as done:
            result: T = done.value
            return result
        reply = carry_out(step)


async def adrive(steps: Generator[S, Any, T], carry_out: Callable[[S], Awaitable[Any]]) -> T:
    """As ``drive``; each step is awaited."""
    reply: Any = None
    while True:
        try:
            step = steps.send(reply)
        except StopIteration as done:
            result: T = done.value
            return result
        reply = await carry_out(step)
