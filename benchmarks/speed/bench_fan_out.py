"""The fan-out as multiples of the critical path: branches that only wait, 50 and 200 ms each."""

from __future__ import annotations

import asyncio
import statistics
import time

from harness import Row, at_most

from rag_kit.concurrency import afan_out, fan_out

LIMITS = {2: 1.05, 8: 1.05, 32: 1.10}


def sync_seconds(branches: int, seconds: float) -> float:
    start = time.perf_counter()
    fan_out([lambda: time.sleep(seconds)] * branches)
    return time.perf_counter() - start


async def async_seconds(branches: int, seconds: float) -> float:
    start = time.perf_counter()
    await afan_out([lambda: asyncio.sleep(seconds)] * branches)
    return time.perf_counter() - start


def run(quick: bool = False) -> list[Row]:
    rounds = 7 if quick else 21
    rows = []
    for seconds in (0.05, 0.2):
        for branches, limit in LIMITS.items():
            ratios: dict[str, list[float]] = {"sync": [], "async": []}
            sync_seconds(branches, 0.001)
            for _ in range(rounds):
                # The critical path is one branch alone, timed in the same round.
                start = time.perf_counter()
                time.sleep(seconds)
                alone = time.perf_counter() - start
                ratios["sync"].append(sync_seconds(branches, seconds) / alone)
                ratios["async"].append(asyncio.run(async_seconds(branches, seconds)) / alone)
            for kind, values in ratios.items():
                name = f"{kind}, {branches} branches of {seconds * 1000:.0f} ms / one branch"
                rows.append(at_most(name, statistics.median(values), limit))
    return rows
