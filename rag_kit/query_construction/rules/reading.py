"""Read the conditions out of a question: the values, dates and numbers in it, and how each is compared."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date
from typing import Any

from langchain_core.structured_query import Comparator, Comparison, FilterDirective

from rag_kit.query_construction.conditions import period_condition
from rag_kit.query_construction.dates import FoundPeriod, Period, find_periods
from rag_kit.query_construction.fields import MetadataField, Schema
from rag_kit.query_construction.ir import all_of, any_of
from rag_kit.query_construction.rules import cues
from rag_kit.query_construction.rules.atoms import Atom
from rag_kit.query_construction.rules.joining import carries_on
from rag_kit.query_construction.rules.mentions import Mention, Purpose, chosen, purpose
from rag_kit.query_construction.rules.missing import find_missing
from rag_kit.query_construction.rules.numbers import find_numbers
from rag_kit.query_construction.rules.ordering import find_order
from rag_kit.query_construction.rules.quarters import quarter_of
from rag_kit.query_construction.rules.scripts import simplified
from rag_kit.query_construction.rules.spans import Compared, Span, compare
from rag_kit.query_construction.rules.values import Named, ValueIndex


class Reading:
    """Finds the conditions of one question."""

    def __init__(self, text: str, schema: Schema, index: ValueIndex, today: date) -> None:
        self.text = text
        self.schema = schema
        self.today = today
        self.notes: list[str] = []
        self.used: list[tuple[int, int]] = []
        self._index = index
        self.purpose = Purpose.DOCUMENTS
        self.order = find_order(text, schema)
        if self.order is not None:
            self.used.append((self.order.begin, self.order.noun))

    def atoms(self) -> list[Atom]:
        """All conditions, in the order of the text."""
        found = find_missing(self.text, self.schema, self._time())
        self.used += [(atom.begin, atom.end) for atom in found]
        named = [item for item in self._index.find(self.text) if self._named(item)]
        if self.order is not None:  # "the last three reports": a noun may name a kind, else it says nothing
            self.used.append((self.order.begin, self.order.end))
        periods = [] if self._time() is None else self._periods(named)
        # the Q2 of "Q2 2023" is read with its year
        named = [item for item in named if not any(_inside(item, span) for span in periods)]
        barriers = [(item.begin, item.end) for item in named]
        numbers = self._numbers(named, periods)
        # "a price over 1000": what a numeric field's name stands before is no year
        periods = [
            span for span in periods if not any(span.begin < n.end and n.begin < span.end for n in numbers)
        ]
        spans = sorted([*periods, *numbers], key=lambda span: span.begin)
        compared = list(compare(self.text, spans, barriers))
        mentions = self._mentions(named, [(item.begin, item.end) for item in compared])
        sure = [(mention.atom.begin, mention.atom.end) for mention in mentions if mention.item.sure]
        understood = [*((item.begin, item.end) for item in compared), *self.used, *sure]
        self.purpose = purpose(self.text, understood, self.schema, bool(compared or found))
        if (
            self.order is not None
            and self.order.noun == self.order.end
            and self.purpose is not Purpose.DOCUMENTS
        ):
            # "the most recent treatment" is no document
            self.used = [span for span in self.used if span[0] != self.order.begin]
            self.order = None
        found += [self._comparison(item) for item in compared]
        found += chosen(self.text, self.schema, mentions, self.purpose)
        return sorted(found, key=lambda atom: (atom.begin, atom.end))

    def _named(self, item: Named) -> bool:
        """Whether a value counts as named; "2010" is a year before it is the value of a text field."""
        if not self._free(item.begin, item.end):
            return False
        if not self.text[item.begin : item.end].isdecimal():
            return True
        left = self.text[max(0, item.begin - 40) : item.begin]
        return left[-1:] in ('"', "“", "'", "‘", "「") or self._name_before(left, item.field) is not None

    def _free(self, begin: int, end: int) -> bool:
        return not any(begin < stop and start < end for start, stop in self.used)

    def _time(self) -> MetadataField | None:
        times = [field for field in self.schema if field.temporal]
        return max(times, key=lambda field: field.type == "date") if times else None

    def _field_for(self, begin: int, period: Period) -> MetadataField:
        times = [field for field in self.schema if field.temporal]
        before = self.text[max(0, begin - 60) : begin].lower()
        near = [
            (before.rfind(name.lower().replace("_", " ")), field)
            for field in times
            for name in (field.name, *field.aliases)
        ]
        place, field = max(near, key=lambda pair: pair[0])
        if place >= 0 and len(times) > 1:
            return field
        fine = period.grain not in ("year", "years") and quarter_of(period, self.schema) is None
        return max(times, key=lambda item: (item.type == "date") == fine)

    def _periods(self, named: Sequence[Named]) -> list[Span]:
        """The dates and years in the text that are no part of a value, each with the field that it is about."""
        spans: list[Span] = []
        for found in find_periods(self.text, self.today):
            inside = any(item.begin <= found.begin and found.stop <= item.end for item in named)
            if inside or not self._free(found.begin, found.stop) or self._no_year(found):
                continue
            field = self._field_for(found.begin, found.period)
            if found.period.note:
                self.notes.append(found.period.note)
            spans.append(Span(found.begin, found.stop, found.period, field.name))
        return spans

    def _no_year(self, found: FoundPeriod) -> bool:
        written = self.text[found.begin : found.stop]
        return written.isdecimal() and cues.NOT_YEARS.match(self.text, found.stop) is not None

    def _numbers(self, named: Sequence[Named], periods: Sequence[Span]) -> list[Span]:
        plain = [(s.begin, s.end) for s in periods if self.text[s.begin : s.end].isdecimal()]
        dates = {(span.begin, span.end) for span in periods}.difference(plain)
        taken = [*((item.begin, item.end) for item in named), *dates, *self.used]
        return find_numbers(self.text, self.schema, taken, plain)

    def _comparison(self, item: Compared) -> Atom:
        field = self.schema.get(item.field)
        assert field is not None  # spans are made from the schema
        comparator = item.comparator
        if self.purpose is not Purpose.DOCUMENTS and cues.STATE_OF.match(self.text, item.begin):
            comparator = Comparator.EQ  # 截至2022年，存货有多少: what was so then
        directive = _directive(field, comparator, item.low, item.high, item.open)
        if comparator == Comparator.EQ and item.high is None and field.is_year:
            quarter = quarter_of(item.low, self.schema)
            directive = all_of([directive, *([quarter] if quarter else [])]) or directive
        denial = (
            _directive(field, _opposite(comparator), item.low, item.high, item.open) if item.negated else None
        )
        exclusive = comparator == Comparator.EQ
        return Atom(
            item.begin,
            item.end,
            field.name,
            directive,
            item.negated,
            exclusive=exclusive,
            denial=denial,
            measured=True,
        )

    def _mentions(self, named: Sequence[Named], compared: Sequence[tuple[int, int]]) -> list[Mention]:
        """The values named, each as the condition that it would be, with what stands around it."""
        seen: list[Mention] = []
        for item in named:
            before = max(
                [0, *(one.atom.end for one in seen), *(end for _, end in compared if end <= item.begin)]
            )
            before = max(before, item.begin - cues.REACH)
            left = self.text[before : item.begin]
            match = cues.NEGATED.search(left)
            name = self._name_before(left, item.field)
            if match is None and name is not None:  # "with no author Smith"
                match = cues.NEGATED.search(left[: name.start()])
            begin, end = item.begin, item.end
            negated = match is not None
            if match is not None:
                begin = before + match.start()
            elif seen and seen[-1].atom.negated:
                negated = carries_on(self.text, seen[-1].atom, seen[-1].atom.end, item.begin)
            if excluded := cues.EXCLUDED_AFTER.match(self.text, end):
                negated, end = True, excluded.end()
            light = cues.LEADING.search(left)
            lead = light.group() if light else ""
            opened = begin > 0 and self.text[item.begin - 1] in cues.OPENING
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
        field = self.schema.get(name)
        names = (name, *(field.aliases if field else ()))
        for word in names:
            link = r"(?:\W|[为是]|\b(?:is|are|as|of|contains?|includes?|in)\b)*+"
            pattern = rf"(?<![A-Za-z0-9_]){re.escape(simplified(word))}{link}$"
            if match := re.search(pattern, left, re.IGNORECASE):
                return match
        return None

    def _value(self, item: Named, begin: int, end: int, negated: bool, both: bool) -> Atom:
        if isinstance(item.value, bool):
            directive: FilterDirective = Comparison(Comparator.EQ, item.field, item.value != negated)
            return Atom(begin, end, item.field, directive)
        field = self.schema.get(item.field)
        many = field is not None and field.many
        comparator = Comparator.CONTAIN if many else Comparator.EQ
        directive = Comparison(comparator, item.field, item.value)
        return Atom(begin, end, item.field, directive, negated, exclusive=not many, both=both)


def _inside(item: Named, span: Span) -> bool:
    return span.begin <= item.begin and item.end <= span.end


def _opposite(comparator: Comparator) -> Comparator:
    return {
        Comparator.EQ: Comparator.NE, Comparator.GT: Comparator.LTE, Comparator.GTE: Comparator.LT,
        Comparator.LT: Comparator.GTE, Comparator.LTE: Comparator.GT,
    }[comparator]  # fmt: skip


def _directive(
    field: MetadataField, comparator: Comparator, low: Any, high: Any, exclusive: bool = False
) -> FilterDirective:
    if isinstance(low, Period):
        if high is None:
            return period_condition(field, comparator, low)
        low, high = sorted((low, high), key=lambda period: period.start)
        if exclusive and comparator == Comparator.EQ:
            ends = (period_condition(field, Comparator.GT, low), period_condition(field, Comparator.LT, high))
            return all_of(ends) or ends[0]
        grain = "years" if {low.grain, high.grain} <= {"year", "years"} else "span"
        return period_condition(field, comparator, Period(low.start, high.end, grain))
    if high is None:
        return Comparison(comparator, field.name, low)
    low, high = sorted((low, high))
    if comparator == Comparator.NE:
        below, above = Comparison(Comparator.LT, field.name, low), Comparison(Comparator.GT, field.name, high)
        return any_of([below, above]) or below
    words = (Comparator.GT, Comparator.LT) if exclusive else (Comparator.GTE, Comparator.LTE)
    ends = (Comparison(words[0], field.name, low), Comparison(words[1], field.name, high))
    return all_of(ends) or ends[0]
