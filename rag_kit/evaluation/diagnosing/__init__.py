"""From scores to causes and remedies: why answers are wrong, and which part of this kit helps."""

from rag_kit.evaluation.diagnosing.cases import CASE_OF, CASES, Case, Remedy
from rag_kit.evaluation.diagnosing.diagnosis import Diagnosis, diagnose
from rag_kit.evaluation.diagnosing.finding import Finding, Reading

__all__ = ["CASES", "CASE_OF", "Case", "Diagnosis", "Finding", "Reading", "Remedy", "diagnose"]
