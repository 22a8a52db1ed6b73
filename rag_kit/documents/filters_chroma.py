"""A filter of the kit as Chroma's ``where``, which is stricter and lacks some operators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from rag_kit.documents.filters import Filter, validate_filter
from rag_kit.errors import FilterError

# What Chroma cannot say (an empty $in, $nin of nothing) is decided here and folded into the rest.
_ALWAYS: Final = True
_NEVER: Final = False
_Clause = dict[str, Any] | bool

_NEGATED = {"$eq": "$ne", "$ne": "$eq", "$in": "$nin", "$nin": "$in", "$contains": "$not_contains"}
_IMPOSSIBLE: dict[str, Any] = {"$and": [{"rag_kit": {"$eq": 0}}, {"rag_kit": {"$ne": 0}}]}


def to_chroma(where: Filter | None) -> dict[str, Any] | None:
    """Translate a filter for Chroma, so that both give the same rows.

    Several keys are wrapped in ``$and``, ``$not`` is pushed down to the operators, values of different types
    in ``$in`` are split, an empty ``$in`` becomes a condition that no row meets.

    Args:
        where: The filter.

    Returns:
        Chroma's ``where``, or ``None`` if everything passes.

    Raises:
        FilterError: If the filter is wrong, or asks for what Chroma lacks: ``$exists``, ``$startswith``, ordering
            of strings, the negation of an ordering (it would have to find rows without the key), integers
            beyond 64 bits.

    Example:
        >>> to_chroma({"lang": "en", "year": {"$gte": 2020}})
        {'$and': [{'lang': {'$eq': 'en'}}, {'year': {'$gte': 2020}}]}
    """
    validate_filter(where)
    clause = _where(where or {}, negate=False)
    if clause is _ALWAYS:
        return None
    return dict(_IMPOSSIBLE) if isinstance(clause, bool) else clause


def _where(where: Filter, *, negate: bool) -> _Clause:
    clauses: list[_Clause] = []
    for key, value in where.items():
        if key in ("$and", "$or"):
            inner = [_where(part, negate=negate) for part in value]
            clauses.append(_join("$and" if (key == "$and") != negate else "$or", inner))
        elif key == "$not":
            clauses.append(_where(value, negate=not negate))
        else:
            _check_key(key)
            conditions = value if isinstance(value, Mapping) else {"$eq": value}
            clauses.extend(_condition(key, op, operand, negate) for op, operand in conditions.items())
    return _join("$or" if negate else "$and", clauses)


def _join(operator: str, clauses: Sequence[_Clause]) -> _Clause:
    """Join with $and or $or, drop what decides nothing, and never give Chroma a list of fewer than two."""
    neutral = operator == "$and"
    if any(clause is (not neutral) for clause in clauses):
        return not neutral
    kept = [clause for clause in clauses if not isinstance(clause, bool)]
    if not kept:
        return neutral
    return kept[0] if len(kept) == 1 else {operator: kept}


def _condition(key: str, operator: str, operand: Any, negate: bool) -> _Clause:
    if operator == "$startswith":
        raise FilterError(f"Chroma cannot ask how {key!r} begins. Filter the results.")
    if operator == "$exists":
        raise FilterError(
            f"Chroma cannot ask whether {key!r} exists. Leave $exists out, or filter the results."
        )
    if negate:
        if operator not in _NEGATED:
            raise FilterError(
                f"Chroma cannot negate {operator} on {key!r}, since rows without it would have to pass too. "
                "Write the opposite comparison without $not."
            )
        operator = _NEGATED[operator]
    if operator in ("$in", "$nin"):
        return _membership(key, operator, [_plain(key, item) for item in operand])
    value = _plain(key, operand)
    if operator in ("$gt", "$gte", "$lt", "$lte") and isinstance(value, str):
        raise FilterError(
            f"Chroma compares only numbers with {operator}; {key!r} was compared with {value[:40]!r}. "
            "Store the value as a number (a date as a timestamp or as 20260131)."
        )
    if operator in ("$contains", "$not_contains"):
        return _list_membership(key, operator, value)
    return _comparison(key, operator, value)


def _comparison(key: str, operator: str, value: Any) -> _Clause:
    """Chroma (1.5.9) cuts a number's fraction off before it compares it with a stored integer: mend that.

    ``{"a": {"$gte": 1.5}}`` would find the integer 1, and ``{"a": {"$lt": 1.5}}`` would not.
    """
    clause: _Clause = {key: {operator: value}}
    if not isinstance(value, float) or value.is_integer():
        return clause
    whole = int(value)
    if operator in ("$ne", "$lt" if value > 0 else "$gt"):
        return {"$or": [clause, {key: {"$eq": whole}}]}
    if operator in ("$eq", "$gte" if value > 0 else "$lte"):
        return {"$and": [clause, {key: {"$ne": whole}}]}
    return clause


def _membership(key: str, operator: str, values: Sequence[Any]) -> _Clause:
    """Chroma wants one type a list, and no empty list."""
    by_type: dict[type, list[Any]] = {}
    single = "$eq" if operator == "$in" else "$ne"
    clauses: list[_Clause] = []
    for value in values:
        if isinstance(value, float) and not value.is_integer():
            clauses.append(_comparison(key, single, value))
        else:
            by_type.setdefault(type(value), []).append(value)
    clauses.extend({key: {operator: group}} for group in by_type.values())
    return _join("$or" if operator == "$in" else "$and", clauses)


def _list_membership(key: str, operator: str, value: Any) -> _Clause:
    """In Chroma a list of integers does not contain 1.0, nor a list of floats 1: ask for both."""
    values = [value]
    if isinstance(value, int) and not isinstance(value, bool):
        values.append(float(value))
    elif isinstance(value, float) and value.is_integer() and abs(value) < 2**63:
        values.append(int(value))
    return _join("$or" if operator == "$contains" else "$and", [{key: {operator: item}} for item in values])


def _plain(key: str, value: Any) -> Any:
    plain = value.item() if hasattr(value, "dtype") else value
    if isinstance(plain, int) and not -(2**63) <= plain < 2**63:
        raise FilterError(f"Chroma holds integers of 64 bits; {key!r} was compared with {plain}.")
    return plain


def _check_key(key: str) -> None:
    if key.startswith(("#", "chroma:")):
        raise FilterError(f"Chroma keeps the key {key!r} for itself. Filter by another metadata key.")
