"""A filter of the kit in the filter language of langchain-postgres, for its ``PGVectorStore``."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from functools import partial
from typing import Any

from rag_kit.documents.filters import Clause, Filter, joined, refused, translate
from rag_kit.errors import FilterError

#: How the values of a column of each type are compared.
_KINDS: dict[str, type] = {
    **dict.fromkeys(("smallint", "integer", "bigint"), int),
    **dict.fromkeys(("double precision", "numeric"), float),
    **dict.fromkeys(("text", "character varying"), str),
    "boolean": bool,
    "date": date,
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
    clause = translate(where, partial(_clause_of, columns), _join)
    if clause is True:
        return None
    return dict(clause or _join("and", [{id_column: {"$exists": exists}} for exists in (True, False)]))


def _join(word: str, parts: list[Any]) -> dict[str, Any]:
    return {f"${word}": parts}


def _clause_of(columns: Mapping[str, str], key: str, operator: str, operand: Any, negated: bool) -> Clause:
    """One condition in the store's language; True or False where it holds for every row or none."""
    kind, bound = _column(columns, key)
    if operator == "$exists":
        return {key: {"$exists": operand != negated}}
    if operator in ("$startswith", "$contains"):
        raise refused("PGVectorStore", key, operator)
    if operator in ("$eq", "$in"):
        items = operand if operator == "$in" else [operand]
        values = [
            value for value in (_column_value(kind, bound, item) for item in items) if value is not None
        ]
        clause = _member(key, values, negated)
    elif isinstance(operand, str):
        if kind is str:  # the order of texts depends on the collation
            raise refused("PGVectorStore", key, operator)
        day = _column_value(kind, bound, operand)
        if kind is date and day is None:
            raise FilterError(f"{key!r} is a column of dates; {operator} needs a day such as '2026-01-31'.")
        clause = False if day is None else {key: {_OPPOSITE[operator] if negated else operator: day}}
    elif kind in (int, float):
        clause = {key: {_OPPOSITE[operator] if negated else operator: operand}}
    else:
        clause = False
    if not negated:
        return clause
    # SQL is neither true nor false of a null, which passes a negated filter of the kit
    return True if isinstance(clause, bool) else _join("or", [clause, {key: {"$exists": False}}])


def _member(key: str, values: list[Any], negated: bool) -> Clause:
    # the store's $in takes neither booleans nor dates
    if len(values) <= 1 or any(isinstance(value, (bool, date)) for value in values):
        conditions = [{key: {"$ne" if negated else "$eq": value}} for value in values]
        return joined("and" if negated else "or", conditions, _join)
    return {key: {"$nin" if negated else "$in": values}}


def _column_value(kind: type, bound: int, value: Any) -> Any:
    """The operand as a column of this kind holds it; ``None`` if no row can equal it."""
    if kind is date:
        return _day(value) if isinstance(value, str) else None
    if kind is str:
        return value if isinstance(value, str) and "\x00" not in value else None
    if isinstance(value, str) or isinstance(value, bool) != (kind is bool):
        return None
    if kind is int:
        return int(value) if value == int(value) and -bound <= value < bound else None
    return kind(value)


def _day(text: str) -> date | None:
    """The day that a text names as a date column gives it back, and no other writing."""
    try:
        day = date.fromisoformat(text)
    except ValueError:
        return None
    return day if day.isoformat() == text else None


def _column(columns: Mapping[str, str], key: str) -> tuple[type, int]:
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
    return _KINDS[type_], _RANGES.get(type_, 0)
