"""Vector search in PostgreSQL: HNSW against reading all, with and without filters and tenants, recall and time.

Sentences of the public data sets by MiniLM, on a server of its own. The vectors are kept in the folder for temporary
files, since making them takes most of the time. The full run writes benchmarks/results/postgres_vectors.json.
"""

from __future__ import annotations

from harness import Row, at_least  # isort: skip  (sets the threads first)

import gzip
import json
import os
import re
import statistics
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings

ROOT = Path(__file__).resolve().parent.parent
RESULT = ROOT / "benchmarks" / "results" / "postgres_vectors.json"
SETS = ("scifact", "timeqa_slice", "pubmedqa_l", "covidqa", "xquad_en")
SIZES = (5_000, 20_000, 59_900)
QUERIES, K = 40, 10
SHARES = (100, 50, 10, 1)  # per cent of the rows that pass a filter
RECALL = 0.97


class Sentences(Embeddings):
    """Sentences and their vectors, in an order at random."""

    def __init__(self, amount: int) -> None:
        self.texts = _sentences()[:amount]
        kept = Path(tempfile.gettempdir()) / "rag_kit_minilm_sentences.npy"
        rows = np.load(kept) if kept.exists() else np.empty((0, 384), np.float32)
        if len(rows) < len(self.texts):
            from rag_kit.models.wheels.embeddings import WheelEmbeddings

            rows = np.asarray(WheelEmbeddings("minilm").embed_documents(self.texts), np.float32)
            np.save(kept, rows)
        self.rows = rows[: len(self.texts)]
        self.places = {text: place for place, text in enumerate(self.texts)}

    def embed_documents(self, texts: list[str]) -> Any:
        return self.rows[[self.places[text] for text in texts]]

    def embed_query(self, text: str) -> Any:
        return self.rows[self.places[text]]


def _sentences() -> list[str]:
    folder = Path(os.environ.get("RAG_KIT_DATA", ROOT.parent / "shared" / "data"))
    found: dict[str, None] = {}
    for name in SETS:
        for path in sorted((folder / name).glob("corpus.jsonl*")):
            with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as lines:
                for line in lines:
                    parts = re.split(r"(?<=[.!?])\s+", json.loads(line)["text"])
                    found.update((part.strip(), None) for part in parts if len(part.strip()) > 30)
    texts = [text[:400] for text in found]
    return [texts[place] for place in np.random.default_rng(0).permutation(len(texts))]


