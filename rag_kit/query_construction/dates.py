"""Dates in common forms, English and Chinese, as spans of days."""

from __future__ import annotations

import calendar
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from typing import Any

from rag_kit.query_construction import cues
from rag_kit.query_construction.cues import QuestionSpan
from rag_kit.text.values.forms import MONTHS
from rag_kit.text.values.numbers import NUMBER_WORDS, read_any
from rag_kit.text.values.reading import find_values
from rag_kit.text.values.value import Value

_QUARTERS = ("first q1 1q 一 1", "second q2 2q 二 2", "third q3 3q 三 3", "fourth q4 4q 四 4")
QUARTERS = {name: number for number, names in enumerate(_QUARTERS, start=1) for name in names.split()}


@dataclass(frozen=True)
class Period:
    """The days from `start` to before `end`; an `end` of ``None`` means until now ("the last five years").

    `grain` is what was named: ``"day"``, ``"month"``, ``"quarter"``, ``"year"``, ``"years"`` or another ``"span"``.
    `edge` is the name in `_PARTS` of the part that was named, such as ``"end"`` of a year, which nobody dates to the
    day; empty if the whole was named.
    """

    start: date
    end: date | None
    grain: str
    edge: str = ""

    def operator_with_edge(self, operator: str) -> str:
        """Return the operator that keeps an edge: "before the end of 2015" is up to and including that end."""
        reaching = {"$lt": ("middle", "end"), "$gt": ("beginning", "middle")}
        return operator + "e" if self.edge in reaching.get(operator, ()) else operator

    def part(self, name: str) -> Period:
        """Return the part of a decade, year or month that a name of `_PARTS` stands for; of another period, all."""
        first, last = _PARTS[name]
        start, end, cuts = self.start, self.end, _CUTS.get(self.grain)
        if cuts and self.grain == "month":
            start, end = start + timedelta(cuts[first]), end if last == 4 else start + timedelta(cuts[last])
        elif cuts:
            start, end = _add_months(start, cuts[first]), _add_months(start, cuts[last])
        return replace(self, start=start, end=end, edge=name)

    def whole_grains(self, grain: str, operator: str) -> Period:
        """Widen the period to whole years, or months, for rows that are all dated to the first day of one.

        Nobody knows in which part of 2015 a row of ``2015-01-01`` is, so it passes a comparison with any part.
        """
        if grain not in ("year", "month") or operator in ("$lt", "$ne"):
            return self
        start, end = self.start, self.end
        if operator != "$lte":
            start = _first_day(start, grain)
        if end is not None and (first := _first_day(end, grain)) != end:
            end = first if operator == "$gt" else _add_months(first, 12 if grain == "year" else 1)
        return replace(self, start=start, end=end)

    def around(self) -> Period:
        """Return the period with as much time again before and after it; one until now as it is."""
        if self.end is None:
            return self
        start, end, grain = self.start, self.end, self.grain if self.grain in ("year", "years") else "span"
        if start.day == end.day == 1:
            months = 12 * (end.year - start.year) + end.month - start.month
            return Period(_add_months(start, -months), _add_months(end, months), grain, "middle")
        return Period(start - (end - start), end + (end - start), grain, "middle")

    def through(self, other: Period) -> Period:
        """Return the days from the beginning of the earlier of two periods to the end of the later."""
        first, last = sorted((self, other), key=lambda period: period.start)
        years = {first.grain, last.grain} <= {"year", "years"}
        return Period(first.start, last.end, "years" if years else "span")


@dataclass(frozen=True, eq=False)
class NamedPeriod(QuestionSpan):
    """A period named in a text; `bare` if by digits alone, which may be a number as well."""

    period: Period
    bare: bool


