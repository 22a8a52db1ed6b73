"""Dates in any common form, English and Chinese, as spans of days."""

from __future__ import annotations

import calendar
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import date, timedelta
from typing import Any

from rag_kit.query_construction.date_patterns import (
    ALL,
    DECADES,
    FIRST,
    HAN,
    MONTHS,
    NUMBERS,
    UNITS,
)


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
    """Every date in a text, the longest reading at each place, in order."""
    found: list[FoundPeriod] = []
    for match in ALL.finditer(text):
        for name, make in _MAKERS.items():
            if match.group(name) is not None:
                period = make(match, today)
                if period is not None:
                    found.append(FoundPeriod(match.start(), match.end(), period))
                break
    return found


def _day(year: int, month: int, day: int, note: str = "") -> Period | None:
    try:
        start = date(year, month, day)
        return Period(start, start + timedelta(days=1), "day", note)
    except (ValueError, OverflowError):
        return None


def months(year: int, month: int, count: int = 1, grain: str = "month") -> Period | None:
    """A number of months from one on."""
    if not (1 <= month <= 12 and 1 <= year <= 9990):
        return None
    last = year * 12 + month - 1 + count
    return Period(date(year, month, 1), date(last // 12, last % 12 + 1, 1), grain)


def years(first: int, count: int = 1, note: str = "") -> Period | None:
    """A number of whole years from one on."""
    period = months(first, 1, 12 * count, "year" if count == 1 else "years")
    return period and replace(period, note=note)


def _iso(match: re.Match[str], today: date) -> Period | None:
    return _day(int(match["iso_y"]), int(match["iso_m"]), int(match["iso_d"]))


def _compact(match: re.Match[str], today: date) -> Period | None:
    text = match["compact"]
    return _day(int(text[:4]), int(text[4:6]), int(text[6:]))


def _slashed(match: re.Match[str], today: date) -> Period | None:
    first, second, year = int(match["sl_a"]), int(match["sl_b"]), int(match["sl_y"])
    if first > 12:
        return _day(year, second, first)
    unclear = first != second and second <= 12
    return _day(year, first, second, f"{match[0]} was read as month/day/year" if unclear else "")


def _month_year(match: re.Match[str], today: date) -> Period | None:
    return months(int(match["ym_y"] or match["my_y"]), int(match["ym_m"] or match["my_m"]))


def _english(match: re.Match[str], today: date) -> Period | None:
    month = MONTHS[(match["en_m1"] or match["en_m2"]).lower().rstrip(".")]
    day = match["en_d1"] or match["en_d2"]
    year = int(match["en_y1"] or match["en_y2"])
    return _day(year, month, int(day)) if day else months(year, month)


def _quarter(match: re.Match[str], today: date) -> Period | None:
    ordinal = match["q_a"] or match["q_c"] or match["q_d"]
    year = _four(match["q_y1"] or match["q_y2"] or match["q_y3"] or match["q_y4"])
    return months(year, 3 * FIRST[ordinal.lower()] - 2, 3, "quarter")


def _fiscal(match: re.Match[str], today: date) -> Period | None:
    return years(_four(match["fy"] or match["year"]))


def _four(year: str) -> int:
    """FY18 is 2018."""
    return int(year) if len(year) == 4 else 2000 + int(year)


def _half(match: re.Match[str], today: date) -> Period | None:
    first = (match["h_a"] or match["h_c"]).lower() in ("first", "1st", "上")
    return months(int(match["h_y1"] or match["h_y2"]), 1 if first else 7, 6, "half")


def _chinese(match: re.Match[str], today: date) -> Period | None:
    year = chinese_number(match["zh_y"], digits=True)
    if year is None or not 1000 <= year <= 2999:
        return None
    month = chinese_number(match["zh_m"]) if match["zh_m"] else None
    day = chinese_number(match["zh_d"]) if match["zh_d"] else None
    if month is None:
        return years(year)
    return months(year, month) if day is None else _day(year, month, day)


def _decade(match: re.Match[str], today: date) -> Period | None:
    if match["de_name"]:
        start = 1900 + DECADES[match["de_name"].lower()]
    elif match["de_zh"]:
        start = chinese_number(match["de_zh"]) or 0
        if start < 1000:
            start += 1900 if match["de_c"] or start >= 30 else 2000
    else:
        start = int(match["de_en"]) + (0 if len(match["de_en"]) == 4 else 1900)
    part = (match["de_part"] or "").lower().rstrip("- ")
    if not part:
        return years(start, 10)
    first, count = {"early": (0, 4), "mid": (4, 3), "late": (7, 3)}[part]
    return years(
        start + first, count, f"{match[0]} was read as {start + first} to {start + first + count - 1}"
    )


def _century(match: re.Match[str], today: date) -> Period | None:
    number = int(match["ce_en"]) if match["ce_en"] else chinese_number(match["ce_zh"])
    return years((number - 1) * 100 + 1, 100) if number and 1 <= number <= 22 else None


def _span(match: re.Match[str], today: date) -> Period | None:
    """The last five years; 近五年: from then until now."""
    count = _count(match["sp_n"] or match["sp_c"] or "1")
    unit = (match["sp_u"] or "").lower().rstrip("s") or UNITS[match["sp_cu"]]
    try:
        if unit in ("day", "week"):
            return Period(today - timedelta(days=count * (7 if unit == "week" else 1)), None, unit)
        size = {"month": 1, "quarter": 3, "year": 12, "decade": 120}[unit]
        year, month = divmod(today.year * 12 + today.month - 1 - count * size, 12)
        day = min(today.day, calendar.monthrange(year, month + 1)[1])
        return Period(date(year, month + 1, day), None, unit if size < 12 else "years")
    except (ValueError, OverflowError):
        return None


def _count(text: str) -> int:
    text = text.lower()
    if text.isdecimal():
        return int(text)
    return NUMBERS.get(text) or chinese_number(text) or 3


def _relative(match: re.Match[str], today: date) -> Period | None:
    text = match["relative"].lower()
    if text in ("today", "今天", "yesterday", "昨天"):
        day = today - timedelta(days=text in ("yesterday", "昨天"))
        return Period(day, day + timedelta(days=1), "day")
    if text[-1] == "年":
        return years(today.year - "今去前".index(text[0]))
    first, *named = text.split()
    unit = named[0] if named else "month" if "月" in text else "week"
    back = int(first not in ("this", "current") and text[0] not in "本这")
    if unit == "year":
        return years(today.year - back)
    if unit in ("month", "quarter"):
        size = 1 if unit == "month" else 3
        year, month = divmod(((today.year * 12 + today.month - 1) // size - back) * size, 12)
        return months(year, month + 1, size, unit)
    monday = today - timedelta(days=today.weekday() + 7 * back)
    return Period(monday, monday + timedelta(days=7), "week")


def _past_year(match: re.Match[str], today: date) -> Period | None:
    return years(today.year - _count(match["ago"] or match["ago_zh"]))


_PLACES = {"十": 10, "百": 100, "千": 1000, "万": 10_000}


def chinese_number(text: str, *, digits: bool = False) -> int | None:
    """A number in Chinese or Arabic numerals: 二十三, 二〇一五, 15.

    Example:
        >>> chinese_number("二十三"), chinese_number("二〇一五"), chinese_number("十"), chinese_number("7")
        (23, 2015, 10, 7)
        >>> chinese_number("五千"), chinese_number("三万二千")
        (5000, 32000)
    """
    if text.isdecimal():
        return int(text)
    if not text or any(char not in HAN and char not in _PLACES for char in text):
        return None
    if not any(char in _PLACES for char in text):
        return int("".join(str(HAN[char]) for char in text)) if len(text) > 1 or not digits else HAN[text]
    total = unit = 0
    for char in text:
        if char == "万":
            total, unit = (total + unit or 1) * 10_000, 0
        elif char in _PLACES:
            total += (unit or 1) * _PLACES[char]
            unit = 0
        else:
            unit = HAN[char]
    return total + unit


_MAKERS: dict[str, Callable[[re.Match[str], date], Period | None]] = {
    "iso": _iso, "compact": _compact, "slashed": _slashed, "ym": _month_year, "my": _month_year,
    "english": _english, "quarter": _quarter, "half": _half, "decade": _decade, "chinese": _chinese,
    "century": _century, "span": _span, "past_year": _past_year, "relative": _relative, "fiscal": _fiscal,
    "plain": _fiscal,
}  # fmt: skip


def stored(day: date, format_: str) -> Any:
    """A day as a field stores it."""
    if format_ == "yyyymmdd":
        return day.year * 10_000 + day.month * 100 + day.day
    if format_ == "timestamp":
        return calendar.timegm(day.timetuple())
    return day.isoformat()
