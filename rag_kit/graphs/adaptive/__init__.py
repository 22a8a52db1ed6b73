"""Adaptive-RAG: each question is answered in the way it needs.

Paper: Jeong et al., Adaptive-RAG: Learning to Adapt Retrieval-Augmented Large Language Models through Question
Complexity, arXiv 2403.14403.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rag_kit._lazy import lazy_attributes

if TYPE_CHECKING:
    from rag_kit.graphs.adaptive.build import build_adaptive_rag
    from rag_kit.graphs.adaptive.classifier import RuleClassifier
    from rag_kit.graphs.adaptive.context import AdaptiveContext
    from rag_kit.graphs.adaptive.state import AdaptiveState, Clarification, Hop

__all__ = [
    "AdaptiveContext",
    "AdaptiveState",
    "Clarification",
    "Hop",
    "RuleClassifier",
    "build_adaptive_rag",
]

__getattr__, __dir__ = lazy_attributes(
    __name__,
    {
        "AdaptiveContext": ".context",
        "AdaptiveState": ".state",
        "Clarification": ".state",
        "Hop": ".state",
        "RuleClassifier": ".classifier",
        "build_adaptive_rag": ".build",
    },
)
