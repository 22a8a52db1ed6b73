"""Cost of each step at 10,000, 100,000 and 1,000,000 documents of about 12 words, for docs/scale.md.

A process a step and size measures itself: processor seconds, with those of the processes that it starts (a reader, a
PostgreSQL server), so that other work on the machine does not count; bytes on disk and in memory; and the times of
single queries, each the best of three. Vectors in an index are random unit vectors of 384 numbers, for the embedded
model takes too long: it and the reading of files are measured up to 100,000. ``bench_costs.py STEP
SIZE`` measures one case anew; the result file benchmarks/results/costs.json keeps the others.
"""

from __future__ import annotations

from harness import Row, at_most  # isort: skip  (sets the threads first)

import gc
import json
import os
import random
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from bench_bm25 import zipf
from bench_minilm import WORDS
from bench_scale import SIZE, build, held, timed
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings

RESULT = Path(__file__).resolve().parent.parent / "results" / "costs.json"
TESTS = Path(__file__).resolve().parents[2] / "tests"
SIZES = (10_000, 100_000, 1_000_000)
QUERIES = 100


class UnitVectors(Embeddings):
    """Random unit vectors: no two are near each other, and they take no time."""

    def __init__(self) -> None:
        self._random = np.random.default_rng(0)

    def embed_documents(self, texts: list[str]) -> Any:
        rows = self._random.standard_normal((len(texts), SIZE), np.float32)
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)

    def embed_query(self, text: str) -> Any:
        return self.embed_documents([text])[0]


def run(quick: bool = False) -> list[Row]:
    """Every step at every size, each in a process of its own."""
    rows = []
    for step, (_, largest) in STEPS.items():
        sizes = [size for size in ((1_000, 5_000) if quick else SIZES) if size <= largest]
        took = []
        for size in sizes:
            case = subprocess.check_output([sys.executable, __file__, step, str(size)])
            took.append(json.loads(case)["processor"])
        name = f"{step}: a document of {sizes[-1]:,} against one of {sizes[-2]:,}"
        rows.append(at_most(name, took[-1] / took[-2] / (sizes[-1] / sizes[-2]), 3, f"{took[-1]:.1f} s"))
    return rows


