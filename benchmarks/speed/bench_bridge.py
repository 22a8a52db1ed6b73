"""One text for the blocking and the async face: steps of a generator, or a coroutine over an object that does the I/O.

Ten steps that do next to nothing, so that what is measured is the way they are carried out; beside them the same ten
calls written out, and ten steps over the least of LangChain's Runnables. And what a blocking call pays for its event
loop, beside ``asyncio.run``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Generator
from typing import Any, TypeVar

from harness import Row, at_most, interleaved, median_ratio
from langchain_core.runnables import RunnableLambda

from rag_kit.concurrency.bridge import run_coroutine
from rag_kit.concurrency.steps import Step, arun
from rag_kit.concurrency.steps import run as run_steps

T = TypeVar("T")
STEPS = 10
RUNNABLE = RunnableLambda(lambda value: value + 1)


def _call(value: int) -> int:
    return value + 1


async def _acall(value: int) -> int:
    return value + 1


def _step(value: int, sync: Callable[[int], int]) -> Step[int]:
    return Step("call", lambda context: sync(value), lambda context: _acall(value))


def _generator(sync: Callable[[int], int] = _call) -> Generator[Step[int], int, int]:
    value = 0
    for _ in range(STEPS):
        value = yield _step(value, sync)
    return value


def _drive(steps: Generator[Step[int], int, int]) -> int:
    reply: Any = None
    while True:
        try:
            step = steps.send(reply)
        except StopIteration as done:
            return int(done.value)
        reply = step.sync(None)


async def _adrive(steps: Generator[Step[int], int, int]) -> int:
    reply: Any = None
    while True:
        try:
            step = steps.send(reply)
        except StopIteration as done:
            return int(done.value)
        reply = await step.native(None)


async def _steps(sync: Callable[[int], int] = _call) -> int:
    value = 0
    for _ in range(STEPS):
        value = await _step(value, sync)
    return value


class _Blocking:
    """The calls of the blocking face: none of them suspends."""

    async def call(self, value: int) -> int:
        return _call(value)


class _Native:
    """The calls of the async face."""

    async def call(self, value: int) -> int:
        return await _acall(value)


async def _coroutine(io: _Blocking | _Native) -> int:
    value = 0
    for _ in range(STEPS):
        value = await io.call(value)
    return value


def _finished(coroutine: Coroutine[Any, Any, T]) -> T:
    """Carry a coroutine out without a loop: over blocking calls it never suspends."""
    try:
        coroutine.send(None)
    except StopIteration as done:
        result: T = done.value
        return result
    raise RuntimeError("it suspended")


def _written_out() -> int:
    value = 0
    for _ in range(STEPS):
        value = _call(value)
    return value


async def _awaited_out() -> int:
    value = 0
    for _ in range(STEPS):
        value = await _acall(value)
    return value


def run(quick: bool = False) -> list[Row]:
    """The rows of ``make bench``."""
    many = 500 if quick else 5000
    blocking, native = _Blocking(), _Native()
    runner = asyncio.Runner()

    async def steps() -> None:
        for _ in range(many):
            await arun(_steps())

    async def generators() -> None:
        for _ in range(many):
            await _adrive(_generator())

    async def coroutines() -> None:
        for _ in range(many):
            await _coroutine(native)

    async def awaited() -> None:
        for _ in range(many):
            await _awaited_out()

    with runner:
        times = interleaved(
            {
                "steps": lambda: [run_steps(_steps()) for _ in range(many)],
                "generator": lambda: [_drive(_generator()) for _ in range(many)],
                "coroutine": lambda: [_finished(_coroutine(blocking)) for _ in range(many)],
                "out": lambda: [_written_out() for _ in range(many)],
                "real steps": lambda: [run_steps(_steps(RUNNABLE.invoke)) for _ in range(many // 50)],
                "real generator": lambda: [_drive(_generator(RUNNABLE.invoke)) for _ in range(many // 50)],
                "async steps": lambda: runner.run(steps()),
                "async generator": lambda: runner.run(generators()),
                "async coroutine": lambda: runner.run(coroutines()),
                "async out": lambda: runner.run(awaited()),
            },
            repeats=11,
        )
    loops = interleaved(
        {
            "bridge": lambda: [run_coroutine(_acall(1)) for _ in range(many // 50)],
            "run": lambda: [asyncio.run(_acall(1)) for _ in range(many // 50)],
        }
    )

    def each(name: str) -> str:
        return f"{1e6 * min(times[name]) / many / STEPS:.2f} us a step"

    return [
        at_most(
            f"{STEPS} steps, blocking: coroutine of steps / generator of steps",
            median_ratio(times, "steps", "generator"),
            2.0,
            f"{each('steps')}, {each('generator')}, over an object {each('coroutine')}, written out {each('out')}",
        ),
        at_most(
            f"the same over {STEPS} Runnables",
            median_ratio(times, "real steps", "real generator"),
            1.2,
            f"{1e6 * min(times['real steps']) / (many // 50) / STEPS:.0f} us a step",
        ),
        at_most(
            f"{STEPS} steps, async: coroutine of steps / generator of steps",
            median_ratio(times, "async steps", "async generator"),
            2.0,
            f"{each('async steps')}, {each('async generator')}, over an object {each('async coroutine')}",
        ),
        at_most(
            "a blocking call's event loop / asyncio.run",
            median_ratio(loops, "bridge", "run"),
            1.5,
            f"{1e6 * min(loops['bridge']) / (many // 50):.0f} us a call",
        ),
    ]
