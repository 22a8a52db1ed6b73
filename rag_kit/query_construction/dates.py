"""Dates in any common form, English and Chinese, as spans of days."""

from __future__ import annotations

import calendar
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import date, timedelta
from typing import Any

_FULL = "january february march april may june july august september october november december"  # whatever the locale
_MONTHS = {name: number for number, name in enumerate(_FULL.split(), start=1)}
_MONTHS |= {name[:3]: number for name, number in _MONTHS.items()} | {"sept": 9}
WORDS = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]
NUMBERS = {word: number for number, word in enumerate(WORDS, start=1)} | {
    **dict.fromkeys(("a", "an"), 1), "couple of": 2, "a couple of": 2, "few": 3, "a few": 3,
    "several": 3, "fifteen": 15, "twenty": 20, "thirty": 30, "fifty": 50, "hundred": 100,
}  # fmt: skip
_DECADES = ("twenties", "thirties", "forties", "fifties", "sixties", "seventies", "eighties", "nineties")
_ORDINALS = ("first 1st q1 一 1 上", "second 2nd q2 二 2 下", "third 3rd q3 三 3", "fourth 4th last q4 四 4")
FIRST = {name: number for number, names in enumerate(_ORDINALS, start=1) for name in names.split()}
_UNITS = {
    "天": "day",
    "日": "day",
    "周": "week",
    "个星期": "week",
    "个月": "month",
    "年": "year",
    "季度": "quarter",
}
_MONTHS_OF = {"month": 1, "quarter": 3, "year": 12, "decade": 120}
_DIGITS = dict(zip("〇零一二三四五六七八九两", [0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 2], strict=True))
_PLACES = {"十": 10, "百": 100, "千": 1000, "万": 10_000}


@dataclass(frozen=True)
class Period:
    """A span of days.

    Attributes:
        start: First day.
        end: First day after it; ``None`` for "until now" ("the last five years").
        grain: What was named: ``"day"``, ``"month"``, ``"year"``, ``"years"``...
        note: How an unclear form was read.
    """

    start: date
    end: date | None
    grain: str
    note: str = ""


@dataclass(frozen=True)
class FoundPeriod:
    """A period named in a text, and where."""

    begin: int
    stop: int
    period: Period


def parse_period(text: str, today: date) -> Period | None:
    """Read one date.

    Args:
        text: E.g. ``"2020-05-01"``, ``"May 2020"``, ``"5/2020"``, ``"2020年5月"``, ``"last year"``.
        today: What relative dates count from.

    Returns:
        The days it names, or ``None`` if it is no date.

    Example:
        >>> period = parse_period("May 2020", date(2026, 1, 1))
        >>> period.start.isoformat(), period.end.isoformat()
        ('2020-05-01', '2020-06-01')
        >>> parse_period("去年", date(2026, 1, 1)).start.isoformat()
        '2025-01-01'
    """
    text = re.sub(r"^(?:the|in|on|year|the year)\s+", "", text.strip(), flags=re.IGNORECASE)
    for found in find_periods(text, today):
        if found.begin == 0 and found.stop == len(text):
            return found.period
    return None


def find_periods(text: str, today: date) -> list[FoundPeriod]:
    """Every date in a text, in order; of those that begin at one place, that of the first form."""
    matches = [
        (match.start(), order, match, make)
        for order, (make, pattern) in enumerate(_FORMS)
        for match in pattern.finditer(text)
    ]
    found: list[FoundPeriod] = []
    stop = 0
    for begin, _, match, make in sorted(matches, key=lambda each: each[:2]):
        if begin >= stop:
            stop = match.end()
            groups = {name: (group or "").lower() for name, group in match.groupdict().items()}
            if (period := make(groups, today)) is not None:
                found.append(FoundPeriod(begin, stop, period))
    return found


