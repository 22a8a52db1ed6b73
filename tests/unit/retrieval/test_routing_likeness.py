"""KeywordWay: the share of a question's words that a source has, rare ones counting more."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.runnables import RunnableLambda

from rag_kit.retrieval import RoutingRetriever
from rag_kit.retrieval.routing.source import Source
from rag_kit.retrieval.routing.ways import KeywordWay

FANS = [["repair of fans", "loud bearings"], ["prices of fans"], []]


def scores(candidates: list[list[str]], question: str, among: list[int] | None = None) -> list[float]:
    """The scores of sources with these texts, or of some of them."""
    made = [
        Source(f"source{number}", RunnableLambda(str), "", texts) for number, texts in enumerate(candidates)
    ]
    names = [f"source{number}" for number in (range(len(candidates)) if among is None else among)]
    return list(KeywordWay(made, None).scores(question, names).values())


def test_rare_words_count_more() -> None:
    """A word of one source weighs more than one of two; a source without texts has nothing."""
    first, second, third = scores(FANS, "price fans")
    assert second == pytest.approx(1) and 0 < first < 0.5 and third == 0
    assert scores(FANS, "the of and") == scores(FANS, "") == [0, 0, 0]


def test_one_text_counts_more_than_several() -> None:
    """Words that occur in one text count more than the same words spread over two."""
    spread, together = scores([["loud", "bearings"], ["loud bearings"]], "loud bearings")
    assert spread == pytest.approx(0.75) and together == pytest.approx(1)


def test_among() -> None:
    """Sources that are left out have no influence on the weights of words."""
    fans = [["a red fan"], ["a blue fan"], ["fan fan fan"]]
    assert scores(fans, "red fan", [0, 1]) == scores(fans[:2], "red fan")
    assert scores(fans, "red fan", [1]) == scores(fans[1:2], "red fan")
    assert scores(fans, "red fan", []) == []


def test_chinese_parts_of_words() -> None:
    """A longer Chinese word meets its parts."""
    physics, maths = scores([["圆周运动和力"], ["方程和函数"]], "匀速圆周运动的加速度")
    assert physics > maths == 0


@pytest.mark.parametrize(
    ("question", "reason"),
    [("Which loud fans have bearings?", "loud, fan, bear"), ("匀速圆周运动的方程", "方程")],
)
def test_the_reason_names_the_shared_words(question: str, reason: str) -> None:
    """Their stems stand in the order of the question."""
    texts = ["repair of fans", "loud bearings", "方程和函数"]
    retriever = RoutingRetriever(sources=[Source("a", RunnableLambda(str), "", texts)], how="keywords")
    assert [choice.reason for choice in retriever.route(question).choices] == [f"shared words: {reason}"]


@given(st.text(max_size=40), st.lists(st.lists(st.text(max_size=20), max_size=3), max_size=4))
@settings(max_examples=50, deadline=None)
def test_scores_are_shares(question: str, candidates: list[list[str]]) -> None:
    """Scores lie from 0 to 1, one a source."""
    found = scores(candidates, question)
    assert len(found) == len(candidates) and all(0 <= score <= 1 + 1e-9 for score in found)
