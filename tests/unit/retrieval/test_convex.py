"""The convex combination, by itself and in an ensemble."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.documents import Document

from rag_kit.documents import get_provenance
from rag_kit.errors import InvalidInputError
from rag_kit.retrieval import EnsembleRetriever
from rag_kit.retrieval.base import RagKitRetriever, Request
from rag_kit.retrieval.convex import RankedList, fuse


class Scored(RagKitRetriever):
    """Returns what it is given, with scores, and remembers how many it was asked for."""

    found: list[tuple[str, float | None]]
    stage: dict[str, Any] = {}
    asked: list[int] = []

    def _retrieve(self, query: str, request: Request) -> list[Document]:
        self.asked.append(request.k)
        return [
            Document(
                key,
                id=key,
                metadata={
                    "rag_kit": {"score": score, "stages": [{"stage": "x", "score": score, **self.stage}]}
                },
            )
            for key, score in self.found
        ]


KEYWORD = [("a", 12.0), ("b", 6.0), ("c", 0.0)]
DENSE = [("d", 0.75), ("b", 0.5), ("a", 0.25)]


def convex_combination(lists, *, weights=None, normalisation="min-max", maxima=None):
    """Fuse lists of keys and scores as an ensemble does."""
    shares, tops = weights or [1.0] * len(lists), maxima or [None] * len(lists)
    ranked = [
        RankedList([key for key, _ in pairs], [score for _, score in pairs], weight, maximum=top)
        for pairs, weight, top in zip(lists, shares, tops, strict=True)
    ]
    return fuse("convex", ranked, normalisation)


def test_min_max_by_hand() -> None:
    """Each score is the weighted mean of the normalised ones; what a list lacks counts 0."""
    fused = convex_combination([KEYWORD, DENSE], weights=[3, 1])
    assert fused == [("a", 0.75), ("b", 0.5), ("d", 0.25), ("c", 0.0)]


def test_z_score_by_hand() -> None:
    """The same by z-scores; what a list lacks counts as its last."""
    step = math.sqrt(3 / 2)
    fused = dict(convex_combination([KEYWORD, DENSE], normalisation="z-score"))
    assert fused == pytest.approx({"a": 0.0, "b": 0.0, "c": -step, "d": 0.0})


def test_maximum_by_hand() -> None:
    """Keyword scores are divided by the query's maximum, cosines stay."""
    fused = convex_combination(
        [KEYWORD, DENSE], weights=[0.7, 0.3], normalisation="maximum", maxima=[16.0, None]
    )
    assert dict(fused) == pytest.approx({"a": 0.6, "b": 0.4125, "c": 0.075, "d": 0.225})


def test_scores_count_where_ranks_cannot() -> None:
    """A strong first place wins over two good places, which no rank fusion can see."""
    one = [("sure", 100.0), ("both", 11.0), ("x", 10.0)]
    two = [("both", 0.52), ("sure", 0.51), ("y", 0.1)]
    assert convex_combination([one, two])[0][0] == "sure"


@pytest.mark.parametrize("normalisation", ["min-max", "z-score", "maximum"])
def test_an_empty_list_says_nothing(normalisation: str) -> None:
    """Beside an empty list the other keeps its order and its values."""
    alone = convex_combination([DENSE], normalisation=normalisation)
    assert convex_combination([DENSE, []], normalisation=normalisation) == alone
    assert [key for key, _ in alone] == ["d", "b", "a"]
    assert convex_combination([[], []], normalisation=normalisation) == []


@pytest.mark.parametrize("normalisation", ["min-max", "z-score"])
def test_one_result_counts(normalisation: str) -> None:
    """A list of one document lifts it against the others, whatever its score."""
    alone = dict(convex_combination([DENSE], normalisation=normalisation))
    fused = dict(convex_combination([DENSE, [("b", 3.0)]], normalisation=normalisation))
    assert fused["b"] - fused["a"] == pytest.approx((alone["b"] - alone["a"] + 1) / 2)


def test_repeated_key_counts_once() -> None:
    """A document that a list holds twice counts with its first score."""
    assert convex_combination([[("a", 4.0), ("a", 1.0), ("b", 2.0)]]) == [("a", 1.0), ("b", 0.0)]


_PAIRS = st.lists(
    st.tuples(st.integers(0, 15), st.integers(-50, 50)), max_size=12, unique_by=lambda pair: pair[0]
)


