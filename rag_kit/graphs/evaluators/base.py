"""What a retrieval evaluator is: a question and passages in, one confidence a passage out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from langchain_core.documents import Document
from langgraph.errors import GraphBubbleUp

from rag_kit.documents import redact
from rag_kit.errors import BudgetExceededError
from rag_kit.graphs.evaluators.thresholds import Thresholds
from rag_kit.graphs.steps import Steps

_LONGEST = 200


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
    """

    name: str = "evaluator"
    thresholds: Thresholds = Thresholds(-0.5, 0.5)

    @abstractmethod
    def grade(self, question: str, passages: Sequence[Document], language: str) -> Steps[list[Grading]]:
        """Judge passages: a generator of steps, so that it runs under ``invoke`` and ``ainvoke`` alike.

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
