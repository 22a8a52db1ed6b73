"""From scores to causes and remedies: why answers are wrong, and which part of this kit helps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rag_kit._lazy import lazy_attributes

if TYPE_CHECKING:
    from rag_kit.evaluation.diagnosing.cases import CASE_OF, CASES, Case, Remedy
    from rag_kit.evaluation.diagnosing.diagnosis import Diagnosis, diagnose
    from rag_kit.evaluation.diagnosing.finding import Finding, Reading

__all__ = ["CASES", "CASE_OF", "Case", "Diagnosis", "Finding", "Reading", "Remedy", "diagnose"]

__getattr__, __dir__ = lazy_attributes(
    __name__,
    {
        "CASES": ".cases",
        "CASE_OF": ".cases",
        "Case": ".cases",
        "Diagnosis": ".diagnosis",
        "Finding": ".finding",
        "Reading": ".finding",
        "Remedy": ".cases",
        "diagnose": ".diagnosis",
    },
)