def chinese_number(text: str) -> int | None:
    """A number in Chinese or Arabic numerals: 二十三, 二〇一五, 15.

    Example:
        >>> chinese_number("二十三"), chinese_number("二〇一五"), chinese_number("十"), chinese_number("7")
        (23, 2015, 10, 7)
        >>> chinese_number("五千"), chinese_number("三万二千")
        (5000, 32000)
    """
    if text.isdecimal():
        return int(text)
    if not text or any(char not in _DIGITS and char not in _PLACES for char in text):
        return None
    if not any(char in _PLACES for char in text):
        return int("".join(str(_DIGITS[char]) for char in text))
    total = unit = 0
    for char in text:
        if char == "万":
            total, unit = (total + unit or 1) * 10_000, 0
        elif char in _PLACES:
            total += (unit or 1) * _PLACES[char]
            unit = 0
        else:
            unit = _DIGITS[char]
    return total + unit


def stored(day: date, format_: str) -> Any:
    """A day as a field stores it."""
    if format_ == "yyyymmdd":
        return day.year * 10_000 + day.month * 100 + day.day
    if format_ == "timestamp":
        return calendar.timegm(day.timetuple())
    return day.isoformat()


def _day(year: int, month: int, day: int, note: str = "") -> Period | None:
    try:
        start = date(year, month, day)
        return Period(start, start + timedelta(days=1), "day", note)
    except (ValueError, OverflowError):
        return None


