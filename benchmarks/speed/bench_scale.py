"""A large `DocumentIndex`: build, memory, opening and queries beside bm25s and langchain-chroma, and its growth.

Keyword: short documents of about 12 words from a Zipf distribution. Vectors: 384 numbers in 200 clusters, made
beforehand. Memory is what a process holds beyond mapped files. A query's time in milliseconds stands in the note.
The full run writes benchmarks/results/scale.json.
"""

from __future__ import annotations

from harness import Row, at_most, per_query, timed, zipf  # isort: skip  (sets the threads first)

import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from measured import RESULTS, save

SIZE = 384
GROUP = 10_000  # documents a write
QUERIES = 40
SHARES = (100, 50, 10, 1)  # per cent of the rows that pass a filter
CHANGES = 10


class Numbered(Embeddings):
    """The vectors of the texts "0", "1"...: rows of an array."""

    def __init__(self, amount: int) -> None:
        rng = np.random.default_rng(0)
        centres = rng.normal(size=(200, SIZE)).astype(np.float32)
        self.rows = centres[rng.integers(0, 200, amount)]
        self.rows += rng.normal(size=(amount, SIZE)).astype(np.float32)
        self.rows /= np.linalg.norm(self.rows, axis=1, keepdims=True)

    def embed_documents(self, texts: list[str]) -> Any:
        return self.rows[[int(text) for text in texts]]

    def embed_query(self, text: str) -> Any:
        return self.rows[int(text)]


def run(quick: bool = False) -> list[Row]:
    """Keyword, then vectors; writes benchmarks/results/scale.json unless quick."""
    base = Path(tempfile.mkdtemp())
    start = time.perf_counter()
    try:
        rows = keyword(base, 30_000 if quick else 1_000_000)
        rows += vectors(base, 30_000 if quick else 200_000)
    finally:
        shutil.rmtree(base, ignore_errors=True)
    if not quick:
        result = {
            "minutes": round((time.perf_counter() - start) / 60, 1),
            "gigabytes": round(held(peak=True) / 1e9, 1),
            "load_per_cpu": round(os.getloadavg()[0] / (os.cpu_count() or 1), 1),
            "rows": [asdict(row) for row in rows],
        }
        save(RESULTS / "scale.json", result)
    return rows


