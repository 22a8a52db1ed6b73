"""Keyword search beside LangChain's BM25Retriever (rank_bm25), bm25s with numba, and a scipy product.

Texts of about 100 words drawn from a Zipf distribution, k = 10. All engines get the same words (split on white space);
times are medians over queries, in turn.
"""

from __future__ import annotations

from harness import Row, at_least, at_most, per_query, timed, zipf  # isort: skip  (sets the threads first)

import statistics
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain
from typing import Any

import numpy as np

K = 10


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
                taken[name].append(timed(partial(engine, query))[0])
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


def against_scipy(documents: int) -> Row:
    """Vectors of counts, best ten: the sparse index against a CSR matrix product and argpartition; same results."""
    import scipy.sparse

    from rag_kit.indexing.sparse.index import SparseIndex

    def encoder(given: Sequence[str]) -> list[dict[str, float]]:
        return [dict(Counter(text.split())) for text in given]

    texts, asked = zipf(documents, 60)
    vectors = encoder(texts)
    index = SparseIndex.from_texts(texts, encoder=encoder)
    numbers = {term: number for number, term in enumerate(dict.fromkeys(chain.from_iterable(vectors)))}
    pointers = np.cumsum([0, *map(len, vectors)])
    columns = np.array([numbers[term] for vector in vectors for term in vector])
    values = np.array([weight for vector in vectors for weight in vector.values()], np.float32)
    matrix = scipy.sparse.csr_matrix((values, columns, pointers), shape=(len(texts), len(numbers)))
    queries = dict(zip(asked, encoder(asked), strict=True))

    def product(query: str) -> Any:
        vector = {term: weight for term, weight in queries[query].items() if term in numbers}
        places = ([numbers[term] for term in vector], [0] * len(vector))
        column = scipy.sparse.csr_matrix((list(vector.values()), places), shape=(len(numbers), 1))
        scores = (matrix @ column).toarray().ravel()
        return scores[np.argpartition(-scores, K)[:K]]

    for query in asked[:5]:
        ours = [score for _, score in index.search_vector(queries[query], K)]
        assert np.allclose(ours, sorted(product(query), reverse=True)[: len(ours)], atol=1e-5)
    times = per_query({"ours": lambda query: index.search_vector(queries[query], K), "scipy": product}, asked)
    return at_least(
        f"sparse search against scipy's CSR product, {documents:,} documents",
        times["scipy"] / times["ours"],
        5,
        f"p50 {times['ours'] * 1e3:.3f} ms against {times['scipy'] * 1e3:.3f} ms",
    )


def run(quick: bool = False) -> list[Row]:
    """All rows; ``quick`` leaves out the searches of 100,000 documents."""
    rows = []
    for documents, repeats, target in ((10_000, 5 if quick else 9, 100), (100_000, 7, 500))[
        : 1 if quick else 2
    ]:
        row, index = against_langchain(documents, repeats, target)
        rows += [row, against_bm25s(index, documents)]
    return [*rows, against_scipy(10_000 if quick else 50_000)]
