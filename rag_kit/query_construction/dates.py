"""Dates in common forms, English and Chinese, as spans of days."""

from __future__ import annotations

import calendar
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any

from rag_kit.query_construction.words import Span
from rag_kit.text.values.numbers import WORDS, read_any
from rag_kit.text.values.reading import Value, find_values

NUMBERS = {word: int(number) for word, number in WORDS.items()}
_QUARTERS = ("first q1 1q 一 1", "second q2 2q 二 2", "third q3 3q 三 3", "fourth q4 4q 四 4")
_NUMERAL = re.compile(r"[\d〇零一二两三四五六七八九十百千万亿]+")
QUARTERS = {name: number for number, names in enumerate(_QUARTERS, start=1) for name in names.split()}


@dataclass(frozen=True)
class Period:
    """The days from `start` to before `end`, which is ``None`` for "until now" ("the last five years").

    `grain` is what was named: ``"day"``, ``"month"``, ``"quarter"``, ``"year"``, ``"years"`` or another ``"span"``.
    """

    start: date
    end: date | None
    grain: str

    def through(self, other: Period) -> Period:
        """The days from the beginning of the earlier of two periods to the end of the later one."""
        first, last = sorted((self, other), key=lambda period: period.start)
        years = {first.grain, last.grain} <= {"year", "years"}
        return Period(first.start, last.end, "years" if years else "span")


@dataclass(frozen=True, eq=False)
class NamedPeriod(Span):
    """A period named in a text."""

    period: Period


def parse_period(text: str, today: date) -> Period | None:
    """The days that a text names, such as ``"2020年5月"``, ``"Q3 2020"``, ``"last year"``; ``None`` if not a date.

    Example:
        >>> period = parse_period("May 2020", date(2026, 1, 1))
        >>> period.start.isoformat(), period.end.isoformat()
        ('2020-05-01', '2020-06-01')
        >>> parse_period("去年", date(2026, 1, 1)).start.isoformat()
        '2025-01-01'
    """
    text = re.sub(r"^(?:the|in|on|year|the year)\s+", "", text.strip(), flags=re.IGNORECASE)
    for named in find_periods(text, today):
        if named.begin == 0 and named.end == len(text):
            return named.period
    try:  # forms that are not looked for in questions, such as 20200501
        day = datetime.fromisoformat(text).date()
    except ValueError:
        return None
    return Period(day, day + timedelta(days=1), "day") if day < date.max else None


def find_periods(text: str, today: date) -> list[NamedPeriod]:
    """Every date in a text, in order; of those that begin at one place, that of the first form."""
    found = [
        (
            match.start(),
            order,
            match.end(),
            make({key: (g or "").lower() for key, g in match.groupdict().items()}, today),
        )
        for order, (make, pattern) in enumerate(_FORMS)
        for match in pattern.finditer(text)
    ]
    found += [
        (value.start, len(_FORMS), value.end, _value_period(value))
        for value in find_values(text)
        if _has_year(value)
    ]
    periods: list[NamedPeriod] = []
    last = 0
    for begin, _, end, period in sorted(found, key=lambda item: item[:2]):
        if begin >= last:
            last = end
            if period is not None:
                periods.append(NamedPeriod(begin, end, period))
    return periods


def chinese_number(text: str) -> int | None:
    """A number in Chinese or Arabic numerals: 二十三, 二〇一五, 15.

    Example:
        >>> chinese_number("二十三"), chinese_number("二〇一五"), chinese_number("十"), chinese_number("7")
        (23, 2015, 10, 7)
        >>> chinese_number("五千"), chinese_number("三万二千")
        (5000, 32000)
    """
    return int(read_any(text)) if _NUMERAL.fullmatch(text) else None


def day_in_format(day: date, format_: str) -> Any:
    """A day as a field stores it."""
    if format_ == "yyyymmdd":
        return day.year * 10_000 + day.month * 100 + day.day
    if format_ == "timestamp":
        return calendar.timegm(day.timetuple())
    return day.isoformat()


