"""Vector search in Chroma, 10,000 x 384: exact in memory against its own filtered query; five queries at once; the
hybrid over an index of 20,000 passages beside the searches that it is made of; reranking by stored token vectors."""

from __future__ import annotations

from harness import Row, at_least, at_most, interleaved, median_ratio  # isort: skip  (sets the threads first)

import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings

SIZE, DIMENSIONS, K, GROUP = 10_000, 384, 10, 5
PASSAGES, DEPTH, OVERHEAD = 20_000, 100, 0.002
RERANKED = 100
HALF = {"lang": "en"}
FILTERS: dict[str, dict[str, Any]] = {"2% of the rows pass": {"topic": 7}, "half pass": HALF}


def run(quick: bool = False) -> list[Row]:
    import chromadb
    from chromadb.config import Settings
    from langchain_chroma import Chroma

    from rag_kit.retrieval import VectorRetriever
    from rag_kit.retrieval.exact import ExactVectorRetriever

    model, repeats = Vectors(), 7 if quick else 21
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        client = chromadb.PersistentClient(folder, settings=Settings(anonymized_telemetry=False))
        space = {"hnsw:space": "cosine"}
        chroma = Chroma("vectors", model, client=client, collection_metadata=space)
        _fill(chroma)
        own = VectorRetriever(vectorstore=chroma, k=K, name="dense")
        documents, vectors = _rows(chroma)
        mine = ExactVectorRetriever.from_documents(documents, model, vectors=vectors, k=K, name="dense")
        rows = [_filtered(name, where, own, mine, repeats) for name, where in FILTERS.items()]
        rows += [
            _together("Chroma with a filter, vectors known", own, HALF, "known {}", repeats),
            _together("Chroma, embedded by an endpoint (20 ms)", own, None, "remote {}", repeats),
        ]
    return [*rows, _hybrid_beside_parts(repeats), *_reranking_by_stored_tokens(repeats)]


def _hybrid_beside_parts(repeats: int) -> Row:
    """Processor time of the hybrid minus that of its keyword, vector and feedback search by themselves."""
    from rag_kit.indexing import DocumentIndex
    from rag_kit.retrieval import index_retriever

    model = Vectors()
    with tempfile.TemporaryDirectory() as folder, DocumentIndex.create(folder, embeddings=model) as index:
        index.upsert(_passages())
        hybrid = index_retriever(index, k=4, fetch_k=DEPTH)
        queries = [f"known how does w{number} work with the part {number}?" for number in range(repeats + 1)]
        vectors = {query: model.embed_query(query) for query in queries}

        parts: dict[str, Callable[[str], Any]] = {
            "hybrid": hybrid.invoke,
            "keyword": lambda query: index.keyword_view().search_ids(query, DEPTH),
            "vectors": lambda query: index.search_dense_ids(query, DEPTH),
            "feedback": lambda query: index.search_dense_ids(vectors[query], DEPTH),
        }
        seconds: dict[str, list[float]] = {name: [] for name in parts}
        for query in queries:
            for name, part in parts.items():
                begun = time.process_time()
                part(query)
                seconds[name].append(time.process_time() - begun)
    # the first round fills caches
    costs = {name: statistics.median(times[1:]) for name, times in seconds.items()}
    over = costs["hybrid"] - sum(cost for name, cost in costs.items() if name != "hybrid")
    shown = ", ".join(f"{name} {1000 * cost:.1f}" for name, cost in costs.items())
    return at_most(
        f"hybrid / its parts, {PASSAGES:,} passages, over them / {1000 * OVERHEAD:.0f} ms",
        over / OVERHEAD,
        1,
        f"{1000 * over:.1f} ms of processor time over its parts: {shown} ms",
    )