def save(measured: dict[str, Any]) -> None:
    """Put these cases into the result file, a line each."""
    kept = json.loads(RESULT.read_text(encoding="utf-8")) if RESULT.exists() else {}
    for case, new in measured.items():  # what the clock says is taken from the quieter run
        if (old := kept.get(case)) and old["load"] < new["load"]:
            new.update({name: old[name] for name in ("load", "queries", "open") if name in old})
    lines = [f"{json.dumps(case)}: {json.dumps(found)}" for case, found in sorted((kept | measured).items())]
    RESULT.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def reading(amount: int) -> dict[str, Any]:
    """Files of one short text each, by one reader process."""
    from rag_kit.indexing.readers.api import Reader

    texts, _ = zipf(amount, 1, words=12)
    with tempfile.TemporaryDirectory() as base:
        paths = [Path(base, str(number // 1_000), f"{number}.txt") for number in range(amount)]
        for path, text in zip(paths, texts, strict=True):
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
        with Reader() as reader:
            reader.read(paths[0])  # starts the process
            seconds = processor(lambda: [len(reader.read(path)) for path in paths])
    return {"processor": seconds}


def splitting(amount: int) -> dict[str, Any]:
    from rag_kit.indexing import split

    texts, _ = zipf(amount, 1, words=12)
    documents = [Document(text, metadata={"source": str(number)}) for number, text in enumerate(texts)]
    return {"processor": processor(lambda: split(documents))}


def embedding(amount: int) -> dict[str, Any]:
    """English words by the embedded model, on all cores."""
    from rag_kit.models.wheels.embeddings import WheelEmbeddings

    chance, words, model = random.Random(0), WORDS.split(), WheelEmbeddings("minilm")
    texts = [" ".join(chance.choices(words, k=12)) for _ in range(amount)]
    model.embed_array(texts[:10])
    parts = [texts[start : start + 10_000] for start in range(0, amount, 10_000)]
    seconds = processor(lambda: [len(model.embed_array(part)) for part in parts])
    return {
        "processor": seconds,
        "queries": {"embed": times(model.embed_query, texts[:QUERIES])},
    }


def index(amount: int, place: Callable[[], Any], model: Embeddings | None = None) -> dict[str, Any]:
    """Build an index, open it, and ask it each query of each kind."""
    from rag_kit.indexing import DocumentIndex
    from rag_kit.retrieval import index_retriever

    texts, asked = zipf(amount, QUERIES, words=12)
    with place() as (where, size):
        empty = size()
        seconds = processor(lambda: build(where, texts, model))
        gc.collect()
        before = held()
        opened, found = timed(lambda: DocumentIndex.open(where, embeddings=model))
        with found:
            queries = {"keyword": times(lambda query: found.search_keyword(query, 10), asked)}
            if model:
                queries["vector"] = times(lambda query: found.search_dense(query, 10), asked)
                queries["hybrid"] = times(index_retriever(found, k=10).invoke, asked)
            memory = max(0, held() - before)
        return {
            "processor": seconds,
            "open": opened,
            **(size() - empty),
            "memory": memory,
            "queries": queries,
        }


def processor(work: Callable[[], Any]) -> float:
    """Processor seconds of this process and of all below it."""

    def used() -> float:
        this = psutil.Process()
        while True:
            try:
                return sum(sum(each.cpu_times()[:4]) for each in (this, *this.children(recursive=True)))
            except psutil.NoSuchProcess:  # it ended meanwhile, and its parent has its time now
                continue

    before = used()
    work()
    return round(used() - before, 3)


def times(ask: Callable[[str], Any], asked: list[str]) -> list[float]:
    """The quantiles 0, .01 ... 1 of the milliseconds of a query, one at a time, each the best of three."""
    taken = [min(timed(lambda query=query: ask(query))[0] for _ in range(3)) for query in asked]
    return [round(1000 * float(value), 3) for value in np.quantile(taken, np.linspace(0, 1, 101))]


@contextmanager
def folder() -> Iterator[tuple[Path, Callable[[], Counter[str]]]]:
    """A folder for an index, and its bytes: all, and those of files that a search maps."""
    with tempfile.TemporaryDirectory() as base:

        def size() -> Counter[str]:
            files = [(path.suffix, path.stat().st_size) for path in Path(base).rglob("*.*")]
            mapped = sum(bytes_ for suffix, bytes_ in files if suffix in (".index", ".rows"))
            return Counter(disk=sum(bytes_ for _, bytes_ in files), mapped=mapped)

        yield Path(base, "index"), size


@contextmanager
def database() -> Iterator[tuple[str, Callable[[], Counter[str]]]]:
    """A URL on a PostgreSQL server that runs meanwhile, and the bytes of its database; searches read all its tables."""
    sys.path.insert(0, str(TESTS))
    import psycopg
    from support.postgres import PostgresServer

    with PostgresServer() as server:
        url = server.url.replace("+psycopg", "")

        def size() -> Counter[str]:
            with psycopg.connect(url) as connection:
                [found] = connection.execute("SELECT pg_database_size(current_database())").fetchone() or (0,)
            return Counter(disk=int(found), mapped=int(found))

        yield url, size


#: Each step, and the largest size that it is measured at.
STEPS: dict[str, tuple[Callable[[int], dict[str, Any]], int]] = {
    "reading": (reading, 100_000),
    "splitting": (splitting, 1_000_000),
    "embedding": (embedding, 100_000),
    "keyword": (partial(index, place=folder), 1_000_000),
    "vectors": (partial(index, place=folder, model=UnitVectors()), 1_000_000),
    "postgres-keyword": (partial(index, place=database), 1_000_000),
    "postgres-vectors": (partial(index, place=database, model=UnitVectors()), 100_000),
}


def main() -> None:
    """Measure one case, print it, and keep it if it is large enough for the page."""
    step, size = sys.argv[1], int(sys.argv[2])
    load = round(os.getloadavg()[0] / (os.cpu_count() or 1), 1)
    measured = {**STEPS[step][0](size), "load": load}
    print(json.dumps(measured))
    if size >= SIZES[0]:
        save({f"{step} {size}": measured})


if __name__ == "__main__":
    main()
