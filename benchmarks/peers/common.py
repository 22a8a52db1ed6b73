"""Measurements that every side makes in the same way, in its own environment; the standard library alone.

Each side gives: a fusion of 8 ranked lists of 1,000, as a ratio to a bare dict loop over the same lists, and
multi-query searches with 5 and 20 queries, as a ratio to the critical path (one model call of 200 ms, one search of
50 ms). The yardstick is timed in the same process, round by round.
"""

from __future__ import annotations

import asyncio
import json
import random
import statistics
import sys
import time
from collections.abc import Awaitable, Callable
from importlib.metadata import version

MODEL, SEARCH = 0.2, 0.05
LISTS, LENGTH = 8, 1000
WIDTHS = (5, 20)


def rankings() -> list[list[str]]:
    """Eight ranked lists of texts from one pool."""
    generator = random.Random(0)
    pool = [f"Document number {number} of the pool, about something." for number in range(4000)]
    return [generator.sample(pool, LENGTH) for _ in range(LISTS)]


def bare_loop(lists: list[list[str]], k: int = 60) -> list[tuple[str, float]]:
    """Reciprocal rank fusion in as few words as possible."""
    scores: dict[str, float] = {}
    for ranking in lists:
        for rank, key in enumerate(ranking, start=1):
            scores[key] = scores.get(key, 0.0) + 1.0 / (k + rank)
    return sorted(scores.items(), key=lambda pair: pair[1], reverse=True)


def fusion(fuse: Callable[[], object], rounds: int, prepare: Callable[[], object] = lambda: None) -> float:
    """Time of the fusion as a ratio to the bare loop."""
    lists = rankings()
    ratios = []
    prepare()
    fuse()
    for _ in range(rounds):
        bare = _seconds(lambda: bare_loop(lists))
        prepare()
        ratios.append(_seconds(fuse) / bare)
    return statistics.median(ratios)


def blocking(call: Callable[[], object], rounds: int) -> float:
    """Time of a call as a ratio to the critical path."""
    call()
    return statistics.median(_over_path(lambda: _seconds(call)) for _ in range(rounds))


def native(call: Callable[[], Awaitable[object]], rounds: int) -> float:
    """As ``blocking``, of a coroutine function, the event loop running already."""

    async def once() -> float:
        started = time.perf_counter()
        await call()
        return time.perf_counter() - started

    asyncio.run(once())
    return statistics.median(_over_path(lambda: asyncio.run(once())) for _ in range(rounds))


def queries(width: int) -> list[str]:
    """The model's answer: all queries but the user's own."""
    return [f"another way to ask it, number {number}" for number in range(1, width)]


def measure(
    name: str,
    package: str,
    fuse: Callable[[], object],
    search: Callable[[int], tuple[Callable[[], object], Callable[[], Awaitable[object]] | None]],
    prepare: Callable[[], object] = lambda: None,
) -> None:
    """Measure a side in as many rounds as the only argument says; print the figures for the program that started it.

    ``search`` makes a search with so many queries: a blocking call, and a native one where the side has it.
    """
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 7
    figures = {"fusion 8 x 1000": fusion(fuse, rounds, prepare)}
    for width in WIDTHS:
        invoke, ainvoke = search(width)
        figures[f"multi-query {width}, sync"] = blocking(invoke, rounds)
        if ainvoke is not None:
            figures[f"multi-query {width}, async"] = native(ainvoke, rounds)
    print(json.dumps({"name": name, "version": version(package), "figures": figures}))


def _over_path(measure: Callable[[], float]) -> float:
    path = _seconds(lambda: (time.sleep(MODEL), time.sleep(SEARCH)))
    return measure() / path


def _seconds(call: Callable[[], object]) -> float:
    started = time.perf_counter()
    call()
    return time.perf_counter() - started
