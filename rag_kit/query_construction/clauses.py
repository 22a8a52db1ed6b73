"""Clauses of a question: text, order, limit and a filter, whose conditions are joined and kept in bounds."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from langchain_core.structured_query import StructuredQuery

from rag_kit.documents import Filter, validate_filter
from rag_kit.errors import FilterError
from rag_kit.query_construction.fields import cut_line
from rag_kit.retrieval.stores import to_directive

Clause = dict[str, Any]
_MAX_CONDITIONS = 50
_MAX_STEPS = 8


@dataclass(frozen=True)
class Sort:
    """An order by a field."""

    field: str
    descending: bool = True


@dataclass(frozen=True)
class ConstructedQuery:
    """A question as text and filter.

    Attributes:
        question: The question.
        query: The text to search for; empty where the question asks for documents by their metadata alone.
        filter: The conditions, as a filter of the kit.
        sort: The order asked for ("the latest").
        limit: The number of documents asked for ("the three latest").
        constructor: ``"rules"`` or ``"model"``.
        repairs: What was changed or dropped on the way from the model's answer.
    """

    question: str
    query: str = ""
    filter: dict[str, Any] | None = None
    sort: Sort | None = None
    limit: int | None = None
    constructor: str = "rules"
    repairs: tuple[str, ...] = ()

    @property
    def structured_query(self) -> StructuredQuery:
        """The query in LangChain's form, for its translators."""
        return StructuredQuery(query=self.query, filter=to_directive(self.filter), limit=self.limit)

    def as_dict(self) -> dict[str, Any]:
        """The query as plain JSON, for the provenance."""
        record = asdict(self)
        del record["question"]
        return {**record, "repairs": list(self.repairs)}


def all_of(parts: Sequence[Clause]) -> Clause | None:
    """AND conditions, flat; ``None`` for none."""
    return _join_flat("$and", parts)


def any_of(parts: Sequence[Clause]) -> Clause | None:
    """OR conditions, flat; ``None`` for none."""
    return _join_flat("$or", parts)


def _join_flat(word: str, parts: Sequence[Clause]) -> Clause | None:
    """Join clauses by ``$and`` or ``$or``; a clause that is such a join itself gives its members."""
    flat = [inner for part in parts for inner in part.get(word, [part])]
    return {word: flat} if len(flat) > 1 else next(iter(flat), None)


def none_of(part: Clause) -> Clause:
    """Negate a condition; one that is negated itself gives what is inside."""
    return part.get("$not") or {"$not": part}


def shorten_clause(where: Clause) -> Clause:
    """Write ``year = 2010 or year = 2012`` as ``year in (2010, 2012)``, and the same for "not"."""
    join, single, several = ("$or", "$eq", "$in") if "$or" in where else ("$and", "$ne", "$nin")
    parts = [split_clause(part) for part in where.get(join, [])]
    fields = {field for field, _, _ in parts}
    if len(fields) != 1 or any(operator not in (single, several) for _, operator, _ in parts):
        return where
    [field] = fields
    lists = (operand if operator == several else [operand] for _, operator, operand in parts)
    values = list(dict.fromkeys(value for operands in lists for value in operands))
    return {field: {several: values} if len(values) > 1 else {single: values[0]}}


def top_clauses(where: Filter | None) -> list[Clause]:
    """Return the conditions that are ANDed at the top."""
    return list(where.get("$and", [where])) if where else []


def split_clause(part: Clause | None) -> tuple[str, str, Any]:
    """Split ``{"year": {"$gt": 2010}}`` into field, operator and operand; return empty texts for any other clause."""
    field, comparison = next(iter((part or {"": None}).items()))
    if field.startswith("$") or not isinstance(comparison, dict):
        return "", "", None
    operator, operand = next(iter(comparison.items()))
    return field, operator, operand


def bound_filter(where: Clause | None) -> tuple[Clause | None, str | None]:
    """Cut a filter to what the filter language allows; return it, and what was dropped in words, else ``None``."""
    try:
        validate_filter(where)
        return where, None
    except FilterError as error:
        why = str(error)
    parts = list({repr(part): part for part in top_clauses(where)}.values())
    kept = parts[:_MAX_CONDITIONS]
    try:
        validate_filter(all_of(kept))
    except FilterError:  # one of them is too large or too deep by itself
        kept = []
    dropped = len(parts) - len(kept)
    repair = f"dropped the last {dropped} of {len(parts)} conditions: {why}" if dropped else None
    return all_of(kept), repair


def relax_filter(where: Filter | None) -> Iterator[tuple[Clause | None, str]]:
    """Yield weaker and weaker filters, at most eight, each with the dropped conditions in words.

    Conditions that are ANDed at the top are dropped one by one, the last one first, never parts of them.
    """
    parts = top_clauses(where)
    for step in range(1, min(len(parts), _MAX_STEPS) + 1):
        dropped = len(parts) if step == _MAX_STEPS else step
        yield all_of(parts[:-dropped]), " and ".join(map(show_filter, reversed(parts[-dropped:])))


def show_filter(where: Filter) -> str:
    """Write a filter as one short line."""
    return cut_line(json.dumps(where, ensure_ascii=False), 300)
