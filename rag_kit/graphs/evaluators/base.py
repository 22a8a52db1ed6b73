"""What a retrieval evaluator is: a question and passages in, one confidence a passage out."""

from __future__ import annotations

import inspect
import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.documents import Document
from langgraph.errors import GraphBubbleUp

from rag_kit.concurrency.steps import Logic
from rag_kit.documents import redact
from rag_kit.errors import BudgetExceededError, InvalidInputError
from rag_kit.graphs.evaluators.thresholds import Thresholds

_LONGEST = 200
UNGRADED = "not graded: "


@dataclass(frozen=True)
class Grading:
    """What an evaluator says of one passage.

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

        Raises:
            BudgetExceededError: That is why it failed; then the whole run ends.
        """
        if isinstance(error, (BudgetExceededError, GraphBubbleUp)):
            raise error
        text = error if isinstance(error, str) else f"{type(error).__name__}: {error}"
        line = " ".join(redact(text).split())
        score = min(max(0.0, self.thresholds.lower), self.thresholds.upper)
        return Grading(score, f"{UNGRADED}{line[:_LONGEST]}")


def unjudged(node: str, gradings: Sequence[Grading]) -> list[str]:
    """The note of a node on the passages that could not be judged; none where all were."""
    failed = [one.reason for one in gradings if one.reason.startswith(UNGRADED)]
    if not failed:
        return []
    why = failed[0].removeprefix(UNGRADED)
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
    if not isinstance(gradings, (list, tuple)) or not all(map(_is_grading, gradings)):
        raise InvalidInputError(
            f"the evaluator {evaluator.name} gave {gradings!r:.100}; its grade must give a list of "
            "Grading(score, reason), each score from -1 to 1, or be a coroutine that awaits steps. A function that "
            "gives numbers can be the evaluator as it is."
        )
    if len(gradings) != len(passages):
        raise InvalidInputError(
            f"the evaluator {evaluator.name} gave {len(gradings)} gradings for {len(passages)} passages; "
            "it must give one each."
        )
    return list(gradings)


def _is_grading(value: Any) -> bool:
    if not isinstance(value, Grading):
        return False
    score: Any = value.score
    number = isinstance(score, (int, float)) and not isinstance(score, bool)
    return number and math.isfinite(score) and -1 <= score <= 1
