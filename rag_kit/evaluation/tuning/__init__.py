"""Search for the settings that suit a set of questions best, under a budget, and say whether the gain is real.

Importing this package imports neither Optuna nor LangChain nor numpy; each name loads what it needs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rag_kit._lazy import lazy_attributes

if TYPE_CHECKING:
    from rag_kit.evaluation.tuning.api import atune, tune
    from rag_kit.evaluation.tuning.held import HeldAside
    from rag_kit.evaluation.tuning.result import Trial, TuningResult
    from rag_kit.evaluation.tuning.retrievers import RetrieverSpace, build_retriever
    from rag_kit.evaluation.tuning.space import PipelineSpace, SearchSpace

__all__ = [
    "HeldAside",
    "PipelineSpace",
    "RetrieverSpace",
    "SearchSpace",
    "Trial",
    "TuningResult",
    "atune",
    "build_retriever",
    "tune",
]

__getattr__, __dir__ = lazy_attributes(
    __name__,
    {
        "HeldAside": ".held",
        "PipelineSpace": ".space",
        "RetrieverSpace": ".retrievers",
        "SearchSpace": ".space",
        "Trial": ".result",
        "TuningResult": ".result",
        "atune": ".api",
        "build_retriever": ".retrievers",
        "tune": ".api",
    },
)
