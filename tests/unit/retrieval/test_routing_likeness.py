"""WordLikeness: the share of a question's words that a candidate has, rare ones counting more."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_kit.retrieval.routing.ways import WordLikeness

FANS = [["repair of fans", "loud bearings"], ["prices of fans"], []]


def test_rare_words_count_more() -> None:
    """A word of one candidate weighs more than one of two; a candidate without texts has nothing."""
    likeness = WordLikeness(FANS)
    first, second, third = likeness.scores("price fans")
    assert second == pytest.approx(1) and 0 < first < 0.5 and third == 0
    assert likeness.scores("the of and") == likeness.scores("") == [0, 0, 0]


def test_one_text_counts_more_than_several() -> None:
    """Words that occur in one text count more than the same words spread over two."""
    spread, together = WordLikeness([["loud", "bearings"], ["loud bearings"]]).scores("loud bearings")
    assert spread == pytest.approx(0.75) and together == pytest.approx(1)


def test_among() -> None:
    """Candidates that are left out have no influence on the weights of words."""
    likeness = WordLikeness([["a red fan"], ["a blue fan"], ["fan fan fan"]])
    assert likeness.scores("red fan", [0, 1]) == WordLikeness([["a red fan"], ["a blue fan"]]).scores(
        "red fan"
    )
    assert likeness.scores("red fan", [1]) == WordLikeness([["a blue fan"]]).scores("red fan")
    assert likeness.scores("red fan", []) == []


def test_chinese_parts_of_words() -> None:
    """A longer Chinese word meets its parts, and the words shared are named."""
    likeness = WordLikeness([["圆周运动和力"], ["方程和函数"]])
    physics, maths = likeness.scores("匀速圆周运动的加速度")
    assert physics > maths == 0
    assert likeness.shared_words("匀速圆周运动的加速度", 0) and likeness.shared_words("方程", 1) == ["方程"]


@given(st.text(max_size=40), st.lists(st.lists(st.text(max_size=20), max_size=3), max_size=4))
@settings(max_examples=80, deadline=None)
def test_scores_are_shares(question: str, candidates: list[list[str]]) -> None:
    """Scores lie from 0 to 1, one a candidate, and are above 0 just where words are shared."""
    likeness = WordLikeness(candidates)
    scores = likeness.scores(question)
    assert len(scores) == len(candidates) and all(0 <= score <= 1 + 1e-9 for score in scores)
    for place, score in enumerate(scores):
        assert score > 0 or not likeness.shared_words(question, place)
