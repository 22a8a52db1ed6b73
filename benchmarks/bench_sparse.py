"""Sparse search beside a scipy product, and weighted terms beside plain ones.

python benchmarks/run.py sparse
python benchmarks/bench_sparse.py quality [DATA]     nDCG@10 and recall@100: the tables of docs/benchmarks.md
"""

from __future__ import annotations

import math
import os
import random
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from bench_bm25 import K, per_query, zipf
from harness import Row, at_least, at_most

from rag_kit.indexing import BM25Index
from rag_kit.indexing.sparse.index import SparseIndex
from rag_kit.text.ngrams import CharacterNgrams

Hits = list[tuple[Any, float]]


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


def quality(data: Path) -> None:
    """Print what n-grams bring over words."""
    from bm25_parameters import DataSet

    words = lambda text: [text]  # noqa: E731 - DataSet wants an analyzer; its terms are not used here
    for name in ("scifact", "cmrc2018_dev"):
        found = DataSet(data / name, words)
        queries = found.queries if len(found.queries) <= 600 else random.Random(0).sample(found.queries, 600)
        index = BM25Index.from_texts(found.texts, [{"_id": key} for key in found.ids])
        base = _measured(lambda text, index=index: index.search(text, 100), queries, found.relevant)
        print(
            f"{name}: {len(queries)} queries, BM25 nDCG@10 {base[:, 0].mean():.4f}, recall@100 {base[:, 1].mean():.4f}"
        )
        _ngrams(found, queries, index)


def _ngrams(found: Any, queries: Sequence[tuple[str, str]], words: BM25Index) -> None:
    rng = random.Random(1)
    chinese = any("一" <= character <= "鿿" for _, text in queries for character in text)
    mistype = _wrong_characters if chinese else _typo
    asked = {
        "as they are": list(queries),
        "misspelled": [(key, mistype(text, rng)) for key, text in queries],
    }
    sizes = [((3, 4), close) for close in ((2,), (1, 2), (2, 3), (3,))] if chinese else [
        (some, (1, 2)) for some in ((3,), (4,), (3, 4), (3, 4, 5))
    ]  # fmt: skip
    metadata = [{"_id": key} for key in found.ids]
    indexes = {"words": words} | {
        f"n-grams {some} {close}": BM25Index.from_texts(
            found.texts, metadata, analyzer=CharacterNgrams(some, close)
        )
        for some, close in sizes
    }
    for name, index in indexes.items():
        shares = [
            f"{how} {_measured(lambda t, i=index: i.search(t, 100), some, found.relevant)[:, 0].mean():.4f}"
            for how, some in asked.items()
        ]
        print(f"    {name:24} {', '.join(shares)}", flush=True)


def _typo(text: str, rng: random.Random) -> str:
    """One wrong, missing, doubled or swapped letter in each word of five letters or more."""
    words = text.split(" ")
    letters = "abcdefghijklmnopqrstuvwxyz"
    for place, word in enumerate(words):
        if len(word) < 5 or not word.isalpha():
            continue
        at = rng.randrange(1, len(word) - 1)
        words[place] = rng.choice(
            [
                word[:at] + word[at + 1] + word[at] + word[at + 2 :],
                word[:at] + word[at + 1 :],
                word[:at] + rng.choice(letters) + word[at + 1 :],
                word[:at] + rng.choice(letters) + word[at:],
            ]
        )
    return " ".join(words)


def _wrong_characters(text: str, rng: random.Random) -> str:
    """A quarter of the characters replaced by others."""
    others = "的是时事式十石拾食史使始市室世界借接节阶"
    return "".join(
        rng.choice(others) if "一" <= character <= "鿿" and rng.random() < 0.25 else character
        for character in text
    )


def _measured(search: Callable[[str], Hits], queries: Sequence[tuple[str, str]], relevant: Any) -> Any:
    """nDCG@10 and recall@100 of each query, shape (queries, 2)."""
    rows = []
    for key, text in queries:
        grades = relevant[key]
        found = [doc.metadata["_id"] for doc, _ in search(text)]
        gain = sum(grades.get(one, 0) / math.log2(rank + 2) for rank, one in enumerate(found[:10]))
        best = sum(g / math.log2(r + 2) for r, g in enumerate(sorted(grades.values(), reverse=True)[:10]))
        good = {one for one, grade in grades.items() if grade > 0}
        rows.append((gain / best, len(good & set(found)) / len(good)))
    return np.array(rows)


if __name__ == "__main__":
    if sys.argv[1:2] == ["quality"]:
        default = os.environ.get(
            "RAG_KIT_DATA", Path(__file__).resolve().parent.parent.parent / "shared" / "data"
        )
        quality(Path(sys.argv[2] if len(sys.argv) > 2 else default))
    else:
        for row in run(quick=True):
            print(row)
