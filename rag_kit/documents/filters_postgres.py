"""A filter of the kit in the filter language of langchain-postgres, for its ``PGVectorStore``."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from functools import partial
from typing import Any

from rag_kit.documents.filters import ORDER, Clause, Filter, cannot_ask, join_clauses, join_mongo, translate
from rag_kit.errors import FilterError

#: Of each type of column, how its values are compared, and the bound of its whole numbers.
_KINDS: dict[str, tuple[type, int]] = {
    "smallint": (int, 2**15),
    "integer": (int, 2**31),
    "bigint": (int, 2**63),
    **dict.fromkeys(("double precision", "numeric"), (float, 0)),
    **dict.fromkeys(("text", "character varying"), (str, 0)),
    "boolean": (bool, 0),
    "date": (date, 0),
}


def to_postgres(where: Filter | None, columns: Mapping[str, str]) -> dict[str, Any] | None:
    """Translate a filter for ``PGVectorStore``, so that both give the same rows.

    Only columns that the store declares can be filtered by: on another key the store finds nothing, silently, or
    compares text. Each operand is fitted to its column; SQL itself is written by the store, with parameters.

    Args:
        where: The filter.
        columns: The declared metadata columns and their PostgreSQL types, as ``information_schema`` names them.

    Returns:
        The store's filter, or ``None`` if everything passes.

    Raises:
        FilterError: If the filter is wrong, or asks for what the store cannot do: a key without a column, a
            column of a type that is not known here (lists among them), ``$contains``, ``$startswith``, ordering
            of texts (their order depends on the collation).

    Example:
        >>> to_postgres({"year": {"$ne": 2010}}, {"year": "integer"})
        {'$or': [{'$not': {'year': {'$eq': 2010}}}, {'year': {'$exists': False}}]}
        >>> to_postgres({"topic": "a"}, {"year": "integer"})
        Traceback (most recent call last):
        ...
        rag_kit.errors.FilterError: PGVectorStore cannot filter by 'topic': it is no column in lower case of ...
    """
    clause = translate(where, partial(_clause_of, columns), join_mongo)
    if clause is True:
        return None
    column = next(iter(columns), "langchain_id")
    return dict(clause or join_mongo("and", [{column: {"$exists": exists}} for exists in (True, False)]))


def _clause_of(columns: Mapping[str, str], key: str, operator: str, operand: Any, negated: bool) -> Clause:
    """One condition in the store's language; True or False where it holds for every row or none."""
    # the store writes the name without quotes, so PostgreSQL would fold a capital
    is_name = key.isidentifier() and key.isascii() and key == key.lower()
    if not is_name or (column := columns.get(key, "").lower()) not in _KINDS:
        declared = ", ".join(f"{name} ({type_})" for name, type_ in sorted(columns.items()))
        raise FilterError(
            f"PGVectorStore cannot filter by {key!r}: it is no column in lower case of a known type "
            f"({', '.join(_KINDS)}). There are: {declared or 'none'}."
        )
    kind, max_int = _KINDS[column]
    if operator == "$exists":
        return {key: {"$exists": operand != negated}}
    if operator in ("$startswith", "$contains") or (operator in ORDER and str is kind is type(operand)):
        raise cannot_ask("PGVectorStore", key, operator)
    if operator in ORDER:
        clause = _ordering(key, kind, operator, operand)
    else:
        values = [
            _column_value(kind, max_int, item) for item in (operand if operator == "$in" else [operand])
        ]
        clause = _membership(key, [value for value in values if value is not None])
    if not negated:
        return clause
    # SQL is neither true nor false of a null, which passes a negated filter of the kit
    return clause is False or join_mongo("or", [{"$not": clause}, {key: {"$exists": False}}])


def _ordering(key: str, kind: type, operator: str, operand: Any) -> Clause:
    """A comparison of a column of numbers or days; False where its values are never comparable with the operand."""
    if kind is date and isinstance(operand, str):
        if (operand := _day(operand)) is None:
            raise FilterError(f"{key!r} is a column of dates; {operator} needs a day such as '2026-01-31'.")
        return {key: {operator: operand}}
    return {key: {operator: operand}} if kind in (int, float) and not isinstance(operand, str) else False


def _membership(key: str, values: list[Any]) -> Clause:
    """A condition that a column holds one of the values."""
    # the store's $in takes neither booleans nor dates
    if len(values) <= 1 or any(isinstance(value, (bool, date)) for value in values):
        return join_clauses("or", [{key: {"$eq": value}} for value in values], join_mongo)
    return {key: {"$in": values}}


def _column_value(kind: type, max_int: int, value: Any) -> Any:
    """The operand as a column of this kind holds it; ``None`` if no row can equal it."""
    if kind is date:
        return _day(value) if isinstance(value, str) else None
    if kind is str:
        return value if isinstance(value, str) and "\x00" not in value else None
    if isinstance(value, str) or isinstance(value, bool) != (kind is bool):
        return None
    if kind is int:
        return int(value) if value == int(value) and -max_int <= value < max_int else None
    return kind(value)


def _day(text: str) -> date | None:
    """The day that a text names as a date column gives it back, and no other writing."""
    try:
        day = date.fromisoformat(text)
    except ValueError:
        return None
    return day if day.isoformat() == text else None
