"""A model's answer, checked field by field: what fits is kept, what can be mended is, the rest is dropped and noted."""

from __future__ import annotations

from datetime import date

from langchain_core.structured_query import FilterDirective

from rag_kit.prompts.filter_schema import UNREADABLE, FilterCondition, FilterGroup, SelfQuery
from rag_kit.query_construction.coercion import short
from rag_kit.query_construction.conditions import Fitting, operator_of
from rag_kit.query_construction.constructed import ConstructedQuery, Sort
from rag_kit.query_construction.fields import MetadataField, Schema
from rag_kit.query_construction.ir import all_of, any_of, bounded, none_of

MAX_LIMIT = 1_000
_MAX_QUERY = 2_000


def check_answer(answer: SelfQuery, question: str, schema: Schema, today: date) -> ConstructedQuery:
    """Check what a model answered.

    Only fields of the schema get through, under operators that their type has, with values of their type. What does
    not is dropped, and an "or" with it of which it was an arm: the filter may get wider, never narrower. Every change
    is recorded in ``repairs``.

    Args:
        answer: The model's answer.
        question: The question.
        schema: The fields that may be used.
        today: What relative dates count from.

    Example:
        >>> schema = Schema.of([{"name": "year", "type": "int"}])
        >>> answer = SelfQuery(query="sleep", filter={"Year": {"$gte": "2010"}, "owner": "me"})
        >>> made = check_answer(answer, "sleep since 2010", schema, date(2026, 1, 1))
        >>> made.filter
        {'year': {'$gte': 2010}}
        >>> print(*made.repairs, sep="\\n")
        field 'Year' was read as year
        year: '2010' was read as 2010
        dropped: owner eq 'me': there is no such field; allowed: year
    """
    checker = _Checker(schema, Fitting(today))
    directive = None if answer.filter is None else checker.node(answer.filter)
    directive = checker.bounded(directive)
    sort = checker.sort(answer)
    return ConstructedQuery(
        question=question,
        query=answer.query.strip()[:_MAX_QUERY],
        directive=directive,
        sort=sort,
        limit=checker.limit(answer.limit),
        constructor="model",
        repairs=tuple(checker.fitting.repairs),
    )


class _Checker:
    def __init__(self, schema: Schema, fitting: Fitting) -> None:
        self.schema = schema
        self.fitting = fitting

    def node(self, node: FilterCondition | FilterGroup, negated: bool = False) -> FilterDirective | None:
        """The directive of a node; ``None`` if it could not be used, so that it lets everything through.

        What cannot be used must not make the filter narrower than it was asked for: one arm of an "and" goes alone,
        an "or" goes with all its arms, and under a "not" it is the other way round.
        """
        if isinstance(node, FilterCondition):
            return self._condition(node)
        join = node.join.strip().lower().lstrip("$")
        if join not in ("and", "or", "not"):
            self.fitting.repair(f"{node.join!r} was read as and; allowed: and, or, not")
            join = "and"
        made = [self.node(part, negated != (join == "not")) for part in node.conditions]
        parts = [part for part in made if part is not None]
        if parts and len(parts) < len(made) and (join == "or") != negated:
            self.fitting.repair(
                f"dropped: all {len(made)} conditions of {'a negated ' if negated else 'an '}{join!r}: one of them "
                "could not be used, and the others alone would hide what it asks for"
            )
            return None
        if join == "not":
            inner = any_of(parts)
            return None if inner is None else none_of(inner)
        return all_of(parts) if join == "and" else any_of(parts)

    def _condition(self, given: FilterCondition) -> FilterDirective | None:
        shown = f"{given.field[:60]} {given.operator[:20]} {short(given.value)}"
        if given.operator == UNREADABLE:
            self.fitting.repair(f"dropped: {short(given.value)}: {given.field}")
            return None
        field = self._field(given.field)
        if field is None:
            allowed = ", ".join(self.schema.names[:20])
            self.fitting.repair(f"dropped: {shown}: there is no such field; allowed: {allowed}")
            return None
        found = operator_of(given.operator)
        if found is None:
            self.fitting.repair(
                f"dropped: {shown}: there is no such operator; allowed: eq, ne, gt, gte, lt, lte, in, nin, contain"
            )
            return None
        comparator, negated = found
        made = self.fitting.make(field, comparator, given.value)
        return none_of(made) if negated and made is not None else made

    def _field(self, name: str) -> MetadataField | None:
        field = self.schema.find(name)
        if field is not None and field.name != name:
            self.fitting.repair(f"field {name[:60]!r} was read as {field.name}")
        return field

    def bounded(self, directive: FilterDirective | None) -> FilterDirective | None:
        """Drop conditions from the end until the filter is within the bounds of filters."""
        kept, dropped_part = bounded(directive)
        if dropped_part is not None:
            self.fitting.repair(dropped_part)
        return kept

    def sort(self, answer: SelfQuery) -> Sort | None:
        if answer.sort_by is None:
            return None
        field = self._field(answer.sort_by)
        if field is None or not field.ordered:
            why = "there is no such field" if field is None else "its values have no order"
            self.fitting.repair(f"dropped: sort by {answer.sort_by[:60]}: {why}")
            return None
        return Sort(field.name, answer.descending)

    def limit(self, limit: int | None) -> int | None:
        if limit is None:
            return None
        if limit < 1:
            self.fitting.repair(f"dropped: limit {limit}: it must be at least 1")
            return None
        if limit > MAX_LIMIT:
            self.fitting.repair(f"limit {limit} was cut to {MAX_LIMIT}")
        return min(limit, MAX_LIMIT)
