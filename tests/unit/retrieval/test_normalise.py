"""Bringing scores to one scale."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_kit.errors import InvalidInputError
from rag_kit.retrieval.convex import normalise

SCORES = st.lists(st.integers(-1000, 1000).map(float), min_size=1, max_size=30)


def test_min_max_by_hand() -> None:
    """The lowest becomes 0, the highest 1, absence counts 0."""
    result = normalise([10.0, 7.0, 4.0, 2.0])
    assert result.values == pytest.approx([1.0, 0.625, 0.25, 0.0])
    assert (result.absent, result.note) == (0.0, None)


def test_z_score_by_hand() -> None:
    """Mean 0, population deviation 1; absence counts the lowest."""
    result = normalise([6.0, 2.0, 2.0, 2.0], "z-score")
    assert result.values == pytest.approx([math.sqrt(3), *[-1 / math.sqrt(3)] * 3])
    assert result.absent == -1.0
    assert normalise([3.0, 2.0, -5.0], "z-score").absent == pytest.approx(-5 / math.sqrt(38 / 3))


def test_maximum_by_hand() -> None:
    """A keyword score is divided by the query's maximum; absence counts nothing."""
    result = normalise([8.0, 2.0], "maximum", maximum=16.0)
    assert (result.values, result.absent, result.note) == ([0.5, 0.125], 0.0, None)


def test_maximum_leaves_cosines_alone() -> None:
    """Scores within -1 and 1 need no maximum; negative ones stay negative, absence counts the lowest."""
    result = normalise([0.5, 0.1, -0.2], "maximum")
    assert (result.values, result.absent, result.note) == ([0.5, 0.1, -0.2], -0.2, None)


def test_unknown_maximum_is_said() -> None:
    """Without a maximum the best score of the list stands in for it, with a note; so does min-max below 0."""
    result = normalise([8.0, 2.0], "maximum")
    assert result.values == [1.0, 0.25]
    assert "best of the list" in (result.note or "")
    below = normalise([-2.0, -8.0], "maximum")
    assert (below.values, below.absent) == ([1.0, 0.0], 0.0)
    assert "min-max" in (below.note or "")


@pytest.mark.parametrize(
    ("method", "value", "absent"), [("min-max", 1.0, 0.0), ("z-score", 0.0, -1.0), ("maximum", 0.5, 0.5)]
)
@pytest.mark.parametrize("count", [1, 3])
def test_equal_scores(method: str, value: float, absent: float, count: int) -> None:
    """Equal scores, or one alone, stay equal; where the scale allows it they count more than absence."""
    result = normalise([0.5] * count, method)
    assert result.values == [value] * count
    assert result.absent == absent


def test_empty_list() -> None:
    """Nothing gives nothing."""
    assert normalise([]).values == []


def test_ranks_stand_in_for_missing_scores() -> None:
    """A list with a score missing is scored by rank, and says so."""
    result = normalise([None, 3.0, None, 1.0], "min-max")
    assert result.values == pytest.approx([1, 2 / 3, 1 / 3, 0])
    assert "ranks" in (result.note or "")


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("method", ["min-max", "z-score", "maximum"])
def test_scores_that_are_no_numbers_are_refused(bad: float, method: str) -> None:
    """NaN and infinity do not pass as scores."""
    with pytest.raises(InvalidInputError, match="finite"):
        normalise([1.0, bad], method)


def test_wrong_arguments_are_refused() -> None:
    """Unknown methods are refused by name; a maximum that is no number is none."""
    with pytest.raises(InvalidInputError, match="'min-max', 'z-score', 'maximum'"):
        normalise([1.0], "softmax")
    assert normalise([1.0], "maximum", maximum=math.nan) == normalise([1.0], "maximum")


@given(SCORES, st.sampled_from([0.25, 2.0, 1024.0]), st.integers(-100, 100))
@pytest.mark.parametrize("method", ["min-max", "z-score"])
def test_unit_and_origin_do_not_matter(method: str, scores: list[float], factor: float, shift: int) -> None:
    """Min-max and z-scores stay the same when all scores are multiplied and shifted."""
    moved = [score * factor + shift for score in scores]
    assert normalise(moved, method).values == pytest.approx(normalise(scores, method).values, abs=1e-6)


@given(SCORES)
@pytest.mark.parametrize("method", ["min-max", "z-score", "maximum"])
def test_order_is_kept(method: str, scores: list[float]) -> None:
    """No normalisation turns two documents round, nor puts an absent one before one that is there."""
    result = normalise(scores, method)
    order = sorted(range(len(scores)), key=scores.__getitem__)
    values = [result.values[place] for place in order]
    assert all(a <= b for a, b in itertools.pairwise(values))
    assert all(math.isfinite(value) and value >= result.absent for value in values)


def test_huge_scores() -> None:
    """Scores near the limits of a float do not overflow."""
    assert normalise([1.7e308, -1.7e308]).values == [1.0, 0.0]
    assert normalise([1.7e308, -1.7e308], "z-score").values == pytest.approx([1.0, -1.0])
