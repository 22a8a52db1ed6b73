"""What a model says when it grades a passage, read with care."""

from __future__ import annotations

from typing import Any


def grade_score(grade: Any) -> float | None:
    """How surely the passage passes, from 0 to 1; ``None`` if the grade holds no usable score.

    Some models give how sure they are of their verdict instead; the verdict then decides the side.

    Args:
        grade: A ``Grade``, or a dict with its fields.

    Example:
        >>> grade_score({"relevant": True, "score": 0.9}), grade_score({"relevant": False, "score": 0.9})
        (0.9, 0.09999999999999998)
    """
    score, relevant = grade_field(grade, "score"), grade_field(grade, "relevant")
    if not isinstance(score, (int, float)) or isinstance(score, bool) or not 0 <= score <= 1:
        return None
    if relevant is False and score >= 0.5:
        return min(1.0 - float(score), 0.49)
    if relevant is True and score < 0.5:
        return 0.5
    return float(score)


def grade_field(grade: Any, name: str) -> Any:
    """A field of a grade that may be an object or a dict."""
    return grade.get(name) if isinstance(grade, dict) else getattr(grade, name, None)