def _months(year: int, month: int, count: int = 1, grain: str = "month") -> Period | None:
    """A number of months from one on."""
    if not (1 <= month <= 12 and 1000 <= year <= 2999):
        return None
    last = year * 12 + month - 1 + count
    return Period(date(year, month, 1), date(last // 12, last % 12 + 1, 1), grain)


def _has_year(value: Value) -> bool:
    return value.dimension == "date" and value.amount >= 1000


def _value_period(value: Value) -> Period | None:
    """The days of a year, a month or a day."""
    year, month, day = ([int(part) for part in value.key.split("-")] + [0, 0])[:3]
    if not month:
        return _months(year, 1, 12, "year")
    if not day:
        return _months(year, month)
    try:
        start = date(year, month, day)
        return Period(start, start + timedelta(days=1), "day")
    except (ValueError, OverflowError):
        return None


# Each form's groups are handed to its function, in lower case, those that match nothing as "".
def _full_year(year: str) -> int:
    """A year; FY18 is 2018."""
    number = chinese_number(year) or 0
    return number if len(year) == 4 else 2000 + number


def _quarter(groups: Mapping[str, str], today: date) -> Period | None:
    return _months(_full_year(groups["y"]), 3 * QUARTERS[groups["q"]] - 2, 3, "quarter")


def _decade(groups: Mapping[str, str], today: date) -> Period | None:
    """The 1990s, or a third of them: the early ones are four years."""
    start = chinese_number(groups["y"]) or 0
    if start < 1000:
        start += 2000 if start < 30 else 1900
    first, count = {"early": (0, 4), "mid": (4, 3), "late": (7, 3)}.get(groups.get("part", ""), (0, 10))
    return _months(start + first, 1, 12 * count, "years")


def _until_now(groups: Mapping[str, str], today: date) -> Period | None:
    """The last five years; 近五年: from then until now."""
    count = NUMBERS.get(groups["n"]) or chinese_number(groups["n"]) or 3
    months = count * (12 if groups["u"] in ("years", "年") else 1)
    year, month = divmod(today.year * 12 + today.month - 1 - months, 12)
    day = min(today.day, calendar.monthrange(year, month + 1)[1])
    return Period(date(year, month + 1, day), None, "years" if months % 12 == 0 else "month")


def _relative(groups: Mapping[str, str], today: date) -> Period | None:
    """This or the last year or month; 前年 is the year before the last."""
    text = groups["text"]
    back = 2 if text == "前年" else int(text[0] not in "tc今本这")
    if text.endswith(("year", "年")):
        return _months(today.year - back, 1, 12, "year")
    year, month = divmod(today.year * 12 + today.month - 1 - back, 12)
    return _months(year, month + 1)


_B, _E = r"(?<![A-Za-z0-9_.$€£])", r"(?![A-Za-z0-9_%])"
_H = "〇零一二三四五六七八九十两"
_Y = r"(?P<y>(?:1[0-9]|20|21)\d\d)"
_FISCAL = r"(?:(?:FY|fiscal(?:\s+year)?|financial\s+year)[\s'’-]*)"
_COUNT = rf"(?P<n>\d{{1,3}}|[{_H}]{{1,3}}|几|数)"
_Maker = Callable[[Mapping[str, str], date], Period | None]
_FORMS: list[tuple[_Maker, re.Pattern[str]]] = [
    (make, re.compile(rf"(?P<text>{pattern})", re.IGNORECASE))
    for make, pattern in (
        (
            _quarter,
            r"\b(?P<q>q[1-4]|[1-4]q|(?:first|second|third|fourth)(?=\s+quarter))(?:\s+quarter)?(?:\s+of|\s*,)?\s*"
            rf"{_FISCAL}?(?P<y>(?:1[0-9]|20|21)\d\d|(?<=\dq)\d\d){_E}",
        ),
        (
            _quarter,
            rf"(?:{_B}|\b{_FISCAL}){_Y}\s*年?\s*第?(?P<q>q[1-4](?!\w)|[1-4一二三四](?=季度))(?:季度)?",
        ),
        (
            _decade,
            rf"\b(?:(?P<part>early|mid|late)[\s-]+(?:the\s+)?)?(?:{_B}|')(?P<y>(?:1[5-9]|20)?\d0)['’]?s\b",
        ),
        (_decade, r"(?:上(?:个)?世纪|20世纪)?(?P<y>(?:1[5-9]|20)\d0|[2-9]0|[二三四五六七八九]十)年代"),
        (
            _until_now,
            rf"\b(?:last|past|previous|recent)\s+(?:(?P<n>\d{{1,3}}|{'|'.join(NUMBERS)}|few)\s+)?"
            r"(?P<u>years|months)\b",
        ),
        (_until_now, rf"(?:最近|近|过去|前){_COUNT}(?P<u>个月|年)(?:里|内|间|来|以来)?"),
        (
            _relative,
            r"\b(?:this|current|last|previous)\s+(?:year|month)\b|今年|去年|前年|(?:本|这个?|上个?)月",
        ),
    )
]
