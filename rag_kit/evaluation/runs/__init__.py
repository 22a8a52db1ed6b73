"""Run a pipeline over a set of examples, score it, keep the results in a folder, go on where a run stopped.

Importing this package imports neither LangChain nor ragas nor numpy; each name loads what it needs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rag_kit._lazy import lazy_attributes

if TYPE_CHECKING:
    from rag_kit.evaluation.runs.evaluating import aevaluate, evaluate
    from rag_kit.evaluation.runs.quality import QualityError, assert_quality
    from rag_kit.evaluation.runs.results import Results, Row
    from rag_kit.evaluation.runs.summary import Summary

__all__ = ["QualityError", "Results", "Row", "Summary", "aevaluate", "assert_quality", "evaluate"]

__getattr__, __dir__ = lazy_attributes(
    __name__,
    {
        "QualityError": ".quality",
        "Results": ".results",
        "Row": ".results",
        "Summary": ".summary",
        "aevaluate": ".evaluating",
        "assert_quality": ".quality",
        "evaluate": ".evaluating",
    },
)
