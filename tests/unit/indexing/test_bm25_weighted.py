"""BM25Index.search_weighted: terms of which each has a weight."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_kit.errors import FilterError, InvalidInputError
from rag_kit.indexing import BM25Index

WORDS = st.lists(st.sampled_from("abcdefgh"), max_size=8).map(" ".join)
WEIGHTS = st.dictionaries(st.sampled_from("abcdefghz"), st.just(0.0) | st.floats(1e-6, 100), max_size=5)


def make(texts: list[str], **settings: Any) -> BM25Index:
    return BM25Index.from_texts(
        texts, [{"n": n} for n in range(len(texts))], ids=[str(n) for n in range(len(texts))],
        analyzer=str.split, **settings,
    )  # fmt: skip


def found(hits: Any) -> list[tuple[int, float]]:
    return [(doc.metadata["n"], pytest.approx(score, rel=1e-5)) for doc, score in hits]


@settings(max_examples=80, deadline=None)
@given(st.lists(WORDS, min_size=1, max_size=20), WORDS, st.sampled_from(["lucene", "okapi"]))
def test_weight_one_is_the_plain_search(texts: list[str], query: str, variant: str) -> None:
    """With the number of its occurrences as each term's weight, the result is that of the query."""
    index = make(texts, variant=variant)
    weights = {term: query.split().count(term) for term in query.split()}
    assert found(index.search_weighted(weights, 30)) == found(index.search(query, 30))
    assert index.maximum(weights) == pytest.approx(index.maximum(query))


@settings(max_examples=80, deadline=None)
@given(st.lists(WORDS, min_size=1, max_size=20), WEIGHTS)
def test_scores_are_weighted_sums(texts: list[str], weights: dict[str, float]) -> None:
    """Each score is the sum of the terms' own scores times their weights; none is zero, ties by insertion."""
    index = make(texts)
    sums = np.zeros(len(texts))
    for term, weight in weights.items():
        sums += index.scores(term).astype(float) * weight
    hits = index.search_weighted(weights, 30)
    assert all(score > 0 and score == pytest.approx(sums[doc.metadata["n"]], rel=1e-4) for doc, score in hits)
    assert {doc.metadata["n"] for doc, _ in hits} == set(np.flatnonzero(sums > 1e-30))
    order = [(-score, doc.metadata["n"]) for doc, score in hits]
    assert order == sorted(order)
    assert all(score <= index.maximum(weights) * (1 + 1e-5) for _, score in hits)


def test_by_hand() -> None:
    """A term of weight 3 beats one of weight 1; weight 0 and unknown terms add nothing."""
    index = make(["a", "b", "c"])
    one = index.scores("a")[0]
    hits = index.search_weighted({"a": 1, "b": 3, "c": 0, "unknown": 9})
    assert found(hits) == [(1, 3 * one), (0, one)]
    assert index.search_weighted({}) == [] == index.search_weighted({"c": 0})


def test_filter_and_k() -> None:
    """A filter holds for every hit, and k cuts."""
    index = make(["x"] * 500)
    assert [doc.metadata["n"] for doc, _ in index.search_weighted({"x": 2}, 2, {"n": {"$gte": 400}})] == [
        400,
        401,
    ]
    with pytest.raises(FilterError):
        index.search_weighted({"x": 1}, 2, {"n": {"$near": 1}})


@pytest.mark.parametrize(
    "terms", ["x", ["x"], {"x": -1}, {"x": float("nan")}, {"x": "1"}, {1: 1.0}, {"x": True}],
)  # fmt: skip
def test_weights_that_are_refused(terms: Any) -> None:
    """Anything but a dict from terms to finite numbers of 0 or more is refused with what to give."""
    with pytest.raises(InvalidInputError, match="give"):
        make(["x"]).search_weighted(terms)
    with pytest.raises(InvalidInputError, match="k="):
        make(["x"]).search_weighted({"x": 1}, 0)


def test_follows_writes() -> None:
    """Deleted documents are not found."""
    index = make(["x", "x", "y"])
    assert [doc.metadata["n"] for doc, _ in index.search_weighted({"x": 1})] == [0, 1]
    index.delete(["0"])
    assert [doc.metadata["n"] for doc, _ in index.search_weighted({"x": 1})] == [1]


def test_a_query_of_a_megabyte_is_quick() -> None:
    """Repeats are counted before anything is summed, so that a huge query costs little more than its analysis."""
    index = BM25Index.from_texts(["common rare"] + ["common"] * 20_000)
    begun = time.monotonic()
    hits = index.search("common " * 150_000, 3)
    assert len(hits) == 3 and time.monotonic() - begun < 5
