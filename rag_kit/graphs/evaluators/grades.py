"""Reads what a user's grader returned: truth values, numbers, objects with a verdict or a score."""

from __future__ import annotations

import math
from typing import Any, Literal

from rag_kit.graphs.evaluators.base import Grading
from rag_kit.retrieval.rerank.grades import grade_field, grade_score

_WORDS = {"yes": True, "true": True, "是": True, "no": False, "false": False, "否": False}


class UnusableGradeError(TypeError):
    """What a grader returned is no grade."""


def read_grade(value: Any, scale: Literal["confidence", "share"]) -> Grading:
    """The grading that a grader's return value for one passage says.

    Args:
        value: What it returned.
        scale: What a number without a verdict beside it is: from -1 to 1, or from 0 to 1.

    Raises:
        UnusableGradeError: It is nothing of the kind.
        ValueError: The number is not finite.

    Example:
        >>> read_grade(True, "confidence").score, read_grade({"score": 0.75, "reason": "It says so."}, "share")
        (1.0, Grading(score=0.5, reason='It says so.'))
        >>> read_grade({"relevant": False, "score": 0.2}, "confidence").score
        -0.6
    """
    if isinstance(value, Grading):
        return value
    score, reason, relevant = value, "", None
    if isinstance(value, dict) or not hasattr(type(value), "__float__"):
        score = value if isinstance(value, str) else grade_field(value, "score")
        verdicts = (_truth(grade_field(value, name)) for name in ("relevant", "binary_score"))
        relevant = next((each for each in verdicts if each is not None), None)
        given = grade_field(value, "reason")
        reason = " ".join(given.split())[:200] if isinstance(given, str) else ""
    truth = _truth(score)
    if truth is None and score is None:
        truth = relevant
    if truth is not None:
        return Grading(1.0 if truth else -1.0, reason)
    try:
        number = math.nan if isinstance(score, str) else float(score)
    except (TypeError, ValueError, OverflowError):
        raise UnusableGradeError(f"it returned {_described(value)}") from None
    if not isinstance(score, str) and not math.isfinite(number):
        raise ValueError(f"it returned {number}")
    if relevant is not None:
        number, scale = grade_score({"relevant": relevant, "score": number}) or number, "share"
    low = 0 if scale == "share" else -1
    if not low <= number <= 1:
        raise UnusableGradeError(f"it returned {_described(value)}, and a score goes from {low} to 1")
    return Grading(2 * number - 1 if scale == "share" else number, reason)


def grades_of_all(values: Any, count: int) -> list[Any]:
    """One value a passage of what a grader of all passages returned; what is wrong with it, where there is not."""
    if isinstance(values, Exception):
        return [values] * count
    plain = values.tolist() if hasattr(values, "tolist") else values
    if not isinstance(plain, (list, tuple)):
        return [UnusableGradeError(f"it returned {_described(values)} instead of a list")] * count
    if len(plain) != count:
        return [UnusableGradeError(f"it returned {len(plain)} values for {count} passages")] * count
    return list(plain)


def _truth(value: Any) -> bool | None:
    if isinstance(value, str):
        return _WORDS.get(value.strip().casefold())
    return bool(value) if type(value).__name__ in ("bool", "bool_") else None  # numpy's are no bool


def _described(value: Any) -> str:
    return f"{value!r:.60} ({type(value).__name__})"
