"""Dates as they stand in metadata."""

from __future__ import annotations

import datetime
import re
from typing import Any

_UTC = datetime.UTC
_DATE = re.compile(
    r"(?P<year>[12]\d{3})(?:\s*[-/.年]\s*(?P<month>\d{1,2})(?:\s*[-/.月]\s*(?P<day>\d{1,2})\s*日?|\s*月)?|\s*年)?"
)
# Below this a number is a year, above it seconds since 1970 (or milliseconds, above the second).
_LAST_YEAR, _FIRST_MILLISECONDS = 3000, 100_000_000_000


def read_date(value: Any) -> datetime.datetime | None:
    """Read a date.

    Args:
        value: A ``datetime``, a ``date``, a year, seconds or milliseconds since 1970, or a text: ISO 8601,
            ``2024/3/5``, ``2024.3``, ``2024年3月5日``, ``2024``.

    Returns:
        The moment, with a time zone (UTC where none is given); the first one of a year, month or day. ``None`` if it is
        no date.

    Example:
        >>> read_date("2024年3月").isoformat()
        '2024-03-01T00:00:00+00:00'
        >>> read_date(2024).year, read_date("soon")
        (2024, None)
    """
    if isinstance(value, datetime.datetime):
        return value if value.tzinfo else value.replace(tzinfo=_UTC)
    if isinstance(value, datetime.date):
        return datetime.datetime(value.year, value.month, value.day, tzinfo=_UTC)
    if isinstance(value, bool):
        return None
    if isinstance(value, (int, float)):
        return _from_number(float(value))
    if isinstance(value, str):
        return _from_text(value.strip())
    return None


def _from_number(value: float) -> datetime.datetime | None:
    if 1000 <= value < _LAST_YEAR:
        return datetime.datetime(int(value), 1, 1, tzinfo=_UTC) if value.is_integer() else None
    seconds = value / 1000 if abs(value) >= _FIRST_MILLISECONDS else value
    try:
        return datetime.datetime.fromtimestamp(seconds, tz=_UTC)
    except (ValueError, OverflowError, OSError):
        return None


def _from_text(text: str) -> datetime.datetime | None:
    if match := _DATE.fullmatch(text):
        try:
            return datetime.datetime(
                int(match["year"]), int(match["month"] or 1), int(match["day"] or 1), tzinfo=_UTC
            )
        except ValueError:
            return None
    try:
        found = datetime.datetime.fromisoformat(text)
    except ValueError:
        return None
    return found if found.tzinfo else found.replace(tzinfo=_UTC)
