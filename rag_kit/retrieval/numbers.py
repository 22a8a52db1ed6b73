"""Checks of numbers that callers give."""

from __future__ import annotations

import math
from typing import Any

from rag_kit.errors import InvalidInputError


def check_number(name: str, value: Any, *, above: float | None = None, most: float | None = None) -> float:
    """Check a number: at least 0 (or above ``above``), at most ``most``.

    Raises:
        InvalidInputError: If it is none, or not in the range.

    Example:
        >>> check_number("weight", 1)
        1.0
    """
    right = isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
    right = right and (value > above if above is not None else value >= 0) and (most is None or value <= most)
    if not right:
        low = f"above {above:g}" if above is not None else "from 0"
        raise InvalidInputError(
            f"{name}={value!r} was given; it must be a number {low}{'' if most is None else f' to {most:g}'}."
        )
    return float(value)
