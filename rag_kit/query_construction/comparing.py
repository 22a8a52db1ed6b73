"""Conditions on one field: how it compares with a value, a period of time, or a range."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from functools import lru_cache
from typing import Any, NamedTuple

from rag_kit.query_construction.clauses import Clause, none_of
from rag_kit.query_construction.dates import Period, day_in_format, read_periods
from rag_kit.query_construction.fields import MetadataField, Schema

_MONTHS_OF = {"month": 1, "quarter": 3}
_ANY_DAY = date(2000, 12, 31)
_UNIT_NAME = re.compile(r"(?P<quarter>quarter|季度|^qtr$)|(?P<month>(?:^|_)month$|月份?$)", re.IGNORECASE)


class MonthsField(NamedTuple):
    """A field that holds the months, or quarters, of any year: how many months one has, and its values by number."""

    field: MetadataField
    months: int
    values: Mapping[int, Any]

    def between(self, first_day: date, last_day: date) -> Clause:
        """Make the condition that it holds one from that of a day to that of another, maybe of the next year."""
        first, last = _number(first_day, self.months), _number(last_day, self.months)
        numbers = [*range(first, last + 1)] or [*range(first, 12 // self.months + 1), *range(1, last + 1)]
        return _one_of(self.field.name, [self.values[number] for number in numbers if number in self.values])


def _one_of(name: str, values: Sequence[Any]) -> Clause:
    return {name: {"$eq": values[0]} if len(values) == 1 else {"$in": values}}


@lru_cache(maxsize=16)
def months_fields(schema: Schema) -> tuple[MonthsField, ...]:
    """Return the fields of a schema that hold quarters or months, those of quarters first."""
    found = (_months_field(field) for field in schema if not field.many)
    return tuple(sorted(filter(None, found), key=lambda part: -part.months))


def _months_field(field: MetadataField) -> MonthsField | None:
    """Read a field of numbers by its name, of texts by its values such as "Q1", 第一季度, "June"; else ``None``."""
    if field.type == "int" and (named := _UNIT_NAME.search(field.name)):
        months = _MONTHS_OF[named.lastgroup or ""]
        numbers = {number: number for number in range(1, 12 // months + 1)}
        is_range = {field.minimum or 1, field.maximum or 1} <= numbers.keys()
        return MonthsField(field, months, numbers) if is_range else None
    periods = read_periods(field.values)
    grains = {period.grain for period in periods.values() if not period.has_year}
    months = _MONTHS_OF.get("".join(grains), 0)
    if not months or any(period.grain not in grains or period.has_year for period in periods.values()):
        return None
    return MonthsField(
        field, months, {_number(period.start, months): text for text, period in periods.items()}
    )


def _number(day: date, months: int) -> int:
    """Return the number in its year of the month, or quarter, of a day."""
    return (day.month - 1) // months + 1


def can_exclude(field: MetadataField, period: Period, parts: Sequence[MonthsField] = ()) -> bool:
    """Tell whether "not in" a period can be said: a field of years alone cannot leave out one June."""
    if field.type == "str":
        low, end = period.bounds("$eq")
        return all(low <= own.start and (own.end or end) <= end for _, own in _meeting(field, low, end))
    return not field.is_year or any(
        period.consists_of(unit) for unit in (12, *(part.months for part in parts))
    )


def _part_for(period: Period, parts: Sequence[MonthsField]) -> MonthsField:
    """Return the first field whose months or quarters a period consists of, else the finest."""
    return next((part for part in parts if period.consists_of(part.months)), parts[-1])


def comparison_clause(
    field: MetadataField, operator: str, value: Any, high: Any = None, parts: Sequence[MonthsField] = ()
) -> Clause:
    """Make the clause that compares a field with a value, a `Period`, or the range from `value` to `high`.

    The months of a period are compared with the fields in `parts`, where the field itself holds years.
    """
    name = field.name
    if not isinstance(value, Period):
        if high is None:
            return {name: {operator: value}}
        return _interval(name, operator, min(value, high), max(value, high), "$lte")
    period = value.through(high)
    operator = period.operator_with_edge(operator)
    low, end = period.bounds(operator, field.grain)
    clause: Clause | None = None
    if parts and not period.has_year:
        new_year, year_end = date(period.start.year, 1, 1), date(period.start.year, 12, 31)
        last_day = min(end - timedelta(days=1), year_end)
        clause = _part_for(period, parts).between(max(low, new_year), last_day)
    elif field.type == "str":
        clause = _one_of(name, [text for text, _ in _meeting(field, low, end)])
    elif parts and field.is_year and not period.consists_of(12):
        clause = _months_clause(name, _part_for(period, parts), low, end)
    if clause is not None:
        return none_of(clause) if operator == "$ne" else clause
    if field.is_year:
        first, last = low.year, (end - timedelta(days=1)).year
        # "after May 2020" may mean documents of June, so the year 2020 stays in; "after 2020" does not
        edge, outside = {"$gt": (low, first - 1), "$lt": (end, last + 1)}.get(operator, (_ANY_DAY, first))
        if (edge.month, edge.day) == (1, 1) or first == last:
            return {name: {operator: outside}}
        low_bound, high_bound, within = first, last, "$lte"
    else:
        low_bound, high_bound = (day_in_format(day, field.date_format) for day in (low, end))
        within = "$lt"
    is_open, is_endless = low == date.min, end == date.max
    return _interval(
        name, operator, None if is_open else low_bound, None if is_endless else high_bound, within
    )


def _interval(name: str, operator: str, low: Any, high: Any, within: str) -> Clause:
    """Make the clause of values from `low` to `within` `high`, or, for "$ne", of those outside; ``None``: no bound."""
    inside = {"$gte": low, within: high}
    sides = {"$lt": low, "$gt" if within == "$lte" else "$gte": high} if operator == "$ne" else inside
    found = [{name: {side: bound}} for side, bound in sides.items() if bound is not None]
    return {"$or" if operator == "$ne" else "$and": found} if len(found) > 1 else found[0]


def _months_clause(name: str, part: MonthsField, low: date, end: date) -> Clause:
    """Make the clause that the months of a year, told by its field's name and a part, are from a day to before one."""
    last = end - timedelta(days=1)
    new_year, year_end = date(last.year, 1, 1), date(low.year, 12, 31)
    first_year, last_year = {name: {"$eq": low.year}}, {name: {"$eq": last.year}}
    if low.year == last.year:
        return {"$and": [first_year, part.between(low, last)]}
    begins, ends = _number(low, part.months) == 1, _number(last, part.months) == 12 // part.months
    whole = [{name: {"$gte" if begins else "$gt": low.year}}] if low > date.min else []
    whole += [{name: {"$lte" if ends else "$lt": last.year}}] if end < date.max else []
    pieces = [] if begins else [{"$and": [first_year, part.between(low, year_end)]}]
    pieces += [] if ends else [{"$and": [last_year, part.between(new_year, last)]}]
    return {"$or": [{"$and": whole} if len(whole) > 1 else whole[0], *pieces]}


def _meeting(field: MetadataField, low: date, end: date) -> list[tuple[Any, Period]]:
    """Return the values of a field of texts such as "2024Q2" that have days from `low` to before `end`."""
    own = read_periods(field.values).items()
    return [(value, period) for value, period in own if period.start < end and (period.end or date.max) > low]
