"""The metrics of this package by name."""

from __future__ import annotations

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

METRICS: dict[str, type[RagasMetric]] = {
    metric.name: metric
    for metric in (
        Faithfulness,
        AnswerRelevancy,
        ContextPrecision,
        ContextPrecisionWithoutReference,
        ContextRecall,
        AnswerCorrectness,
        FactualCorrectness,
        SemanticSimilarity,
    )
}


def judged(name: str) -> RagasMetric:
    """The metric of that name with its default settings."""
    return METRICS[name]()
