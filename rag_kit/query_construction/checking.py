"""A model's answer, checked field by field: what fits is kept, what can be mended is, the rest is dropped and noted."""

from __future__ import annotations

from datetime import date

from rag_kit.prompts.filter_schema import UNREADABLE, FilterCondition, FilterGroup, SelfQuery
from rag_kit.query_construction.clauses import Clause, all_of, any_of, bounded, none_of
from rag_kit.query_construction.constructed import ConstructedQuery, Sort
from rag_kit.query_construction.fields import MetadataField, Schema
from rag_kit.query_construction.fitting import Fitting, UnfitError
from rag_kit.query_construction.words import short

_MAX_LIMIT = 1_000
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
    checker = _Checker(schema, today)
    where, dropped = bounded(None if answer.filter is None else checker.part(answer.filter))
    if dropped is not None:
        checker.repair(dropped)
    return ConstructedQuery(
        question=question,
        query=answer.query.strip()[:_MAX_QUERY],
        filter=where,
        sort=checker.sort(answer),
        limit=checker.limit(answer.limit),
        constructor="model",
        repairs=tuple(checker.repairs),
    )


class _Checker(Fitting):
    def __init__(self, schema: Schema, today: date) -> None:
        super().__init__(today)
        self.schema = schema

    def part(self, node: FilterCondition | FilterGroup, negated: bool = False) -> Clause | None:
        """The filter of a node; ``None`` if it could not be used, so that it lets everything through.

        What cannot be used must not make the filter narrower than it was asked for: one arm of an "and" goes alone,
        an "or" goes with all its arms, and under a "not" it is the other way round.
        """
        if isinstance(node, FilterCondition):
            return self._checked(node)
        join = node.join.strip().lower().lstrip("$")
        if join not in ("and", "or", "not"):
            self.repair(f"{node.join!r} was read as and; allowed: and, or, not")
            join = "and"
        made = [self.part(part, negated != (join == "not")) for part in node.conditions]
        parts = [part for part in made if part is not None]
        if parts and len(parts) < len(made) and (join == "or") != negated:
            self.repair(
                f"dropped: all {len(made)} conditions of {'a negated ' if negated else 'an '}{join!r}: one of them "
                "could not be used, and the others alone would hide what it asks for"
            )
            return None
        if join == "and":
            return all_of(parts)
        joined = any_of(parts)
        return none_of(joined) if joined and join == "not" else joined

    def _checked(self, given: FilterCondition) -> Clause | None:
        if given.operator == UNREADABLE:
            self.repair(f"dropped: {short(given.value)}: {given.field}")
            return None
        try:
            field = self._field(given.field)
            if field is None:
                raise UnfitError(f"there is no such field; allowed: {', '.join(self.schema.names[:20])}")
            return self.condition(field, given.operator, given.value)
        except UnfitError as reason:
            self.repair(f"dropped: {given.field[:60]} {given.operator[:20]} {short(given.value)}: {reason}")
            return None

    def _field(self, name: str) -> MetadataField | None:
        field = self.schema.find(name)
        if field is not None and field.name != name:
            self.repair(f"field {name[:60]!r} was read as {field.name}")
        return field

    def sort(self, answer: SelfQuery) -> Sort | None:
        """The order by a field that has one."""
        field = None if answer.sort_by is None else self._field(answer.sort_by)
        if field is not None and field.ordered:
            return Sort(field.name, answer.descending)
        if answer.sort_by is not None:
            why = "there is no such field" if field is None else "its values have no order"
            self.repair(f"dropped: sort by {answer.sort_by[:60]}: {why}")
        return None

    def limit(self, limit: int | None) -> int | None:
        """The number of documents asked for, from 1 to 1,000."""
        if limit is None or 1 <= limit <= _MAX_LIMIT:
            return limit
        self.repair(f"dropped: limit {limit}: it must be from 1 to {_MAX_LIMIT:,}")
        return None
