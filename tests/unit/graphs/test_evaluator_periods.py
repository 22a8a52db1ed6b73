"""The lexical evaluator with period=: what states nothing for the period asked for is of no use."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.documents import Document

from rag_kit.concurrency.steps import run
from rag_kit.errors import InvalidInputError
from rag_kit.graphs import build_crag
from rag_kit.graphs.evaluators.base import Grading
from rag_kit.graphs.evaluators.lexical import LexicalEvaluator
from rag_kit.graphs.evaluators.thresholds import Thresholds
from rag_kit.models import chat_model
from rag_kit.models.extractive.period import ENOUGH
from rag_kit.retrieval import BM25Retriever


def _graded(evaluator: LexicalEvaluator, question: str, *texts: str, language: str = "en") -> list[Grading]:
    return run(evaluator.grade(question, [Document(text) for text in texts], language), {})


ASKED = "Who was the coach of Hull from 1990 to 1994?"
STATED = "Ann Lee was the coach of Hull from 1990 to 1994."
ELSEWHERE = "Ann Lee was the coach of Hull from 1970 to 1975."


@pytest.mark.parametrize(
    ("question", "stated", "elsewhere", "language"),
    [
        (ASKED, STATED, ELSEWHERE, "en"),
        (
            "谁从1990年到1994年担任红星队的主教练？",
            "李安从1990年到1994年担任红星队的主教练。",
            "李安从1970年到1975年担任红星队的主教练。",
            "zh",
        ),
    ],
)
def test_a_period_decides(question: str, stated: str, elsewhere: str, language: str) -> None:
    """The same sentence with the period asked for is enough, with another one it is not."""
    evaluator = LexicalEvaluator(period=ENOUGH)
    (good,) = _graded(evaluator, question, stated, language=language)
    (bad,) = _graded(evaluator, question, elsewhere, language=language)
    assert (good.calls_for, bad.calls_for) == ("correct", "incorrect")
    assert "nothing is stated for the period" in bad.reason


def test_confidences_stay_as_they_are() -> None:
    """What a period calls for is said beside the confidences, which still tell passages of all questions apart."""
    texts = [ELSEWHERE, "Hull is a town.", "Bananas are yellow."]
    with_period = [one.score for one in _graded(LexicalEvaluator(period=ENOUGH), ASKED, *texts)]
    without = [one.score for one in _graded(LexicalEvaluator(), ASKED, *texts)]
    assert with_period == without


@pytest.mark.parametrize("mode", ["invoke", "ainvoke"])
async def test_what_is_called_for_decides_in_the_graph(mode: str) -> None:
    """Confidences above the threshold do not answer for another period; one below it does not decline a stated one."""
    high = LexicalEvaluator(period=ENOUGH, thresholds=Thresholds(-1.0, -1.0))
    low = LexicalEvaluator(period=ENOUGH, thresholds=Thresholds(1.0, 1.0))
    for evaluator, text, action, status in (
        (high, ELSEWHERE, "incorrect", "declined"),
        (low, STATED, "correct", "grounded"),
    ):
        graph = build_crag(
            BM25Retriever.from_texts([text]), chat_model("extractive"), evaluator=evaluator, output="full"
        )
        asked = {"question": ASKED}
        result = await graph.ainvoke(asked) if mode == "ainvoke" else graph.invoke(asked)
        assert (result["action"], result["status"]) == (action, status)
        assert result["gradings"][0]["calls_for"] == action
        assert "period" in result["gradings"][0]["reason"]
        assert f"grade: {action}: the evaluator calls for it, whatever the confidences" in result["notes"]


def test_an_action_that_there_is_not_is_a_fault_of_the_evaluator() -> None:
    """An evaluator that calls for something else is named, with what is allowed."""

    class Wrong(LexicalEvaluator):
        def grade(self, question: str, passages: Any, language: str) -> Any:
            return [Grading(0.1, "", "maybe") for _ in passages]  # type: ignore[arg-type]

    graph = build_crag(
        BM25Retriever.from_texts([STATED]), chat_model("extractive"), evaluator=Wrong(), output="full"
    )
    with pytest.raises(InvalidInputError, match="calls for 'maybe'; allowed"):
        graph.invoke({"question": ASKED})


def test_off_or_not_asked_for_changes_nothing() -> None:
    """Without period= no passage is put aside for it, and with it no question that asks for none is touched."""
    (plain,) = _graded(LexicalEvaluator(), ASKED, ELSEWHERE)
    assert "period" not in plain.reason and plain.calls_for is None
    asked = "Who was the coach of Hull?"
    assert _graded(LexicalEvaluator(), asked, STATED) == _graded(
        LexicalEvaluator(period=ENOUGH), asked, STATED
    )


@pytest.mark.parametrize("period", [-0.1, 1.1, float("nan")])
def test_period_is_a_share(period: float) -> None:
    """A period that is no share is refused with what is allowed."""
    with pytest.raises(InvalidInputError, match="from 0 to 1"):
        LexicalEvaluator(period=period)


def test_the_note_says_what_an_evaluator_calls_for() -> None:
    """An evaluator of one's own that overrules its confidences is named as the reason of the action."""

    class Sure(LexicalEvaluator):
        def grade(self, question: str, passages: Any, language: str) -> Any:
            return [Grading(-1.0, "", "correct") for _ in passages]

    graph = build_crag(
        BM25Retriever.from_texts([STATED]), chat_model("extractive"), evaluator=Sure(), output="full"
    )
    assert (
        "grade: correct: the evaluator calls for it, whatever the confidences"
        in graph.invoke({"question": "Who was the coach of Hull?"})["notes"]
    )
