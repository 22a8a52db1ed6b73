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
from rag_kit.retrieval.base import RagKitRetriever
from rag_kit.retrieval.call import Call
from rag_kit.retrieval.convex import standardise
from rag_kit.retrieval.fusion import Search, fuse


class Scored(RagKitRetriever):
    """Returns what it is given, with scores, and remembers how many it was asked for."""

    found: list[tuple[str, float | None]]
    stage: dict[str, Any] = {}
    asked: list[int] = []

    async def _search(self, query: str, call: Call) -> list[Document]:
        self.asked.append(call.k)
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


def convex_combination(lists, *, weights=None):
    """Fuse lists of keys and scores as an ensemble does."""
    searches = [
        Search(
            "q",
            None,
            None,
            weight,
            [Document(str(key), metadata={"rag_kit": {"score": score}}) for key, score in pairs],
        )
        for pairs, weight in zip(lists, weights or [1.0] * len(lists), strict=True)
    ]
    return fuse(searches, [[key for key, _ in pairs] for pairs in lists], "convex").ranking


def test_z_scores_by_hand() -> None:
    """Each score is the weighted mean of the z-scores; what a list lacks counts as its last, at most -1."""
    step = math.sqrt(3 / 2)
    fused = dict(convex_combination([KEYWORD, DENSE]))
    assert fused == pytest.approx({"a": 0.0, "b": 0.0, "c": -step, "d": 0.0})
    assert dict(convex_combination([KEYWORD, DENSE], weights=[3, 1]))["a"] == pytest.approx(step / 2)


def test_a_list_that_is_filled_up() -> None:
    """Keyword scores are seen beside the zeros of all that was not found; absence counts as they do."""
    table = standardise([4.0, 2.0], depth=4)
    assert table.values == pytest.approx([1.507557, 0.301511], abs=1e-6)
    assert table.absent == pytest.approx(-0.904534, abs=1e-6)
    assert standardise([4.0, 2.0], depth=10**12).absent == pytest.approx(
        0, abs=1e-5
    )  # no list that long is made
    assert standardise([], depth=4).values == [] and standardise([5.0, 5.0]).values == [0.0, 0.0]
    assert standardise([1e308, -1e308]).values == [1.0, -1.0]


def test_an_empty_list_says_nothing() -> None:
    """Beside an empty list the other keeps its order and its values."""
    alone = convex_combination([DENSE])
    assert convex_combination([DENSE, []]) == alone
    assert [key for key, _ in alone] == ["d", "b", "a"]
    assert convex_combination([[], []]) == []


def test_repeated_key_counts_once() -> None:
    """A document that a list holds twice counts with its first score."""
    assert convex_combination([[("a", 4.0), ("a", 1.0), ("b", 2.0)]]) == [("a", 1.0), ("b", -1.0)]


_PAIRS = st.lists(
    st.tuples(st.integers(0, 15), st.integers(-50, 50)), max_size=12, unique_by=lambda pair: pair[0]
)


@given(st.lists(_PAIRS, min_size=1, max_size=4))
def test_order_of_the_lists_does_not_matter(lists: list[list[tuple[int, int]]]) -> None:
    """The scores are the same whichever list comes first."""
    weights = [1.0 + number for number in range(len(lists))]
    forward = convex_combination(lists, weights=weights)
    backward = convex_combination(lists[::-1], weights=weights[::-1])
    assert dict(forward) == pytest.approx(dict(backward))


@given(_PAIRS, _PAIRS, st.sampled_from([0.5, 4.0]), st.integers(-9, 9))
def test_unit_of_the_scores_does_not_matter(
    one: list[tuple[int, int]],
    two: list[tuple[int, int]],
    factor: float,
    shift: int,
) -> None:
    """Scores of one list multiplied and shifted give the same fused scores."""
    moved = [(key, score * factor + shift) for key, score in one]
    plain = convex_combination([one, two])
    changed = convex_combination([moved, two])
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
    """Each branch's stage holds its share and z-score; their sum is the document's score."""
    parts = [Scored(found=KEYWORD, stage={"max_score": 16.0}), Scored(found=DENSE)]
    [best] = EnsembleRetriever(retrievers=parts, weights=[7, 3], fusion="convex", k=1, fetch_k=3).invoke("q")
    *branches, last = get_provenance(best)["stages"]
    assert [stage["weight"] for stage in branches] == pytest.approx([0.7, 0.3])
    total = sum(stage["weight"] * stage["normalised"] for stage in branches)
    assert last["stage"] == "fusion:convex" and last["score"] == pytest.approx(total)


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
