"""Any value as plain JSON: what goes into provenance must survive ``json.dumps``."""

from __future__ import annotations

import datetime
import math
from collections.abc import Mapping
from typing import Any

_MAX_DEPTH = 32
_PLAIN = frozenset({str, int, bool, type(None)})


def to_plain(value: Any, *, _above: tuple[int, ...] = ()) -> Any:
    """Turn a value into plain JSON data, as a copy.

    Args:
        value: Anything. numpy scalars and arrays become Python numbers and lists, sets sorted lists, dates
            ISO strings, mappings dicts with string keys, not-a-number and infinities ``None``, bytes and
            unknown objects strings. What contains itself, or is nested too deeply, ends in the name of its type.

    Returns:
        Only ``None``, ``bool``, ``int``, ``float``, ``str``, ``list`` and ``dict``.

    Example:
        >>> import datetime
        >>> to_plain({"when": datetime.date(2026, 1, 2), "tags": {"b", "a"}, "at": (1, 2.5)})
        {'when': '2026-01-02', 'tags': ['a', 'b'], 'at': [1, 2.5]}
    """
    kind = type(value)
    if kind in _PLAIN:
        return value
    if kind is float:
        return value if math.isfinite(value) else None
    if len(_above) >= _MAX_DEPTH or id(value) in _above:
        return kind.__name__
    below = (*_above, id(value))
    # most items are plain or finite floats, and a call for each would take most of the time
    if isinstance(value, (list, tuple)):
        return [item if type(item) in _PLAIN else to_plain(item, _above=below) for item in value]
    if kind is dict or isinstance(value, Mapping):
        return {
            key if type(key) is str else str(key): item
            if (kind := type(item)) in _PLAIN or (kind is float and item - item == 0.0)
            else to_plain(item, _above=below)
            for key, item in value.items()
        }
    if isinstance(value, (set, frozenset)):
        items = [to_plain(item, _above=below) for item in value]
        return sorted(items, key=lambda item: (str(type(item)), str(item)))
    if isinstance(value, (datetime.datetime, datetime.date, datetime.time)):
        return value.isoformat()
    return _from_object(value, below)


def _from_object(value: Any, above: tuple[int, ...]) -> Any:
    """Subclasses of the plain types, numpy values (by ``tolist``, without importing numpy), the rest."""
    if kind := next((base for base in (bool, int, float, str) if isinstance(value, base)), None):
        return to_plain(str.__str__(value) if kind is str else kind(value), _above=above)
    if isinstance(value, (bytes, bytearray)):
        return bytes(value).decode("utf-8", errors="backslashreplace")
    tolist = getattr(value, "tolist", None)
    if callable(tolist):
        converted = tolist()
        if converted is not value:
            return to_plain(converted, _above=above)
    return str(value)
