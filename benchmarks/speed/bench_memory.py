"""The memory that ingest takes for 100,000 chunks with vectors, against a tenth of them and against the stated bound.

Each run is a process of its own; what is counted is the most that it had in memory at any time, mapped files included,
less what the imports take. Files have 50 chunks of about 400 characters, vectors 384 numbers.
"""

from __future__ import annotations

from harness import Row, at_most  # isort: skip  (sets the threads first)

import random
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from langchain_core.embeddings import Embeddings

CHUNKS = 50
BOUND = 1_000_000_000  # bytes for 100,000 chunks; docs/guide/en/index-folder.md says so


class Noise(Embeddings):
    """Random vectors."""

    size = 384

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return np.random.default_rng(len(texts)).normal(size=(len(texts), self.size)).tolist()

    def embed_query(self, text: str) -> list[float]:
        return self.embed_documents([text])[0]


def run(quick: bool = False) -> list[Row]:
    """Two sizes, each in a process of its own."""
    amount = 10_000 if quick else 100_000
    small, large = peak(amount // 10), peak(amount)
    each = (large - small) / (amount - amount // 10)
    note = f"{large / 1e6:,.0f} MB, {each:,.0f} bytes a chunk more than {small / 1e6:,.0f} MB for {amount // 10:,}"
    return [at_most(f"memory for {amount:,} chunks against the bound", large / BOUND, 1.0, note)]


def peak(amount: int) -> int:
    """Bytes that an ingest of so many chunks takes."""
    return int(subprocess.check_output([sys.executable, __file__, str(amount)], text=True))


def main() -> None:
    """Ingest, and print how much more memory was taken at most than after the imports."""
    from rag_kit.indexing import IngestOptions, ingest

    amount = int(sys.argv[1])
    chance, words = random.Random(0), [f"word{number}" for number in range(30_000)]
    with tempfile.TemporaryDirectory() as base:
        docs = Path(base, "docs")
        docs.mkdir()
        for number in range(amount // CHUNKS):
            parts = (" ".join(chance.choices(words, k=38)) for _ in range(CHUNKS))
            (docs / f"{number}.txt").write_text("\n\n".join(parts), encoding="utf-8")
        options = IngestOptions(chunk_size=400, chunk_overlap=0, splitter="paragraph")
        ingest(docs / "0.txt", Path(base, "first"), embeddings=Noise(), options=options)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        report = ingest(docs, Path(base, "index"), embeddings=Noise(), options=options)
    assert abs(report.chunks - amount) < amount / 100, report.chunks
    print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024)


if __name__ == "__main__":
    main()
