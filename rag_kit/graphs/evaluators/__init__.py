"""How surely a passage helps to answer a question, and when that is enough: CRAG's retrieval evaluator.

Paper: Yan et al., Corrective Retrieval Augmented Generation, arXiv 2401.15884.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rag_kit._lazy import lazy_attributes

if TYPE_CHECKING:
    from rag_kit.graphs.evaluators.base import Evaluator, Grading
    from rag_kit.graphs.evaluators.coerce import as_evaluator
    from rag_kit.graphs.evaluators.cross_encoder import CrossEncoderEvaluator
    from rag_kit.graphs.evaluators.fitting import Fitted, afit_thresholds, fit_thresholds
    from rag_kit.graphs.evaluators.function import FunctionEvaluator
    from rag_kit.graphs.evaluators.lexical import LexicalEvaluator
    from rag_kit.graphs.evaluators.llm import LLMEvaluator
    from rag_kit.graphs.evaluators.thresholds import Action, Thresholds

__all__ = [
    "Action",
    "CrossEncoderEvaluator",
    "Evaluator",
    "Fitted",
    "FunctionEvaluator",
    "Grading",
    "LLMEvaluator",
    "LexicalEvaluator",
    "Thresholds",
    "afit_thresholds",
    "as_evaluator",
    "fit_thresholds",
]

__getattr__, __dir__ = lazy_attributes(
    __name__,
    {
        "Action": ".thresholds",
        "CrossEncoderEvaluator": ".cross_encoder",
        "Evaluator": ".base",
        "Fitted": ".fitting",
        "FunctionEvaluator": ".function",
        "Grading": ".base",
        "LLMEvaluator": ".llm",
        "LexicalEvaluator": ".lexical",
        "Thresholds": ".thresholds",
        "afit_thresholds": ".fitting",
        "as_evaluator": ".coerce",
        "fit_thresholds": ".fitting",
    },
)
