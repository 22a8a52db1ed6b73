"""The tables of docs/scale.md, from benchmarks/results/costs.json and shards.json, and the prices that are assumed."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).resolve().parent / "results"
SIZES = (10_000, 100_000, 1_000_000)
MILLION = SIZES[-1]
STEPS = {
    "reading": "read files of one short text each",
    "splitting": "split",
    "embedding": "embed by all-MiniLM-L6-v2, 2 cores",
    "keyword": "write to a folder: text, keywords",
    "vectors": "write to a folder: text, keywords, vectors",
    "postgres-keyword": "write to PostgreSQL: text, keywords",
    "postgres-vectors": "write to PostgreSQL: text, keywords, vectors",
}
STORES = {"vectors": "folder", "postgres-vectors": "PostgreSQL"}
#: For the reader to replace: prices are for a month.
ASSUMED = {
    "price of a core": 20,
    "price of a GB of memory": 3,
    "price of a GB of disk": 0.1,
    "cores of a machine": 8,
    "GB of memory of a machine": 64,
    "share of it that is filled": 0.8,
    "copies of each shard": 2,
}
CORE, GB_MEMORY, GB_DISK, CORES, MEMORY, FILLED, REPLICAS = ASSUMED.values()
SLOW = 100  # milliseconds
Table = tuple[list[str], list[list[str]]]


def found(step: str, value: Callable[[Any], Any]) -> dict[int, Any]:
    """A value of a step, by the size."""
    costs = json.loads((RESULTS / "costs.json").read_text(encoding="utf-8"))
    return {size: value(costs[f"{step} {size}"]) for size in SIZES if f"{step} {size}" in costs}


def slope(values: dict[int, float]) -> float:
    """Of the logarithms, between the two largest sizes: 1 where ten times the documents take ten times as long."""
    (n1, v1), (n2, v2) = sorted(values.items())[-2:]
    return math.log(v2 / v1) / math.log(n2 / n1)


def at_million(values: dict[int, float]) -> float:
    """The value at 1,000,000, by the slope if it was not measured."""
    largest = max(values)
    return float(values[largest] * (MILLION / largest) ** slope(values))


def cells(values: dict[int, float], unit: str) -> list[str]:
    """The value at each size, ``~`` where the slope says it, and the slope."""
    known = {MILLION: at_million(values)} | values
    texts = [f"{'' if size in values else '~ '}{known[size]:,.3g} {unit}" for size in SIZES if size in known]
    return [*texts, f"{slope(values):.2f}"]


def seconds(step: str) -> dict[int, float]:
    return found(step, lambda case: case["seconds"])


def steps() -> Table:
    """Seconds of each step."""
    rows = [[name, *cells(seconds(step), "s")] for step, name in STEPS.items() if len(seconds(step)) > 1]
    return ["step", *(f"{size:,}" for size in SIZES), "slope"], rows


def note() -> str:
    """How busy the machine was."""
    loads = found("vectors", lambda case: case["load"])
    text = "; ".join(f"{load} at {size:,}" for size, load in loads.items())
    return f"Running processes a core while an index with vectors was written to a folder: {text}."


def p50(step: str, kind: str) -> dict[int, float]:
    return found(step, lambda case: case["queries"][kind][50])


def queries() -> Table:
    """Milliseconds of each kind of query."""
    question = f"{p50('embedding', 'embed the question')[100_000]:.3g} ms"
    rows = [["either", "embed the question", question, question, question, "0.00", "–"]]
    for step, store in stores():
        for kind in ("keyword", "vector", "hybrid"):
            p95 = found(step, lambda case, kind=kind: case["queries"][kind][95])
            rows.append([store, kind, *cells(p50(step, kind), "ms"), f"{p95[max(p95)]:.3g} ms"])
    return ["store", "query", *(f"p50, {size:,}" for size in SIZES), "slope", "p95 at the largest"], rows


def stores() -> list[tuple[str, str]]:
    """Those that were measured."""
    return [(step, store) for step, store in STORES.items() if len(seconds(step)) > 1]


def each(step: str) -> dict[str, float]:
    """Bytes a document: on disk, of it read by searches, and in a process that searches."""
    sizes = found(step, lambda case: case)
    largest = max(sizes)
    return {name: sizes[largest][name] / largest for name in ("disk", "mapped", "memory")}


def sizes() -> Table:
    """Bytes a document, and where a store stops."""
    rows = []
    for step, store in stores():
        share, vector, hybrid = each(step), at_million(p50(step, "vector")), at_million(p50(step, "hybrid"))
        filled = FILLED * MEMORY * 1e3 / (share["mapped"] + share["memory"])
        stops = (filled, SLOW / vector, SLOW / hybrid)  # millions
        rows.append([store, *(f"{value:,.0f}" for value in (*share.values(), *stops))])
    head = ["store", "bytes on disk", "of it read by searches", "bytes in each process that searches"]
    ends = (f"{MEMORY} GB are filled", f"p50 by vector is {SLOW} ms", f"p50 hybrid is {SLOW} ms")
    return [*head, *(f"millions of passages until {end}" for end in ends)], rows


def assumed() -> Table:
    return ["assumed", "value"], [[name, f"{value:g}"] for name, value in ASSUMED.items()]


def plan() -> Table:
    """Disk, memory, hours, machines and money by the number of passages."""
    rows = []
    for amount in (10**power for power in range(6, 10)):
        embed = 2 * at_million(seconds("embedding")) * amount / MILLION / 3600
        for step, store in stores():
            share = each(step)
            write = at_million(seconds(step)) * amount / MILLION / 3600
            disk = amount * share["disk"] / 1e9
            memory = amount * (share["mapped"] + share["memory"]) / 1e9
            machines = math.ceil(memory / (FILLED * MEMORY))
            money = REPLICAS * (machines * (CORES * CORE + MEMORY * GB_MEMORY) + disk * GB_DISK)
            numbers = (embed, write, disk, memory, machines, money)
            rows.append([f"{amount:,}", store, *(f"{n:,.1f}" if n < 10 else f"{n:,.0f}" for n in numbers)])
    head = ["passages", "store", "core hours to embed", "hours to write", "GB on disk", "GB in memory"]
    return [*head, "shards", "money a month"], rows


def shards() -> Table:
    """Milliseconds until the slowest shard has answered."""
    rows = []
    for case in json.loads((RESULTS / "shards.json").read_text(encoding="utf-8")):
        for number in case["plain"]:
            parts = (case[how][number] for how in ("plain", "hedged", "unbounded"))
            times = [" / ".join(f"{value:,.0f}" for value in part) for part in parts]
            rows.append([case["engine"], f"{case['load']:.0%}", number, *times, f"{case['added']:.1%}"])
    return ["shard", "busy", "shards", "p50 / p95 / p99", "hedged", "without a bound", "requests added"], rows
