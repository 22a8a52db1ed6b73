"""The tables of docs/scale.md, from benchmarks/results/costs.json and shards.json, and the prices that are assumed."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).resolve().parent.parent / "results"
SIZES = (10_000, 100_000, 1_000_000)
MILLION = SIZES[-1]
STEPS = {
    "reading": "read files of one short text each",
    "splitting": "split",
    "embedding": "embed by all-MiniLM-L6-v2",
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
BUSY = 1.5  # running processes a core, above which the clock says too much
Table = tuple[list[str], list[list[str]]]


def number(value: float) -> str:
    """Three digits of it, or all before the point."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


@dataclass
class Series:
    """Values by the number of documents; those in ``busy`` are seconds of the clock that other work made longer."""

    values: dict[int, float]
    busy: set[int]

    def __post_init__(self) -> None:
        quiet = {size: value for size, value in self.values.items() if size not in self.busy}
        self.base = quiet if len(quiet) > 1 else self.values
        (n1, v1), (n2, v2) = (sorted(self.base.items()) * 2)[-2:]
        self.slope = math.log(v2 / v1) / math.log(n2 / n1) if n2 > n1 else 1.0
        self.million = v2 * (MILLION / n2) ** self.slope

    def cells(self, unit: str) -> list[str]:
        """The value at each size, ``~`` where the slope says it, ``*`` where it is too long, and the slope."""
        texts = []
        for size in SIZES:
            value = self.values.get(size, self.million * (size / MILLION) ** self.slope)
            mark = "* " if size in self.busy else "" if size in self.values else "~ "
            texts.append(f"{mark}{number(value)} {unit}")
        return [*texts, f"{self.slope:.2f}" if len(self.base) > 1 else "1, assumed"]


def found(step: str, value: Callable[[Any], Any]) -> dict[int, Any]:
    """A value of a step, by the size."""
    costs = json.loads((RESULTS / "costs.json").read_text(encoding="utf-8"))
    return {int(name.split()[1]): value(case) for name, case in costs.items() if name.split()[0] == step}


def series(step: str, value: Callable[[Any], Any], *, clock: bool = True) -> Series:
    """A value of a step that the clock says, or the processor where that was measured."""
    busy = found(step, lambda case: case["load"] > BUSY and (clock or "processor" not in case))
    return Series(found(step, value), {size for size, too_long in busy.items() if too_long})


def seconds(step: str) -> Series:
    """Seconds of a core; where those were not measured, of the clock times the cores in use."""
    cores = 2 if step == "embedding" else 1
    return series(step, lambda case: case.get("processor") or cores * case["seconds"], clock=False)


def steps() -> Table:
    """Seconds of each step."""
    rows = [[name, *seconds(step).cells("s")] for step, name in STEPS.items() if there(step)]
    return ["step", *(f"{size:,}" for size in SIZES), "slope"], rows


def there(step: str) -> bool:
    return bool(found(step, len))


def p50(step: str, kind: str) -> Series:
    return series(step, lambda case: case["queries"][kind][50])


def queries() -> Table:
    """Milliseconds of each kind of query."""
    question = f"{found('embedding', lambda case: case['queries']['embed'][50])[100_000]:.3g} ms"
    rows = [["either", "embed the question", question, question, question, "0.00"]]
    rows += [["folder", kind, *p50("vectors", kind).cells("ms")] for kind in ("keyword", "vector", "hybrid")]
    other = json.loads((RESULTS / "postgres_keyword.json").read_text(encoding="utf-8"))["rows"]
    took = Series({size: other[f"packed, {size:,}"]["query_all_ms"] for size in SIZES[1:]}, set())
    rows.append(["PostgreSQL", "keyword", *took.cells("ms")])
    return ["store", "query", *(f"p50, {size:,}" for size in SIZES), "slope"], rows


def stores() -> list[tuple[str, str]]:
    """Stores that were measured."""
    return [(step, store) for step, store in STORES.items() if there(step)]


def each(step: str) -> dict[str, float]:
    """Bytes a document: on disk, of it read by searches, and in a process that searches."""
    sizes = found(step, lambda case: case)
    largest = max(sizes)
    return {name: sizes[largest][name] / largest for name in ("disk", "mapped", "memory")}


def sizes() -> Table:
    """Bytes a document, and where a store stops."""
    rows = []
    for step, store in stores():
        share = each(step)
        stops = [FILLED * MEMORY * 1e3 / (share["mapped"] + share["memory"])]  # millions
        if step == "vectors":
            stops += [SLOW / p50(step, kind).million for kind in ("vector", "hybrid")]
        cells = [f"{value:,.0f}" for value in (*share.values(), *stops)]
        rows.append([store, *cells, *["–"] * (6 - len(cells))])
    head = ["store", "bytes on disk", "of it read by searches", "bytes in each process that searches"]
    ends = (f"{MEMORY} GB are filled", f"p50 by vector is {SLOW} ms", f"p50 hybrid is {SLOW} ms")
    return [*head, *(f"millions of passages until {end}" for end in ends)], rows


def assumed() -> Table:
    return ["assumed", "value"], [[name, f"{value:g}"] for name, value in ASSUMED.items()]


def plan() -> Table:
    """Disk, memory, hours, machines and money by the number of passages."""
    rows = []
    for amount in (10**power for power in range(6, 10)):
        embed = seconds("embedding").million * amount / MILLION / 3600
        for step, store in stores():
            share = each(step)
            write = seconds(step).million * amount / MILLION / 3600
            disk = amount * share["disk"] / 1e9
            memory = amount * (share["mapped"] + share["memory"]) / 1e9
            machines = math.ceil(memory / (FILLED * MEMORY))
            money = REPLICAS * (machines * (CORES * CORE + MEMORY * GB_MEMORY) + disk * GB_DISK)
            values = (embed, write, disk, memory, machines, money)
            rows.append([f"{amount:,}", store, *map(number, values)])
    head = ["passages", "store", "core hours to embed", "core hours to write", "GB on disk", "GB in memory"]
    return [*head, "shards", "money a month"], rows


def shards() -> Table:
    """How many times as long as usual, for one shard, it takes until the slowest has answered."""
    rows = []
    for case in json.loads((RESULTS / "shards.json").read_text(encoding="utf-8")):
        for number in case["plain"]:
            parts = (case[how][number] for how in ("plain", "hedged", "unbounded"))
            times = [" / ".join(f"{value / case['usual']:,.1f}" for value in part) for part in parts]
            name = f"{case['engine']}, {case['usual']:.0f} ms"
            rows.append([name, f"{case['load']:.0%}", number, *times, f"{case['added']:.1%}"])
    head = ["a shard, usually", "busy", "shards", "p50 / p95 / p99", "hedged", "without a bound"]
    return [*head, "requests added"], rows


TABLES: dict[str, Callable[[], Table]] = {
    "steps": steps,
    "queries": queries,
    "sizes": sizes,
    "assumed": assumed,
    "plan": plan,
    "shards": shards,
}