def keyword(base: Path, amount: int) -> list[Row]:
    """Beside bm25s, and beside an index of a tenth of the documents."""
    import bm25s

    from rag_kit.indexing import DocumentIndex

    texts, asked = zipf(amount, QUERIES, words=12)
    tenth, _ = timed(lambda: build(base / "tenth", texts[: amount // 10]))
    whole, _ = timed(lambda: build(base / "whole", texts))

    def peer() -> Any:
        found = bm25s.BM25(backend="numba")
        found.index(bm25s.tokenize(texts, stopwords=None, show_progress=False), show_progress=False)
        return found

    peers, engine = timed(peer)
    opening_tenth, small = timed(lambda: DocumentIndex.open(base / "tenth"))
    before = held()
    opening, index = timed(lambda: DocumentIndex.open(base / "whole"))
    with index, small:
        index.search_keyword(asked[0], 10)
        memory = (held() - before) / amount
        times = per_query(
            {
                "ours": lambda query: index.search_keyword(query, 10),
                "tenth": lambda query: small.search_keyword(query, 10),
                "bm25s": lambda query: engine.retrieve(
                    bm25s.tokenize([query], stopwords=None, show_progress=False), k=10, show_progress=False
                ),
            },
            asked,
        )
        corpus, hits = timed(lambda: index.search_keyword(asked[0], amount))
        alone, _ = timed(
            lambda: sorted(
                [
                    (-score, d.id, Document(d.page_content, id=d.id, metadata=dict(d.metadata)))
                    for d, score in hits
                ],
                key=lambda hit: hit[:2],
            )
        )
        changed = change(base / "whole", index)
        changed_tenth = change(base / "tenth", small)
    return [
        growth(f"build {amount:,} documents against a tenth", whole, tenth),
        at_most("build against bm25s (memory only, no stemming)", whole / peers, 20, f"{whole:.0f} s"),
        at_most(
            "open against build", opening / whole, 0.5, f"{opening:.1f} s, {memory:,.0f} bytes a document"
        ),
        growth("open against a tenth", opening, opening_tenth),
        at_most("keyword query against bm25s", times["ours"] / times["bm25s"], 2, ms(times["ours"])),
        growth("keyword query against a tenth", times["ours"], times["tenth"]),
        at_most(
            "one changed document, until a reader finds it, against build", changed / whole, 0.01, ms(changed)
        ),
        growth("one changed document against a tenth", changed, changed_tenth),
        at_most(
            f"k of all documents ({len(hits):,} hits) against making and sorting those hits alone",
            corpus / alone,
            3,
            f"{corpus:.1f} s",
        ),
    ]


def change(folder: Path, reader: Any) -> float:
    """Median seconds from the beginning of a write of one document until a reader's search finds it."""
    from rag_kit.indexing import DocumentIndex

    times = []
    with DocumentIndex.open(folder, mode="w") as writer:
        for number in range(CHANGES):
            document = Document(f"w1 w2 changed{number}", id=str(number))
            start = time.perf_counter()
            writer.upsert([document])
            hits = reader.search_keyword(f"changed{number}", 1)
            times.append(time.perf_counter() - start)
            assert [found.id for found, _ in hits] == [document.id]
    return statistics.median(times)


def vectors(base: Path, amount: int) -> list[Row]:
    """Beside langchain-chroma, and beside an index of a tenth of the documents."""
    from chromadb.config import Settings
    from langchain_chroma import Chroma

    from rag_kit.indexing import DocumentIndex

    model = Numbered(amount)
    texts = [str(number) for number in range(amount)]
    tenth, _ = timed(lambda: build(base / "tenth-dense", texts[: amount // 10], model))
    whole, _ = timed(lambda: build(base / "dense", texts, model))

    def peer() -> Chroma:
        store = Chroma(
            "scale",
            model,
            persist_directory=str(base / "chroma"),
            client_settings=Settings(anonymized_telemetry=False, is_persistent=True),
            collection_configuration={"hnsw": {"space": "cosine"}},
        )
        for group in batches(texts, 5_000):
            store.add_documents(group)
        return store

    peers, store = timed(peer)
    with (
        DocumentIndex.open(base / "dense", embeddings=model) as index,
        DocumentIndex.open(base / "tenth-dense", embeddings=model) as small,
    ):
        index.search_keyword("1", 1)
        before = held()
        index.search_dense("1", 10)
        memory = (held() - before) / amount
        first, _ = timed(lambda: index.search_dense("1", 10, {"share": {"$lt": 2}}))
        asked = [str(number) for number in np.random.default_rng(1).integers(0, amount, QUERIES)]
        grown = per_query(
            {
                "whole": lambda query: index.search_dense(query, 10),
                "tenth": lambda q: small.search_dense(q, 10),
            },
            asked,
        )
        rows = [
            growth(f"build {amount:,} documents with vectors against a tenth", whole, tenth),
            at_most(
                "build against langchain-chroma", whole / peers, 1, f"{whole:.0f} s against {peers:.0f} s"
            ),
            at_most(
                "memory beyond mapped files, of 100 bytes a vector", memory / 100, 1, f"{memory:.0f} bytes"
            ),
            growth("dense query against a tenth", grown["whole"], grown["tenth"]),
            at_most("first search with a filter on a field against build", first / whole, 0.05, ms(first)),
        ]
        for share in SHARES:
            where = {"share": {"$lt": share}} if share < 100 else None
            times = per_query(
                {
                    "ours": lambda query, where=where: index.search_dense(query, 10, where),
                    "chroma": lambda query, where=where: store.similarity_search(query, 10, filter=where),
                },
                asked,
            )
            name = f"dense query against langchain-chroma, {share}% of the rows"
            limit = 15.0 * amount / 200_000 / 1000
            note = f"{ms(times['ours'])}, of {1000 * limit:.0f} ms aimed at"
            rows.append(at_most(name, times["ours"] / times["chroma"], 10 if share == 100 else 1, note))
        found = [[document.id for document, _ in index.search_dense(query, 10)] for query in asked]
    best = [set(np.argsort(-(model.rows @ model.embed_query(query)))[:10].tolist()) for query in asked]
    right = sum(
        len({int(key or -1) for key in ids} & wanted) for ids, wanted in zip(found, best, strict=True)
    )
    lost = 1 - right / (10 * len(asked))
    rows.append(at_most("hits lost against exact search, of one in a hundred", 100 * lost, 1, f"{lost:.4f}"))
    return rows


def batches(texts: list[str], size: int = GROUP) -> Iterator[list[Document]]:
    for start in range(0, len(texts), size):
        yield [
            Document(text, id=str(number), metadata={"share": number * 7919 % 100})
            for number, text in enumerate(texts[start : start + size], start)
        ]


def build(folder: Path, texts: list[str], model: Embeddings | None = None) -> None:
    from rag_kit.indexing import DocumentIndex

    with DocumentIndex.create(folder, embeddings=model) as index:
        for group in batches(texts):
            index.upsert(group)


def growth(name: str, whole: float, tenth: float) -> Row:
    """Ten times the documents take at most what n log n allows, and half as much again."""
    return at_most(name, whole / tenth, 1.5 * 10 * 1.3, f"{ms(tenth)}, {ms(whole)}")


def ms(seconds: float) -> str:
    return f"{1000 * seconds:.1f} ms" if seconds < 1 else f"{seconds:.1f} s"


def held(*, peak: bool = False) -> int:
    """Bytes of this process that are in no file, or the most it ever had; 0 where the system does not say."""
    if sys.platform != "linux":
        return 0
    name = "VmHWM" if peak else "RssAnon"
    with open(f"/proc/{os.getpid()}/status") as status:
        return next((1024 * int(line.split()[1]) for line in status if line.startswith(name)), 0)