def parse_period(text: str, today: date) -> Period | None:
    """Read a date such as ``"2020年5月"``, ``"Q3 2020"``, ``"last year"`` as days; ``None`` if it is none.

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
    """Find the dates in a text, in order; of those that overlap, the first one stays, as its first form reads it.

    The part of a date that is named with it ("the end of 2015", 年底), and an "around", are read into it, so that what
    compares stands outside: in "before the end of 2015" it is "before".
    """
    candidates: list[tuple[int, int, Period | None]] = []
    for make_period, pattern in _FORMS:
        candidates += [(*match.span(), make_period(match, today)) for match in pattern.finditer(text)]
    year, year_end = "", 0
    for value in find_values(text):
        if value.key.startswith("-") and _LISTED.fullmatch(text, year_end, value.start):
            value = value._replace(key=year + value.key)  # the 8月 of 2024年6月、8月
        has_year = value.dimension == "date" and re.match(r"[12]\d{3}(?!\d)", value.key)
        if has_year:
            year, year_end = value.key[:4], value.end
        if has_year or value.dimension == "decade":
            has_suffix = text.startswith("代", value.end)  # 1990年代 is read as a year
            is_decade = has_suffix or value.dimension == "decade"
            read = _months(int(value.amount), 1, 120, "years") if is_decade else _read_date(value)
            candidates.append((value.start, value.end + has_suffix, read))
    periods: list[NamedPeriod] = []
    last_end = 0
    for begin, end, period in sorted(candidates, key=lambda candidate: candidate[0]):
        if begin >= last_end:
            if period is not None:
                periods.append(_with_part(text, last_end, begin, end, period))
                end = periods[-1].end
            last_end = end
    return periods


def day_in_format(day: date, format_: str) -> Any:
    """Write a day as a field stores it."""
    if format_ == "yyyymmdd":
        return day.year * 10_000 + day.month * 100 + day.day
    if format_ == "timestamp":
        return calendar.timegm(day.timetuple())
    return day.isoformat()


def _months(year: int, month: int, count: int = 1, grain: str = "month") -> Period | None:
    """Return the period of a number of months, from a given one; ``None`` outside of the years 1000 to 2999."""
    if not (1 <= month <= 12 and 1000 <= year <= 2999):
        return None
    return Period(date(year, month, 1), _add_months(date(year, month, 1), count), grain)


def _first_day(day: date, grain: str) -> date:
    """Return the first day of the year, or month, of a day."""
    return day.replace(month=1, day=1) if grain == "year" else day.replace(day=1)


def _add_months(first: date, count: int) -> date:
    """Return the first day of a month some months after that of another."""
    year, month = divmod(first.year * 12 + first.month - 1 + count, 12)
    return date(year, month + 1, 1)


def _with_part(text: str, floor: int, begin: int, end: int, period: Period) -> NamedPeriod:
    """Read the words beside a period, from `floor` on, that say which part of it is meant, and "around"."""
    named, floor = text[begin:end], max(floor, begin - _REACH)
    before, after = _PART_BEFORE.search(text, floor, begin), _PART_AFTER.match(text, end)
    if after and not (after[0].endswith("半年") or cues.ends_part(text, after.end())):
        after = None  # 1990年代初创企业: it goes on as another word
    if (part := before or after) and period.end is not None:
        name, is_fiscal = str(part.lastgroup), named.lower().startswith(("fy", "fiscal"))
        # the months of a fiscal year are not known, so its part stays the whole
        period = replace(period, edge=name) if is_fiscal else period.part(name)
        begin, end = before.start() if before else begin, after.end() if after else end
    before, after = _AROUND_BEFORE.search(text, floor, begin), _AROUND_AFTER.match(text, end)
    if before or after:
        period = period.around()
        begin, end = before.start() if before else begin, after.end() if after else end
    return NamedPeriod(begin, end, period, named.isdecimal())


def _read_date(value: Value) -> Period | None:
    """Return the period of a year, a month or a day, such as ``2020-05-01``; ``None`` if there is no such day."""
    year, month, day = (*map(int, value.key.split("-")), 0, 0)[:3]  # "2020-05" gives 2020, 5, 0
    if not month:
        return _months(year, 1, 12, "year")
    if not day:
        return _months(year, month)
    try:
        start = date(year, month, day)
        return Period(start, start + timedelta(days=1), "day")
    except (ValueError, OverflowError):
        return None


def _quarter(match: re.Match[str], today: date) -> Period | None:
    """Return a quarter of a year, or several; 3Q21 is of 2021."""
    year, last = int(match["y"]), QUARTERS[match["q"].lower()]
    first = QUARTERS[match["from"].lower()] if match["from"] else last
    grain = "quarter" if first == last else "span"
    return _months(year if year > 99 else 2000 + year, 3 * first - 2, max(3 * (last - first + 1), 3), grain)


def _until_now(match: re.Match[str], today: date) -> Period | None:
    """Return the period of "the last five years" or 近五年, from then until now."""
    count = 3 if match["n"] in (None, "few", "几", "数") else int(read_any(match["n"]))
    months = count * (12 if match["u"].lower() in ("years", "年") else 1)
    first = _add_months(today, -months)
    day = min(today.day, calendar.monthrange(first.year, first.month)[1])
    return Period(first.replace(day=day), None, "years" if months % 12 == 0 else "month")


def _relative(match: re.Match[str], today: date) -> Period | None:
    """Return this or the last year or month; 前年 is the year before the last."""
    text = match[0].lower()
    # how many years or months back: 0 for "this", "current", 今, 本 and 这, 1 for "last", "previous", 去 and 上
    back = 2 if text == "前年" else int(text[0] not in "tc今本这")
    if text.endswith(("year", "年")):
        return _months(today.year - back, 1, 12, "year")
    first = _add_months(today, -back)
    return _months(first.year, first.month)


_REACH = 60  # characters before a period in which its part is named
# Where a decade or year is cut into thirds and halves, in months, and a month, in days
_CUTS = {"years": (0, 48, 60, 84, 120), "year": (0, 4, 6, 8, 12), "month": (0, 10, 15, 20, 31)}
_PARTS = {
    "beginning": (0, 1), "early": (0, 1), "middle": (1, 3), "late": (3, 4), "end": (3, 4),
    "first_half": (0, 2), "second_half": (2, 4), "until_middle": (0, 3), "from_middle": (1, 4),
}  # fmt: skip
_TO = r"[\s-]+(?:to|or|and)[\s-]+"
_OF = r"(?:\s+(?:part|years|months|days))?(?:\s+(?:of|in))?"
_PART_BEFORE = re.compile(
    rf"\b(?:the\s+)?(?:(?P<until_middle>early{_TO}mid)|(?P<from_middle>mid(?:dle)?{_TO}late)|(?P<early>early{_OF})"
    rf"|(?P<middle>mid|middle{_OF})|(?P<late>late{_OF})|(?P<beginning>(?:beginning|start|outset|turn)\s+of)"
    r"|(?P<end>(?:end|close)\s+of|end(?=-)|year[\s-]end)|(?P<first_half>first\s+half\s+of)"
    r"|(?P<second_half>(?:second|latter)\s+half\s+of))[\s-]+(?:the\s+)?(?:(?:fiscal\s+)?year\s+)?$",
    re.IGNORECASE,
)
_PART_AFTER = re.compile(
    r"\s*(?:(?P<until_middle>[初早前]中期)|(?P<from_middle>中[末后晚]期)|(?P<early>[初早前]期|上旬)|(?P<late>[末后晚]期|下旬)"
    r"|(?P<first_half>[上前]半[年期段叶]?)|(?P<second_half>[下后]半[年期段叶]?)|(?P<middle>年中|中[期旬叶])"
    r"|(?P<beginning>[年月]?初(?!中)|伊始)|(?P<end>[年月]?[底末]|年终))"
)
_AROUND_BEFORE = re.compile(
    r"(?:\b(?:around|circa|ca?\.|approximately|roughly)\s+(?:the\s+)?(?:years?\s+)?|(?:大约|大概)[在于]?)$",
    re.IGNORECASE,
)
_AROUND_AFTER = re.compile(
    r"\s*(?:前后(?!端)|左右(?!脑(?![卒血梗瘤炎出外])|手(?![术机游工动写])|眼(?![科底镜动])|侧|半球|声道|翼))|\s+or\s+so\b",
    re.IGNORECASE,
)
_B, _E = r"(?<![A-Za-z0-9_.$€£])", r"(?![A-Za-z0-9_%])"
_H = "〇零一二三四五六七八九十两"
_Y = r"(?P<y>(?:1[0-9]|20|21)\d\d)"
_FISCAL = r"(?:(?:FY|fiscal(?:\s+year)?|financial\s+year)[\s'’-]*)"
_LISTED = re.compile(r"\s*(?:[、,]|或者?|\bor\b)\s*")
_RANKS = "first|second|third|fourth"
_MONTH = "|".join(sorted(MONTHS, key=len, reverse=True))
_UNTIL = r"\s*(?:[-–—~至到]|\b(?:to|through|until)\b)\s*(?:the\s+)?"
_COUNT = rf"(?P<n>\d{{1,3}}|[{_H}]{{1,3}}|几|数)"
_MakePeriod = Callable[[re.Match[str], date], Period | None]
#: Forms of dates that `find_values` does not read: a function from match and today to the period, and the pattern.
_FORMS: list[tuple[_MakePeriod, re.Pattern[str]]] = [
    (make_period, re.compile(pattern, re.IGNORECASE))
    for pattern, make_period in {
        rf"\b(?:(?P<from>q[1-4]|{_RANKS})(?:\s+quarter)?{_UNTIL})?(?P<q>q[1-4]|[1-4]q|(?:{_RANKS})(?=\s+quarter))"
        rf"(?:\s+quarter)?(?:\s+of|\s*,)?\s*{_FISCAL}?(?P<y>(?:1[0-9]|20|21)\d\d|(?<=\dq)\d\d){_E}": _quarter,
        rf"(?:{_B}|\b{_FISCAL}){_Y}\s*年?\s*(?:第?(?P<from>q[1-4]|[1-4一二三四])(?:季度)?{_UNTIL})?"
        r"第?(?P<q>q[1-4](?!\w)|[1-4一二三四](?=季度))(?:季度)?": _quarter,
        rf"\b(?P<m>{_MONTH})(?=(?:{_UNTIL}|\s+(?:and|or)\s+)(?:{_MONTH})\s+{_Y})": (
            lambda match, today: _months(int(match["y"]), MONTHS[match["m"].lower()])
        ),
        rf"\b(?:last|past|previous|recent)\s+(?:(?P<n>\d{{1,3}}|few|{NUMBER_WORDS})\s+)?"
        r"(?P<u>years|months)\b": _until_now,
        rf"(?:最近|近|过去|(?<![年代])前){_COUNT}(?P<u>个月|年)(?:里|内|间|来|以来)?": _until_now,
        r"\b(?:this|current|last|previous)\s+(?:year|month)\b|今年|去年|前年|(?:本|这个?|上个?)月": _relative,
    }.items()
]