def run(quick: bool = False) -> list[Row]:
    """Recall and time at each size; writes the result file unless quick."""
    sys.path.insert(0, str(ROOT / "tests"))
    import psycopg
    from support.postgres import PostgresServer

    from rag_kit.indexing import DocumentIndex
    from rag_kit.indexing.postgres import vectors

    sizes = SIZES[:1] if quick else SIZES
    model = Sentences(sizes[-1] + QUERIES)
    queries = model.rows[-QUERIES:]
    shares = np.random.default_rng(1).permutation(len(model.rows)) % 100
    table: list[dict[str, Any]] = []
    with PostgresServer(shared_buffers="1GB", max_wal_size="4GB") as server:
        address = server.url.replace("+psycopg", "")
        with psycopg.connect(address) as connection:
            connection.execute("CREATE ROLE plain LOGIN; GRANT CREATE ON DATABASE postgres TO plain")
        url = f"{address.replace('tester@', 'plain@')}&index=bench"
        vectors.EXACT_ROWS = 1_000
        small = DocumentIndex.create(f"{url}&tenant=small", embeddings=model)
        large = DocumentIndex.create(f"{url}&tenant=large", embeddings=model)
        for size in sizes:
            theirs = range(0, size, 100)
            for index, tenant, numbers in ((small, "small", theirs), (large, "large", range(size))):
                index.upsert([Document(model.texts[0], id="0", metadata={"share": int(shares[0])})])
                with psycopg.connect(address) as connection:
                    _fill(connection, tenant, numbers, model, shares)
                    # made anew from all rows, which is quicker than row by row
                    name = vectors._index_name(index._store.state())
                    connection.execute(f'DROP INDEX IF EXISTS bench."{name}"')
                with index._store.writing() as writer:
                    index._store.vectors.rebuild(writer, index._store.state(writer))
            with psycopg.connect(address, autocommit=True) as connection:
                connection.execute("VACUUM ANALYZE bench.nearest")
                connection.execute("VACUUM ANALYZE bench.chunks")
            for share in SHARES:
                where = {"share": {"$lt": share}} if share < 100 else None
                found = _measured(large, where, queries, model.rows[:size], shares[:size] < share)
                table.append({"rows": size, "passing": f"{share}%", **found})
            mine = np.arange(size) % 100 == 0
            found = _measured(small, None, queries, model.rows[:size], mine)
            table.append({"rows": size, "passing": "a tenant's 1%", **found})
            for line in table[-len(SHARES) - 1 :]:
                print(line, flush=True)
            if not quick:
                RESULT.write_text(json.dumps({"rows": table}, indent=2) + "\n", encoding="utf-8")
        small.close()
        large.close()
    return [
        at_least(
            f"recall@{K}, {line['rows']:,} rows, passing: {line['passing']}",
            line["kit recall"],
            RECALL,
            f"HNSW {line['hnsw ms']:.0f} ms, reading all {line['exact ms']:.0f} ms, chosen {line['kit ms']:.0f} ms",
        )
        for line in table
    ]


def _fill(connection: Any, tenant: str, numbers: range, model: Sentences, shares: Any) -> None:
    """Put in the rows that are not there yet, as a superuser: one statement for all of them."""
    connection.execute(f"SET search_path = bench, public; SET rag_kit.tenant = '{tenant}'")
    [(last,)] = connection.execute("SELECT max(ordinal) FROM chunks WHERE tenant = %s", (tenant,)).fetchall()
    made = [(number, number + (10**7 if tenant == "small" else 10**6)) for number in numbers if number > last]
    columns = "n, id, source, ordinal, text, metadata, hash, generation"
    with connection.cursor().copy(f"COPY chunks ({columns}) FROM STDIN") as copy:
        for number, n in made:
            metadata = json.dumps({"share": int(shares[number])})
            copy.write_row((n, str(number), "", number, model.texts[number], metadata, b"%d" % number, 1))
    with connection.cursor().copy("COPY vectors (n, vector, generation) FROM STDIN") as copy:
        for number, n in made:
            copy.write_row((n, model.rows[number].astype("<f4").tobytes(), 1))


def _measured(index: Any, where: Any, queries: Any, rows: Any, passing: Any) -> dict[str, float]:
    """Recall and time at the median of HNSW alone, of reading all, and of what the kit does, asked in turn."""
    from rag_kit.indexing.postgres import vectors

    usual = vectors.SCANNED
    scores, numbers = queries @ rows[passing].T, np.flatnonzero(passing)
    ways = {"hnsw": 10**7, "exact": 0, "kit": usual}  # how many rows HNSW may give
    times: dict[str, list[float]] = {name: [] for name in ways}
    recalls: dict[str, list[float]] = {name: [] for name in ways}
    for query, score in zip(queries, scores, strict=True):
        nearest = {str(numbers[place]) for place in np.argsort(-score)[:K]}
        for name, vectors.SCANNED in ways.items():
            start = time.perf_counter()
            found = {document.id for document, _ in index.search_dense(query, K, where)}
            times[name].append((time.perf_counter() - start) * 1000)
            recalls[name].append(len(found & nearest) / K)
    vectors.SCANNED = usual
    return {f"{name} recall": statistics.mean(recalls[name]) for name in ways} | {
        f"{name} ms": statistics.median(times[name]) for name in ways
    }


if __name__ == "__main__":
    for row in run("--quick" in sys.argv):
        print(asdict(row))
