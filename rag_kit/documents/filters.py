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
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date
from operator import ge, gt, le, lt
from typing import Any

from rag_kit.documents.identity import to_plain
from rag_kit.errors import FilterError

Filter = Mapping[str, Any]
Predicate = Callable[[Mapping[str, Any]], bool]

LOGICAL = ("$and", "$or", "$not")
OPERATORS = ("$eq", "$ne", "$gt", "$gte", "$lt", "$lte", "$in", "$nin", "$contains", "$startswith", "$exists")
_ORDER = {"$gt": gt, "$gte": ge, "$lt": lt, "$lte": le}
_MANY = (list, tuple, set, frozenset)
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
        elif not value:
            raise FilterError(
                f"The condition on {key!r} is empty. Give a value or one of {', '.join(OPERATORS)}."
            )
        else:
            for operator, operand in value.items():
                self._count(depth, 1 + (len(operand) if isinstance(operand, _MANY) else 0))
                _check_operand(key, operator, operand)


def _check_operand(key: str, operator: Any, operand: Any) -> None:
    if operator not in OPERATORS:
        raise FilterError(
            f"Unknown operator {operator!r} for {key!r}. Allowed: {', '.join(OPERATORS)} ($contains asks whether a "
            "list holds a value, $startswith how a string begins)."
        )
    needs: dict[str, tuple[Any, str]] = {
        "$in": (_MANY, "a list of values"),
        "$exists": (bool, "true or false"),
        "$startswith": (str, "a string"),
    }
    kind, what = needs.get("$in" if operator == "$nin" else operator, (object, ""))
    if not isinstance(operand, kind):
        raise FilterError(f"{operator} on {key!r} needs {what}, not {_short(operand)}.")
    for item in operand if operator in ("$in", "$nin") else [operand]:
        _check_scalar(key, operator, item)
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
            parts.append(_joined([_compile(part) for part in value], all if key == "$and" else any))
        elif key == "$not":
            parts.append(_not(_compile(value)))
        else:
            conditions = value if isinstance(value, Mapping) else {"$eq": value}
            parts += [_on(key, value_test(operator, operand)) for operator, operand in conditions.items()]
    return parts[0] if len(parts) == 1 else _joined(parts, all)


def _joined(parts: Sequence[Predicate], which: Callable[[Iterable[bool]], bool]) -> Predicate:
    return lambda metadata: which(part(metadata) for part in parts)


def _not(part: Predicate) -> Predicate:
    return lambda metadata: not part(metadata)


def _on(key: str, test: Callable[[Any], bool]) -> Predicate:
    return lambda metadata: test(metadata.get(key))


def _typed(value: Any) -> Any:
    """A hashable that is equal exactly where the filter language says equal (booleans are no numbers)."""
    if isinstance(value, bool):
        return ("bool", value)
    return value if isinstance(value, (str, int, float)) else _MISSING


def value_test(operator: str, operand: Any) -> Callable[[Any], bool]:
    """A function from a value (``None`` where there is none) to whether it passes one condition, which is right."""
    if operator == "$exists":
        return lambda found: (found is not None) is operand
    if operator == "$startswith":
        return lambda found: isinstance(found, str) and found.startswith(operand)
    if operator in _ORDER:
        value, compare = _scalar(operand), _ORDER[operator]
        kinds = (str,) if isinstance(value, str) else (int, float)

        def compares(found: Any) -> bool:
            plain = _scalar(found)
            return isinstance(plain, kinds) and not isinstance(plain, bool) and bool(compare(plain, value))

        return compares
    wanted = {_typed(_scalar(item)) for item in (operand if operator in ("$in", "$nin") else [operand])}
    if operator == "$contains":
        return lambda found: isinstance(found, _MANY) and any(_typed(_scalar(one)) in wanted for one in found)
    among = operator in ("$eq", "$in")
    return lambda found: (_typed(_scalar(found)) in wanted) is among


def _short(value: Any) -> str:
    text = repr(to_plain(value))
    return text if len(text) <= 80 else text[:77] + "..."
