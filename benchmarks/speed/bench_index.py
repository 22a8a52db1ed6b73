"""DocumentIndex against a plain langchain-chroma store of the same chunks and vectors."""

from __future__ import annotations

from harness import Row, at_most, interleaved, median_ratio  # isort: skip  (sets the threads first)

import random
import shutil
import tempfile
from itertools import count
from pathlib import Path

import numpy as np
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings

SIZE = 384


class Prepared(Embeddings):
    """Vectors made beforehand, so that only storing is timed."""

    size = SIZE

    def __init__(self, texts: list[str]) -> None:
        rng = np.random.default_rng(0)
        topics = rng.normal(size=(40, SIZE))
        vectors = topics[rng.integers(0, 40, len(texts))] + 0.7 * rng.normal(size=(len(texts), SIZE))
        self.vectors = dict(zip(texts, vectors.astype(np.float32).tolist(), strict=True))

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [self.vectors[text] for text in texts]

    def embed_query(self, text: str) -> list[float]:
        return self.vectors[text]


def run(quick: bool = False) -> list[Row]:
    """Write, write again, search."""
    from chromadb.config import Settings
    from langchain_chroma import Chroma

    from rag_kit.indexing import BM25Index, DocumentIndex

    amount = 1_000 if quick else 5_000
    chance = random.Random(0)
    words = [f"word{i}" for i in range(5_000)]
    texts = [f"{i} " + " ".join(chance.choices(words, k=120)) for i in range(amount)]
    documents = [
        Document(text, id=str(i), metadata={"source": f"/d/{i // 10}.md", "chunk": i % 10, "page": i % 7})
        for i, text in enumerate(texts)
    ]
    model = Prepared(texts)
    base = Path(tempfile.mkdtemp())
    number = count()

    def plain() -> Chroma:
        store = Chroma(
            collection_name="plain",
            embedding_function=model,
            persist_directory=str(base / f"plain{next(number)}"),
            client_settings=Settings(anonymized_telemetry=False, is_persistent=True),
            collection_configuration={"hnsw": {"space": "cosine"}},
        )
        for start in range(0, amount, 5_000):
            store.add_documents(documents[start : start + 5_000])
        return store

    def ours() -> Path:
        folder = base / f"index{next(number)}"
        with DocumentIndex.create(folder, embeddings=model) as index:
            index.upsert(documents)
        return folder

    repeats = 2 if quick else 3
    times = interleaved({"ours": ours, "plain": plain}, repeats)
    rows = [
        at_most(
            f"write {amount:,} chunks: store, keyword file and vectors, against langchain-chroma alone",
            median_ratio(times, "ours", "plain"),
            1.5,
            "vectors made beforehand; no embedding in it",
        )
    ]
    folder, store = ours(), plain()

    def again() -> None:
        with DocumentIndex.open(folder, embeddings=model, mode="w") as index:
            index.upsert(documents)

    queries = texts[:50]
    bare = BM25Index.from_documents(documents)
    with DocumentIndex.open(folder, embeddings=model) as index:
        times = interleaved(
            {
                "ours": lambda: [index.search_dense(query, 10) for query in queries],
                "plain": lambda: [store.similarity_search_with_score(query, 10) for query in queries],
                "keyword": lambda: [index.search_keyword(query, 10) for query in queries],
                "bare": lambda: [bare.search(query, 10) for query in queries],
            },
            3 if quick else 7,
        )
        rows.append(
            at_most(
                "dense query against langchain-chroma's", median_ratio(times, "ours", "plain"), 1.0, "exact"
            )
        )
        rows.append(
            at_most(
                "keyword query against the bare BM25Index's",
                median_ratio(times, "keyword", "bare"),
                2.0,
                "ties ordered by id, state checked",
            )
        )
    times = interleaved({"again": again, "plain": plain}, repeats)
    rows.append(
        at_most(
            "the same upsert again against langchain-chroma's first",
            median_ratio(times, "again", "plain"),
            0.5,
        )
    )
    shutil.rmtree(base, ignore_errors=True)
    return rows
