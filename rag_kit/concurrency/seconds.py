"""Which lengths of time may be asked for."""

from __future__ import annotations

from typing import Any

from rag_kit.errors import InvalidInputError

#: About 31 years; the clocks of some systems cannot wait much longer.
MAX_SECONDS = 1e9


def check_seconds(name: str, value: Any, *, zero: bool = False) -> float | None:
    """See that a time-out or deadline is a length of time that can be waited for.

    Args:
        name: The argument's name, for the message.
        value: Seconds, or None for no limit.
        zero: Whether 0 is allowed.

    Returns:
        The value.

    Raises:
        InvalidInputError: It is not a number, negative, NaN, infinite, or above 1e9.

    Example:
        >>> check_seconds("timeout", 2.5)
        2.5
        >>> check_seconds("timeout", float("inf"))
        Traceback (most recent call last):
        ...
        rag_kit.errors.InvalidInputError: timeout=inf was given; it must be seconds > 0 and at most 1e+09, or None.
    """
    if value is None:
        return None
    if (
        isinstance(value, bool)
        or not isinstance(value, (int, float))
        or not 0 <= value <= MAX_SECONDS
        or (value == 0 and not zero)
    ):
        low = ">= 0" if zero else "> 0"
        raise InvalidInputError(
            f"{name}={brief(value)} was given; it must be seconds {low} and at most {MAX_SECONDS:g}, or None."
        )
    return value


def brief(value: object) -> str:
    """What was given, for a message: its repr, cut to 60 characters.

    Example:
        >>> brief(10**5000), brief([1])
        ('a number of 16610 bits', '[1]')
    """
    if isinstance(value, int) and value.bit_length() > 190:
        return f"a number of {value.bit_length()} bits"
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
