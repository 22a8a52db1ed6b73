"""Sparse search beside a scipy product, and weighted terms beside plain ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from bench_bm25 import K, per_query, zipf
from harness import Row, at_least, at_most

from rag_kit.indexing import BM25Index
from rag_kit.indexing.sparse.index import SparseIndex


def run(quick: bool = False) -> list[Row]:
    """All rows."""
    documents = 10_000 if quick else 50_000
    texts, asked = zipf(documents, 60)
    plain = BM25Index.from_texts(texts, analyzer=str.split)
    weights = {query: dict.fromkeys(query.split(), 1.0) for query in asked}
    times = per_query(
        {
            "plain": lambda query: plain.search(query, K),
            "weighted": lambda query: plain.search_weighted(weights[query], K),
        },
        asked,
    )
    rows = [
        at_most(
            f"weighted terms against the same terms, {documents:,} documents",
            times["weighted"] / times["plain"],
            1.5,
        ),
    ]
    return [*rows, against_scipy(texts, asked)]


def against_scipy(texts: Sequence[str], asked: Sequence[str]) -> Row:
    """Vectors of counts, best ten: the index against a CSR matrix product and argpartition; same results."""
    import scipy.sparse

    def encoder(given: Sequence[str]) -> list[dict[str, float]]:
        return [dict(Counter(text.split())) for text in given]

    vectors = encoder(texts)
    index = SparseIndex.from_texts(texts, encoder=encoder)
    terms = dict.fromkeys(term for vector in vectors for term in vector)
    numbers = {term: number for number, term in enumerate(terms)}
    pointers = np.cumsum([0, *map(len, vectors)])
    columns = np.array([numbers[term] for vector in vectors for term in vector])
    values = np.array([weight for vector in vectors for weight in vector.values()], np.float32)
    matrix = scipy.sparse.csr_matrix((values, columns, pointers), shape=(len(texts), len(numbers)))
    queries = {query: encoder([query])[0] for query in asked}

    def product(query: str) -> Any:
        vector = {t: w for t, w in queries[query].items() if t in numbers}
        places = ([numbers[term] for term in vector], [0] * len(vector))
        column = scipy.sparse.csr_matrix((list(vector.values()), places), shape=(len(numbers), 1))
        scores = (matrix @ column).toarray().ravel()
        best = np.argpartition(-scores, K)[:K]
        return scores[best]

    for query in asked[:5]:
        ours = [score for _, score in index.search_vector(queries[query], K)]
        assert np.allclose(ours, sorted(product(query), reverse=True)[: len(ours)], atol=1e-5)
    times = per_query({"ours": lambda q: index.search_vector(queries[q], K), "scipy": product}, asked)
    return at_least(
        f"sparse search against scipy's CSR product, {len(texts):,} documents",
        times["scipy"] / times["ours"],
        5,
        f"p50 {times['ours'] * 1e3:.3f} ms against {times['scipy'] * 1e3:.3f} ms",
    )
