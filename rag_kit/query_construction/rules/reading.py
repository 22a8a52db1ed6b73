"""Read the conditions out of a question: the values, dates and numbers in it, and how each is compared."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date

from rag_kit.query_construction.clauses import Clause, all_of, any_of, compared
from rag_kit.query_construction.dates import Period, find_periods
from rag_kit.query_construction.fields import MetadataField, Schema
from rag_kit.query_construction.rules import cues
from rag_kit.query_construction.rules.atoms import Atom, find_missing, quarter_of
from rag_kit.query_construction.rules.joining import carries_on
from rag_kit.query_construction.rules.mentions import Mention, Purpose, chosen, purpose
from rag_kit.query_construction.rules.numbers import find_numbers
from rag_kit.query_construction.rules.ordering import find_order
from rag_kit.query_construction.rules.spans import Compared, Span, compare
from rag_kit.query_construction.rules.values import Named, ValueIndex
from rag_kit.query_construction.words import simplified

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
        self._purpose = Purpose.DOCUMENTS
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
        periods = [
            span for span in periods if not any(span.begin < n.end and n.begin < span.end for n in numbers)
        ]
        spans = sorted([*periods, *numbers], key=lambda span: span.begin)
        comparisons = list(compare(self.text, spans, [(item.begin, item.end) for item in named]))
        places = [(item.begin, item.end) for item in comparisons]
        mentions = self._mentions(named, places)
        sure = [(mention.atom.begin, mention.atom.end) for mention in mentions if mention.item.sure]
        self._purpose = purpose(
            self.text, [*places, *self.used, *sure], self.schema, bool(comparisons or found)
        )
        order = self.order
        if order is not None and order.noun == order.end and self._purpose is not Purpose.DOCUMENTS:
            # "the most recent treatment" is no document
            self.used = [span for span in self.used if span[0] != order.begin]
            self.order = None
        found += [self._comparison(item) for item in comparisons]
        found += chosen(self.text, self.schema, mentions, self._purpose)
        return sorted(found, key=lambda atom: (atom.begin, atom.end))

    def _is_named(self, item: Named) -> bool:
        """Whether a value counts as named; "2010" is a year before it is the value of a text field."""
        if not self._free(item.begin, item.end):
            return False
        if not self.text[item.begin : item.end].isdecimal():
            return True
        left = self.text[max(0, item.begin - 40) : item.begin]
        return left[-1:] in ('"', "“", "'", "‘", "「") or self._name_before(left, item.field) is not None

    def _free(self, begin: int, end: int) -> bool:
        return not any(begin < stop and start < end for start, stop in self.used)

    def _periods(self, named: Sequence[Named]) -> list[Span]:
        """The dates and years in the text that are no part of a value, each with the field that it is about."""
        spans: list[Span] = []
        for found in find_periods(self.text, self.today):
            inside = any(item.begin <= found.begin and found.stop <= item.end for item in named)
            plain = self.text[found.begin : found.stop].isdecimal()
            no_year = plain and cues.NOT_YEARS.match(self.text, found.stop)
            if inside or no_year or not self._free(found.begin, found.stop):
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
        dates = {(span.begin, span.end) for span in periods}.difference(plain)
        taken = [*((item.begin, item.end) for item in named), *dates, *self.used]
        return find_numbers(self.text, self.schema, taken, plain)

    def _comparison(self, item: Compared) -> Atom:
        field = self.schema.get(item.field)
        assert field is not None  # spans are made from the schema
        operator = item.operator
        if self._purpose is not Purpose.DOCUMENTS and cues.STATE_OF.match(self.text, item.begin):
            operator = "$eq"  # 截至2022年，存货有多少: what was so then
        where = _compared(field, operator, item)
        quarter = quarter_of(item.low, self.schema)
        if quarter is not None and operator == "$eq" and item.high is None and field.is_year:
            where = all_of([where, quarter]) or where
        denial = _compared(field, _OPPOSITE[operator], item) if item.negated else None
        place = (item.begin, item.end, field.name)
        exclusive = operator == "$eq"
        return Atom(*place, where, item.negated, exclusive=exclusive, denial=denial, measured=True)

    def _mentions(self, named: Sequence[Named], places: Sequence[tuple[int, int]]) -> list[Mention]:
        """The values named, each as the condition that it would be, with what stands around it."""
        seen: list[Mention] = []
        for item in named:
            ends = [one.atom.end for one in seen] + [end for _, end in places if end <= item.begin]
            before = max([0, item.begin - cues.REACH, *ends])
            left = self.text[before : item.begin]
            match = cues.NEGATED.search(left)
            name = self._name_before(left, item.field)
            if match is None and name is not None:  # "with no author Smith"
                match = cues.NEGATED.search(left[: name.start()])
            begin = item.begin if match is None else before + match.start()
            negated = match is not None
            if not negated and seen and seen[-1].atom.negated:
                negated = carries_on(self.text[seen[-1].atom.end : item.begin])
            excluded = cues.EXCLUDED_AFTER.match(self.text, item.end)
            end = excluded.end() if excluded else item.end
            negated = negated or excluded is not None
            lead = found.group() if (found := cues.LEADING.search(left)) else ""
            opened = left[-1:] != "" and left[-1] in cues.OPENING
            quoted = opened and self.text[item.end : item.end + 1] in cues.CLOSING
            both = cues.BOTH.search(left) is not None and not cues.WITHOUT.search(left)
            seen.append(
                Mention(
                    item,
                    self._value(item, begin, end, negated, both),
                    marked=opened or cues.MARKED.search(lead) is not None or name is not None,
                    explicit=quoted or name is not None,
                    topical=item.exact or negated or cues.TOPIC.search(left) is not None,
                )
            )
        return seen

    def _name_before(self, left: str, name: str) -> re.Match[str] | None:
        """The field's name where it ends a text, light words aside."""
        field = self.schema.get(name)
        for word in field.all_names if field else ():
            link = r"(?:\W|[为是]|\b(?:is|are|as|of|contains?|includes?|in)\b)*+"
            pattern = rf"(?<![A-Za-z0-9_]){re.escape(simplified(word))}{link}$"
            if match := re.search(pattern, left, re.IGNORECASE):
                return match
        return None

    def _value(self, item: Named, begin: int, end: int, negated: bool, both: bool) -> Atom:
        if isinstance(item.value, bool):
            return Atom(begin, end, item.field, {item.field: {"$eq": item.value != negated}})
        field = self.schema.get(item.field)
        many = field is not None and field.many
        where: Clause = {item.field: {"$contains" if many else "$eq": item.value}}
        return Atom(begin, end, item.field, where, negated, exclusive=not many, both=both)


def _compared(field: MetadataField, operator: str, item: Compared) -> Clause:
    """A comparison with a date or number, or with the range between two."""
    low, high = item.low, item.high
    if high is None:
        return compared(field, operator, low)
    if isinstance(low, Period):
        low, high = sorted((low, high), key=lambda period: period.start)
        if not (item.open and operator == "$eq"):
            grain = "years" if {low.grain, high.grain} <= {"year", "years"} else "span"
            return compared(field, operator, Period(low.start, high.end, grain))
    else:
        low, high = sorted((low, high))
    words = ("$lt", "$gt") if operator == "$ne" else ("$gt", "$lt") if item.open else ("$gte", "$lte")
    ends = [compared(field, word, value) for word, value in zip(words, (low, high), strict=True)]
    return (any_of(ends) if operator == "$ne" else all_of(ends)) or ends[0]
