"""A function as an evaluator."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from langchain_core.documents import Document
from langchain_core.runnables import RunnableConfig

from rag_kit.errors import InvalidInputError
from rag_kit.graphs.evaluators.base import Evaluator, Grading
from rag_kit.graphs.evaluators.thresholds import Thresholds
from rag_kit.graphs.steps import Step, Steps, beside
from rag_kit.retrieval.rerank.base import both_ways


class FunctionEvaluator(Evaluator):
    """Judge passages by a function of your own.

    Args:
        func: Takes the question and the list of passages, returns one confidence a passage, each from -1 to 1. An
            ``async`` function works with ``ainvoke`` alone. A plain one runs on a thread under ``ainvoke``.
        thresholds: Where its confidence is enough; fit them with ``fit_thresholds``.
        name: How notes call it; by default the function's name.

    Raises:
        InvalidInputError: ``func`` cannot be called.

    Example:
        >>> from rag_kit.graphs.steps import run
        >>> longer = FunctionEvaluator(lambda question, passages: [len(p.page_content) / 10 for p in passages])
        >>> [one.score for one in run(longer.grade("Why?", [Document("short")], "en"), {})]
        [0.5]
    """

    def __init__(
        self,
        func: Callable[[str, list[Document]], Any],
        *,
        thresholds: Thresholds | None = None,
        name: str | None = None,
    ) -> None:
        if not callable(func):
            raise InvalidInputError(
                f"func is a {type(func).__name__}; give a function of question and passages."
            )
        self.func = func
        given = getattr(func, "__name__", type(func).__name__)
        self.name = name or ("function" if given == "<lambda>" else given)
        self.thresholds = thresholds or type(self).thresholds

    def grade(self, question: str, passages: Sequence[Document], language: str) -> Steps[list[Grading]]:
        """Judge passages; see ``Evaluator.grade``."""
        if not passages:
            return []
        given = [passage.model_copy(deep=True) for passage in passages]
        outcome = yield from called(self.name, self.func, question, given)
        if outcome.error is not None:
            return [self.ungraded(outcome.error) for _ in passages]
        return [self._grading(value) for value in listed(outcome.value, len(passages))]

    def _grading(self, value: Any) -> Grading:
        score = number(value)
        if score is None or not -1 <= score <= 1:
            return self.ungraded(
                f"{self.name} gave {value!r:.40}; a confidence is a number from -1 to 1"
                if not isinstance(value, Missing)
                else str(value)
            )
        return Grading(score, f"judged by {self.name}")


class Missing(str):
    """Stands where a number should be, and says why there is none."""


def called(name: str, func: Callable[..., Any], *arguments: Any) -> Steps[Any]:
    """Call somebody's function, on a thread or awaited; what it raises is in the outcome.

    Raises:
        InvalidInputError: It is asynchronous and there is no event loop to run it in.
    """
    sync, native = both_ways(func, *arguments)

    async def awaited(config: RunnableConfig) -> Any:
        return await native()

    fan = yield beside([Step(name, lambda config: sync(), awaited)], on_error="skip")
    (outcome,) = fan.outcomes
    if isinstance(outcome.error, InvalidInputError):
        raise outcome.error
    return outcome


def listed(values: Any, count: int) -> list[Any]:
    """As many values as there are passages; where their number differs nobody knows whose each one is.

    Example:
        >>> listed([0.1], 2)
        ['1 scores came for 2 passages', '1 scores came for 2 passages']
    """
    plain = values.tolist() if hasattr(values, "tolist") else values
    if not isinstance(plain, (list, tuple)):
        return [Missing(f"a {type(values).__name__} came instead of a list of scores")] * count
    if len(plain) != count:
        return [Missing(f"{len(plain)} scores came for {count} passages")] * count
    # models with one output give a column
    return [one[0] if isinstance(one, (list, tuple)) and len(one) == 1 else one for one in plain]


def number(value: Any) -> float | None:
    """A finite number, or None for anything else: texts, truth values, NaN."""
    if isinstance(value, (bool, str)):
        return None
    try:
        found = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return found if math.isfinite(found) else None
