"""Retrieval evaluators: a question and passages in, one confidence a passage out, thresholds for both ends.

Beside their base stands the one that needs no model call: evidence of words, names and times.
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from langchain_core.documents import Document

from rag_kit.concurrency.steps import Logic, ends_run
from rag_kit.documents import redact
from rag_kit.errors import InvalidInputError
from rag_kit.graphs.running import compute
from rag_kit.text.evidence.sentences import passage_texts
from rag_kit.text.evidence.usefulness import PassageUsefulness, usefulness

MAX_REASON = 200
UNGRADED = "not graded: "

Action = Literal["correct", "incorrect", "ambiguous"]


@dataclass(frozen=True)
class Thresholds:
    """Thresholds of an evaluator: too little confidence (all below `lower`), or enough (any above `upper`).

    They belong to one evaluator's scale; ``fit_thresholds`` finds them on labelled pairs.

    Raises:
        InvalidInputError: Not ``-1 <= lower <= upper <= 1``.

    Example:
        >>> Thresholds(-0.5, 0.5).action([-0.9, 0.7])
        'correct'
    """

    lower: float
    upper: float

    def __post_init__(self) -> None:
        are_numbers = all(isinstance(limit, (int, float)) for limit in (self.lower, self.upper))
        if not are_numbers or not -1 <= self.lower <= self.upper <= 1:
            raise InvalidInputError(
                f"lower={self.lower!r} and upper={self.upper!r} were given; give numbers from -1 to 1, "
                "lower not above upper."
            )

    def action(self, scores: Sequence[float]) -> Action:
        """Choose the action for some confidences (section 4.3 of the CRAG paper); without any, "incorrect"."""
        if any(score > self.upper for score in scores):
            return "correct"
        return "incorrect" if all(score < self.lower for score in scores) else "ambiguous"


@dataclass(frozen=True)
class Grading:
    """Verdict of an evaluator on one passage.

    Attributes:
        score: Confidence that the passage helps to answer, from -1 (surely not) to 1 (surely).
        reason: Why, in one line; ``not graded: ...`` where judging failed.
    """

    score: float
    reason: str = ""


class Evaluator(ABC):
    """Base of evaluators; implement ``grade``.

    Attributes:
        name: How notes and events call it.
        thresholds: Fitted for this evaluator, on its own scale.
        selective: Whether its confidence is good enough to drop some passages or strips while others are kept; else it
            decides only whether what was found is of use as a whole.
        takes_instructions: Whether ``grade`` takes ``instructions`` in place of a prompt file's own.
    """

    name: str = "evaluator"
    thresholds: Thresholds = Thresholds(-0.5, 0.5)
    selective: bool = True
    takes_instructions: bool = False

    @abstractmethod
    def grade(self, question: str, passages: Sequence[Document], language: str) -> Logic[list[Grading]]:
        """Return one grading for each passage, in the order of the passages.

        The question is complete in itself; the passages are in the retriever's order and must not be changed; a passage
        that cannot be judged gets `ungraded`; ``language`` (``"en"`` or ``"zh"``) is that of the prompts. Write it as
        ``async def`` if it calls a model or a service, and await nothing but `rag_kit.concurrency.steps.Step` in it, so
        that graphs can also run it blocking. Otherwise a plain ``def`` that returns the list is enough.
        """

    def ungraded(self, error: BaseException | str) -> Grading:
        """Make the grading of a passage that could not be judged; an error that ends the run is raised instead."""
        if ends_run(error):
            raise error
        # between the thresholds, so that it counts as ambiguous
        score = min(max(0.0, self.thresholds.lower), self.thresholds.upper)
        return Grading(score, UNGRADED + self._describe(error))

    def _describe(self, error: BaseException | str) -> str:
        text = error if isinstance(error, str) else f"{type(error).__name__}: {error}"
        return " ".join(redact(text).split())[:MAX_REASON]


def note_ungraded(node: str, gradings: Sequence[Grading]) -> list[str]:
    """Note which passages could not be judged; no notes if all were."""
    reasons = [grading.reason for grading in gradings if grading.reason.startswith(UNGRADED)]
    if not reasons:
        return []
    first = reasons[0].removeprefix(UNGRADED)
    return [f"{node}: {len(reasons)} of {len(gradings)} passages could not be judged: {first}"]


async def judge_passages(
    evaluator: Evaluator,
    question: str,
    passages: Sequence[Document],
    language: str,
    *,
    instructions: str | None = None,
) -> list[Grading]:
    """Let an evaluator grade passages, and check that each confidence is between -1 and 1."""
    if not passages:
        return []
    options = {"instructions": instructions} if instructions and evaluator.takes_instructions else {}
    gradings: Any = evaluator.grade(question, passages, language, **options)
    if inspect.isawaitable(gradings):
        gradings = await gradings
    has_one_each = isinstance(gradings, (list, tuple)) and len(gradings) == len(passages)
    if not has_one_each or not all(map(_is_valid, gradings)):
        raise InvalidInputError(
            f"the evaluator {evaluator.name} gave {gradings!r:.100}; its grade must give a list of "
            f"{len(passages)} Grading(score, reason), one for each passage and each score from -1 to 1, or be a "
            "coroutine that awaits steps. A function that gives numbers can be the evaluator as it is."
        )
    return list(gradings)


def _is_valid(grading: Any) -> bool:
    """Tell whether a value is a grading with a number from -1 to 1; NaN fails the comparison too."""
    is_scored = isinstance(grading, Grading) and isinstance(grading.score, int | float)
    return is_scored and -1 <= grading.score <= 1


class LexicalEvaluator(Evaluator):
    """Judge passages by the words, names, times and kinds of things they share with the question.

    A logistic regression fitted on labelled pairs makes one confidence of them (`usefulness`). A passage that speaks
    of the same thing at another time than the one asked for scores lower. Passages are seen against each other: give
    all that were found for a question together.

    Args:
        thresholds: Other than the careful ones, at which hardly a right answer is lost; higher ones decline more.

    Example:
        >>> from rag_kit.concurrency.steps import run
        >>> found = [Document("Jane Austen wrote Emma in 1815."), Document("Emma is a town in Missouri.")]
        >>> [one.score > 0 for one in run(LexicalEvaluator().grade("Who wrote Emma?", found, "en"), {})]
        [True, False]
    """

    name = "lexical"
    thresholds = Thresholds(-0.65, 0.7)  # so low that at most .01 of all questions lose a right answer
    selective = False

    def __init__(self, *, thresholds: Thresholds | None = None) -> None:
        self.thresholds = thresholds or self.thresholds

    async def grade(self, question: str, passages: Sequence[Document], language: str) -> list[Grading]:
        """Return a grading for each passage, in order (see ``Evaluator.grade``)."""
        texts = passage_texts(passages)
        grades = await compute(lambda: usefulness(question, texts))
        return [Grading(2 * grade.value - 1, _explain(grade)) for grade in grades]


def _explain(grade: PassageUsefulness) -> str:
    """Write the reason of a grade: ``"67% of the question's terms in its best sentence, ..."``."""
    measures = grade.measures
    reason = f"{measures['own']:.0%} of the question's terms in its best sentence"
    if not measures["timed"]:  # the question asks for no time
        return reason
    if measures["outside"]:
        return f"{reason}, its dates lie outside the time asked for"
    if measures["undated"]:
        return f"{reason}, no date, though a time is asked for"
    return f"{reason}, its dates touch the time asked for"
