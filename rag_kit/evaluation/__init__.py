"""Evaluate RAG pipelines: sets of questions, metrics, runs, comparison, diagnosis, tuning, reports.

Importing this package imports neither LangChain nor ragas nor numpy; each name loads what it needs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rag_kit._lazy import lazy_names

if TYPE_CHECKING:
    from rag_kit.evaluation.comparison import compare as compare
    from rag_kit.evaluation.diagnosis import diagnose as diagnose
    from rag_kit.evaluation.examples import Example as Example
    from rag_kit.evaluation.generating import agenerate as agenerate
    from rag_kit.evaluation.generating import generate as generate
    from rag_kit.evaluation.judge.judge import Judge as Judge
    from rag_kit.evaluation.ranking.benchmark import benchmark as benchmark
    from rag_kit.evaluation.ranking.benchmark import load_dataset as load_dataset
    from rag_kit.evaluation.reporting.writing import write_report as write_report
    from rag_kit.evaluation.rgb import aabilities as aabilities
    from rag_kit.evaluation.rgb import abilities as abilities
    from rag_kit.evaluation.runs.evaluating import aevaluate as aevaluate
    from rag_kit.evaluation.runs.evaluating import evaluate as evaluate
    from rag_kit.evaluation.runs.results import Results as Results
    from rag_kit.evaluation.runs.results import assert_quality as assert_quality
    from rag_kit.evaluation.sets.evaluation_set import EvaluationSet as EvaluationSet
    from rag_kit.evaluation.tracking import log_results as log_results
    from rag_kit.evaluation.tuning.search import atune as atune
    from rag_kit.evaluation.tuning.search import tune as tune
    from rag_kit.evaluation.tuning.space import SearchSpace as SearchSpace

__all__, __getattr__, __dir__ = lazy_names(__name__)
