"""A query that asks every shard waits for the slowest: a simulation of 1 to 100 shards, with and without hedging.

A shard is two replicas of the same 100,000 documents; each works on one request at a time, in order. Queries arrive at
random (Poisson) and go to one replica of every shard, in turn. What a request takes is drawn from the queries in
benchmarks/results/costs.json; one in a hundred takes longer by a log-normal time with a median of ten times the usual
(a pause, a cold page, a neighbour), which is assumed, not measured. Hedging: who has no reply after the time in which
95 of 100 requests are answered asks the other replica too, and takes the first reply; the loser is not cancelled. At
most one request in ten to a shard is hedged. Left out: a query that is slow on every shard, a replica that is down, the
network. Seeded; the full run writes benchmarks/results/shards.json.
"""

from __future__ import annotations

from harness import Row, at_most  # isort: skip  (sets the threads first)

import json
from pathlib import Path
from typing import Any

import numpy as np

RESULTS = Path(__file__).resolve().parent.parent / "results"
RESULT = RESULTS / "shards.json"
MEASURED = {
    "folder, hybrid": ("vectors 100000", "hybrid"),
    "PostgreSQL, keyword": ("postgres-keyword 100000", "keyword"),
}
SHARDS = (1, 3, 10, 30, 100)
LOADS = (0.2, 0.5)  # share of the time in which a replica works, without hedges
STALLS, STALL_TIMES, STALL_SIGMA = 0.01, 10.0, 1.0
HEDGE_AFTER = 95  # the percentile of a request to one shard
HEDGED = 0.1  # at most this share of requests: else hedges make queues, which make hedges
WARM = 500  # queries until the queues are as long as they stay


def run(quick: bool = False) -> list[Row]:
    """Simulate every engine that was measured; writes the result file unless quick."""
    costs = json.loads((RESULTS / "costs.json").read_text(encoding="utf-8"))
    number = 3_000 if quick else 20_000
    cases = [
        {"engine": engine, "load": load, **case(costs[key]["queries"][kind], load, number)}
        for engine, (key, kind) in MEASURED.items()
        for load in LOADS
    ]
    if not quick:
        RESULT.write_text("[\n" + ",\n".join(map(json.dumps, cases)) + "\n]\n", encoding="utf-8")
    rows = []
    for found in cases:
        name = f"{found['engine']}, replicas busy {found['load']:.0%} of the time"
        (_, plain, _), (_, hedged, _) = (found[how]["100"] for how in ("plain", "hedged"))
        note = f"{plain:.0f} ms without"
        rows.append(at_most(f"{name}: p95 of 100 shards with hedges / without", hedged / plain, 1.0, note))
        rows.append(at_most(f"{name}: requests with hedges / without", 1 + found["added"], 1.1))
    return rows


def case(quantiles: list[float], load: float, queries: int) -> dict[str, Any]:
    """p50, p95 and p99 of whole queries by the number of shards, in milliseconds.

    Args:
        quantiles: Of the milliseconds of one measured request, evenly spaced from the least to the longest.
        load: Share of the time in which a replica works.
        queries: How many arrive.
    """
    chance = np.random.default_rng(0)
    shards = max(SHARDS)
    draws = chance.random((queries, 2, shards))
    takes = np.interp(draws, np.linspace(0, 1, len(quantiles)), quantiles)
    stalled = chance.random(takes.shape) < STALLS
    usual = quantiles[len(quantiles) // 2]
    takes[stalled] += usual * STALL_TIMES * chance.lognormal(0, STALL_SIGMA, int(stalled.sum()))
    arrivals = np.cumsum(chance.exponential(takes.mean() / load / 2, queries))
    plain, _ = replies(arrivals, takes, None)
    after = float(np.percentile(plain[WARM:], HEDGE_AFTER))
    hedged, added = replies(arrivals, takes, after)
    unbounded, _ = replies(arrivals, takes, after, 1.0)
    return {
        "usual": usual,
        "hedge_after": round(after, 2),
        "added": round(added, 4),
        "plain": slowest(plain),
        "hedged": slowest(hedged),
        "unbounded": slowest(unbounded),
    }


def replies(arrivals: Any, takes: Any, after: float | None, bound: float = HEDGED) -> tuple[Any, float]:
    """Times of each request with its waiting (query x shard), and hedges for each request."""
    queries, _, shards = takes.shape
    free = np.zeros((2, shards))  # when each replica has done what was sent to it
    done = np.empty((queries, shards))
    hedges = np.zeros(shards, int)
    times = arrivals if after is None else np.concatenate([arrivals, arrivals + after])
    for event in np.argsort(times, kind="stable"):
        query, second = event % queries, event >= queries
        to = free[(query + second) % 2]
        finished = np.maximum(to, times[event]) + takes[query, int(second)]
        if second:
            late = (done[query] > times[event]) & (hedges < bound * query)
            hedges += late
            done[query, late] = np.minimum(done[query], finished)[late]
            to[late] = finished[late]
        else:
            done[query] = to[:] = finished
    return done - arrivals[:, None], float(hedges.mean()) / queries


def slowest(taken: Any) -> dict[str, list[float]]:
    """p50, p95 and p99 of the slowest of the first so many shards."""
    return {
        str(number): [
            round(float(value), 2) for value in np.percentile(taken[WARM:, :number].max(1), (50, 95, 99))
        ]
        for number in SHARDS
    }
