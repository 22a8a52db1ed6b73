"""Ragas's metrics that ask the judge; the value is always what Ragas's class computes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rag_kit._lazy import lazy_attributes

if TYPE_CHECKING:
    from rag_kit.evaluation.scorers.ragas_judged.answer_correctness import AnswerCorrectness
    from rag_kit.evaluation.scorers.ragas_judged.answer_relevancy import AnswerRelevancy
    from rag_kit.evaluation.scorers.ragas_judged.base import RagasMetric
    from rag_kit.evaluation.scorers.ragas_judged.context_precision import (
        ContextPrecision,
        ContextPrecisionWithoutReference,
    )
    from rag_kit.evaluation.scorers.ragas_judged.context_recall import ContextRecall
    from rag_kit.evaluation.scorers.ragas_judged.factual_correctness import FactualCorrectness
    from rag_kit.evaluation.scorers.ragas_judged.faithfulness import Faithfulness
    from rag_kit.evaluation.scorers.ragas_judged.semantic_similarity import SemanticSimilarity

__all__ = [
    "AnswerCorrectness",
    "AnswerRelevancy",
    "ContextPrecision",
    "ContextPrecisionWithoutReference",
    "ContextRecall",
    "FactualCorrectness",
    "Faithfulness",
    "RagasMetric",
    "SemanticSimilarity",
]

__getattr__, __dir__ = lazy_attributes(
    __name__,
    {
        "AnswerCorrectness": ".answer_correctness",
        "AnswerRelevancy": ".answer_relevancy",
        "ContextPrecision": ".context_precision",
        "ContextPrecisionWithoutReference": ".context_precision",
        "ContextRecall": ".context_recall",
        "FactualCorrectness": ".factual_correctness",
        "Faithfulness": ".faithfulness",
        "RagasMetric": ".base",
        "SemanticSimilarity": ".semantic_similarity",
    },
)
