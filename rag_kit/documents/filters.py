"""Metadata filters: one small language for every part of the kit, evaluated in Python.

``{"year": 2020}``, ``{"year": {"$gte": 2020, "$lt": 2024}}``, ``{"lang": {"$in": ["en", "zh"]}}``,
``{"$or": [...]}``, ``{"$and": [...]}``, ``{"$not": {...}}``. Several keys in one mapping are ANDed. The
meaning of every operator that Chroma has is Chroma's:

- a number never equals a boolean or a string; 1 equals 1.0;
- ``$ne`` and ``$nin`` hold where the key is missing, all other operators (but ``$exists: false``) do not;
- ``$gt``... compare numbers with numbers; strings with strings only here, not in Chroma;
- ``$contains`` asks whether a list holds a value; it is no search in strings;
- ``$startswith`` asks how a string begins: ``{"file": {"$startswith": "contracts/"}}`` is a folder;
- a ``date`` or ``datetime`` is its ISO text.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from typing import Any

from rag_kit.documents.plain import to_plain
from rag_kit.errors import FilterError

Filter = Mapping[str, Any]
Predicate = Callable[[Mapping[str, Any]], bool]

LOGICAL = ("$and", "$or", "$not")
OPERATORS = ("$eq", "$ne", "$gt", "$gte", "$lt", "$lte", "$in", "$nin", "$contains", "$startswith", "$exists")
_ORDER = ("$gt", "$gte", "$lt", "$lte")
_MAX_DEPTH = 16
_MAX_NODES = 1000
_MISSING = object()


def validate_filter(where: Filter | None) -> None:
    """Check a filter.

    Args:
        where: The filter; ``None`` and ``{}`` let everything pass.

    Raises:
        FilterError: If an operator is unknown, an operand has the wrong type, or the filter is deeper than 16
            levels or larger than 1,000 nodes; the message says what was given and what is allowed.

    Example:
        >>> validate_filter({"year": {"$gte": 2020}})
        >>> validate_filter({"year": {"$near": 2020}})
        Traceback (most recent call last):
        ...
        rag_kit.errors.FilterError: Unknown operator '$near' for 'year'. Allowed: $eq, $ne, $gt, ...
    """
    if where is not None:
        _Checker().where(where, 0)


def compile_filter(where: Filter | None) -> Predicate:
    """Check a filter once and turn it into a function, for testing many documents.

    Args:
        where: The filter; ``None`` lets everything pass.

    Returns:
        A function from metadata to whether it passes; it never raises.

    Raises:
        FilterError: As ``validate_filter``.

    Example:
        >>> recent = compile_filter({"year": {"$gte": 2020}})
        >>> [recent({"year": 2021}), recent({"year": 2001}), recent({})]
        [True, False, False]
    """
    validate_filter(where)
    return _compile(where or {})


def matches(where: Filter | None, metadata: Mapping[str, Any]) -> bool:
    """Whether metadata passes a filter. For many documents use ``compile_filter``.

    Raises:
        FilterError: As ``validate_filter``; the metadata itself never makes it raise.

    Example:
        >>> matches({"lang": "en", "year": {"$lt": 2000}}, {"lang": "en", "year": 1999})
        True
        >>> matches({"flag": 1}, {"flag": True})
        False
    """
    return compile_filter(where)(metadata)


def combine_filters(*filters: Filter | None) -> Filter | None:
    """AND several filters; ``None`` and ``{}`` add nothing.

    Raises:
        FilterError: As ``validate_filter``, for any of them.

    Example:
        >>> combine_filters({"tenant": "a"}, None, {"year": 2020})
        {'$and': [{'tenant': 'a'}, {'year': 2020}]}
    """
    present = [where for where in filters if where]
    for where in filters:
        validate_filter(where)
    if len(present) <= 1:
        return dict(present[0]) if present else None
    return {"$and": [dict(where) for where in present]}


class _Checker:
    """Walks a filter and counts its nodes."""

    def __init__(self) -> None:
        self.nodes = 0

    def _count(self, depth: int, amount: int = 1) -> None:
        self.nodes += amount
        if self.nodes > _MAX_NODES:
            raise FilterError(f"The filter has more than {_MAX_NODES} nodes. Make it smaller.")
        if depth > _MAX_DEPTH:
            raise FilterError(f"The filter is nested deeper than {_MAX_DEPTH} levels. Make it flatter.")

    def where(self, where: Any, depth: int) -> None:
        self._count(depth)
        if not isinstance(where, Mapping):
            raise FilterError(
                f"A filter must be a mapping such as {{'year': 2020}}, "
                f"not {type(where).__name__} {_short(where)}."
            )
        for key, value in where.items():
            if not isinstance(key, str) or not key:
                raise FilterError(f"A filter's keys must be non-empty strings, not {_short(key)}.")
            if key in ("$and", "$or"):
                if not isinstance(value, (list, tuple)) or not value:
                    raise FilterError(f"{key} needs a non-empty list of filters, not {_short(value)}.")
                for part in value:
                    self.where(part, depth + 1)
            elif key == "$not":
                self.where(value, depth + 1)
            elif key.startswith("$"):
                raise FilterError(
                    f"Unknown logical operator {key!r}. Allowed here: a metadata key, {', '.join(LOGICAL)}; "
                    f"an operator such as $gte goes inside: {{'year': {{'$gte': 2020}}}}."
                )
            else:
                self._field(key, value, depth + 1)

    def _field(self, key: str, value: Any, depth: int) -> None:
        self._count(depth)
        if not isinstance(value, Mapping):
            _check_scalar(key, "$eq", value)
            return
        if not value:
            raise FilterError(
                f"The condition on {key!r} is empty. Give a value or an operator: {_allowed()}."
            )
        for operator, operand in value.items():
            self._count(depth)
            if operator not in OPERATORS:
                raise FilterError(
                    f"Unknown operator {operator!r} for {key!r}. Allowed: {_allowed()} ($contains asks whether a list "
                    "holds a value, $startswith how a string begins)."
                )
            if operator in ("$in", "$nin"):
                if not isinstance(operand, (list, tuple, set, frozenset)):
                    raise FilterError(f"{operator} on {key!r} needs a list of values, not {_short(operand)}.")
                self._count(depth, len(operand))
                for item in operand:
                    _check_scalar(key, operator, item)
            elif operator == "$exists":
                if not isinstance(operand, bool):
                    raise FilterError(f"$exists on {key!r} needs true or false, not {_short(operand)}.")
            elif operator == "$startswith" and not isinstance(operand, str):
                raise FilterError(f"$startswith on {key!r} needs a string, not {_short(operand)}.")
            else:
                _check_scalar(key, operator, operand)
                if operator in _ORDER and isinstance(operand, bool):
                    raise FilterError(f"{operator} on {key!r} needs a number or a string, not a boolean.")


def _check_scalar(key: str, operator: str, value: Any) -> None:
    plain = _scalar(value)
    if plain is _MISSING:
        hint = " Ask for a missing key with {'$exists': false}." if value is None else ""
        hint = " Use {'$in': [...]} for one of several values." if isinstance(value, (list, tuple)) else hint
        raise FilterError(
            f"{operator} on {key!r} needs a string, number or boolean, not {type(value).__name__} "
            f"{_short(value)}.{hint}"
        )
    if isinstance(plain, float) and not math.isfinite(plain):
        raise FilterError(f"{operator} on {key!r} needs a finite number, not {plain}.")


def _scalar(value: Any) -> Any:
    """The plain scalar behind a value (numpy scalars and dates too), or ``_MISSING`` if it is none."""
    # numpy's float64 and str_ are floats and texts, yet compare with a tuple item by item
    if isinstance(value, (str, bool, int, float)) and not hasattr(value, "dtype"):
        return value
    if isinstance(value, date):
        return value.isoformat()
    if hasattr(value, "dtype") and getattr(value, "shape", None) == ():
        item = value.item()
        return item if isinstance(item, (str, bool, int, float)) else _MISSING
    return _MISSING


def _compile(where: Filter) -> Predicate:
    parts: list[Predicate] = []
    for key, value in where.items():
        if key in ("$and", "$or"):
            inner = [_compile(part) for part in value]
            parts.append(_all_of(inner) if key == "$and" else _any_of(inner))
        elif key == "$not":
            parts.append(_not(_compile(value)))
        elif isinstance(value, Mapping):
            parts.extend(_condition(key, operator, operand) for operator, operand in value.items())
        else:
            parts.append(_condition(key, "$eq", value))
    return parts[0] if len(parts) == 1 else _all_of(parts)


def _all_of(parts: Sequence[Predicate]) -> Predicate:
    return lambda metadata: all(part(metadata) for part in parts)


def _any_of(parts: Sequence[Predicate]) -> Predicate:
    return lambda metadata: any(part(metadata) for part in parts)


def _not(part: Predicate) -> Predicate:
    return lambda metadata: not part(metadata)


def _typed(value: Any) -> Any:
    """A hashable that is equal exactly where the filter language says equal (booleans are no numbers)."""
    if isinstance(value, bool):
        return ("bool", value)
    return value if isinstance(value, (str, int, float)) else _MISSING


def _condition(key: str, operator: str, operand: Any) -> Predicate:
    if operator == "$exists":
        return lambda metadata: (metadata.get(key) is not None) is operand
    if operator in ("$in", "$nin"):
        wanted = {_typed(_scalar(item)) for item in operand}
        if operator == "$in":
            return lambda metadata: _typed(_scalar(metadata.get(key))) in wanted
        return lambda metadata: _typed(_scalar(metadata.get(key))) not in wanted
    value = _scalar(operand)
    typed = _typed(value)
    if operator == "$eq":
        return lambda metadata: bool(_typed(_scalar(metadata.get(key))) == typed)
    if operator == "$ne":
        return lambda metadata: bool(_typed(_scalar(metadata.get(key))) != typed)
    if operator == "$contains":
        return lambda metadata: _contains(metadata.get(key), typed)
    if operator == "$startswith":
        return lambda metadata: isinstance(found := metadata.get(key), str) and found.startswith(operand)
    return _ordering(key, operator, value)


def _contains(found: Any, typed: Any) -> bool:
    if not isinstance(found, (list, tuple, set, frozenset)):
        return False
    return any(_typed(_scalar(item)) == typed for item in found)


def _ordering(key: str, operator: str, value: Any) -> Predicate:
    kinds: tuple[type, ...] = (str,) if isinstance(value, str) else (int, float)

    def holds(metadata: Mapping[str, Any]) -> bool:
        found = _scalar(metadata.get(key))
        if not isinstance(found, kinds) or isinstance(found, bool):
            return False
        if operator == "$gt":
            return bool(found > value)
        if operator == "$gte":
            return bool(found >= value)
        return bool(found < value) if operator == "$lt" else bool(found <= value)

    return holds


def _allowed() -> str:
    return ", ".join(OPERATORS)


def _short(value: Any) -> str:
    text = repr(to_plain(value))
    return text if len(text) <= 80 else text[:77] + "..."
