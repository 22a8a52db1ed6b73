"""Keyword search beside LangChain's BM25Retriever (rank_bm25) and bm25s with numba.

Texts of about 100 words drawn from a Zipf distribution over 50,000 words, queries of 5 to 8 words from the same,
k = 10. All engines get the same words (split on white space); times are medians over queries, in turn.
"""

from __future__ import annotations

import gc
import os
import statistics
import subprocess
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from harness import Row, at_least, at_most, interleaved

WORDS = 50_000
K = 10


def zipf(documents: int, queries: int, seed: int = 0, words: int = 100) -> tuple[list[str], list[str]]:
    """Texts and queries."""
    rng = np.random.default_rng(seed)
    share = np.cumsum(1 / np.arange(1, WORDS + 1))
    share /= share[-1]
    names = np.array([f"w{number}" for number in range(WORDS)], object)

    def draw(lengths: Sequence[int]) -> list[str]:
        drawn = names[np.minimum(np.searchsorted(share, rng.random(int(np.sum(lengths)))), WORDS - 1)]
        return [" ".join(part) for part in np.split(drawn, np.cumsum(lengths)[:-1])]

    return draw(rng.poisson(words, documents) + 1), draw(rng.integers(5, 9, queries))


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


def against_langchain(documents: int, repeats: int, target: float) -> tuple[Row, Any]:
    """invoke against invoke, everything included; also our retriever, for the other rows."""
    from rag_kit.retrieval import BM25Retriever

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from langchain_community.retrievers import BM25Retriever as LangChainBM25
    texts, asked = zipf(documents, 10 if documents <= 10_000 else 4)
    ours = BM25Retriever.from_texts(texts, k=K, analyzer=str.split)
    theirs = LangChainBM25.from_texts(texts, k=K)

    # In groups of queries: each of theirs empties the processor's caches.
    taken: dict[str, list[float]] = {"ours": [], "theirs": []}
    for _ in range(repeats):
        for name, engine in (("ours", ours.invoke), ("theirs", theirs.invoke)):
            for query in asked:
                start = time.perf_counter()
                engine(query)
                taken[name].append(time.perf_counter() - start)
    times = {name: statistics.median(values) for name, values in taken.items()}
    row = at_least(
        f"invoke against LangChain's, {documents:,} documents",
        times["theirs"] / times["ours"],
        target,
        f"p50 {times['theirs'] * 1e3:.1f} ms against {times['ours'] * 1e3:.3f} ms",
    )
    return row, ours.index


def against_bm25s(index: Any, documents: int, queries: int = 200) -> Row:
    """One query at a time, words given, positions and scores back, on both sides.

    bm25s computes the scores of all postings when it builds, ours those of a term when it is first searched for:
    so each query is asked once before it is timed, and the note tells what the first time takes.
    """
    import bm25s

    texts, asked = zipf(documents, queries)
    split = {query: query.split() for query in asked}
    theirs = bm25s.BM25(k1=index.k1, b=index.b, method="lucene", backend="numba")
    theirs.index([text.split() for text in texts], show_progress=False)
    view = index.current()
    engines: dict[str, Callable[[str], Any]] = {
        "ours": lambda query: view.top(Counter(split[query]), K),
        "theirs": lambda query: theirs.retrieve([split[query]], k=K, show_progress=False, n_threads=1),
    }
    first = per_query(engines, asked, warm=20)
    times = per_query(engines, asked, warm=20)
    return at_most(
        f"search against bm25s with numba, {documents:,} documents",
        times["ours"] / times["theirs"],
        1.0,
        f"p50 {times['ours'] * 1e3:.3f} ms against {times['theirs'] * 1e3:.3f} ms; "
        f"a query's first time {first['ours'] / first['theirs']:.2f}",
    )


