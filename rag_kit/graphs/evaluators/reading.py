"""Reads what a user's grader returned: truth values, numbers, objects with a verdict or a score."""

from __future__ import annotations

import math
from typing import Any, Literal

from rag_kit.graphs.evaluators.base import Grading
from rag_kit.retrieval.rerank.grades import grade_field, grade_score

_WORDS = {"yes": True, "true": True, "是": True, "no": False, "false": False, "否": False}


class Missing(str):
    """The reason why a grader gave no confidence for a passage.

    Attributes:
        fault: Whether the grader's code is wrong; else a call failed, and may succeed the next time.
    """

    fault: bool

    def __new__(cls, text: str, *, fault: bool = True) -> Missing:
        """Make one from the reason as text."""
        made = super().__new__(cls, text)
        made.fault = fault
        return made


def read_grade(value: Any, scale: Literal["confidence", "share"]) -> tuple[float, str] | Missing:
    """The confidence from -1 to 1 and the reason, from what a grader returned for one passage.

    Args:
        value: What it returned.
        scale: What a number without a verdict beside it is: from -1 to 1, or from 0 to 1.

    Example:
        >>> read_grade(True, "confidence"), read_grade({"score": 0.75, "reason": "It says so."}, "share")
        ((1.0, ''), (0.5, 'It says so.'))
        >>> read_grade({"relevant": False, "score": 0.2}, "confidence")[0]
        -0.6
    """
    if isinstance(value, Missing):
        return value
    if isinstance(value, Grading):
        return value.score, value.reason
    if value is None:
        return Missing("it returned None", fault=scale == "confidence")
    score, reason, relevant = value, "", None
    if isinstance(value, dict) or not hasattr(type(value), "__float__"):
        score, relevant = grade_field(value, "score"), _truth(grade_field(value, "relevant"))
        if relevant is None:
            relevant = _truth(grade_field(value, "binary_score"))
        given = grade_field(value, "reason")
        reason = " ".join(given.split())[:200] if isinstance(given, str) else ""
        if score is None and relevant is None:
            return Missing(f"it returned {_described(value)}")
    truth = _truth(score)
    if truth is not None or score is None:
        return (1.0 if (relevant if truth is None else truth) else -1.0), reason
    found = finite_number(score)
    if found is None and isinstance(score, float):
        return Missing(f"it returned {score}", fault=False)
    if relevant is not None:
        found = None if found is None else grade_score({"relevant": relevant, "score": found})
        scale = "share"
    low = 0 if scale == "share" else -1
    if found is None or not low <= found <= 1:
        return Missing(f"it returned {_described(value)}, and a score goes from {low} to 1")
    return (2 * found - 1 if scale == "share" else found), reason


def value_per_passage(values: Any, count: int) -> list[Any]:
    """One value for each passage; if a grader returned another number of values, a `Missing` for each.

    Example:
        >>> value_per_passage([0.1], 2)
        ['it returned 1 values for 2 passages', 'it returned 1 values for 2 passages']
    """
    plain = values.tolist() if hasattr(values, "tolist") else values
    if not isinstance(plain, (list, tuple)):
        return [Missing(f"it returned {_described(values)} instead of a list")] * count
    if len(plain) != count:
        return [Missing(f"it returned {len(plain)} values for {count} passages")] * count
    # models with one output give a column
    return [one[0] if isinstance(one, (list, tuple)) and len(one) == 1 else one for one in plain]


def finite_number(value: Any) -> float | None:
    """A finite number, or None for anything else: texts, truth values, NaN."""
    if isinstance(value, (bool, str)):
        return None
    try:
        found = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return found if math.isfinite(found) else None


def _truth(value: Any) -> bool | None:
    if isinstance(value, str):
        return _WORDS.get(value.strip().casefold())
    # numpy's truth values are no bool
    return bool(value) if isinstance(value, bool) or type(value).__name__ in ("bool_", "bool") else None


def _described(value: Any) -> str:
    return f"{value!r:.60} ({type(value).__name__})"
