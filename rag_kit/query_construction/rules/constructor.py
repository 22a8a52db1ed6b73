"""From a question to a text and a filter without a model."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from datetime import date
from functools import lru_cache
from typing import Any

from rag_kit.query_construction.clauses import Clause, all_of, any_of, bounded, comparison_clause
from rag_kit.query_construction.constructed import ConstructedQuery
from rag_kit.query_construction.dates import Period, find_periods
from rag_kit.query_construction.fields import MetadataField, Schema
from rag_kit.query_construction.rules import cues
from rag_kit.query_construction.rules.atoms import Atom, find_missing, quarter_of
from rag_kit.query_construction.rules.comparisons import Amount, Comparison, compare
from rag_kit.query_construction.rules.joining import beside_unknown, join
from rag_kit.query_construction.rules.mentions import name_before, purpose_of, read_mentions, value_conditions
from rag_kit.query_construction.rules.numbers import find_numbers
from rag_kit.query_construction.rules.ordering import find_order
from rag_kit.query_construction.rules.values import NamedValue, ValueIndex
from rag_kit.query_construction.words import simplified
from rag_kit.text import content_words

_MAX_QUESTION = 2_000
_OPPOSITE = {"$eq": "$ne", "$gt": "$lte", "$gte": "$lt", "$lt": "$gte", "$lte": "$gt"}


class RuleConstructor:
    """Turns a question into text and filter by rule: no model, no network, deterministic.

    Values of the collection that the question names become conditions; so do dates and years ("after 2015",
    "between 2008 and 2011", "2015年以后", "the last five years"), and numbers next to the name of a numeric field.
    "not", "without", "except", "or", "either", 不, 除了, 或 are understood; "the three latest" gives order and limit.
    Where one thing of an or-list is no known value ("Stroke or insomnia"), the known ones make no condition: it would
    hide what was asked for. ``repairs`` names it.

    Args:
        today: What relative dates count from; ``None`` for the day of the call.

    Example:
        >>> schema = Schema.of([
        ...     {"name": "year", "type": "int"},
        ...     {"name": "mesh", "type": "list[str]", "allowed": ["Stroke", "Obesity", "Humans"]},
        ... ])
        >>> rules = RuleConstructor()
        >>> rules.construct("Studies on stroke or obesity after 2010, but not in humans", schema).filter == {
        ...     "$and": [
        ...         {"$or": [{"mesh": {"$contains": "Stroke"}}, {"mesh": {"$contains": "Obesity"}}]},
        ...         {"year": {"$gt": 2010}},
        ...         {"$not": {"mesh": {"$contains": "Humans"}}},
        ...     ]
        ... }
        True
        >>> rules.construct("2010年以后关于Stroke的研究", schema).filter
        {'$and': [{'year': {'$gt': 2010}}, {'mesh': {'$contains': 'Stroke'}}]}
    """

    def __init__(self, *, today: date | None = None) -> None:
        self._today = today

    @staticmethod
    def named_values(schema: Schema, question: str) -> dict[str, list[Any]]:
        """The values of a schema that a question names, by field."""
        by_field: dict[str, list[Any]] = {}
        for named in _index(schema).find(_normal(question)):
            by_field.setdefault(named.field, []).append(named.value)
        return by_field

    def construct(self, question: str, schema: Schema) -> ConstructedQuery:
        """Turn a question, of which the first 2,000 characters are read, into text and filter."""
        text = _normal(question)
        reading = _Reading(simplified(text), schema, self._today or date.today())
        beside = beside_unknown(reading.text, reading.atoms)
        atoms = [atom for atom in reading.atoms if atom not in beside]
        # what is no condition stays in the text
        rest, bare = cues.remainder(text, [*reading.used, *_places(atoms)])
        where, repair = bounded(join(reading.text, atoms))
        repairs = [
            f"dropped: {atom.field} {text[atom.begin : atom.end][:60]!r}: the question also asks for {word[:60]!r}, "
            "which is no known value, and the filter would hide it"
            for atom, word in beside.items()
        ]
        return ConstructedQuery(
            question=question,
            query=rest if content_words(bare) else "",
            filter=where,
            sort=reading.order.sort if reading.order else None,
            limit=reading.order.limit if reading.order else None,
            repairs=(*repairs, *([repair] if repair else [])),
        )


@lru_cache(maxsize=16)
def _index(schema: Schema) -> ValueIndex:
    return ValueIndex(schema)


def _normal(question: str) -> str:
    return unicodedata.normalize("NFKC", question)[:_MAX_QUESTION]


class _Reading:
    """Reads one question.

    Attributes:
        order: The order that it asks for.
        atoms: Its conditions, in the order of the text.
        used: Where words stand that are understood and no condition.
    """

    def __init__(self, text: str, schema: Schema, today: date) -> None:
        self.text = text
        self.used: list[tuple[int, int]] = []
        self._schema = schema
        self._today = today
        self._times = [field for field in schema if field.temporal]
        self.order = find_order(text, schema)
        if self.order is not None:
            self.used.append((self.order.begin, self.order.noun))
        self.atoms = sorted(self._conditions(), key=lambda atom: (atom.begin, atom.end))

    def _conditions(self) -> list[Atom]:
        text, schema, order = self.text, self._schema, self.order
        time = max(self._times, key=lambda field: field.type == "date", default=None)
        missing = find_missing(text, schema, time)
        self.used += _places(missing)
        values = [value for value in _index(schema).find(text) if self._may_be_value(value)]
        if order is not None:  # "the last three reports": a noun may name a kind, else it says nothing
            self.used.append((order.begin, order.end))
        periods = self._find_periods(values)
        # the Q2 of "Q2 2023" is read with its year
        values = [
            value
            for value in values
            if not any(p.begin <= value.begin and value.end <= p.end for p in periods)
        ]
        numbers = self._find_numbers(values, periods)
        # "a price over 1000": what a numeric field's name stands before is no year
        periods = [period for period in periods if not _overlaps(period.begin, period.end, _places(numbers))]
        amounts = sorted([*periods, *numbers], key=lambda amount: amount.begin)
        comparisons = list(compare(text, amounts, _places(values)))
        mentions = read_mentions(text, schema, values, _places(comparisons))
        sure = [mention.atom for mention in mentions if mention.value.sure]
        understood = [*_places(comparisons), *self.used, *_places(sure)]
        purpose = purpose_of(text, understood, schema, bool(comparisons or missing))
        if order is not None and order.noun == order.end and purpose != "documents":
            # "the most recent treatment" is no document
            self.used = [span for span in self.used if span[0] != order.begin]
            self.order = None
        compared_ = [self._comparison_atom(comparison, purpose == "documents") for comparison in comparisons]
        return [*missing, *compared_, *value_conditions(mentions, purpose)]

    def _may_be_value(self, value: NamedValue) -> bool:
        """Whether a value counts as named; "2010" is a year before it is the value of a text field."""
        if _overlaps(value.begin, value.end, self.used):
            return False
        if not self.text[value.begin : value.end].isdecimal():
            return True
        left = self.text[max(0, value.begin - 40) : value.begin]
        field = self._schema.get(value.field)
        return left[-1:] in (*cues.OPENING,) or bool(field and name_before(left, field.all_names))

    def _find_periods(self, values: Sequence[NamedValue]) -> list[Amount]:
        """The dates and years in the text that are no part of a value, each with the field that it is about."""
        amounts: list[Amount] = []
        for found in find_periods(self.text, self._today) if self._times else ():
            inside = any(value.begin <= found.begin and found.end <= value.end for value in values)
            plain = self.text[found.begin : found.end].isdecimal()
            if (
                inside
                or _overlaps(found.begin, found.end, self.used)
                or (plain and cues.NOT_YEARS.match(self.text, found.end))
            ):
                continue
            field = self._time_for(found.begin, found.period)
            amounts.append(Amount(found.begin, found.end, found.period, field.name, found.begin))
        return amounts

    def _time_for(self, begin: int, period: Period) -> MetadataField:
        """The field that a date is about: the one named before it, else the one of its grain."""
        before = self.text[max(0, begin - 60) : begin].lower()
        fine = period.grain not in ("year", "years") and quarter_of(period, self._schema) is None
        return max(
            self._times,
            key=lambda field: (
                max(before.rfind(name.lower().replace("_", " ")) for name in field.all_names),
                (field.type == "date") == fine,
            ),
        )

    def _find_numbers(self, values: Sequence[NamedValue], periods: Sequence[Amount]) -> list[Amount]:
        years = [place for place in _places(periods) if self.text[slice(*place)].isdecimal()]
        dates = [place for place in _places(periods) if place not in years]
        return find_numbers(self.text, self._schema, [*_places(values), *dates, *self.used], years)

    def _comparison_atom(self, comparison: Comparison, documents: bool) -> Atom:
        """The condition of a comparison with its place in the text; of a quarter, year and quarter."""
        field = self._schema.get(comparison.field)
        assert field is not None  # comparisons are of fields of the schema
        operator = comparison.operator
        if not documents and cues.STATE_OF.match(self.text, comparison.begin):
            operator = "$eq"  # 截至2022年，存货有多少: what was so then
        where = _clause(field, operator, comparison)
        quarter = quarter_of(comparison.low, self._schema)
        if quarter is not None and operator == "$eq" and comparison.high is None and field.is_year:
            where = all_of([where, quarter]) or where
        return Atom(
            comparison.begin,
            comparison.end,
            field.name,
            where,
            comparison.negated,
            exclusive=operator == "$eq",
            denial=_clause(field, _OPPOSITE[operator], comparison) if comparison.negated else None,
            measured=True,
        )


def _places(items: Sequence[Any]) -> list[tuple[int, int]]:
    """Where they begin and end."""
    return [(item.begin, item.end) for item in items]


def _overlaps(begin: int, end: int, places: Sequence[tuple[int, int]]) -> bool:
    """Whether a part of a text has characters in common with others."""
    return any(begin < stop and start < end for start, stop in places)


def _clause(field: MetadataField, operator: str, comparison: Comparison) -> Clause:
    """A comparison with a date or number, or with the range between two."""
    low, high = comparison.low, comparison.high
    if high is None:
        return comparison_clause(field, operator, low)
    if isinstance(low, Period):
        low, high = sorted((low, high), key=lambda period: period.start)
        grain = "years" if {low.grain, high.grain} <= {"year", "years"} else "span"
        return comparison_clause(field, operator, Period(low.start, high.end, grain))
    low, high = sorted((low, high))
    if operator == "$ne":
        return any_of([comparison_clause(field, "$lt", low), comparison_clause(field, "$gt", high)]) or {}
    return all_of([comparison_clause(field, "$gte", low), comparison_clause(field, "$lte", high)]) or {}
