"""A cross-encoder as an evaluator: a model that reads question and passage together, as the paper's T5 does."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

from langchain_core.documents import Document

from rag_kit.errors import InvalidInputError
from rag_kit.graphs.evaluators.base import Evaluator, Grading
from rag_kit.graphs.evaluators.function import function_step
from rag_kit.graphs.evaluators.reading import Missing, finite_number, value_per_passage
from rag_kit.graphs.evaluators.thresholds import Thresholds
from rag_kit.graphs.steps import beside
from rag_kit.retrieval.rerank.cross_encoder import is_cross_encoder


class CrossEncoderEvaluator(Evaluator):
    """Judge passages with any LangChain cross-encoder.

    All pairs go to the model in one call; the interface has no asynchronous form, so under ``ainvoke`` it runs on
    a thread. A logit x becomes the confidence tanh(x / 2): 0 where the model gives even odds.

    Args:
        model: A ``langchain_core.cross_encoders.BaseCrossEncoder``.
        scale: What the model gives: ``"logit"``, or ``"probability"`` (0 to 1; sentence-transformers' models of one
            label apply a sigmoid of their own).
        thresholds: Where its confidence is enough. The default fits no model in particular: fit yours with
            ``fit_thresholds``.

    Raises:
        InvalidInputError: ``model`` is no cross-encoder, or ``scale`` is unknown.

    Example:
        >>> from langchain_core.cross_encoders import BaseCrossEncoder
        >>> class Shared(BaseCrossEncoder):
        ...     def score(self, text_pairs):
        ...         return [len(set(a.split()) & set(b.split())) - 1 for a, b in text_pairs]
        >>> from rag_kit.concurrency.steps import run
        >>> judged = run(CrossEncoderEvaluator(Shared()).grade("a loud fan", [Document("the fan")], "en"), {})
        >>> judged[0].score
        0.0
    """

    name = "cross_encoder"

    def __init__(
        self,
        model: Any,
        *,
        scale: Literal["logit", "probability"] = "logit",
        thresholds: Thresholds | None = None,
    ) -> None:
        if not is_cross_encoder(model):
            raise InvalidInputError(
                f"model is a {type(model).__name__}; give a LangChain cross-encoder "
                "(langchain_core.cross_encoders.BaseCrossEncoder)."
            )
        if scale not in ("logit", "probability"):
            raise InvalidInputError(f"scale={scale!r} was given; allowed: 'logit', 'probability'.")
        self.model = model
        self.scale = scale
        self.thresholds = thresholds or type(self).thresholds

    async def grade(self, question: str, passages: Sequence[Document], language: str) -> list[Grading]:
        """Judge passages; see ``Evaluator.grade``."""
        if not passages:
            return []
        pairs = [(question, passage.page_content) for passage in passages]
        fan = await beside([function_step(self.name, self.model.score, pairs)], on_error="skip")
        (outcome,) = fan.outcomes
        if outcome.error is not None:
            return [self.ungraded(outcome.error) for _ in passages]
        return [self._grading(value) for value in value_per_passage(outcome.value, len(passages))]

    def _grading(self, value: Any) -> Grading:
        found = finite_number(value)
        if isinstance(value, Missing):
            return self.ungraded(str(value))
        if found is None:
            return self.ungraded(f"the model gave {value!r:.40} for a number")
        if self.scale == "logit":
            return Grading(math.tanh(found / 2), f"logit {found:.2f}")
        if not 0 <= found <= 1:
            return self.ungraded(f"the model gave {found:.3g} for a probability")
        return Grading(2 * found - 1, f"probability {found:.2f}")
