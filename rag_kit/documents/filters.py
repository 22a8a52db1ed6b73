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
from operator import ge, gt, le, lt
from typing import Any, Final

from rag_kit.documents.identity import to_plain
from rag_kit.errors import FilterError

Filter = Mapping[str, Any]
Predicate = Callable[[Mapping[str, Any]], bool]

LOGICAL = ("$and", "$or", "$not")
OPERATORS = ("$eq", "$ne", "$gt", "$gte", "$lt", "$lte", "$in", "$nin", "$contains", "$startswith", "$exists")
ORDER = {"$gt": gt, "$gte": ge, "$lt": lt, "$lte": le}
MANY = (list, tuple, set, frozenset)
MISSING = object()
"""Stands for a value that is no scalar."""
ALWAYS: Final = True
NEVER: Final = False
_NEEDS: dict[str, tuple[Any, str]] = {
    "$in": (MANY, "a list of values"),
    "$nin": (MANY, "a list of values"),
    "$exists": (bool, "true or false"),
    "$startswith": (str, "a string"),
}
_MAX_DEPTH = 16
_MAX_NODES = 1000

# The store's condition, or whether it always or never holds.
Clause = Any
Leaf = Callable[[str, str, Any, bool], Clause]
Join = Callable[[str, list[Any]], Any]


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
    pending = [] if where is None else [(where, 0)]
    nodes = 0
    while pending:
        part, depth = pending.pop()
        inner, amount = _checked(part)
        nodes += amount
        if nodes > _MAX_NODES:
            raise FilterError(f"The filter has more than {_MAX_NODES} nodes. Make it smaller.")
        if inner and depth == _MAX_DEPTH:
            raise FilterError(f"The filter is nested deeper than {_MAX_DEPTH} levels. Make it flatter.")
        pending.extend((each, depth + 1) for each in inner)


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
    clause = translate(where, _predicate, _joined_predicates)
    return (lambda metadata: clause) if isinstance(clause, bool) else clause


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


def _checked(where: Any) -> tuple[Sequence[Filter], int]:
    """Check one level of a filter: the filters inside it, and how many nodes it has itself."""
    if not isinstance(where, Mapping):
        raise FilterError(
            f"A filter must be a mapping such as {{'year': 2020}}, not {type(where).__name__} {_short(where)}."
        )
    inner: list[Filter] = []
    nodes = 1
    for key, value in where.items():
        if not isinstance(key, str) or not key:
            raise FilterError(f"A filter's keys must be non-empty strings, not {_short(key)}.")
        if key in ("$and", "$or"):
            if not isinstance(value, (list, tuple)) or not value:
                raise FilterError(f"{key} needs a non-empty list of filters, not {_short(value)}.")
            inner.extend(value)
        elif key == "$not":
            inner.append(value)
        elif key.startswith("$"):
            raise FilterError(
                f"Unknown logical operator {key!r}. Allowed here: a metadata key, {', '.join(LOGICAL)}; "
                f"an operator such as $gte goes inside: {{'year': {{'$gte': 2020}}}}."
            )
        elif not (conditions := conditions_of(value)):
            raise FilterError(
                f"The condition on {key!r} is empty. Give a value or one of {', '.join(OPERATORS)}."
            )
        else:
            for operator, operand in conditions.items():
                _check_operand(key, operator, operand)
                nodes += 1 + (len(operand) if isinstance(operand, MANY) else 0)
    return inner, nodes


def conditions_of(value: Any) -> Mapping[str, Any]:
    """What a filter asks of a key, as operators and operands; a plain value asks for what is equal to it."""
    return value if isinstance(value, Mapping) else {"$eq": value}


def _check_operand(key: str, operator: Any, operand: Any) -> None:
    if operator not in OPERATORS:
        raise FilterError(
            f"Unknown operator {operator!r} for {key!r}. Allowed: {', '.join(OPERATORS)} ($contains asks whether a "
            "list holds a value, $startswith how a string begins)."
        )
    kind, what = _NEEDS.get(operator, (object, ""))
    if not isinstance(operand, kind):
        raise FilterError(f"{operator} on {key!r} needs {what}, not {_short(operand)}.")
    for item in operand if operator in ("$in", "$nin") else [operand]:
        _check_scalar(key, operator, item)
    if operator in ORDER and isinstance(operand, bool):
        raise FilterError(f"{operator} on {key!r} needs a number or a string, not a boolean.")


