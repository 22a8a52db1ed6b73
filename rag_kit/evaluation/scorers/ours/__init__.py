"""Metrics of this kit's own, named ``ours_...``: what neither Ragas nor ir-measures has, or has in another sense."""

from __future__ import annotations

from rag_kit._lazy import lazy_attributes

__all__ = [
    "AnswerFound",
    "Citations",
    "ContextRelevance",
    "Decline",
    "EntityRecall",
    "JudgedCitations",
    "LexicalContextRelevance",
    "NuggetRecall",
    "SpanRecall",
    "Umbrela",
]

__getattr__, __dir__ = lazy_attributes(
    __name__,
    {
        "AnswerFound": ".answer_found",
        "Citations": ".citations",
        "ContextRelevance": ".context_relevance",
        "Decline": ".decline",
        "EntityRecall": ".entities",
        "JudgedCitations": ".judged_citations",
        "LexicalContextRelevance": ".context_relevance",
        "NuggetRecall": ".nuggets",
        "SpanRecall": ".span_recall",
        "Umbrela": ".umbrela",
    },
)
