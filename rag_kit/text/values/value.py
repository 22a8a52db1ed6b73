"""A value in normal form, whether two values are the same, and two beside each other that make one, or a range."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import product
from typing import Any, NamedTuple

from rag_kit.text.values.units import Unit, dimensions_agree, unit_named

CALENDAR = ("date", "clock", "decade", "century", "quarter", "weekday")
"""Dimensions of values that say when something is."""
TIMES = ("time", "months", "calendar days")
"""Dimensions of times, by which values are counted."""


class Value(NamedTuple):
    """A value in a text, which has it at ``text[start:end]``.

    `dimension` is ``""`` for a plain number, that of the unit (``"time"``, ``"EUR"``), or ``"date"``, ``"clock"``
    (minutes of the day), ``"ordinal"``, ``"decade"``, ``"century"``, ``"quarter"``, ``"weekday"``, ``"id"``.
    """

    start: int
    end: int
    amount: float
    dimension: str = ""
    unit: str = ""  # its symbol
    per: str = ""  # symbol of the unit that it is counted by, as in 35 EUR a month
    bound: str = ""  # "min", "max" or ""
    key: str = ""  # a date as 2025-02-26, -12-24 or 2025; an identifier without its joints
    factor: float = 1.0  # of the unit and of the one that it is counted by: amount * factor compares
    # a time of day that may be before or after noon, or a date in figures whose day may be its month
    open: bool = False
    begin: int = -1  # where the words of its bound begin; `start` where it has none
    about: bool = False  # said to be near only: about 500 m
    dated: bool = False  # a date whose year is that of the other end of a range

    @property
    def base(self) -> float:
        """The amount in the base unit of the dimension."""
        return self.amount * self.factor

    @property
    def normal(self) -> str:
        """A text that equal values of one form share."""
        if self.key:
            return f"{self.bound} {self.dimension} {self.key}".lstrip()
        per = self.per and f"per {self.per}"
        digits = 9
        # 96,580,000.50 yuan are not 96,580,000.60, and 202503180017 is not 202503180018
        if abs(self.base) >= 1e7:
            digits = 15 if self.base.is_integer() else 13
        return " ".join(filter(None, (self.bound, f"{self.base:.{digits}g}", self.dimension, per)))


def counted_by(value: Value, *units: Unit) -> Value:
    """Return a value counted by units; of several, units of time come last.

    Example:
        >>> counted_by(Value(0, 6, 35.0, "EUR", unit="EUR"), unit_named("month"))[2:6]
        (35.0, 'EUR/months', 'EUR', 'month')
    """
    for unit in sorted(units, key=lambda unit: unit.dimension in TIMES):
        by = unit_named("day") if unit.dimension == "calendar days" else unit  # 每日 is 每天
        per, dimension = f"{value.per}·{by.symbol}".lstrip("·"), f"{value.dimension}/{by.dimension}"
        value = value._replace(per=per, factor=value.factor / by.factor, dimension=dimension)
    return value


def uncounted(value: Value) -> Value:
    """Return a value without the units that it is counted by."""
    factor = value.factor
    for symbol in value.per.split("·") if value.per else ():
        factor *= unit_named(symbol).factor
    return value._replace(per="", factor=factor, dimension=value.dimension.split("/")[0])


def same_value(stated: Value, quoted: Value) -> bool:
    """Tell whether the value `quoted` of a text supports a stated one: equal in any unit, and a date at least as exact.

    Example:
        >>> from rag_kit.text.values.reading import find_values
        >>> months, years, month, day = find_values("24 months, two years, March 2025, 3 March 2025")
        >>> same_value(months, years), same_value(month, day), same_value(day, month)
        (True, True, False)
    """
    dimensions = {stated.dimension, quoted.dimension}
    if {stated.bound, quoted.bound} == {"min", "max"}:  # at least 5, at most 5
        return False
    if "date" in dimensions:
        return _same_date(stated, quoted)
    if stated.key or quoted.key:
        return stated.key == quoted.key
    if dimensions == {"clock"}:
        minutes_apart = abs(stated.amount - quoted.amount)  # 24:00 is 0:00, and "half past two" may be 14:30
        return minutes_apart in (0, 24 * 60) or (minutes_apart == 12 * 60 and (stated.open or quoted.open))
    if dimensions == {"clock", ""}:  # 0540 may be no time
        clock, number = (stated, quoted) if stated.dimension else (quoted, stated)
        hours, minutes = divmod(clock.amount, 60)
        return 100 * hours + minutes == number.amount
    if dimensions in ({"ordinal", "calendar days"}, {"ordinal", ""}):  # the 5th, 5日, No. 5
        return stated.amount == quoted.amount
    if not dimensions_agree(stated.dimension, quoted.dimension):
        return False
    if "pounds" in dimensions and len(dimensions) > 1:  # money or mass: the other one tells which
        return stated.amount == quoted.amount
    if stated.about and _is_rounded(stated.amount, quoted.base / stated.factor):  # about 2 km, 1,980 m
        return True
    if not stated.dimension and stated.base.is_integer() and quoted.base.is_integer():
        return stated.base == quoted.base  # 202503180017 is not 202503180018
    return _close(stated.base, quoted.base)


def is_computed(stated: Value, values: Iterable[Value]) -> bool:
    """Tell whether a value is the sum, difference, product or quotient of two values of a text.

    Two times of day differ by a time, and two years by years.

    Example:
        >>> from rag_kit.text.values.reading import find_values
        >>> rise, share, years = find_values("2 million EUR, a quarter, 7 years")
        >>> values = find_values("In 2006 it paid 8 million EUR, and in 2013 10 million EUR.")
        >>> is_computed(rise, values), is_computed(share, values), is_computed(years, values)
        (True, False, True)
    """
    if stated.key or stated.dimension in ("weekday", "quarter", "century"):  # a date or identifier, too
        return False
    stated, rounding = uncounted(stated), 0.05 if stated.about else 0.005
    amounts: dict[str, list[float]] = {}  # of each dimension, in its base unit
    for value in map(uncounted, values):
        amounts.setdefault(value.dimension, []).append(value.base)
    for one, other in product(amounts, repeat=2):
        if one != other and other not in ("", "ratio"):
            continue
        for dimension, results in _results(one, other, amounts[one], amounts[other]):
            is_near = abs(stated.base - results) <= rounding * abs(results)
            if dimensions_agree(stated.dimension, dimension) and is_near.any():
                return True
    return False


def _results(one: str, other: str, ones: list[float], others: list[float]) -> list[tuple[str, Any]]:
    """Return what pairs of amounts of two dimensions give, in arrays by dimension: "EUR" for shares of EUR."""
    import numpy as np  # takes a tenth of a second, and most texts need none of this

    x, y = np.meshgrid(ones, others, indexing="ij")  # every pair of amounts
    results: list[tuple[str, Any]] = []
    with np.errstate(all="ignore"):  # of numbers of hundreds of digits
        if one == other:
            differ = ~np.eye(len(ones), dtype=bool)  # no amount is paired with itself
            x, y = x[differ], y[differ]
            dimension, factor = _DIFFERENCES.get(one, (one, 1.0))
            results += [(dimension, (x - y) * factor), (dimension, x + y)]
        x, y = x[y != 0], y[y != 0]
        if one == other:
            results += [("", x / y), ("ratio", x / y), ("ratio", 1 - x / y)]
        if other in ("", "ratio"):
            results += [(one, x * y), (one, x / y)]
    # results beyond floats are near to none
    return [(dimension, amounts[np.isfinite(amounts)]) for dimension, amounts in results]


def _is_rounded(amount: float, exact: float) -> bool:
    """Tell whether an amount is a more exact one rounded to fewer figures."""
    figures = len(f"{abs(amount):.12g}".replace(".", "").strip("0"))
    return _close(amount, float(f"{exact:.{figures}g}"))


def _close(one: float, other: float) -> bool:
    return abs(one - other) <= 1e-11 * max(abs(one), abs(other))


def _same_date(stated: Value, quoted: Value) -> bool:
    """Tell whether a date has all parts of a stated one; a plain number may be a year."""
    if stated.dimension != quoted.dimension:
        date, number = (stated, quoted) if stated.dimension == "date" else (quoted, stated)
        return not number.dimension and date.key == f"{number.amount:.0f}"
    parts, (year, month, day) = ((*value.key.split("-"), "", "")[:3] for value in (stated, quoted))
    if stated.dated and not year:
        parts = ("", *parts[1:])
    readings = [(year, month, day)]
    if stated.open != quoted.open:
        readings.append((year, day, month))  # 03/04/2025 may be in March or April
    return any(
        all(part in ("", other) for part, other in zip(parts, reading, strict=True)) for reading in readings
    )


# dimension of a difference, and its base unit in that of the two: seconds of minutes, months of years
_DIFFERENCES = {"clock": ("time", 60.0), "date": ("months", 12.0)}
_MAX_BETWEEN = 7  # characters between two values that make one, or a range
_RANGE = re.compile(r"\s?(?:-|±|~~?|to|until|and|bis|und|至|到|和)\s?")  # between its ends
_COMMA = re.compile(r", |、")
_LIST_JOINT = re.compile(r"、|或者?| or ")
_AND = re.compile(r"\s?(?:and|und|和)\s?")
# what follows a day of a range, as in "July 13 to 31, 2026"; "5 May to 20 people" is none
_AFTER_DAY = re.compile(
    r"\s*(?:$|[,.;:)，。；）])|\s(?:the|and|or|in|at|on|for|of|is|are|was|were|will|inclusive|each|every)\b"
)
_BETWEEN_UNITS = re.compile(r"\s?(?:,?\s?and\s|零|又|und\s)?\s?")  # 1 h 30 min, 1 h and 30 min, 1小时零5分


def join(text: str, first: Value, second: Value) -> list[Value]:
    """Join two neighbours to one value ("1 h 30 min"), or complete one by the other ("5 to 10 days", "5 to 7 May")."""
    between = text[first.end : second.start]
    if len(between) > _MAX_BETWEEN:
        return [first, second]
    is_verb_or_nothing = not between or between.isalpha()  # 一日3次, 一日服用三次: both are 3次 a day
    if is_verb_or_nothing and first.amount == 1 and second.per and first.unit == second.per:
        return [second]
    if _RANGE.fullmatch(between):
        if second.dimension or not _AND.fullmatch(between):  # after "and" a bare number is no day
            first, second = _complete_dates(text, first, second)
        if second.unit and not first.dimension:  # 5 to 10 days
            return [_with_unit_of(second, first), second]
    is_part_of_unit = first.dimension == second.dimension and 0 < second.base < first.factor  # 30 min < 1 h
    if is_part_of_unit and first.unit and not first.per and _BETWEEN_UNITS.fullmatch(between):
        amount = first.amount + second.amount * second.factor / first.factor
        return [first._replace(end=second.end, amount=amount, per=second.per)]
    return [first, second]


def share_unit(text: str, values: list[Value]) -> None:
    """Give the numbers of a list the unit of its last one: 12、15和18毫米, "2.1, 3.4 and 5.0 g".

    A number at the beginning of a line or clause counts an item, as in 1、5天内.
    """
    if len(values) < 2:
        return
    before, last = values[-2:]
    joint = _LIST_JOINT.fullmatch(text, before.end, last.start)
    sign_before = text[before.begin - 1 : before.begin]
    is_item_number = joint and joint[0] == "、" and not sign_before.isalnum() and sign_before != "、"
    if joint and not is_item_number and last.unit and not before.dimension:
        values[-2] = _with_unit_of(last, before)
    for n in range(len(values) - 2, 0, -1):
        first, second = values[n - 1 : n + 1]
        has_unit_of_last = second.unit and second.unit == last.unit and text[second.end - 1].isnumeric()
        if first.dimension or not has_unit_of_last or not _COMMA.fullmatch(text, first.end, second.start):
            break
        values[n - 1] = _with_unit_of(last, first)


def _with_unit_of(one: Value, number: Value) -> Value:
    unit = {name: getattr(one, name) for name in ("dimension", "unit", "per", "factor")}
    return number._replace(**unit)


def _complete_dates(text: str, first: Value, second: Value) -> tuple[Value, Value]:
    """Give a day at one end of a range the month of the other, and a date the year: 13 to 31 July, 2月10日至12日.

    Example:
        >>> from rag_kit.text.values.reading import find_values
        >>> [value.normal for value in find_values("13 to 31 July, 2月10日至12日")]
        ['date -07-13', 'date -07-31', 'date -02-10', 'date -02-12']
        >>> [value.normal for value in find_values("12 June to 4 September 2022")]
        ['date 2022-06-12', 'date 2022-09-04']
    """
    # 12日, a date, or a bare number behind which nothing is counted
    may_be_date = second.unit or second.key or _AFTER_DAY.match(text, second.end)
    if first.dimension == "date" and may_be_date:
        last = _complete_end(second, first, is_last=True)
        if last is not second:
            return first, last
    if second.dimension == "date":
        first = _complete_end(first, second, is_last=False)
    return first, second


def _complete_end(end: Value, date: Value, *, is_last: bool) -> Value:
    """Return an end of a range with the month or year of the date at the other end; else as it is.

    Only where the range then runs forward: "July 13 to 31" has two dates, "July 13 to 5" one.
    """
    year, _, month_and_day = date.key.partition("-")  # "2022" and "09-04" of 2022-09-04
    year_and_month, _, day = date.key.rpartition("-")  # "2022-09" and "04"; "-09" and "04" of no year
    is_number = end.dimension in ("", "ordinal", "calendar days") and not end.per
    if end.key[:1] == "-" and year and month_and_day:  # 12 June to 4 September 2022
        completed = end._replace(key=year + end.key, dated=True)
        is_later = end.key[1:] > month_and_day
    elif is_number and end.amount < 32 and "-" in year_and_month:  # 13 to 31 July
        key = f"{year_and_month}-{end.amount:02.0f}"
        completed = end._replace(dimension="date", key=key, amount=date.amount, unit="", factor=1.0)
        is_later = end.amount > float(day)
    else:
        return end
    return completed if is_later == is_last else end
