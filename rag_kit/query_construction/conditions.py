"""One comparison of a field with a value, made to fit the field: the only way to a condition."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import Any

from langchain_core.structured_query import Comparator, Comparison, FilterDirective

from rag_kit.query_construction.coercion import Unusable, coerce, short
from rag_kit.query_construction.dates import Period, stored
from rag_kit.query_construction.fields import MetadataField
from rag_kit.query_construction.ir import all_of, any_of, none_of

_MAX_ITEMS = 100
_OPERATORS = {
    Comparator.EQ: "= == eq equal equals is $eq equal_to on at 等于 是 为",
    Comparator.NE: "!= <> ne neq not_equal not_equals not_equal_to is_not $ne not 不等于 不是",
    Comparator.GT: "> gt greater greater_than more_than after above later_than $gt over exceeds 大于 晚于 超过",
    Comparator.GTE: ">= gte ge at_least since from greater_than_or_equal greater_or_equal $gte ≥ min 不小于 至少",
    Comparator.LT: "< lt less less_than before below earlier_than under $lt 小于 早于 少于",
    Comparator.LTE: "<= lte le at_most until up_to less_than_or_equal less_or_equal $lte ≤ max 不大于 至多",
    Comparator.IN: "in any_of one_of is_in $in 属于",
    Comparator.NIN: "nin not_in none_of $nin is_not_in 不属于",
    Comparator.CONTAIN: "contain contains has includes include $contains contains_any 包含 含有",
    Comparator.LIKE: "like ilike matches starts_with startswith regex $like substring",
}
_BY_WORD = {word: comparator for comparator, words in _OPERATORS.items() for word in words.split()}
_NEGATIVE = [
    "does_not_contain",
    "not_contains",
    "not_contain",
    "$not_contains",
    "excludes",
    "without",
    "不包含",
]
ORDER = (Comparator.GT, Comparator.GTE, Comparator.LT, Comparator.LTE)


def operator_of(word: Any) -> tuple[Comparator, bool] | None:
    """What an operator's name means, and whether it is negated; ``None`` if it is no operator.

    Example:
        >>> operator_of("at least")[0].value, operator_of("not_contains")[1], operator_of("near")
        ('gte', True, None)
    """
    plain = str(getattr(word, "value", word)).strip().lower().replace(" ", "_").replace("-", "_")
    if plain in _NEGATIVE:
        return Comparator.CONTAIN, True
    found = _BY_WORD.get(plain)
    return None if found is None else (found, False)


class Fitting:
    """Makes conditions that fit their fields, and keeps a record of what it changed.

    Args:
        today: What relative dates count from.
    """

    def __init__(self, today: date) -> None:
        self.today = today
        self.repairs: list[str] = []

    def repair(self, text: str) -> None:
        """Record a change."""
        if text not in self.repairs and len(self.repairs) < 50:
            self.repairs.append(text[:300])

    def make(self, field: MetadataField, comparator: Comparator, value: Any) -> FilterDirective | None:
        """A condition that fits the field, or ``None`` if none can be made (recorded)."""
        try:
            return self._make(field, comparator, value)
        except Unusable as reason:
            self.repair(f"dropped: {field.name} {comparator.value} {short(value)}: {reason}")
            return None

    def _make(self, field: MetadataField, comparator: Comparator, value: Any) -> FilterDirective | None:
        if value is None:
            return self._missing(field, comparator)
        listed = isinstance(value, (list, tuple, set, frozenset))
        if listed and not len(value):
            raise Unusable("the list is empty")
        if field.many:
            return self._in_list(field, comparator, list(value) if listed else [value])
        if comparator in (Comparator.IN, Comparator.NIN) or (listed and len(value) > 1):
            items = list(value) if listed else [value]
            if comparator in ORDER:
                if len(items) == 2 and comparator == Comparator.GTE:
                    return all_of([part for part in (
                        self._make(field, Comparator.GTE, items[0]), self._make(field, Comparator.LTE, items[1])
                    ) if part])  # fmt: skip
                raise Unusable("a list has no order")
            negated = comparator in (Comparator.NIN, Comparator.NE)
            return self._one_of(field, items, negated)
        if comparator in (Comparator.CONTAIN, Comparator.LIKE):
            return self._contains_text(field, value)
        if comparator in ORDER and not field.ordered:
            raise Unusable(f"values of type {field.type} have no order")
        return self._compared(field, comparator, self._fit(field, value))

    def _fit(self, field: MetadataField, value: Any) -> Any:
        coerced = coerce(field, value, self.today)
        if coerced.note:
            self.repair(coerced.note)
        return coerced.value

    def _missing(self, field: MetadataField, comparator: Comparator) -> FilterDirective:
        if comparator in (Comparator.EQ, Comparator.NE):
            return Comparison(comparator, field.name, None)
        raise Unusable("nothing is no value to compare with")

    def _in_list(
        self, field: MetadataField, comparator: Comparator, items: list[Any]
    ) -> FilterDirective | None:
        if comparator in ORDER:
            raise Unusable("a list of values has no order")
        if comparator not in (Comparator.CONTAIN, Comparator.IN, Comparator.NIN) and len(items) == 1:
            self.repair(f"{field.name} holds lists: {comparator.value} was read as contains")
        parts = [Comparison(Comparator.CONTAIN, field.name, value) for value in self._usable(field, items)]
        if not parts:
            return None
        every = comparator in (Comparator.EQ, Comparator.CONTAIN)
        joined = all_of(parts) if every else any_of(parts)
        negated = comparator in (Comparator.NE, Comparator.NIN)
        return none_of(joined) if negated and joined is not None else joined

    def _one_of(self, field: MetadataField, items: list[Any], negated: bool) -> FilterDirective | None:
        values = self._usable(field, items)
        periods = [value for value in values if isinstance(value, Period)]
        plain = [value for value in values if not isinstance(value, Period)]
        word = Comparator.NE if negated else Comparator.EQ
        parts = [self._compared(field, word, period) for period in periods]
        if len(plain) == 1:
            parts.append(Comparison(word, field.name, plain[0]))
        elif plain:
            parts.append(Comparison(Comparator.NIN if negated else Comparator.IN, field.name, plain))
        return all_of(parts) if negated else any_of(parts)

    def _usable(self, field: MetadataField, items: Sequence[Any]) -> list[Any]:
        """The entries that fit; the others are recorded."""
        if len(items) > _MAX_ITEMS:
            self.repair(f"{field.name}: the first {_MAX_ITEMS} of {len(items)} values were kept")
        values: list[Any] = []
        for item in items[:_MAX_ITEMS]:
            try:
                value = self._fit(field, item)
                if isinstance(value, Period) and field.many:
                    if value.grain != "day":
                        raise Unusable("a list of dates holds days")
                    value = stored(value.start, field.date_format)
            except Unusable as reason:
                self.repair(f"dropped: {field.name} {short(item)}: {reason}")
                continue
            if isinstance(value, Period) and field.is_year and value.grain == "year":
                value = value.start.year
            if value not in values:
                values.append(value)
        return values

    def _contains_text(self, field: MetadataField, value: Any) -> FilterDirective | None:
        """``contains`` on a text field: stores have no such search, so ``in`` the known values that match."""
        if field.type != "str" or not isinstance(value, str):
            self.repair(f"{field.name} holds no lists: contains was read as eq")
            return self._make(field, Comparator.EQ, value)
        wanted = value.strip().strip("%*").casefold()
        found = [known for known in field.values if wanted and wanted in str(known).casefold()]
        if not field.complete or not found or len(found) > _MAX_ITEMS:
            raise Unusable("a part of a text can be looked for only where all values are known")
        self.repair(f"{field.name}: contains {short(value)} was read as one of {short(found)}")
        return self._one_of(field, found, negated=False)

    def _compared(self, field: MetadataField, comparator: Comparator, value: Any) -> FilterDirective:
        if not isinstance(value, Period):
            return Comparison(comparator, field.name, value)
        return period_condition(field, comparator, value)


def period_condition(field: MetadataField, comparator: Comparator, period: Period) -> FilterDirective:
    """Compare a field of years or dates with a span of days.

    Example:
        >>> from rag_kit.query_construction.dates import parse_period
        >>> from rag_kit.query_construction.ir import to_filter
        >>> may = parse_period("May 2020", date(2026, 1, 1))
        >>> to_filter(period_condition(MetadataField("day", "date"), Comparator.EQ, may))
        {'$and': [{'day': {'$gte': '2020-05-01'}}, {'day': {'$lt': '2020-06-01'}}]}
        >>> to_filter(period_condition(MetadataField("year", "int"), Comparator.GT, may))
        {'year': {'$gte': 2020}}
    """
    if field.is_year:
        return _years(field.name, comparator, period)
    start = stored(period.start, field.date_format)
    end = None if period.end is None else stored(period.end, field.date_format)
    low, high = Comparison(Comparator.GTE, field.name, start), Comparison(Comparator.LT, field.name, end)
    below = Comparison(Comparator.LT, field.name, start)
    if comparator == Comparator.GTE or (end is None and comparator in (Comparator.EQ, Comparator.GT)):
        return low
    if comparator == Comparator.LT or (end is None and comparator in (Comparator.NE, Comparator.LTE)):
        return below
    if comparator == Comparator.GT:
        return Comparison(Comparator.GTE, field.name, end)
    if comparator == Comparator.LTE:
        return high
    if comparator == Comparator.NE:
        return any_of([below, Comparison(Comparator.GTE, field.name, end)]) or below
    return all_of([low, high]) or low


def _years(name: str, comparator: Comparator, period: Period) -> FilterDirective:
    first = period.start.year
    if period.end is None:  # until now
        word = (
            Comparator.LT if comparator in (Comparator.NE, Comparator.LT, Comparator.LTE) else Comparator.GTE
        )
        return Comparison(word, name, first)
    whole = period.grain in ("year", "years")
    last = period.end.year - 1 if (period.end.month, period.end.day) == (1, 1) else period.end.year
    if not whole and comparator in (Comparator.GT, Comparator.LT):
        # after May 2020: 2020 may hold documents of June, so it stays in
        comparator = Comparator.GTE if comparator == Comparator.GT else Comparator.LTE
    if comparator == Comparator.EQ:
        if first == last:
            return Comparison(Comparator.EQ, name, first)
        low, high = Comparison(Comparator.GTE, name, first), Comparison(Comparator.LTE, name, last)
        return all_of([low, high]) or low
    if comparator == Comparator.NE:
        if first == last:
            return Comparison(Comparator.NE, name, first)
        below, above = Comparison(Comparator.LT, name, first), Comparison(Comparator.GT, name, last)
        return any_of([below, above]) or below
    edge = last if comparator in (Comparator.GT, Comparator.LTE) else first
    return Comparison(comparator, name, edge)
