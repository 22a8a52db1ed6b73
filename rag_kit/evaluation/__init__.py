"""Evaluate RAG pipelines: sets of questions, metrics, runs, comparison, diagnosis, tuning, reports.

Importing this package imports neither LangChain nor ragas nor numpy; each name loads what it needs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rag_kit._lazy import lazy_attributes

if TYPE_CHECKING:
    from rag_kit.evaluation.cells import Cell
    from rag_kit.evaluation.comparing.comparison import Comparison, compare
    from rag_kit.evaluation.diagnosis import Diagnosis, diagnose
    from rag_kit.evaluation.examples import Example, GoldSpan
    from rag_kit.evaluation.generating import GeneratedSet, agenerate, generate
    from rag_kit.evaluation.judge.judge import Judge
    from rag_kit.evaluation.metric import Metric
    from rag_kit.evaluation.outputs import Output, Passage
    from rag_kit.evaluation.ranking.benchmark import benchmark, load_dataset
    from rag_kit.evaluation.ranking.metrics import DEFAULT_METRICS, RetrievalScores, retrieval_metrics
    from rag_kit.evaluation.reporting.writing import write_report
    from rag_kit.evaluation.rgb.measuring import AbilityReport, GivenPassages, aabilities, abilities
    from rag_kit.evaluation.runs.evaluating import aevaluate, evaluate
    from rag_kit.evaluation.runs.results import QualityError, Results, Summary, assert_quality
    from rag_kit.evaluation.runs.rows import Row
    from rag_kit.evaluation.sets.evaluation_set import EvaluationSet
    from rag_kit.evaluation.statistics import bootstrap_interval, bootstrap_intervals
    from rag_kit.evaluation.tracking import log_results
    from rag_kit.evaluation.tuning.search import atune, tune
    from rag_kit.evaluation.tuning.space import SearchSpace
    from rag_kit.retrieval.exact import ExactVectorRetriever

__all__ = [
    "DEFAULT_METRICS",
    "AbilityReport",
    "Cell",
    "Comparison",
    "Diagnosis",
    "EvaluationSet",
    "ExactVectorRetriever",
    "Example",
    "GeneratedSet",
    "GivenPassages",
    "GoldSpan",
    "Judge",
    "Metric",
    "Output",
    "Passage",
    "QualityError",
    "Results",
    "RetrievalScores",
    "Row",
    "SearchSpace",
    "Summary",
    "aabilities",
    "abilities",
    "aevaluate",
    "agenerate",
    "assert_quality",
    "atune",
    "benchmark",
    "bootstrap_interval",
    "bootstrap_intervals",
    "compare",
    "diagnose",
    "evaluate",
    "generate",
    "load_dataset",
    "log_results",
    "retrieval_metrics",
    "tune",
    "write_report",
]

__getattr__, __dir__ = lazy_attributes(
    __name__,
    {
        "generate": ".generating",
        "agenerate": ".generating",
        "GeneratedSet": ".generating",
        "abilities": ".rgb.measuring",
        "aabilities": ".rgb.measuring",
        "GivenPassages": ".rgb.measuring",
        "AbilityReport": ".rgb.measuring",
        "SearchSpace": ".tuning.space",
        "atune": ".tuning.search",
        "tune": ".tuning.search",
        "aevaluate": ".runs.evaluating",
        "write_report": ".reporting.writing",
        "assert_quality": ".runs.results",
        "QualityError": ".runs.results",
        "benchmark": ".ranking.benchmark",
        "bootstrap_interval": ".statistics",
        "bootstrap_intervals": ".statistics",
        "Cell": ".cells",
        "compare": ".comparing.comparison",
        "diagnose": ".diagnosis",
        "Diagnosis": ".diagnosis",
        "Comparison": ".comparing.comparison",
        "DEFAULT_METRICS": ".ranking.metrics",
        "EvaluationSet": ".sets.evaluation_set",
        "evaluate": ".runs.evaluating",
        "ExactVectorRetriever": "rag_kit.retrieval.exact",
        "Example": ".examples",
        "GoldSpan": ".examples",
        "load_dataset": ".ranking.benchmark",
        "Metric": ".metric",
        "Output": ".outputs",
        "Passage": ".outputs",
        "Results": ".runs.results",
        "retrieval_metrics": ".ranking.metrics",
        "Judge": ".judge.judge",
        "RetrievalScores": ".ranking.metrics",
        "Row": ".runs.rows",
        "Summary": ".runs.results",
        "log_results": ".tracking",
    },
)
