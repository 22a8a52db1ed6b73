"""Evaluators of a user's own: what they may be, and what is told where one is wrong."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import pytest
from langchain_core.documents import Document

from rag_kit.errors import InvalidInputError
from rag_kit.graphs import (
    Evaluator,
    Grading,
    LexicalEvaluator,
    afit_thresholds,
    as_evaluator,
    build_crag,
    fit_thresholds,
)
from rag_kit.models import chat_model
from rag_kit.retrieval import BM25Retriever

TEXTS = ["The fan starts at 60 degrees.", "The pump starts at 40 degrees."]
QUESTION = {"question": "When does the fan start?"}
PAIRS = [
    ("When does the fan start?", "The fan starts at 60 degrees.", True),
    ("When does the fan start?", "Bananas are yellow.", False),
    ("When does the pump start?", "The pump starts at 40 degrees.", True),
    ("When does the pump start?", "Grass is green.", False),
]


class Own(Evaluator):
    """Gives what a function makes of the passages, without being a generator."""

    name = "own"

    def __init__(self, func: Callable[[Sequence[Document]], Any]) -> None:
        self.func = func

    def grade(self, question: str, passages: Sequence[Document], language: str) -> Any:
        return self.func(passages)


class Stepping(Own):
    """The same, as a generator."""

    def grade(self, question: str, passages: Sequence[Document], language: str) -> Any:
        return self.func(passages)
        yield  # type: ignore[unreachable]


class Awaiting(Evaluator):
    """A coroutine function, which no evaluator can be."""

    name = "awaiting"

    async def grade(self, question: str, passages: Sequence[Document], language: str) -> Any:  # type: ignore[override]
        return [Grading(0.9) for _ in passages]


def graph(evaluator: Any) -> Any:
    """CRAG over two passages."""
    return build_crag(BM25Retriever.from_texts(TEXTS, k=2), chat_model("extractive"), evaluator=evaluator)


@pytest.mark.parametrize("kind", [Own, Stepping])
async def test_a_list_will_do_and_a_generator_too(kind: type[Own]) -> None:
    """An evaluator that calls nothing need not be a generator."""
    made = graph(kind(lambda passages: [Grading(0.9, "mine") for _ in passages]))
    for found in (made.invoke(QUESTION), await made.ainvoke(QUESTION)):
        assert (found["action"], found["gradings"][0]["reason"]) == ("correct", "mine")
        assert found["answer"] == "The fan starts at 60 degrees.[1]"


@pytest.mark.parametrize("kind", [Own, Stepping])
@pytest.mark.parametrize(
    ("given", "told"),
    [
        (lambda passages: None, "gave a NoneType"),
        (lambda passages: [0.9 for _ in passages], "gave a list with float"),
        (lambda passages: [Grading(0.9)], "1 gradings for 2 passages"),
        (lambda passages: [Grading(cast(Any, None)) for _ in passages], "score of None"),
        (lambda passages: [Grading(cast(Any, "high")) for _ in passages], "score of 'high'"),
        (lambda passages: [Grading(True) for _ in passages], "score of True"),
        (lambda passages: [Grading(float("nan")) for _ in passages], "score of nan"),
        (lambda passages: [Grading(90) for _ in passages], "score of 90"),
    ],
)
def test_a_wrong_evaluator_is_told_what_is_wrong(kind: type[Own], given: Any, told: str) -> None:
    """In words, and not by an error from inside the graph; fitting tells the same."""
    with pytest.raises(InvalidInputError, match=f"the evaluator own gave .*{told.removeprefix('gave ')}"):
        graph(kind(given)).invoke(QUESTION)
    with pytest.raises(InvalidInputError, match="the evaluator own gave"):
        fit_thresholds(kind(given), PAIRS)


@pytest.mark.filterwarnings("error")
def test_a_coroutine_function_is_refused() -> None:
    """And nothing is left that was never awaited."""
    with pytest.raises(InvalidInputError, match="gave a coroutine"):
        graph(Awaiting()).invoke(QUESTION)


def test_the_notes_say_why_a_function_could_not_judge() -> None:
    """Not only that it could not."""
    found = graph(lambda question, passages: [0.1]).invoke(QUESTION)
    assert "grade: 2 of 2 passages could not be judged: 1 scores came for 2 passages" in found["notes"]


async def test_thresholds_are_fitted_for_all_that_can_be_an_evaluator() -> None:
    """A function, as the graph takes it."""

    def longer(question: str, passages: list[Document]) -> list[float]:
        return [min(1.0, len(passage.page_content) / 100) for passage in passages]

    fitted = fit_thresholds(longer, PAIRS)
    assert fitted.pairs == 4 and fitted.accuracy == 1.0
    assert (await afit_thresholds(longer, PAIRS)).thresholds == fitted.thresholds


def test_a_class_in_place_of_its_instance_is_named() -> None:
    """The parentheses are easily forgotten."""
    with pytest.raises(InvalidInputError, match=r"the class LexicalEvaluator; .* LexicalEvaluator\(\.\.\.\)"):
        as_evaluator(LexicalEvaluator)