def _reranking_by_stored_tokens(repeats: int) -> list[Row]:
    """Processor time of reranking 20 passages by computed vectors of their tokens and by stored ones."""
    from rag_kit.indexing import DocumentIndex
    from rag_kit.models.wheels.files import is_installed
    from rag_kit.models.wheels.models import WheelLateInteraction
    from rag_kit.retrieval import index_retriever

    if not is_installed("colbert-small"):
        return []
    reranker, passages = WheelLateInteraction("colbert-small", threads=1), _passages()[:RERANKED]
    queries = [f"known how does w{number} work with the part {number}?" for number in range(repeats // 3 + 1)]
    seconds: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, leg in (("computed", {}), ("stored", {"legs": ["tokens"], "token_model": reranker})):
            options: Any = leg
            with DocumentIndex.create(f"{folder}/{name}", **options) as index:
                index.upsert(passages)
                begun = time.process_time()
                index.flush()
                flushed = time.process_time() - begun
                retriever = index_retriever(index, "bm25", k=20, reranker=reranker)
                for query in queries:
                    begun = time.process_time()
                    retriever.invoke(query)
                    seconds.setdefault(name, []).append(time.process_time() - begun)
        [file] = Path(folder).glob("stored/tokens-*.index")
        size = file.stat().st_size / len(passages)
    # the first round loads the model
    computed, stored = (statistics.median(seconds[name][1:]) for name in ("computed", "stored"))
    cost = f"{size / 1000:.0f} kB and {1000 * flushed / len(passages):.0f} ms a passage at ingest"
    note = f"{1000 * computed:.0f} ms and {1000 * stored:.0f} ms of processor time; {cost}"
    return [at_least("reranking 20 passages, token vectors computed / stored", computed / stored, 5, note)]


def _passages() -> list[Any]:
    """Short passages of words that are as common as words are."""
    ranks = np.random.default_rng(0).zipf(1.3, size=(PASSAGES, 40)) % 5_000
    texts = (f"known part {n}: " + " ".join(f"w{rank}" for rank in row) for n, row in enumerate(ranks))
    return [Document(text, metadata={"source": f"{n}.md"}, id=str(n)) for n, text in enumerate(texts)]


def _rows(chroma: Any) -> tuple[list[Document], np.ndarray]:
    """The documents of a collection, and their vectors."""
    rows = chroma.get(include=["documents", "metadatas", "embeddings"])
    columns = zip(rows["documents"], rows["metadatas"], rows["ids"], strict=True)
    documents = [Document(text, metadata=metadata or {}, id=key) for text, metadata, key in columns]
    return documents, np.array(rows["embeddings"])


def _filtered(name: str, where: dict[str, Any], own: Any, mine: Any, repeats: int) -> Row:
    """The retrievers as a user calls them, embedding left out: the query's vector is known."""
    queries = [f"known {number}" for number in range(repeats + 1)]
    turn: dict[str, int] = {"own": 0, "mine": 0}

    def ask(which: str, retriever: Any) -> Any:
        turn[which] = (turn[which] + 1) % len(queries)
        return retriever.invoke(queries[turn[which]], filter=where)

    times = interleaved({"own": partial(ask, "own", own), "mine": partial(ask, "mine", mine)}, repeats)
    same, overlap = 0, []
    for query in queries:
        theirs, found = ([d.id for d in one.invoke(query, filter=where)] for one in (own, mine))
        same += theirs == found
        overlap.append(len({*theirs} & {*found}) / K)
    note = (
        f"same list {same} of {len(queries)} times; HNSW finds {statistics.mean(overlap):.0%} of the nearest"
    )
    return at_least(
        f"Chroma's filtered query / exact in memory, {name}", median_ratio(times, "own", "mine"), 5, note
    )


def _together(name: str, retriever: Any, where: dict[str, Any] | None, form: str, repeats: int) -> Row:
    """Five queries with embedding: at once, each by itself side by side, and one after the other."""
    from rag_kit.concurrency import fan_out

    queries = [form.format(number) for number in range(GROUP)]
    calls = [partial(retriever.invoke, query, filter=where) for query in queries]
    functions: dict[str, Callable[[], object]] = {
        "at once": partial(retriever.search_many, queries, filter=where),
        "side by side": lambda: fan_out(calls),
        "in turn": lambda: [call() for call in calls],
    }
    times = interleaved(functions, repeats)
    beside = median_ratio(times, "side by side", "at once")
    in_turn = median_ratio(times, "in turn", "at once")
    return at_least(
        f"{GROUP} separate calls / one batch, {name}", in_turn, 2, f"side by side on threads: {beside:.1f}x"
    )


class Vectors(Embeddings):
    """Vectors that the text decides, after a request of 20 ms where it begins with "remote"."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        if texts[0].startswith("remote"):
            time.sleep(0.02)
        return [self._vector(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        return self.embed_documents([text])[0]

    @staticmethod
    def _vector(text: str) -> list[float]:
        seed = int.from_bytes(text.encode()[-8:], "big")
        vector: list[float] = np.random.default_rng(seed).normal(size=DIMENSIONS).tolist()
        return vector


def _fill(chroma: Any) -> None:
    generator = np.random.default_rng(0)
    # As texts are: some topics, and rows around them.
    centres = generator.normal(size=(50, DIMENSIONS))
    for start in range(0, SIZE, 5_000):
        numbers = range(start, start + 5_000)
        vectors = centres[[n % 50 for n in numbers]] + generator.normal(size=(5_000, DIMENSIONS))
        chroma._collection.add(
            ids=[str(n) for n in numbers],
            embeddings=vectors.astype(np.float32),
            documents=[f"Passage {n}. " + "Some words of a usual passage. " * 12 for n in numbers],
            metadatas=[{"topic": n % 50, "lang": "en" if (n // 50) % 2 else "zh"} for n in numbers],
        )