def walk(index: Any, documents: int) -> Row:
    """``GraphRetriever``'s walk from twenty passages; not its search."""
    seeds = dict.fromkeys(index.ids[:20], 1.0)
    started = time.perf_counter()
    index.spread(seeds)
    first = time.perf_counter() - started
    taken = statistics.median(interleaved({"walk": lambda: index.spread(seeds, K)}, repeats=9)["walk"])
    return at_most(
        f"graph walk against 100 ms, {documents:,} documents",
        taken / 0.1,
        1.0,
        f"p50 {taken * 1e3:.0f} ms; the first after a write {first * 1e3:.0f} ms",
    )


def build(documents: int, repeats: int) -> list[Row]:
    """Building from the same words, and from text by each side's own analysis."""
    from langchain_core.documents import Document
    from rank_bm25 import BM25Okapi

    from rag_kit.indexing.bm25.index import BM25Index
    from rag_kit.text import Analyzer

    texts, _ = zipf(documents, 1)
    words = [text.split() for text in texts]
    numbered = [Document(str(number)) for number in range(documents)]
    analyzer = Analyzer("en")
    times = interleaved(
        {
            "ours": lambda: BM25Index.from_documents(numbered, analyzer=lambda text: words[int(text)]),
            "theirs": lambda: BM25Okapi(words),
            "ours, text": lambda: BM25Index.from_texts(texts, analyzer=analyzer),
            "theirs, text": lambda: BM25Okapi([text.split() for text in texts]),
        },
        repeats=repeats,
    )

    def ratio(theirs: str, ours: str) -> float:
        return statistics.median(a / b for a, b in zip(times[theirs], times[ours], strict=True))

    stemmed = ratio("theirs, text", "ours, text")
    return [
        at_least(
            f"build from words against rank_bm25, {documents:,} documents",
            ratio("theirs", "ours"),
            1.2,
            f"documents copied and named too; from text with stemming {stemmed:.2f}x of a bare split there",
        )
    ]


_MEMORY = """
import ctypes, gc, sys, psutil
sys.path.insert(0, {here!r})
from bench_bm25 import zipf
from rag_kit.indexing.bm25.index import BM25Index
from rank_bm25 import BM25Okapi
def resident():
    gc.collect()
    if sys.platform == "linux":
        ctypes.CDLL("libc.so.6").malloc_trim(0)
    return psutil.Process().memory_info().rss
texts, _ = zipf({documents}, 1)
BM25Index.from_texts(texts[:100], analyzer=str.split)
before = resident()
{build}
print(resident() - before)
"""


def memory(documents: int) -> Row:
    """Growth of the resident memory, each in a process of its own; ours keeps documents and ids besides."""
    grown = {}
    for name, code in {
        "ours": "index = BM25Index.from_texts(texts, analyzer=str.split)",
        "theirs": "index = BM25Okapi([text.split() for text in texts])",
    }.items():
        script = _MEMORY.format(
            here=os.path.dirname(os.path.abspath(__file__)), documents=documents, build=code
        )
        done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
        grown[name] = int(done.stdout)
    return at_most(
        f"resident memory against rank_bm25, {documents:,} documents",
        grown["ours"] / grown["theirs"],
        0.25,
        f"{grown['ours'] / 1e6:.0f} MB against {grown['theirs'] / 1e6:.0f} MB",
    )


def run(quick: bool = False) -> list[Row]:
    """All rows; ``quick`` leaves out the searches of 100,000 documents."""
    rows, indexes = [], {}
    row, indexes[10_000] = against_langchain(10_000, 5 if quick else 9, 100)
    rows.append(row)
    if not quick:
        row, indexes[100_000] = against_langchain(100_000, 7, 500)
        rows.append(row)
    for documents, index in indexes.items():
        rows.append(against_bm25s(index, documents))
    rows += [walk(index, documents) for documents, index in indexes.items() if documents == 100_000]
    rows += build(10_000, 5 if quick else 7)
    rows.append(memory(100_000))  # at fewer the vocabulary, the same on both sides, blurs the ratio
    return rows
