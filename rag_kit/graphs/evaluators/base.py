"""What a retrieval evaluator is: a question and passages in, one confidence a passage out."""

from __future__ import annotations

import inspect
import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

from langchain_core.documents import Document
from langgraph.errors import GraphBubbleUp

from rag_kit.concurrency.steps import Logic
from rag_kit.documents import redact
from rag_kit.errors import BudgetExceededError, InvalidInputError
from rag_kit.graphs.evaluators.thresholds import Action, Thresholds

_LONGEST = 200


@dataclass(frozen=True)
class Grading:
    """What an evaluator says of one passage.

    Attributes:
        score: Confidence that the passage helps to answer, from -1 (surely not) to 1 (surely).
        reason: Why, in one line; ``not graded: ...`` where judging failed.
        calls_for: The action that the question calls for whatever the confidences are, where the evaluator knows from
            all passages together; it counts if the gradings of all passages agree. None: thresholds decide.
    """

    score: float
    reason: str = ""
    calls_for: Action | None = None

    def helps(self, threshold: float) -> bool:
        """Whether the text is to be kept: by what is called for, else by its confidence.

        Example:
            >>> Grading(0.1).helps(0.2), Grading(0.1, calls_for="correct").helps(0.2)
            (False, True)
        """
        if self.calls_for in ("correct", "incorrect"):
            return self.calls_for == "correct"
        return self.score >= threshold


def action_of(gradings: Sequence[Grading], limits: Thresholds) -> Action:
    """CRAG's action for all passages of a question: the one that all gradings call for, else that of the thresholds.

    Example:
        >>> limits = Thresholds(-0.5, 0.5)
        >>> action_of([Grading(0.7)], limits), action_of([Grading(0.7, calls_for="incorrect")], limits)
        ('correct', 'incorrect')
    """
    called = {grading.calls_for for grading in gradings}
    (one,) = called if len(called) == 1 else (None,)
    return one or limits.action([grading.score for grading in gradings])


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
        """Judge passages: a coroutine that awaits steps, so that it runs under ``invoke`` and ``ainvoke`` alike.

        One that calls nothing may as well return its list.

        Args:
            question: The question, complete in itself.
            passages: What was found, best first; not to be changed.
            language: ``"en"`` or ``"zh"``: the language of the prompts.

        Returns:
            One grading a passage, in order. A passage that could not be judged gets one too (``ungraded``).

        Raises:
            BudgetExceededError: A cap of the run is reached.
        """

    def ungraded(self, error: BaseException | str) -> Grading:
        """The grading of a passage that could not be judged: ambiguous, so that nothing is decided by it.

        Its score is 0, or what is nearest to it between the thresholds.

        Raises:
            BudgetExceededError: That is why it failed; then the whole run ends.
        """
        if isinstance(error, (BudgetExceededError, GraphBubbleUp)):
            raise error
        text = error if isinstance(error, str) else f"{type(error).__name__}: {error}"
        line = " ".join(redact(text).split())
        score = min(max(0.0, self.thresholds.lower), self.thresholds.upper)
        return Grading(score, f"not graded: {line[:_LONGEST]}")


def unjudged(node: str, gradings: Sequence[Grading]) -> list[str]:
    """The note of a node on the passages that could not be judged; none where all were."""
    failed = [one.reason for one in gradings if one.reason.startswith("not graded")]
    if not failed:
        return []
    why = failed[0].removeprefix("not graded: ")
    return [f"{node}: {len(failed)} of {len(gradings)} passages could not be judged: {why}"]


async def judged_by(
    evaluator: Evaluator,
    question: str,
    passages: Sequence[Document],
    language: str,
    *,
    instructions: str | None = None,
) -> list[Grading]:
    """Ask an evaluator to grade passages, and check that it gives each a confidence between -1 and 1.

    Args:
        evaluator: Who judges.
        question: What passages are judged by.
        passages: The passages.
        language: ``"en"`` or ``"zh"``.
        instructions: In place of the prompt file's own, for an evaluator that has a prompt.

    Raises:
        InvalidInputError: The evaluator gave something else, which is a fault of its code.
    """
    if not passages:
        return []
    more: dict[str, Any] = (
        {"instructions": instructions} if instructions and evaluator.takes_instructions else {}
    )
    made: Any = evaluator.grade(question, passages, language, **more)
    gradings = (await made) if inspect.isawaitable(made) else made
    if not isinstance(gradings, (list, tuple)) or not all(isinstance(one, Grading) for one in gradings):
        given = type(gradings).__name__
        if isinstance(gradings, (list, tuple)):
            given += f" with {next(type(one).__name__ for one in gradings if not isinstance(one, Grading))}"
        raise InvalidInputError(
            f"the evaluator {evaluator.name} gave a {given}; its grade must give a list of Grading(score, reason), "
            "or be a coroutine that awaits steps. A function that gives numbers can be the evaluator as it is."
        )
    if len(gradings) != len(passages):
        raise InvalidInputError(
            f"the evaluator {evaluator.name} gave {len(gradings)} gradings for {len(passages)} passages; "
            "it must give one each."
        )
    for grading in gradings:
        score: Any = grading.score
        number = isinstance(score, Real) and not isinstance(score, bool)
        if not (number and math.isfinite(score) and -1 <= score <= 1):
            raise InvalidInputError(
                f"the evaluator {evaluator.name} gave a score of {score!r:.60}; allowed: -1 to 1."
            )
        if grading.calls_for not in (None, "correct", "incorrect", "ambiguous"):
            raise InvalidInputError(
                f"the evaluator {evaluator.name} calls for {grading.calls_for!r:.60}; allowed: 'correct', 'incorrect', "
                "'ambiguous' or None."
            )
    return list(gradings)
