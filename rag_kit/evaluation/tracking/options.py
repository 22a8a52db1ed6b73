"""What every write-back is told in the same words."""

from __future__ import annotations

from typing import Any

from rag_kit.concurrency import check_seconds
from rag_kit.errors import InvalidInputError

_MAX_NAME = 250


def check_options(max_concurrency: Any, on_error: Any) -> None:
    """See that they are allowed.

    Raises:
        InvalidInputError: If one is not.
    """
    if type(max_concurrency) is not int or not 1 <= max_concurrency <= 64:
        raise InvalidInputError(
            f"max_concurrency is {max_concurrency!r:.60}; give a whole number from 1 to 64"
        )
    if on_error not in ("raise", "skip"):
        raise InvalidInputError(f"on_error is {on_error!r:.60}; allowed are 'raise' and 'skip'")


def check_text(name: str, value: Any) -> str | None:
    """See that a name is one, or None.

    Raises:
        InvalidInputError: If it is no text, blank, or too long.
    """
    if value is None:
        return None
    if not isinstance(value, str) or not value.strip() or len(value) > _MAX_NAME or not value.isprintable():
        raise InvalidInputError(
            f"{name} is {value!r:.80}; give a printable text of at most {_MAX_NAME} characters, or None"
        )
    return value


def check_limits(timeout: float, max_retries: int, deadline: float | None) -> float:
    """See that the limits are some.

    Raises:
        InvalidInputError: If one is not allowed.
    """
    checked = check_seconds("timeout", timeout)
    check_seconds("deadline", deadline)
    if checked is None:
        raise InvalidInputError("timeout=None was given; give seconds, for a tracker may never answer")
    if type(max_retries) is not int or not 0 <= max_retries <= 10:
        raise InvalidInputError(f"max_retries is {max_retries!r:.60}; give a whole number from 0 to 10")
    return checked
