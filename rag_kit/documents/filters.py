"""Metadata filters: one small language for every part of the kit, evaluated in Python.

``{"year": 2020}``, ``{"year": {"$gte": 2020, "$lt": 2024}}``, ``{"lang": {"$in": ["en", "zh"]}}``,
``{"$or": [...]}``, ``{"$and": [...]}``, ``{"$not": {...}}``. Several keys in one mapping are ANDed. The
meaning of every operator that Chroma has is Chroma's:

- a number never equals a boolean or a string; 1 equals 1.0;
- ``$ne`` and ``$nin`` hold where the key is missing, all other operators (but ``$exists: false``) do not;
- ``$gt``... compare numbers with numbers; strings with strings only here, not in Chroma;
- ``$contains`` asks whether a list holds a value; it is not a search in strings;
- ``$startswith`` asks how a string begins: ``{"file": {"$startswith": "contracts/"}}`` is a folder;
- a ``date`` or ``datetime`` is its ISO text.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from operator import ge, gt, le, lt
from typing import TYPE_CHECKING, Any

from rag_kit.documents.identity import to_plain
from rag_kit.errors import FilterError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Filter = Mapping[str, Any]
Predicate = Callable[[Mapping[str, Any]], bool]

OPERATORS = ("$eq", "$ne", "$gt", "$gte", "$lt", "$lte", "$in", "$nin", "$contains", "$startswith", "$exists")
ORDER = {"$gt": gt, "$gte": ge, "$lt": lt, "$lte": le}
LISTS = (list, tuple, set, frozenset)
MISSING = object()  # what `plain_scalar` returns for a value that is not a scalar
_OPERAND_TYPES: dict[str, tuple[Any, str]] = {  # and how an error text calls them
    "$in": (LISTS, "a list of values"),
    "$nin": (LISTS, "a list of values"),
    "$exists": (bool, "true or false"),
    "$startswith": (str, "a string"),
}
_MAX_DEPTH = 16
_MAX_VALUES = 1000
_MAX_MASKS = 16  # filters that are remembered: each takes a byte a row

# A translated condition, or True or False if it always or never holds.
Clause = Any
Leaf = Callable[[str, str, Any, bool], Clause]  # from key, operator, operand, negated
Join = Callable[[str, list[Any]], Any]  # from "and" or "or", and the clauses


def validate_filter(where: Filter | None) -> None:
    """Check a filter; ``None`` and ``{}`` let everything pass.

    Raises:
        FilterError: An operator is unknown, an operand has the wrong type, or the filter is deeper than 16 levels or
            compares with more than 1,000 values; the message says what was given and what is allowed.

    Example:
        >>> validate_filter({"year": {"$gte": 2020}})
        >>> validate_filter({"year": {"$near": 2020}})
        Traceback (most recent call last):
        ...
        rag_kit.errors.FilterError: Unknown operator '$near' for 'year'. Allowed: $eq, $ne, $gt, ...
    """
    translate(where, lambda *condition: True, lambda word, parts: True)  # only for its checks


def compile_filter(where: Filter | None) -> Predicate:
    """Check a filter, and make a function that tells whether metadata pass it; the function never raises.

    Example:
        >>> recent = compile_filter({"year": {"$gte": 2020}})
        >>> [recent({"year": 2021}), recent({"year": 2001}), recent({})]
        [True, False, False]
    """
    clause = translate(where, _predicate, _join_predicates)
    return (lambda metadata: clause) if isinstance(clause, bool) else clause


def matches(where: Filter | None, metadata: Mapping[str, Any]) -> bool:
    """Tell whether metadata passes a filter; for many documents use ``compile_filter``.

    Example:
        >>> matches({"lang": "en", "year": {"$lt": 2000}}, {"lang": "en", "year": 1999})
        True
        >>> matches({"flag": 1}, {"flag": True})
        False
    """
    return compile_filter(where)(metadata)


class FilterMasks:
    """Masks of the rows whose metadata pass a filter, remembered for the last filters. Thread-safe; rows never change.

    Example:
        >>> masks = FilterMasks([{"year": 2019}, {"year": 2021, "lang": "en"}, {"lang": "en"}])
        >>> masks.mask({"year": {"$gte": 2020}}).tolist()
        [False, True, False]
    """

    def __init__(self, rows: Sequence[Mapping[str, Any]]) -> None:
        self._rows = rows
        self._masks: dict[str, NDArray[np.bool_]] = {}
        self._lock = threading.Lock()

    def __reduce__(self) -> Any:
        return FilterMasks, (self._rows,)

    def mask(self, where: Filter | None) -> NDArray[np.bool_]:
        """Return one boolean for each row: whether it passes the filter. The array is not to be changed."""
        import numpy as np

        passes, key = compile_filter(where), repr(where)
        with self._lock:
            mask = self._masks.pop(key, None)
            if mask is None:
                mask = np.fromiter(map(passes, self._rows), np.bool_, len(self._rows))
            self._masks[key] = mask  # as the last one
            if len(self._masks) > _MAX_MASKS:
                del self._masks[next(iter(self._masks))]  # the first, which was used longest ago
            return mask


def combine_filters(*filters: Filter | None) -> Filter | None:
    """Return a filter that passes what all of these pass; each is checked; ``None`` and ``{}`` add nothing.

    Example:
        >>> combine_filters({"tenant": "a"}, None, {"year": 2020})
        {'$and': [{'tenant': 'a'}, {'year': 2020}]}
    """
    for where in filters:
        validate_filter(where)
    present = [dict(where) for where in filters if where]
    if len(present) > 1:
        return {"$and": present}
    return present[0] if present else None


def plain_scalar(value: Any) -> Any:
    """Return a scalar as a str, bool, int or float (numpy's as Python's, a date as its ISO text), else ``MISSING``."""
    # numpy's float64 and str_ are floats and texts, yet compare with a tuple item by item
    if isinstance(value, (str, bool, int, float)) and not hasattr(value, "dtype"):
        return value
    if isinstance(value, date):
        return value.isoformat()
    if hasattr(value, "dtype") and getattr(value, "shape", None) == ():
        item = value.item()
        return item if isinstance(item, (str, bool, int, float)) else MISSING
    return MISSING


def translate(where: Filter | None, leaf: Leaf, join: Join) -> Clause:
    """Translate a filter condition by condition: into a store's language, a function, a mask of rows.

    It is checked as by ``validate_filter``. Negations are pushed down to the conditions, ``$ne`` and ``$nin`` become
    negated ``$eq`` and ``$in``, operands plain scalars. ``leaf`` makes the clause of one condition, ``join`` joins two
    clauses or more by ``"and"`` or ``"or"``. Clauses that are True or False are folded away.

    Example:
        >>> leaf = lambda key, operator, operand, negated: f"{'not ' * negated}{key}{operator}{operand}"
        >>> translate({"$not": {"a": 1, "b": {"$gt": 2}}}, leaf, lambda word, parts: f" {word} ".join(parts))
        'not a$eq1 or not b$gt2'
    """
    value_count = 0

    def leaf_within_bound(key: str, operator: str, operand: Any, negated: bool) -> Clause:
        nonlocal value_count
        value_count += len(operand) if isinstance(operand, list) else 1
        if value_count > _MAX_VALUES:
            raise FilterError(f"The filter compares with more than {_MAX_VALUES} values. Make it smaller.")
        return leaf(key, operator, operand, negated)

    return _translate({} if where is None else where, leaf_within_bound, join, negate=False)


def _translate(where: Any, leaf: Leaf, join: Join, *, negate: bool, depth: int = 0) -> Clause:
    """Check and translate a filter, or its negation (``negate``); ``depth`` counts the filters around it."""
    if not isinstance(where, Mapping):
        raise FilterError(
            f"A filter must be a mapping such as {{'year': 2020}}, not {type(where).__name__} {to_plain(where)!r:.80}."
        )
    if depth > _MAX_DEPTH:
        raise FilterError(f"The filter is nested deeper than {_MAX_DEPTH} levels. Make it flatter.")
    parts: list[Clause] = []
    for key, value in where.items():
        if key in ("$and", "$or"):
            if not isinstance(value, (list, tuple)) or not value:
                raise FilterError(f"{key} needs a non-empty list of filters, not {to_plain(value)!r:.80}.")
            inner = [_translate(part, leaf, join, negate=negate, depth=depth + 1) for part in value]
            # the negation of "and" is "or" of the negations, and the reverse
            word = "and" if (key == "$and") != negate else "or"
            parts.append(join_clauses(word, inner, join))
        elif key == "$not":
            parts.append(_translate(value, leaf, join, negate=not negate, depth=depth + 1))
        else:
            for operator, operand in _conditions(key, value).items():
                parts.append(_translate_condition(key, operator, operand, leaf, negate=negate))
    return join_clauses("or" if negate else "and", parts, join)


def _conditions(key: Any, value: Any) -> Mapping[Any, Any]:
    """Return the conditions on a metadata key, from operator to operand; a plain value means ``$eq``."""
    if not isinstance(key, str) or not key or key.startswith("$"):
        raise FilterError(
            f"The key {to_plain(key)!r:.80} is not allowed: keys must be non-empty strings, metadata keys or one of "
            "$and, $or, $not; an operator such as $gte goes inside: {'year': {'$gte': 2020}}."
        )
    if not isinstance(value, Mapping):
        return {"$eq": value}
    if not value:
        raise FilterError(
            f"The condition on {key!r} is empty. Give a value or one of {', '.join(OPERATORS)}."
        )
    return value


def _translate_condition(key: str, operator: Any, operand: Any, leaf: Leaf, *, negate: bool) -> Clause:
    """Check and translate one condition, or its negation; ``$ne`` and ``$nin`` become negated ``$eq`` and ``$in``."""
    if operator not in OPERATORS:
        raise FilterError(
            f"Unknown operator {operator!r} for {key!r}. Allowed: {', '.join(OPERATORS)} ($contains asks whether a "
            "list holds a value, $startswith how a string begins)."
        )
    types, wanted = _OPERAND_TYPES.get(operator, (object, ""))  # other operands are checked below
    if not isinstance(operand, types):
        raise FilterError(f"{operator} on {key!r} needs {wanted}, not {to_plain(operand)!r:.80}.")
    if operator in ORDER and isinstance(operand, bool):
        raise FilterError(f"{operator} on {key!r} needs a number or a string, not a boolean.")
    if operator in ("$in", "$nin"):
        values = [_check_scalar(key, operator, value) for value in operand]
        is_negated = not negate if operator == "$nin" else negate  # "not $nin" is "$in" again
        return leaf(key, "$in", values, is_negated) if values else is_negated  # no value is in an empty list
    value = _check_scalar(key, operator, operand)
    return leaf(key, "$eq", value, not negate) if operator == "$ne" else leaf(key, operator, value, negate)


def _check_scalar(key: str, operator: str, value: Any) -> Any:
    """Return the plain scalar behind an operand; refuse anything else."""
    plain = plain_scalar(value)
    if plain is MISSING or (isinstance(plain, float) and not math.isfinite(plain)):
        given = to_plain(value) if plain is MISSING else plain  # to_plain would show NaN as None
        raise FilterError(
            f"{operator} on {key!r} needs a string, finite number or boolean, not {type(value).__name__} "
            f"{given!r:.80}. One of several values is {{'$in': [...]}}, a missing key {{'$exists': false}}."
        )
    return plain


def join_clauses(word: str, parts: Sequence[Clause], join: Join) -> Clause:
    """Join conditions by ``"and"`` or ``"or"``; those that are always true or never true are resolved.

    With "and", a part that is False makes all False, and parts that are True are left out; with "or", the reverse.
    """
    neutral = word == "and"  # True changes nothing in an "and", False nothing in an "or"
    if any(part is (not neutral) for part in parts):
        return not neutral
    clauses = [part for part in parts if not isinstance(part, bool)]
    if not clauses:
        return neutral
    return clauses[0] if len(clauses) == 1 else join(word, clauses)


def _predicate(key: str, operator: str, operand: Any, negated: bool) -> Predicate:
    test = _value_test(operator, operand)
    return lambda metadata: test(metadata.get(key)) is not negated


def _join_predicates(word: str, parts: list[Predicate]) -> Predicate:
    all_or_any = all if word == "and" else any
    return lambda metadata: all_or_any(part(metadata) for part in parts)


def _equality_key(value: Any) -> Any:
    """Return a hashable key that is equal exactly where filters say equal (booleans are not numbers)."""
    plain = plain_scalar(value)
    return ("bool", plain) if isinstance(plain, bool) else plain


def _value_test(operator: str, operand: Any) -> Callable[[Any], bool]:
    """Make a function that tells whether a metadata value, None if it is missing, passes a condition."""
    if operator == "$exists":
        return lambda value: (value is not None) is operand
    if operator == "$startswith":
        return lambda value: isinstance(value, str) and value.startswith(operand)
    if operator in ORDER:
        compare, types = ORDER[operator], (str,) if isinstance(operand, str) else (int, float)

        def passes_order(value: Any) -> bool:
            plain = plain_scalar(value)
            return isinstance(plain, types) and not isinstance(plain, bool) and bool(compare(plain, operand))

        return passes_order
    keys = set(map(_equality_key, operand if operator == "$in" else [operand]))

    def is_among(value: Any) -> bool:
        return _equality_key(value) in keys

    if operator == "$contains":
        return lambda value: isinstance(value, LISTS) and any(map(is_among, value))
    return is_among
