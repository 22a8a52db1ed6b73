"""Sets of questions to evaluate with: read from files, made from a corpus, split, saved."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rag_kit._lazy import lazy_attributes

if TYPE_CHECKING:
    from rag_kit.evaluation.sets.evaluation_set import EvaluationSet

__all__ = ["EvaluationSet"]

__getattr__, __dir__ = lazy_attributes(
    __name__,
    {
        "EvaluationSet": ".evaluation_set",
    },
)