@given(st.lists(_PAIRS, min_size=1, max_size=4), st.sampled_from(["min-max", "z-score", "maximum"]))
def test_order_of_the_lists_does_not_matter(lists: list[list[tuple[int, int]]], normalisation: str) -> None:
    """The scores are the same whichever list comes first."""
    weights = [1.0 + number for number in range(len(lists))]
    forward = convex_combination(lists, weights=weights, normalisation=normalisation)
    backward = convex_combination(lists[::-1], weights=weights[::-1], normalisation=normalisation)
    assert dict(forward) == pytest.approx(dict(backward))


@given(_PAIRS, _PAIRS, st.sampled_from([0.5, 4.0]), st.integers(-9, 9))
@pytest.mark.parametrize("normalisation", ["min-max", "z-score"])
def test_unit_of_the_scores_does_not_matter(
    normalisation: str,
    one: list[tuple[int, int]],
    two: list[tuple[int, int]],
    factor: float,
    shift: int,
) -> None:
    """Scores of one list multiplied and shifted give the same fused scores."""
    moved = [(key, score * factor + shift) for key, score in one]
    plain = convex_combination([one, two], normalisation=normalisation)
    changed = convex_combination([moved, two], normalisation=normalisation)
    assert dict(changed) == pytest.approx(dict(plain), abs=1e-9)


async def test_ensemble_differs_from_rank_fusion() -> None:
    """In an ensemble scores decide, asynchronously as well; rank fusion gives another order."""
    parts = [Scored(found=[("a", 9.0), ("b", 1.0), ("c", 0.9)]), Scored(found=[("b", 0.5), ("c", 0.4)])]
    by_score = EnsembleRetriever(retrievers=parts, weights=[3, 1], fusion="convex")
    by_rank = EnsembleRetriever(retrievers=parts, weights=[3, 1])
    found = by_score.invoke("q")
    assert [doc.id for doc in found] == ["a", "b", "c"]
    assert [doc.id for doc in by_rank.invoke("q")] == ["b", "c", "a"]
    assert await by_score.ainvoke("q") == found


def test_provenance_shows_the_arithmetic() -> None:
    """Each branch's stage holds weight and normalised score; their sum is the document's score."""
    parts = [Scored(found=KEYWORD, stage={"max_score": 16.0}), Scored(found=DENSE)]
    ensemble = EnsembleRetriever(
        retrievers=parts, weights=[7, 3], fusion="convex", normalisation="maximum", k=1
    )
    [best] = ensemble.invoke("q")
    *branches, last = get_provenance(best)["stages"]
    assert [stage["weight"] for stage in branches] == pytest.approx([0.7, 0.3])
    assert [stage["normalised"] for stage in branches] == [0.75, 0.25]
    assert last["score"] == pytest.approx(0.6)
    assert (last["stage"], last["normalisation"]) == ("fusion:convex", "maximum")


def test_scores_are_seen_in_depth() -> None:
    """Fusions of scores ask for 100 documents unless told otherwise; rank fusion asks for k."""
    for fusion, fetch_k, expected in [("convex", None, 100), ("convex", 20, 20), ("rrf", None, 4)]:
        part = Scored(found=KEYWORD, asked=[])
        EnsembleRetriever(retrievers=[part], fusion=fusion, fetch_k=fetch_k).invoke("q")
        assert part.asked == [expected]


def test_missing_scores_are_said() -> None:
    """A retriever without scores takes part by its ranks, and the documents say so."""
    parts = [Scored(found=[("a", None), ("b", None)], name="mute"), Scored(found=DENSE)]
    found = EnsembleRetriever(retrievers=parts, fusion="convex").invoke("q")
    assert "mute: no scores, so its ranks were used" in get_provenance(found[0])["notes"]


def test_nan_is_refused() -> None:
    """NaN is an error, not a score."""
    with pytest.raises(InvalidInputError, match="finite"):
        convex_combination([[("a", math.nan), ("b", 1.0)], DENSE])


def test_unknown_normalisation_is_refused() -> None:
    """The message names the field."""
    with pytest.raises(InvalidInputError, match="normalisation"):
        EnsembleRetriever(retrievers=[Scored(found=[])], fusion="convex", normalisation="softmax")
