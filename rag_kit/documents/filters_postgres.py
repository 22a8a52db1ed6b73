"""A filter of the kit in the filter language of langchain-postgres, for its ``PGVectorStore``."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime
from functools import partial
from typing import Any

from rag_kit.documents.filters import ALWAYS, NEVER, Clause, Filter, joined, refused, translate
from rag_kit.errors import FilterError

_KINDS = {
    **dict.fromkeys(("smallint", "integer", "bigint"), "int"),
    **dict.fromkeys(("double precision", "numeric"), "float"),
    **dict.fromkeys(("text", "character varying"), "text"),
    "boolean": "bool",
    "date": "date",
}
_RANGES = {"smallint": 2**15, "integer": 2**31, "bigint": 2**63}
_OPPOSITE = {"$gt": "$lte", "$gte": "$lt", "$lt": "$gte", "$lte": "$gt"}


def to_postgres(
    where: Filter | None, columns: Mapping[str, str], *, id_column: str = "langchain_id"
) -> dict[str, Any] | None:
    """Translate a filter for ``PGVectorStore``, so that both give the same rows.

    Only columns that the store declares can be filtered by: on another key the store finds nothing, silently, or
    compares text. Each operand is fitted to its column; SQL itself is written by the store, with parameters.

    Args:
        where: The filter.
        columns: The declared metadata columns and their PostgreSQL types, as ``information_schema`` names them.
        id_column: The store's id column, which is never null.

    Returns:
        The store's filter, or ``None`` if everything passes.

    Raises:
        FilterError: If the filter is wrong, or asks for what the store cannot do: a key without a column, a
            column of a type that is not known here (lists among them), ``$contains``, ``$startswith``, ordering
            of texts (their order depends on the collation).

    Example:
        >>> to_postgres({"year": {"$ne": 2010}}, {"year": "integer"})
        {'$or': [{'year': {'$ne': 2010}}, {'year': {'$exists': False}}]}
        >>> to_postgres({"topic": "a"}, {"year": "integer"})
        Traceback (most recent call last):
        ...
        rag_kit.errors.FilterError: PGVectorStore has no metadata column 'topic'. Declare it ...
    """
    clause = translate(where, partial(_leaf, columns), _join)
    if clause is ALWAYS:
        return None
    if isinstance(clause, bool):
        return {"$and": [{id_column: {"$exists": True}}, {id_column: {"$exists": False}}]}
    return dict(clause)


def _join(word: str, parts: list[Any]) -> dict[str, Any]:
    return {f"${word}": parts}


def _leaf(columns: Mapping[str, str], key: str, operator: str, operand: Any, negated: bool) -> Clause:
    kind, type_ = _column(columns, key)
    if operator == "$exists":
        return {key: {"$exists": operand != negated}}
    if operator in ("$startswith", "$contains"):
        raise refused("PGVectorStore", key, operator)
    if operator in ("$eq", "$in"):
        items = operand if operator == "$in" else [operand]
        fitted = [value for value in (_equal(kind, type_, item) for item in items) if value is not None]
        return _member(key, fitted, negated)
    return _ordered(key, kind, operator, operand, negated)


def _member(key: str, values: list[Any], negated: bool) -> Clause:
    if not values:
        return negated
    # the store's $in takes neither booleans nor dates
    if len(values) == 1 or any(isinstance(value, (bool, date)) for value in values):
        word = "$ne" if negated else "$eq"
        found: Clause = joined("and" if negated else "or", [{key: {word: value}} for value in values], _join)
    else:
        found = {key: {"$nin" if negated else "$in": values}}
    return _or_missing(key, found) if negated else found


def _or_missing(key: str, found: Clause) -> Clause:
    return _join("or", [found, {key: {"$exists": False}}])


def _ordered(key: str, kind: str, operator: str, value: Any, negated: bool) -> Clause:
    text = isinstance(value, str)
    if kind == "text" and text:
        raise FilterError(
            f"PGVectorStore orders texts by PostgreSQL's collation, so {operator} on {key!r} is not asked for. Use a "
            "column of numbers or dates."
        )
    if kind == "date" and text:
        value = _day(value)
        if value is None:
            raise FilterError(f"{key!r} is a column of dates; {operator} needs a day such as '2026-01-31'.")
    elif text or kind not in ("int", "float"):
        return ALWAYS if negated else NEVER
    return _or_missing(key, {key: {_OPPOSITE[operator]: value}}) if negated else {key: {operator: value}}


def _equal(kind: str, type_: str, value: Any) -> Any:
    """The operand as the column holds it; ``None`` if no row can equal it."""
    if kind == "bool" or isinstance(value, bool):
        return value if kind == "bool" and isinstance(value, bool) else None
    if kind == "int" and isinstance(value, (int, float)):
        return int(value) if value == int(value) and -_RANGES[type_] <= value < _RANGES[type_] else None
    if kind == "float":
        return float(value) if isinstance(value, (int, float)) else None
    if kind == "date":
        return _day(value) if isinstance(value, str) else None
    return value if kind == "text" and isinstance(value, str) and "\x00" not in value else None


def _day(text: str) -> date | None:
    """The day that a text names as a date column gives it back, and no other writing."""
    try:
        day = date.fromisoformat(text)
    except ValueError:
        return None
    return day if not isinstance(day, datetime) and day.isoformat() == text else None


def _column(columns: Mapping[str, str], key: str) -> tuple[str, str]:
    if key not in columns:
        raise FilterError(
            f"PGVectorStore has no metadata column {key!r}. Declare it when the table is made; there are: "
            f"{', '.join(sorted(columns)) or 'none'}."
        )
    type_ = columns[key].lower()
    # The store writes the name without quotes, so PostgreSQL would fold a capital.
    if not (key.isidentifier() and key.isascii() and key == key.lower()):
        raise FilterError(f"PGVectorStore cannot filter by the column {key!r}; its name must be lower case.")
    if type_ not in _KINDS:
        raise FilterError(
            f"PGVectorStore cannot filter by {key!r}: a column of type {type_} is not compared as the kit's filters "
            f"do. Known types: {', '.join(_KINDS)}."
        )
    return _KINDS[type_], type_
