"""The metrics of this package by name."""

from __future__ import annotations

from rag_kit.evaluation.scorers.ragas_judged.base import RagasMetric
from rag_kit.evaluation.scorers.ragas_judged.faithfulness import Faithfulness

_METRICS: dict[str, type[RagasMetric]] = {metric.name: metric for metric in (Faithfulness,)}


def judged(name: str) -> RagasMetric:
    """The metric of that name with its default settings."""
    return _METRICS[name]()
