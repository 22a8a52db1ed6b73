"""Read the conditions out of a question: the values, dates and numbers in it, and how each is compared."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

from rag_kit.query_construction.clauses import Clause, all_of, any_of, compared
from rag_kit.query_construction.dates import Period, find_periods
from rag_kit.query_construction.fields import MetadataField, Schema
from rag_kit.query_construction.rules import cues
from rag_kit.query_construction.rules.atoms import Atom, find_missing, quarter_of
from rag_kit.query_construction.rules.mentions import Mentions, name_before, purpose
from rag_kit.query_construction.rules.numbers import find_numbers
from rag_kit.query_construction.rules.ordering import find_order
from rag_kit.query_construction.rules.spans import Compared, Span, compare
from rag_kit.query_construction.rules.values import Named, ValueIndex

_OPPOSITE = {"$eq": "$ne", "$gt": "$lte", "$gte": "$lt", "$lt": "$gte", "$lte": "$gt"}


class Reading:
    """Finds the conditions of one question."""

    def __init__(self, text: str, schema: Schema, index: ValueIndex, today: date) -> None:
        self.text = text
        self.schema = schema
        self.today = today
        self.notes: list[str] = []
        self.used: list[tuple[int, int]] = []
        self._index = index
        self._times = [field for field in schema if field.temporal]
        self.order = find_order(text, schema)
        if self.order is not None:
            self.used.append((self.order.begin, self.order.noun))

    def atoms(self) -> list[Atom]:
        """All conditions, in the order of the text."""
        time = max(self._times, key=lambda field: field.type == "date", default=None)
        found = find_missing(self.text, self.schema, time)
        self.used += [(atom.begin, atom.end) for atom in found]
        named = [item for item in self._index.find(self.text) if self._is_named(item)]
        if self.order is not None:  # "the last three reports": a noun may name a kind, else it says nothing
            self.used.append((self.order.begin, self.order.end))
        periods = self._periods(named) if self._times else []
        # the Q2 of "Q2 2023" is read with its year
        named = [
            item for item in named if not any(s.begin <= item.begin and item.end <= s.end for s in periods)
        ]
        numbers = self._numbers(named, periods)
        # "a price over 1000": what a numeric field's name stands before is no year
        periods = [span for span in periods if not overlaps(span.begin, span.end, places_of(numbers))]
        spans = sorted([*periods, *numbers], key=lambda span: span.begin)
        comparisons = list(compare(self.text, spans, places_of(named)))
        places = places_of(comparisons)
        mentions = Mentions(self.text, self.schema, named, places)
        understood = [*places, *self.used, *mentions.sure]
        why = purpose(self.text, understood, self.schema, bool(comparisons or found))
        order = self.order
        if order is not None and order.noun == order.end and why != "documents":
            # "the most recent treatment" is no document
            self.used = [span for span in self.used if span[0] != order.begin]
            self.order = None
        found += [self._comparison(item, why == "documents") for item in comparisons]
        found += mentions.conditions(why)
        return sorted(found, key=lambda atom: (atom.begin, atom.end))

    def _is_named(self, item: Named) -> bool:
        """Whether a value counts as named; "2010" is a year before it is the value of a text field."""
        if overlaps(item.begin, item.end, self.used):
            return False
        left = self.text[max(0, item.begin - 40) : item.begin]
        field = self.schema.get(item.field)
        said = left[-1:] in (*cues.OPENING,) or (field and name_before(left, field.all_names))
        return bool(said) or not self.text[item.begin : item.end].isdecimal()

    def _periods(self, named: Sequence[Named]) -> list[Span]:
        """The dates and years in the text that are no part of a value, each with the field that it is about."""
        spans: list[Span] = []
        for found in find_periods(self.text, self.today):
            inside = any(item.begin <= found.begin and found.stop <= item.end for item in named)
            plain = self.text[found.begin : found.stop].isdecimal()
            no_year = plain and cues.NOT_YEARS.match(self.text, found.stop)
            if inside or no_year or overlaps(found.begin, found.stop, self.used):
                continue
            if found.period.note:
                self.notes.append(found.period.note)
            field = self._time_for(found.begin, found.period)
            spans.append(Span(found.begin, found.stop, found.period, field.name))
        return spans

    def _time_for(self, begin: int, period: Period) -> MetadataField:
        """The field that a date is about: the one named before it, else the one of its grain."""
        before = self.text[max(0, begin - 60) : begin].lower()
        near = [
            (before.rfind(name.lower().replace("_", " ")), field)
            for field in self._times
            for name in field.all_names
        ]
        place, field = max(near, key=lambda pair: pair[0])
        if place >= 0 and len(self._times) > 1:
            return field
        fine = period.grain not in ("year", "years") and quarter_of(period, self.schema) is None
        return max(self._times, key=lambda item: (item.type == "date") == fine)

    def _numbers(self, named: Sequence[Named], periods: Sequence[Span]) -> list[Span]:
        plain = [(s.begin, s.end) for s in periods if self.text[s.begin : s.end].isdecimal()]
        dates = set(places_of(periods)).difference(plain)
        return find_numbers(self.text, self.schema, [*places_of(named), *dates, *self.used], plain)

    def _comparison(self, item: Compared, documents: bool) -> Atom:
        field = self.schema.get(item.field)
        assert field is not None  # spans are made from the schema
        operator = item.operator
        if not documents and cues.STATE_OF.match(self.text, item.begin):
            operator = "$eq"  # 截至2022年，存货有多少: what was so then
        where = _compared(field, operator, item)
        quarter = quarter_of(item.low, self.schema)
        if quarter is not None and operator == "$eq" and item.high is None and field.is_year:
            where = all_of([where, quarter]) or where
        denial = _compared(field, _OPPOSITE[operator], item) if item.negated else None
        place = (item.begin, item.end, field.name)
        exclusive = operator == "$eq"
        return Atom(*place, where, item.negated, exclusive=exclusive, denial=denial, measured=True)


def places_of(items: Sequence[Named | Span | Compared]) -> list[tuple[int, int]]:
    """Where they begin and end."""
    return [(item.begin, item.end) for item in items]


def overlaps(begin: int, end: int, places: Sequence[tuple[int, int]]) -> bool:
    """Whether a part of a text has characters in common with others."""
    return any(begin < stop and start < end for start, stop in places)


def _compared(field: MetadataField, operator: str, item: Compared) -> Clause:
    """A comparison with a date or number, or with the range between two."""
    low, high = item.low, item.high
    if high is None:
        return compared(field, operator, low)
    if isinstance(low, Period):
        low, high = sorted((low, high), key=lambda period: period.start)
        grain = "years" if {low.grain, high.grain} <= {"year", "years"} else "span"
        return compared(field, operator, Period(low.start, high.end, grain))
    low, high = sorted((low, high))
    if operator == "$ne":
        return any_of([compared(field, "$lt", low), compared(field, "$gt", high)]) or {}
    return all_of([compared(field, "$gte", low), compared(field, "$lte", high)]) or {}
