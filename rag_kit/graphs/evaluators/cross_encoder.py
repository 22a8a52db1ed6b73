"""A cross-encoder as an evaluator: a model that reads question and passage together, as the paper's T5 does."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

from langchain_core.documents import Document

from rag_kit.errors import InvalidInputError
from rag_kit.graphs.evaluators.base import Evaluator, Grading, Thresholds
from rag_kit.graphs.steps import user_function
from rag_kit.retrieval.rerank.base import check_scores
from rag_kit.retrieval.rerank.scorers import is_cross_encoder


class CrossEncoderEvaluator(Evaluator):
    """Judge passages with any LangChain cross-encoder, all pairs in one call.

    A logit x becomes the confidence tanh(x / 2): 0 where the model gives even odds.

    Args:
        model: A ``langchain_core.cross_encoders.BaseCrossEncoder``.
        scale: What the model gives: ``"logit"``, or ``"probability"`` (0 to 1; sentence-transformers' models of one
            label apply a sigmoid of their own).
        thresholds: Where its confidence is enough. The default fits no model in particular: fit yours with
            ``fit_thresholds``.

    Raises:
        InvalidInputError: ``model`` is no cross-encoder, or ``scale`` is unknown.
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
        pairs = [(question, passage.page_content) for passage in passages]
        try:
            scores = check_scores(await user_function(self.name, self.model.score, pairs), len(passages))
        except Exception as error:  # noqa: BLE001 - any model; `ungraded` raises what ends the run
            return [self.ungraded(error) for _ in passages]
        return [self._grading(score) for score in scores]

    def _grading(self, score: float | None) -> Grading:
        if score is None or (self.scale == "probability" and not 0 <= score <= 1):
            return self.ungraded(f"the model gave {score} for a {self.scale}")
        confidence = math.tanh(score / 2) if self.scale == "logit" else 2 * score - 1
        return Grading(confidence, f"{self.scale} {score:.2f}")
