"""Metadata that cannot be copied or written: values that hold themselves, or are nested without end."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_MAX_DEPTH = 100
_CONTAINERS = (Mapping, list, tuple, set, frozenset)
_PLAIN = frozenset({str, int, float, bool, type(None)})


def endless(value: Any) -> str | None:
    """Where a value holds itself, or is nested deeper than 100 levels; ``None`` if it does neither.

    Flat values, which metadata nearly always are, cost one look at each.

    Example:
        >>> tags = ["a", {"b": 1}]
        >>> endless({"tags": tags}) is None
        True
        >>> tags.append({"again": tags})
        >>> endless({"tags": tags})
        "['tags'][2]['again'] holds itself"
    """
    return _look(value, "", {id(value)}, set())


def _look(value: Any, place: str, above: set[int], seen: set[int]) -> str | None:
    """``above``: what holds this value; ``seen``: what was looked through, so that nothing is twice."""
    if len(above) > _MAX_DEPTH:
        return f"{place[:60]}... is nested deeper than {_MAX_DEPTH} levels"
    for key, item in value.items() if isinstance(value, Mapping) else enumerate(value):
        if type(item) in _PLAIN or not isinstance(item, _CONTAINERS) or id(item) in seen:
            continue
        where = f"{place}[{key!r:.42}]"
        if id(item) in above:
            return f"{where} holds itself"
        if found := _look(item, where, above | {id(item)}, seen):
            return found
        seen.add(id(item))
    return None
