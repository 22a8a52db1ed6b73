"""Sets of questions to evaluate with: read from files, made from a corpus, split, saved."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rag_kit._lazy import lazy_attributes

if TYPE_CHECKING:
    from rag_kit.evaluation.sets.evaluation_set import EvaluationSet
    from rag_kit.evaluation.sets.generating.generated import GeneratedSet
    from rag_kit.evaluation.sets.generating.running import agenerate, generate

__all__ = ["EvaluationSet", "GeneratedSet", "agenerate", "generate"]

__getattr__, __dir__ = lazy_attributes(
    __name__,
    {
        "EvaluationSet": ".evaluation_set",
        "GeneratedSet": ".generating.generated",
        "agenerate": ".generating.running",
        "generate": ".generating.running",
    },
)
