"""Numbers that a model chose, made safe: in range, each once."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

_TEXT = re.compile(r"[^\d+-]*(\d{1,6})[^\d]*")


@dataclass(frozen=True)
class Chosen:
    """What could be used of the numbers that a model gave.

    Attributes:
        places: Positions from 0, each once, in the order given.
        problems: What could not be used, for people: ``"1 out of range"``...
    """

    places: list[int]
    problems: list[str]


def read_numbers(items: Sequence[Any], count: int) -> Chosen:
    """Read numbers 1 to ``count``.

    Args:
        items: What the model gave: whole numbers, or texts that hold one (``"[3]"``, ``"passage 3"``).
        count: The highest number allowed.

    Returns:
        The positions; numbers out of range (0, negative ones), repeats and what is no number (true and false among it)
        are left out and counted.

    Example:
        >>> read_numbers([2, "[1]", 2, 9, True], 3)
        Chosen(places=[1, 0], problems=['1 out of range', '1 repeated', '1 not a number'])
    """
    places: dict[int, None] = {}
    outside = repeated = strange = 0
    for item in items:
        number = _number(item)
        if number is None:
            strange += 1
        elif not 1 <= number <= count:
            outside += 1
        elif number - 1 in places:
            repeated += 1
        else:
            places[number - 1] = None
    counted = [(outside, "out of range"), (repeated, "repeated"), (strange, "not a number")]
    return Chosen(list(places), [f"{times} {what}" for times, what in counted if times])


def _number(item: Any) -> int | None:
    if isinstance(item, bool):
        return None
    if isinstance(item, int):
        return item
    if isinstance(item, float):
        return int(item) if item.is_integer() else None
    if isinstance(item, dict):
        item = next((item[key] for key in ("id", "number", "index") if key in item), None)
        return None if isinstance(item, dict) else _number(item)
    if isinstance(item, str):
        text = item.strip()
        if re.fullmatch(r"[+-]?\d{1,6}", text):
            return int(text)
        found = _TEXT.fullmatch(text)
        return int(found[1]) if found else None
    return None