def _check_scalar(key: str, operator: str, value: Any) -> None:
    plain = scalar(value)
    if plain is MISSING:
        hint = " Ask for a missing key with {'$exists': false}." if value is None else ""
        hint = " Use {'$in': [...]} for one of several values." if isinstance(value, (list, tuple)) else hint
        raise FilterError(
            f"{operator} on {key!r} needs a string, number or boolean, not {type(value).__name__} "
            f"{_short(value)}.{hint}"
        )
    if isinstance(plain, float) and not math.isfinite(plain):
        raise FilterError(f"{operator} on {key!r} needs a finite number, not {plain}.")


def _short(value: Any) -> str:
    text = repr(to_plain(value))
    return text if len(text) <= 80 else text[:77] + "..."


def scalar(value: Any) -> Any:
    """The plain scalar behind a value (numpy scalars and dates too), or ``MISSING`` if it is none."""
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

    Negations are pushed down to the conditions, ``$ne`` and ``$nin`` become negated ``$eq`` and ``$in``, operands plain
    scalars, and what always or never holds is folded away.

    Args:
        where: The filter.
        leaf: Gives the condition for key, operator, operand, negated; or ``ALWAYS`` or ``NEVER``.
        join: Joins at least two conditions with ``"and"`` or ``"or"``.

    Returns:
        The translated filter, ``ALWAYS`` or ``NEVER``.

    Raises:
        FilterError: As ``validate_filter``, and what ``leaf`` raises.

    Example:
        >>> leaf = lambda key, operator, operand, negated: f"{'not ' * negated}{key}{operator}{operand}"
        >>> translate({"$not": {"a": 1, "b": {"$gt": 2}}}, leaf, lambda word, parts: f" {word} ".join(parts))
        'not a$eq1 or not b$gt2'
    """
    validate_filter(where)
    return _translated(where or {}, False, leaf, join)


def _translated(where: Filter, negate: bool, leaf: Leaf, join: Join) -> Clause:
    parts: list[Clause] = []
    for key, value in where.items():
        if key in ("$and", "$or"):
            inner = [_translated(part, negate, leaf, join) for part in value]
            parts.append(joined("and" if (key == "$and") != negate else "or", inner, join))
        elif key == "$not":
            parts.append(_translated(value, not negate, leaf, join))
        else:
            for operator, operand in conditions_of(value).items():
                parts.append(_condition(key, operator, operand, negate, leaf))
    return joined("or" if negate else "and", parts, join)


def _condition(key: str, operator: str, operand: Any, negate: bool, leaf: Leaf) -> Clause:
    if operator in ("$ne", "$nin"):
        operator, negate = ("$eq" if operator == "$ne" else "$in"), not negate
    if operator == "$in":
        items = [scalar(item) for item in operand]
        return leaf(key, operator, items, negate) if items else negate
    return leaf(key, operator, scalar(operand), negate)


def joined(word: str, parts: Sequence[Clause], join: Join) -> Clause:
    """Join conditions; what decides nothing is left out, what decides all is the result."""
    neutral = word == "and"
    if any(part is (not neutral) for part in parts):
        return not neutral
    kept = [part for part in parts if not isinstance(part, bool)]
    if not kept:
        return neutral
    return kept[0] if len(kept) == 1 else join(word, kept)


def _predicate(key: str, operator: str, operand: Any, negated: bool) -> Predicate:
    test = value_test(operator, operand)
    return lambda metadata: test(metadata.get(key)) is not negated


def _joined_predicates(word: str, parts: list[Predicate]) -> Predicate:
    which = all if word == "and" else any
    return lambda metadata: which(part(metadata) for part in parts)


def typed(value: Any) -> Any:
    """A hashable that is equal exactly where the filter language says equal (booleans are no numbers)."""
    if isinstance(value, bool):
        return ("bool", value)
    return value if isinstance(value, (str, int, float)) else MISSING


def value_test(operator: str, operand: Any) -> Callable[[Any], bool]:
    """A function from a value (``None``: missing) to whether it passes a condition as `translate` gives it."""
    if operator == "$exists":
        return lambda found: (found is not None) is operand
    if operator == "$startswith":
        return lambda found: isinstance(found, str) and found.startswith(operand)
    if operator in ORDER:
        compare, kinds = ORDER[operator], (str,) if isinstance(operand, str) else (int, float)

        def compares(found: Any) -> bool:
            plain = scalar(found)
            return isinstance(plain, kinds) and not isinstance(plain, bool) and bool(compare(plain, operand))

        return compares
    wanted = {typed(item) for item in (operand if operator == "$in" else [operand])}
    if operator == "$contains":
        return lambda found: isinstance(found, MANY) and any(typed(scalar(one)) in wanted for one in found)
    return lambda found: typed(scalar(found)) in wanted


def refused(store: str, key: str, operator: str) -> FilterError:
    """The error for an operator that a store does not have."""
    return FilterError(f"{store} cannot ask {operator} of {key!r}. Leave it out, or filter the results.")
