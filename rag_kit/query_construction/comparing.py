"""Conditions on one field: how it compares with a value, a period of time, or a range."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from functools import lru_cache
from typing import Any, NamedTuple

from rag_kit.query_construction.clauses import Clause, any_of, none_of
from rag_kit.query_construction.fields import MetadataField, Schema, read_periods
from rag_kit.text.values.period import DAY, MONTHS_OF, Period, add_months, first_day

# parts of a period that reach over its edge: "before the end of 2015" is up to and including that end
_REACHING = {"$lt": ("middle", "end"), "$gt": ("beginning", "middle")}
_UNIT_NAME = re.compile(r"(?P<quarter>quarter|季度|^qtr$)|(?P<month>(?:^|_)month$|月份?$)", re.IGNORECASE)


class UnfitError(Exception):
    """A condition does not fit its field; the message says why."""


class MonthsField(NamedTuple):
    """A field that holds the months, or quarters, of any year: how many months one has, and its values by number."""

    field: MetadataField
    months: int
    values: Mapping[int, Any]

    def between(self, first_day: date, last_day: date) -> Clause | None:
        """Make the condition that the month, or quarter, is from that of a day to that of another; else ``None``."""
        first, last = ((day.month - 1) // self.months + 1 for day in (first_day, last_day))
        if first <= last:
            numbers = [*range(first, last + 1)]
        else:  # November to February
            numbers = [*range(first, 12 // self.months + 1), *range(1, last + 1)]
        return _one_of(self.field.name, [self.values[number] for number in numbers if number in self.values])


def _one_of(name: str, values: Sequence[Any]) -> Clause | None:
    if len(values) > 1:
        return {name: {"$in": values}}
    return {name: {"$eq": values[0]}} if values else None


@lru_cache(maxsize=16)
def months_fields(schema: Schema) -> tuple[MonthsField, ...]:
    """Return the fields of a schema that hold quarters or months, those of quarters first."""
    found = (_months_field(field) for field in schema if not field.many)
    return tuple(sorted(filter(None, found), key=lambda part: -part.months))


def _months_field(field: MetadataField) -> MonthsField | None:
    """Read a field of numbers by its name, of texts by its values such as "Q1", 第一季度, "June"; else ``None``."""
    if field.type == "int" and (unit := _UNIT_NAME.search(field.name)):
        months = MONTHS_OF[unit.lastgroup or ""]
        numbers = {number: number for number in range(1, 12 // months + 1)}
        is_in_range = {field.minimum or 1, field.maximum or 1} <= numbers.keys()
        return MonthsField(field, months, numbers) if is_in_range else None
    periods = read_periods(field.values)
    units = {0 if period.has_year else MONTHS_OF.get(period.grain, 0) for period in periods.values()}
    if len(units) != 1 or 0 in units:
        return None
    [months] = units
    values = {(period.start.month - 1) // months + 1: text for text, period in periods.items()}
    number, text = next(iter(values.items()))
    if months > 1 and text.count(str(number)) == 1:  # "Q1" shows how quarters without a document are written
        values = {quarter: text.replace(str(number), str(quarter)) for quarter in range(1, 5)} | values
    return MonthsField(field, months, values)


def comparison_clause(
    field: MetadataField,
    operator: str,
    value: Any,
    high: Any = None,
    parts: Sequence[MonthsField] = (),
    *,
    negated: bool = False,
) -> Clause:
    """Make the clause that compares a field with a value, a `Period`, or the range from `value` to `high`.

    The months of a period are compared with the fields in `parts`, where the field itself holds years. `UnfitError` is
    raised if the clause is to leave out ("$ne", or `negated` later) a time that the fields are too coarse for, such as
    June 2020 for a field of years, or if none of the values of a field is meant.
    """
    name = field.name
    if not isinstance(value, Period):
        if high is None:
            return {name: {operator: value}}
        return _interval(name, operator, min(value, high), max(value, high), "$lte")
    period = value.through(high)
    if period.edge in _REACHING.get(operator, ()):
        operator += "e"  # "$lt" -> "$lte"
    low, end = _bounds(period, operator, field.grain)
    if (low, end) == (date.min, date.max):
        raise UnfitError("all days are of that time")
    is_exact = field.type == "date" or period.consists_of(12, *(part.months for part in parts))
    # the first field whose months or quarters it consists of, else the finest
    part = next((part for part in parts if period.consists_of(part.months)), parts[-1] if parts else None)
    clause, is_interval = None, False
    if part and not period.has_year:  # June of any year
        year = period.start.year
        clause = part.between(max(low, date(year, 1, 1)), min(end - DAY, date(year, 12, 31)))
    elif field.type == "str":  # its values are written periods, such as "Q1 2020"
        periods = read_periods(field.values)
        overlapping = {text: one for text, one in periods.items() if one.start < end and one.end > low}
        clause = _one_of(name, [*overlapping])
        is_exact = all(low <= one.start and one.end <= end for one in overlapping.values())
    elif part and field.is_year and not period.consists_of(12):
        clause = _months_clause(name, part, low, end)
    else:
        clause, is_interval = _days_or_years(field, operator, low, end), True
    if clause is None:
        raise UnfitError(f"no value of {name} is of that time")
    if not is_exact and (operator == "$ne") != negated:
        raise UnfitError(f"{name} is too coarse to leave it out")
    return none_of(clause) if operator == "$ne" and not is_interval else clause


def _bounds(period: Period, operator: str, grain: str) -> tuple[date, date]:
    """Return the first day of the time that a comparison allows, and the day after its last; "$ne" counts as "$eq".

    "$lt" and 2015 allow the days up to before 2015-01-01. The time is widened to whole years, or months, for rows that
    are all dated to the first day of one: nobody knows in which part of 2015 a row of ``2015-01-01`` is.
    """
    low, end = period.start, period.end
    if operator in ("$gt", "$gte"):
        is_after = operator == "$gt" and period.end < date.max
        low, end = period.end if is_after else period.start, date.max
    elif operator in ("$lt", "$lte"):
        low, end = date.min, period.start if operator == "$lt" else period.end
    if grain == "day" or operator == "$ne":
        return low, end
    months = MONTHS_OF[grain]
    wide_end = end if end == date.max else add_months(first_day(end - DAY, months), months)
    return first_day(low, months), wide_end


def _interval(name: str, operator: str, low: Any, high: Any, upper: str) -> Clause:
    """Make the clause of values from `low` to `high`, or, for "$ne", of those outside; a bound may be ``None``.

    `upper` is "$lte" if `high` is one of the values, else "$lt".
    """
    if operator == "$ne":
        join, bounds = "$or", {"$lt": low, "$gt" if upper == "$lte" else "$gte": high}
    else:
        join, bounds = "$and", {"$gte": low, upper: high}
    parts = [{name: {side: bound}} for side, bound in bounds.items() if bound is not None]
    return {join: parts} if len(parts) > 1 else parts[0]


def _days_or_years(field: MetadataField, operator: str, low: date, end: date) -> Clause:
    """Make the clause that a field of dates, or of years, is from `low` to before `end`; "$ne": that it is outside."""
    name, last = field.name, end - DAY
    if field.type == "date":
        first_day, day_after = (day_in_format(day, field.date_format) for day in (low, end))
        return _interval(name, operator, *_bounded(low, end, first_day, day_after), "$lt")
    if low.year == last.year:
        return {name: {operator: low.year}}
    # "after May 2020" may mean documents of June, so the year 2020 stays in; "after 2020" does not
    if operator == "$gt" and (low.month, low.day) == (1, 1):
        return {name: {operator: low.year - 1}}
    if operator == "$lt" and (end.month, end.day) == (1, 1):
        return {name: {operator: end.year}}
    return _interval(name, operator, *_bounded(low, end, low.year, last.year), "$lte")


def _months_clause(name: str, part: MonthsField, low: date, end: date) -> Clause | None:
    """Make the clause that documents are from `low` to before `end`, by a field of years and a part of the year.

    From May 2020 to 2022 it is: the years 2021 and 2022, or 2020 with a month from May to December.
    """
    last = end - DAY
    if low.year == last.year:
        months = part.between(low, last)
        return months and {"$and": [{name: {"$eq": low.year}}, months]}
    first_year, last_year = low.year, last.year  # of the whole years
    partial_years = []
    if low.month > part.months:
        first_year += 1
        partial_years.append((low.year, part.between(low, date(low.year, 12, 31))))
    if last.month <= 12 - part.months:
        last_year -= 1
        partial_years.append((last.year, part.between(date(last.year, 1, 1), last)))
    pieces = [_interval(name, "$eq", *_bounded(low, end, first_year, last_year), "$lte")]
    pieces += [{"$and": [{name: {"$eq": year}}, months]} for year, months in partial_years if months]
    return any_of(pieces)


def _bounded(low: date, end: date, first: Any, last: Any) -> tuple[Any, Any]:
    """Return first and last value of a range, ``None`` in place of one on whose side the days from `low` are open."""
    return None if low == date.min else first, None if end == date.max else last


def day_in_format(day: date, format_: str) -> Any:
    """Write a day as a field stores it."""
    if format_ == "yyyymmdd":
        return day.year * 10_000 + day.month * 100 + day.day
    if format_ == "timestamp":
        return (day - date(1970, 1, 1)) // timedelta(seconds=1)
    return day.isoformat()