def _months(year: int, month: int, count: int = 1, grain: str = "month") -> Period | None:
    """A number of months from one on."""
    if not (1 <= month <= 12 and 1000 <= year <= 2999):
        return None
    last = year * 12 + month - 1 + count
    return Period(date(year, month, 1), date(last // 12, last % 12 + 1, 1), grain)


def _years(first: int, count: int = 1, note: str = "") -> Period | None:
    """A number of whole years from one on."""
    period = _months(first, 1, 12 * count, "year" if count == 1 else "years")
    return period and replace(period, note=note)


# Each form's groups are handed to its function, in lower case, those that match nothing as "".
def _calendar_date(groups: Mapping[str, str], today: date) -> Period | None:
    """A year, a month or a day."""
    year = _four(groups["y"])
    name = groups.get("m", "").rstrip(".")
    if not name:
        return _years(year)
    month = _MONTHS.get(name) or chinese_number(name) or 0
    day = groups.get("d", "")
    return _day(year, month, chinese_number(day) or 0) if day else _months(year, month)


def _four(year: str) -> int:
    """A year; FY18 is 2018."""
    number = chinese_number(year) or 0
    return number if len(year) == 4 else 2000 + number


def _slashed(groups: Mapping[str, str], today: date) -> Period | None:
    first, second, year = int(groups["a"]), int(groups["b"]), int(groups["y"])
    if first > 12:
        return _day(year, second, first)
    unclear = first != second and second <= 12
    return _day(year, first, second, f"{groups['text']} was read as month/day/year" if unclear else "")


def _quarter(groups: Mapping[str, str], today: date) -> Period | None:
    return _months(_four(groups["y"]), 3 * FIRST[groups["q"]] - 2, 3, "quarter")


def _half(groups: Mapping[str, str], today: date) -> Period | None:
    return _months(int(groups["y"]), 6 * FIRST[groups["h"]] - 5, 6, "half")


def _decade(groups: Mapping[str, str], today: date) -> Period | None:
    if name := groups.get("name"):
        start = 1920 + 10 * _DECADES.index(name)
    else:
        start = chinese_number(groups["y"]) or 0
        recent = start < 30 and "era" in groups and not groups["era"]
        start += 0 if start >= 1000 else 2000 if recent else 1900
    if not (part := groups.get("part")):
        return _years(start, 10)
    after, count = {"early": (0, 4), "mid": (4, 3), "late": (7, 3)}[part]
    note = f"{groups['text']} was read as {start + after} to {start + after + count - 1}"
    return _years(start + after, count, note)


def _century(groups: Mapping[str, str], today: date) -> Period | None:
    number = chinese_number(groups["n"])
    return _years((number - 1) * 100 + 1, 100) if number and number <= 22 else None


def _until_now(groups: Mapping[str, str], today: date) -> Period | None:
    """The last five years; 近五年: from then until now."""
    count = _count(groups["n"] or "1")
    unit = _UNITS.get(groups["u"]) or groups["u"].rstrip("s")
    try:
        if unit in ("day", "week"):
            return Period(today - timedelta(days=count * (7 if unit == "week" else 1)), None, unit)
        year, month = divmod(today.year * 12 + today.month - 1 - count * _MONTHS_OF[unit], 12)
        day = min(today.day, calendar.monthrange(year, month + 1)[1])
        return Period(date(year, month + 1, day), None, unit if unit in ("month", "quarter") else "years")
    except (ValueError, OverflowError):
        return None


def _ago(groups: Mapping[str, str], today: date) -> Period | None:
    return _years(today.year - _count(groups["n"]))


def _count(text: str) -> int:
    return NUMBERS.get(text) or chinese_number(text) or 3


def _relative(groups: Mapping[str, str], today: date) -> Period | None:
    text = groups["text"]
    if text in ("today", "今天", "yesterday", "昨天"):
        day = today - timedelta(days=text in ("yesterday", "昨天"))
        return Period(day, day + timedelta(days=1), "day")
    if text[-1] == "年":
        return _years(today.year - "今去前".index(text[0]))
    first, *named = text.split()
    unit = named[0] if named else "month" if "月" in text else "week"
    back = int(first not in ("this", "current") and text[0] not in "本这")
    if unit == "week":
        monday = today - timedelta(days=today.weekday() + 7 * back)
        return Period(monday, monday + timedelta(days=7), "week")
    size = _MONTHS_OF[unit]
    year, month = divmod(((today.year * 12 + today.month - 1) // size - back) * size, 12)
    return _months(year, month + 1, size, unit)


_B, _E = r"(?<![A-Za-z0-9_.$€£])", r"(?![A-Za-z0-9_%])"
_H = "〇零一二三四五六七八九十两"
_Y = r"(?P<y>(?:1[0-9]|20|21)\d\d)"
_FISCAL = r"(?:(?:FY|fiscal(?:\s+year)?|financial\s+year)[\s'’-]*)"
_MONTH = rf"(?P<m>(?:{'|'.join(sorted(_MONTHS, key=len, reverse=True))})\b\.?)"
_DAY = r"(?P<d>\d{1,2})(?:st|nd|rd|th)?"
_NUMBER = rf"(?P<n>\d{{1,3}}|{'|'.join(sorted(NUMBERS, key=len, reverse=True))})"
_COUNT = rf"(?P<n>\d{{1,3}}|[{_H}]{{1,3}}|几|数)"
_CLOCK = r"(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?"
_PART = r"(?:(?P<part>early|mid|late)[\s-]+(?:the\s+)?)?"
_Maker = Callable[[Mapping[str, str], date], Period | None]
_FORMS: list[tuple[_Maker, re.Pattern[str]]] = [
    (make, re.compile(rf"(?P<text>{pattern})", re.IGNORECASE))
    for make, pattern in (
        (
            _calendar_date,
            rf"{_B}(?P<y>\d{{4}})(?P<s>[-/.])(?P<m>\d{{1,2}})(?P=s)(?P<d>\d{{1,2}}){_CLOCK}{_E}",
        ),
        (_calendar_date, rf"{_B}(?P<y>(?:1[5-9]|20)\d\d)(?P<m>0[1-9]|1[0-2])(?P<d>[0-2]\d|3[01]){_E}"),
        (_slashed, rf"{_B}(?P<a>\d{{1,2}})(?P<s>[-/.])(?P<b>\d{{1,2}})(?P=s){_Y}{_E}"),
        (_calendar_date, rf"{_B}{_Y}[-/.](?P<m>0?[1-9]|1[0-2])(?![-/.]?[A-Za-z0-9_])"),
        (_calendar_date, rf"{_B}(?P<m>0?[1-9]|1[0-2])[/.]{_Y}{_E}"),
        (_calendar_date, rf"\b(?:{_DAY}\s+(?:of\s+)?)?{_MONTH}\s*(?:of\s+|,\s*)?{_Y}{_E}"),
        (_calendar_date, rf"\b{_MONTH}\s+{_DAY}\s*,?\s+{_Y}{_E}"),
        (
            _quarter,
            r"\b(?P<q>q[1-4]|(?:first|second|third|fourth|last|1st|2nd|3rd|4th)(?=\s+quarter))(?:\s+quarter)?(?:\s+of|\s*,)?"
            rf"\s*(?:{_FISCAL}?(?=\d{{4}})|(?:{_FISCAL}|'))(?P<y>(?:1[0-9]|20|21)\d\d|\d\d){_E}",
        ),
        (_quarter, rf"\b(?P<q>[1-4])Q\s*(?P<y>(?:20)?\d\d){_E}"),
        (
            _quarter,
            rf"(?:{_B}|\b{_FISCAL}){_Y}(?:\s*年?\s*第?(?=[qQ1-4一二三四])(?P<q>[qQ][1-4](?!\w)|[1-4一二三四](?=季度))(?:季度)?)",
        ),
        (_half, rf"\b(?P<h>first|second|1st|2nd)\s+half\s+of\s+{_Y}{_E}"),
        (_half, rf"{_B}{_Y}年(?P<h>[上下])半年"),
        (_decade, rf"\b{_PART}(?:{_B}|')(?P<y>(?:1[5-9]|20)\d0|[2-9]0)(?:'s|’s|s)\b"),
        (_decade, rf"\b{_PART}(?:nineteen[\s-])?(?P<name>{'|'.join(_DECADES)})\b"),
        (
            _decade,
            r"(?P<era>上(?:个)?世纪|二十世纪|20世纪)?(?P<y>(?:1[5-9]|20)\d0|[2-9]0|[二三四五六七八九]十)年代",
        ),
        (
            _calendar_date,
            rf"(?<![\d{_H}])(?P<y>\d{{4}}|[一二][〇零一二三四五六七八九]{{3}})\s*年(?!代)"
            rf"(?:\s*(?P<m>\d{{1,2}}|[{_H}]{{1,2}})\s*月(?:份)?(?:\s*(?P<d>\d{{1,2}}|[{_H}]{{1,3}})\s*[日号])?)?",
        ),
        (_century, r"\b(?:the\s+)?(?P<n>\d\d?)(?:st|nd|rd|th)\s+century"),
        (_century, rf"(?P<n>\d\d?|[{_H}]{{1,3}})世纪"),
        (
            _until_now,
            rf"\b(?:last|past|previous|recent|preceding)\s+(?:{_NUMBER}\s+)?"
            r"(?P<u>days|weeks|months|quarters|years|decades?)\b(?!\s+of\s+the\b)",
        ),
        (
            _until_now,
            rf"(?:最近|近|过去|前)的?{_COUNT}(?P<u>天|日|周|个星期|个月|年|季度)(?:里|内|间|来|以来|之内)?",
        ),
        (_ago, rf"\b{_NUMBER}\s+years?\s+ago\b"),
        (_ago, rf"{_COUNT}年(?:之|以)?前"),
        (
            _relative,
            r"(?:this|last|previous|current|past)\s+(?:year|month|week|quarter)\b(?!s)|today|yesterday"
            r"|今年|去年|前年|今天|昨天|(?:本|这个?|上个?)(?:月|周|星期)",
        ),
        (_calendar_date, rf"\b{_FISCAL}(?P<y>(?:1[0-9]|20|21)\d\d|\d\d){_E}"),
        (_calendar_date, rf"{_B}{_Y}{_E}"),
    )
]
