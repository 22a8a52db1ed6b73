"""Measure a retriever: data sets, ranking metrics, confidence intervals, the benchmark.

Importing this package imports neither LangChain nor ragas nor numpy; each name loads what it needs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rag_kit._lazy import lazy_attributes

if TYPE_CHECKING:
    from rag_kit.evaluation.benchmark import benchmark
    from rag_kit.evaluation.dataset import CorpusDocument, GoldAnswer, RetrievalDataset, load_dataset
    from rag_kit.evaluation.metrics import DEFAULT_METRICS, RetrievalScores, ndcg, retrieval_metrics
    from rag_kit.evaluation.report import format_table
    from rag_kit.evaluation.spans import SpanRecall
    from rag_kit.evaluation.statistics import bootstrap_interval, bootstrap_intervals
    from rag_kit.retrieval.exact import ExactVectorRetriever

__all__ = [
    "DEFAULT_METRICS",
    "CorpusDocument",
    "ExactVectorRetriever",
    "GoldAnswer",
    "RetrievalDataset",
    "RetrievalScores",
    "SpanRecall",
    "benchmark",
    "bootstrap_interval",
    "bootstrap_intervals",
    "format_table",
    "load_dataset",
    "ndcg",
    "retrieval_metrics",
]

__getattr__, __dir__ = lazy_attributes(
    __name__,
    {
        "CorpusDocument": ".dataset",
        "DEFAULT_METRICS": ".metrics",
        "ExactVectorRetriever": "rag_kit.retrieval.exact",
        "GoldAnswer": ".dataset",
        "RetrievalDataset": ".dataset",
        "RetrievalScores": ".metrics",
        "SpanRecall": ".spans",
        "benchmark": ".benchmark",
        "bootstrap_interval": ".statistics",
        "bootstrap_intervals": ".statistics",
        "format_table": ".report",
        "load_dataset": ".dataset",
        "ndcg": ".metrics",
        "retrieval_metrics": ".metrics",
    },
)
