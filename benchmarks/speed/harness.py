"""Side-by-side timing in one process: ratios against a peer, never milliseconds."""

from __future__ import annotations

import os

for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import asyncio
import gc
import selectors
import statistics
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

WORDS = 50_000


@dataclass(frozen=True)
class Row:
    """One measured ratio and whether it meets its target."""

    name: str
    ratio: float
    target: str
    ok: bool
    note: str = ""


def interleaved(functions: Mapping[str, Callable[[], object]], repeats: int = 7) -> dict[str, list[float]]:
    """Time the functions in turn, round after round, so that drift of the machine hits all alike."""
    for function in functions.values():
        function()
    times: dict[str, list[float]] = {name: [] for name in functions}
    gc_was_enabled = gc.isenabled()
    gc.disable()
    try:
        for _ in range(repeats):
            for name, function in functions.items():
                start = time.perf_counter()
                function()
                times[name].append(time.perf_counter() - start)
    finally:
        if gc_was_enabled:
            gc.enable()
    return times


def median_ratio(times: Mapping[str, list[float]], a: str, b: str) -> float:
    """Median over rounds of time(a) / time(b)."""
    return statistics.median(x / y for x, y in zip(times[a], times[b], strict=True))


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds that a call takes, and what it gives."""
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


def per_query(
    engines: dict[str, Callable[[str], Any]], queries: Sequence[str], warm: int = 2
) -> dict[str, float]:
    """Median seconds a query of each engine, query by query in turn."""
    for engine in engines.values():
        for query in queries[:warm]:
            engine(query)
    times: dict[str, list[float]] = {name: [] for name in engines}
    gc.disable()
    try:
        for query in queries:
            for name, engine in engines.items():
                start = time.perf_counter()
                engine(query)
                times[name].append(time.perf_counter() - start)
    finally:
        gc.enable()
    return {name: statistics.median(values) for name, values in times.items()}


def zipf(documents: int, queries: int, seed: int = 0, words: int = 100) -> tuple[list[str], list[str]]:
    """Texts of about so many words drawn from a Zipf distribution, and queries of 5 to 8 words from the same."""
    rng = np.random.default_rng(seed)
    share = np.cumsum(1 / np.arange(1, WORDS + 1))
    share /= share[-1]
    names = np.array([f"w{number}" for number in range(WORDS)], object)

    def draw(lengths: Sequence[int]) -> list[str]:
        drawn = names[np.minimum(np.searchsorted(share, rng.random(int(np.sum(lengths)))), WORDS - 1)]
        return [" ".join(part) for part in np.split(drawn, np.cumsum(lengths)[:-1])]

    return draw(rng.poisson(words, documents) + 1), draw(rng.integers(5, 9, queries))


class _Waits(selectors.DefaultSelector):
    """Never sleeps: what would be waited is added up."""

    waited = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        found = super().select(0)
        if not found and timeout:
            self.waited += timeout
        return found


class _Loop(asyncio.SelectorEventLoop):
    """An event loop whose clock counts the waits and the processor time of its own thread."""

    def __init__(self) -> None:
        self._waits = _Waits()
        super().__init__(self._waits)

    def time(self) -> float:
        return time.thread_time() + self._waits.waited


def unshared_seconds(make: Callable[[], Awaitable[object]]) -> float:
    """Seconds that a coroutine takes on a machine with nothing else to do.

    Its waits (``asyncio.sleep``) and its processor time, in the order in which the loop has them; work of other
    processes does not count. Only for coroutines that use no thread and no network.
    """

    async def timed() -> float:
        loop = asyncio.get_running_loop()
        begun = loop.time()
        await make()
        return loop.time() - begun

    with asyncio.Runner(loop_factory=_Loop) as runner:
        return runner.run(timed())


def at_most(name: str, ratio: float, limit: float, note: str = "") -> Row:
    """A row whose ratio must not exceed the limit."""
    return Row(name, ratio, f"<= {limit:g}", ratio <= limit, note)


def at_least(name: str, ratio: float, limit: float, note: str = "") -> Row:
    """A row whose ratio must reach the limit."""
    return Row(name, ratio, f">= {limit:g}", ratio >= limit, note)
