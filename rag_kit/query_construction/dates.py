"""Dates in any common form, English and Chinese, as spans of days."""

from __future__ import annotations

import calendar
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import date, timedelta
from typing import Any

_MONTHS = {name.lower(): number for number, name in enumerate(calendar.month_name) if name}
_MONTHS |= {name.lower(): number for number, name in enumerate(calendar.month_abbr) if name} | {"sept": 9}
_WORDS = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]
_NUMBERS = {word: number for number, word in enumerate(_WORDS, start=1)} | {
    **dict.fromkeys(("a", "an"), 1), "couple of": 2, "a couple of": 2, "few": 3, "a few": 3,
    "several": 3, "fifteen": 15, "twenty": 20, "thirty": 30, "fifty": 50, "hundred": 100,
}  # fmt: skip
_HAN = dict(zip("〇零一二三四五六七八九两", [0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 2], strict=True))
_DECADES = {
    "twenties": 20, "thirties": 30, "forties": 40, "fifties": 50, "sixties": 60, "seventies": 70,
    "eighties": 80, "nineties": 90,
}  # fmt: skip
_H = "〇零一二三四五六七八九十两"
_YEAR = r"(?:1[0-9]|20|21)\d\d"
_MONTH = r"(?:" + "|".join(sorted(_MONTHS, key=len, reverse=True)) + r")\b\.?"
_NUMBER = rf"(?:\d{{1,3}}|{'|'.join(sorted(_NUMBERS, key=len, reverse=True))})"
_COUNT = rf"(?:\d{{1,3}}|[{_H}]{{1,3}}|几|数)"
_UNITS = {
    "天": "day",
    "日": "day",
    "周": "week",
    "个星期": "week",
    "个月": "month",
    "年": "year",
    "季度": "quarter",
}
_FIRST = dict.fromkeys(("first", "1st", "q1", "一", "1"), 1) | dict.fromkeys(
    ("second", "2nd", "q2", "二", "2"), 2
)
_FIRST |= dict.fromkeys(("third", "3rd", "q3", "三", "3"), 3) | dict.fromkeys(
    ("fourth", "4th", "last", "q4", "四", "4"), 4
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
    for match in _ALL.finditer(text):
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


def _year_month(match: re.Match[str], today: date) -> Period | None:
    return months(int(match["ym_y"]), int(match["ym_m"]))


def _month_year(match: re.Match[str], today: date) -> Period | None:
    return months(int(match["my_y"]), int(match["my_m"]))


def _english(match: re.Match[str], today: date) -> Period | None:
    month = _MONTHS[(match["en_m1"] or match["en_m2"]).lower().rstrip(".")]
    day = match["en_d1"] or match["en_d2"]
    year = int(match["en_y1"] or match["en_y2"])
    return _day(year, month, int(day)) if day else months(year, month)


def _quarter(match: re.Match[str], today: date) -> Period | None:
    ordinal = match["q_a"] or match["q_c"]
    year = int(match["q_y1"] or match["q_y2"])
    return months(year, 3 * _FIRST[ordinal.lower()] - 2, 3, "quarter")


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
        start = 1900 + _DECADES[match["de_name"].lower()]
    elif match["de_zh"]:
        tens = chinese_number(match["de_zh"])
        if tens is None:
            return None
        start = (
            1900 + tens if match["de_c"] else tens if tens >= 1000 else (1900 if tens >= 30 else 2000) + tens
        )
    else:
        text = match["de_en"]
        start = int(text) if len(text) == 4 else 1900 + int(text)
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
    unit = (match["sp_u"] or "").lower().rstrip("s") or _UNITS[match["sp_cu"]]
    return _ago(today, count, unit)


def _ago(today: date, count: int, unit: str) -> Period | None:
    days = {"day": 1, "week": 7}.get(unit)
    try:
        if days:
            return Period(today - timedelta(days=days * count), None, unit)
        back = (
            today.year * 12
            + today.month
            - 1
            - count * {"month": 1, "quarter": 3, "year": 12, "decade": 120}[unit]
        )
        year, month = divmod(back, 12)
        day = min(today.day, calendar.monthrange(year, month + 1)[1])
        return Period(date(year, month + 1, day), None, unit if unit in ("month", "quarter") else "years")
    except (ValueError, OverflowError):
        return None


def _count(text: str) -> int:
    text = text.lower()
    if text.isdecimal():
        return int(text)
    return _NUMBERS.get(text) or chinese_number(text) or 3


def _relative(match: re.Match[str], today: date) -> Period | None:
    text = match["relative"].lower()
    this = {"this": 0, "current": 0, "last": 1, "previous": 1, "past": 1}
    if (words := text.split())[0] in this and len(words) == 2:
        back = this[words[0]]
        if words[1] == "year":
            return years(today.year - back)
        if words[1] == "quarter":
            first = today.year * 4 + (today.month - 1) // 3 - back
            return months(first // 4, first % 4 * 3 + 1, 3, "quarter")
        if words[1] == "month":
            first = today.year * 12 + today.month - 1 - back
            return months(first // 12, first % 12 + 1)
        monday = today - timedelta(days=today.weekday() + 7 * back)
        return Period(monday, monday + timedelta(days=7), "week")
    if text in ("today", "今天", "yesterday", "昨天"):
        day = today - timedelta(days=text in ("yesterday", "昨天"))
        return Period(day, day + timedelta(days=1), "day")
    if text in ("今年", "去年", "前年"):
        return years(today.year - ("今年", "去年", "前年").index(text))
    back = 0 if text[0] in "本这" else 1
    unit = {"月": "month", "周": "week"}["月" if "月" in text else "周"]
    return _relative(_RELATIVE.match(("this" if back == 0 else "last") + " " + unit), today)  # type: ignore[arg-type]


def _past_year(match: re.Match[str], today: date) -> Period | None:
    return years(today.year - _count(match["ago"] or match["ago_zh"]))


def _plain_year(match: re.Match[str], today: date) -> Period | None:
    return years(int(match["year"]))


def chinese_number(text: str, *, digits: bool = False) -> int | None:
    """A number in Chinese or Arabic numerals: 二十三, 二〇一五, 15.

    Example:
        >>> chinese_number("二十三"), chinese_number("二〇一五"), chinese_number("十"), chinese_number("7")
        (23, 2015, 10, 7)
    """
    if text.isdecimal():
        return int(text)
    if not text or any(char not in _HAN and char not in "十百" for char in text):
        return None
    if "十" not in text and "百" not in text:
        return int("".join(str(_HAN[char]) for char in text)) if len(text) > 1 or not digits else _HAN[text]
    total = unit = 0
    for char in text:
        if char in "十百":
            total += (unit or 1) * (10 if char == "十" else 100)
            unit = 0
        else:
            unit = _HAN[char]
    return total + unit


_RELATIVE = re.compile(
    r"(?P<relative>(?:this|last|previous|current|past)\s+(?:year|month|week|quarter)\b(?!s)|today|yesterday"
    r"|今年|去年|前年|今天|昨天|(?:本|这个?|上个?)(?:月|周|星期))",
    re.IGNORECASE,
)
_MAKERS: dict[str, Callable[[re.Match[str], date], Period | None]] = {
    "iso": _iso, "compact": _compact, "slashed": _slashed, "ym": _year_month, "my": _month_year,
    "english": _english, "quarter": _quarter, "half": _half, "decade": _decade, "chinese": _chinese,
    "century": _century, "span": _span, "past_year": _past_year, "relative": _relative, "plain": _plain_year,
}  # fmt: skip
_B, _E = r"(?<![A-Za-z0-9_.$€£])", r"(?![A-Za-z0-9_%])"
_ALL = re.compile(
    rf"""
    (?P<iso>{_B}(?P<iso_y>\d{{4}})(?P<iso_s>[-/.])(?P<iso_m>\d{{1,2}})(?P=iso_s)(?P<iso_d>\d{{1,2}})
        (?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?{_E})
  | (?P<compact>{_B}(?:1[5-9]|20)\d\d(?:0[1-9]|1[0-2])(?:[0-2]\d|3[01]){_E})
  | (?P<slashed>{_B}(?P<sl_a>\d{{1,2}})(?P<sl_s>[-/.])(?P<sl_b>\d{{1,2}})(?P=sl_s)(?P<sl_y>{_YEAR}){_E})
  | (?P<ym>{_B}(?P<ym_y>{_YEAR})[-/.](?P<ym_m>0?[1-9]|1[0-2])(?![-/.]?[A-Za-z0-9_]))
  | (?P<my>{_B}(?P<my_m>0?[1-9]|1[0-2])[/.](?P<my_y>{_YEAR}){_E})
  | (?P<english>\b(?:(?P<en_d1>\d{{1,2}})(?:st|nd|rd|th)?\s+(?:of\s+)?)?(?P<en_m1>{_MONTH})\s*(?:of\s+|,\s*)?(?P<en_y1>{_YEAR}){_E}
      | \b(?P<en_m2>{_MONTH})\s+(?P<en_d2>\d{{1,2}})(?:st|nd|rd|th)?\s*,?\s+(?P<en_y2>{_YEAR}){_E})
  | (?P<quarter>\b(?P<q_a>q[1-4]|(?:first|second|third|fourth|last|1st|2nd|3rd|4th)(?=\s+quarter))(?:\s+quarter)?(?:\s+of|\s*,)?\s*(?P<q_y1>{_YEAR}){_E}
      | {_B}(?P<q_y2>{_YEAR})(?:\s*年?\s*第?(?=[qQ1-4一二三四])(?P<q_c>[qQ][1-4](?!\w)|[1-4一二三四](?=季度))(?:季度)?))
  | (?P<half>\b(?P<h_a>first|second|1st|2nd)\s+half\s+of\s+(?P<h_y1>{_YEAR}){_E}|{_B}(?P<h_y2>{_YEAR})年(?P<h_c>[上下])半年)
  | (?P<decade>\b(?:(?P<de_part>early|mid|late)[\s-]+(?:the\s+)?)?(?:
        (?:{_B}|')(?P<de_en>(?:1[5-9]|20)\d0|[2-9]0)(?:'s|’s|s)\b | (?:nineteen[\s-])?(?P<de_name>{"|".join(_DECADES)})\b)
      | (?P<de_c>上(?:个)?世纪|二十世纪|20世纪)?(?P<de_zh>(?:1[5-9]|20)\d0|[2-9]0|[二三四五六七八九]十)年代)
  | (?P<chinese>(?<![\d{_H}])(?P<zh_y>\d{{4}}|[一二][〇零一二三四五六七八九]{{3}})\s*年(?!代)
      (?:\s*(?P<zh_m>\d{{1,2}}|[{_H}]{{1,2}})\s*月(?:份)?(?:\s*(?P<zh_d>\d{{1,2}}|[{_H}]{{1,3}})\s*[日号])?)?)
  | (?P<century>\b(?:the\s+)?(?P<ce_en>\d\d?)(?:st|nd|rd|th)\s+century|(?P<ce_zh>\d\d?|[{_H}]{{1,3}})世纪)
  | (?P<span>\b(?:last|past|previous|recent|preceding)\s+(?:(?P<sp_n>{_NUMBER})\s+)?(?P<sp_u>days|weeks|months|quarters|years|decades?)\b
      | (?:最近|近|过去|前)的?(?P<sp_c>{_COUNT})(?P<sp_cu>天|日|周|个星期|个月|年|季度)(?:里|内|间|来|以来|之内)?)
  | (?P<past_year>\b(?P<ago>{_NUMBER})\s+years?\s+ago\b|(?P<ago_zh>{_COUNT})年(?:之|以)?前)
  | {_RELATIVE.pattern}
  | (?P<plain>{_B}(?P<year>{_YEAR}){_E})
    """,
    re.IGNORECASE | re.VERBOSE,
)


def stored(day: date, format_: str) -> Any:
    """A day as a field stores it."""
    if format_ == "yyyymmdd":
        return day.year * 10_000 + day.month * 100 + day.day
    if format_ == "timestamp":
        return calendar.timegm(day.timetuple())
    return day.isoformat()
