"""Dates in common forms, English and Chinese, as spans of days."""

from __future__ import annotations

import calendar
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from functools import lru_cache, partial
from itertools import pairwise
from typing import Any

from rag_kit.query_construction import cues
from rag_kit.query_construction.cues import QuestionSpan
from rag_kit.text.values.forms import MONTHS
from rag_kit.text.values.numbers import NUMBER_WORDS, read_any
from rag_kit.text.values.reading import find_values


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
    is_open: bool = False  # 01/02/2024, which may be of another month
    has_year: bool = True  # else no year was named, and it is the last such period that has begun

    def operator_with_edge(self, operator: str) -> str:
        """Return the operator that keeps an edge: "before the end of 2015" is up to and including that end."""
        reaching = {"$lt": ("middle", "end"), "$gt": ("beginning", "middle")}
        return operator + "e" if self.edge in reaching.get(operator, ()) else operator

    def bounds(self, operator: str, grain: str = "day") -> tuple[date, date]:
        """Return the first day, and that after the last, of what compares so with the period; "$ne" as "$eq".

        They are widened to whole years, or months, for rows that are all dated to the first day of one: nobody knows in
        which part of 2015 a row of ``2015-01-01`` is.
        """
        start, end = self.start, self.end or date.max
        bounds = {"$gte": (start, date.max), "$gt": (self.end or start, date.max), "$lt": (date.min, start)}
        low, high = bounds.get(operator, (date.min if operator == "$lte" else start, end))
        if grain == "day" or operator == "$ne":
            return low, high
        first = _first_day(high, grain)
        widened = high if high in (first, date.max) else _add_months(first, _MONTHS_OF[grain])
        return _first_day(low, grain), widened

    def consists_of(self, months: int) -> bool:
        """Tell whether it begins and ends as units of so many months do, those of a year from January on."""
        ends = (self.start, self.end or self.start)
        return all(day.day == 1 and (day.month - 1) % months == 0 for day in ends)

    def part(self, name: str) -> Period:
        """Return the part of a decade, year or month that a name of `_PARTS` stands for; of another period, all."""
        first, last = _PARTS[name]
        start, end, cuts = self.start, self.end, _CUTS.get(self.grain)
        if cuts and self.grain == "month":
            start, end = start + timedelta(cuts[first]), end if last == 4 else start + timedelta(cuts[last])
        elif cuts:
            start, end = _add_months(start, cuts[first]), _add_months(start, cuts[last])
        return replace(self, start=start, end=end, edge=name)

    def around(self) -> Period:
        """Return the period with as much time again before and after it; one until now as it is."""
        if self.end is None:
            return self
        start, end, grain = self.start, self.end, self.grain if self.grain in ("year", "years") else "span"
        if start.day == end.day == 1:
            months = 12 * (end.year - start.year) + end.month - start.month
            return Period(_add_months(start, -months), _add_months(end, months), grain, "middle")
        return Period(start - (end - start), end + (end - start), grain, "middle")

    def through(self, other: Period | None) -> Period:
        """Return the days from the beginning of the earlier of two periods to the end of the later."""
        if other is None or not self.has_year:  # from November to January, of whatever year
            return replace(self, end=(other or self).end)
        first, last = sorted((self, other), key=lambda period: period.start)
        years = {first.grain, last.grain} <= {"year", "years"}
        return Period(first.start, last.end, "years" if years else "span")


@dataclass(frozen=True, eq=False)
class NamedPeriod(QuestionSpan):
    """A period named in a text; `bare` if by digits alone, which may be a number as well."""

    period: Period
    bare: bool


@dataclass
class _Date:
    """A date as it is written: a `period`, or a year, months and a day, of which the year may be named elsewhere.

    `month` is the first of `count` months, 0 for a year alone.
    """

    begin: int = 0
    end: int = 0
    period: Period | None = None
    year: int = 0
    month: int = 0
    count: int = 12
    day: int = 0
    leads: bool = False  # the year is written before the rest
    is_open: bool = False

    @property
    def is_year(self) -> bool:
        """Tell whether it is a year alone."""
        return self.year > 0 and not self.month and self.period is None

    @property
    def lacks_year(self) -> bool:
        """Tell whether it has months, and no year."""
        return self.month > 0 and not self.year

    def read(self, today: date) -> Period | None:
        """Return the period, without a year the last one that has begun; ``None`` if there is no such day."""
        if self.lacks_year:
            ever = (replace(self, year=today.year - ago).read(today) for ago in range(8))  # 29 February
            last = next((period for period in ever if period is not None and period.start <= today), None)
            return last and replace(last, has_year=False)
        if self.period is not None or not self.day:
            grain = _GRAINS.get(self.count, "span")
            return self.period or _months(self.year, self.month or 1, self.count, grain)
        try:
            start = date(self.year, self.month, self.day)
            return Period(start, start + _DAY, "day", is_open=self.is_open)
        except (ValueError, OverflowError):
            return None


def parse_period(text: str, today: date) -> Period | None:
    """Read a date or range such as ``"2020年5月"``, ``"Q2 to Q3 2020"``, ``"last year"``; ``None`` if it is none."""
    text = re.sub(r"^(?:the|in|on|year|the year)\s+", "", text.strip(), flags=re.IGNORECASE)
    named = find_periods(text, today)
    if named and named[0].begin == 0 and named[-1].end == len(text) and named[0].period.has_year:
        if len(named) == 1:
            return named[0].period
        if cues.RANGE_TO.fullmatch(text, named[0].end, named[-1].begin):
            return named[0].period.through(named[-1].period)
    try:  # forms that are not looked for in questions, such as 20200501
        day = datetime.fromisoformat(text).date()
    except ValueError:
        return None
    return Period(day, day + _DAY, "day") if day < date.max else None


@lru_cache(maxsize=64)
def read_periods(values: tuple[Any, ...]) -> Mapping[str, Period]:
    """Read texts such as "2024Q2" or "June" as periods; none if one of the values is no period."""
    read: dict[str, Period] = {}
    for value in values:
        named = find_periods(value, date(2000, 12, 31)) if isinstance(value, str) else []
        if len(named) != 1 or named[0].end - named[0].begin < len(value):
            return {}
        read[value] = named[0].period
    return read


def find_periods(text: str, today: date) -> list[NamedPeriod]:
    """Find the dates in a text, in order; of those that overlap, the first one stays, the longest of its beginning.

    Unit and year may be named once in a list or range: "June, July and August 2024", 2024年6-8月. The part of a date
    that is named with it ("the end of 2015", 年底), and an "around", are read into it, so that what compares stands
    outside: in "before the end of 2015" it is "before".
    """
    periods: list[NamedPeriod] = []
    last_end = 0
    for found in _complete_years(text, _attach_years(text, _find_dates(text, today))):
        period = found.read(today)
        # a half without a year may be of a game or a form
        if period is not None and not (found.lacks_year and found.count == 6):
            periods.append(_with_part(text, last_end, found.begin, found.end, period))
            last_end = periods[-1].end
    return periods


def _find_dates(text: str, today: date) -> list[_Date]:
    """Find dates, years alone and months without a year; of those that overlap the first, longest one."""
    found: list[_Date] = []
    for make_date, pattern in _FORMS:
        for match in pattern.finditer(text):
            found.append(replace(make_date(match, today), begin=match.start(), end=match.end()))
    for value in find_values(text):
        start, end = value.start, value.end
        if value.dimension == "date":
            year, month, day = (*(int(part or 0) for part in value.key.split("-")), 0, 0)[:3]  # "-05" is May
            leads = not text.endswith(str(year), start, end)
            found.append(_Date(start, end, None, year, month, 1 if month else 12, day, leads, value.open))
        # 1990年代 is read as a year
        is_decade = value.key.isdecimal() and text.startswith("代", end)
        if is_decade or value.dimension == "decade":
            decade = _months(int(value.amount), 1, 120, "years")
            found.append(_Date(start, end + is_decade, decade))
    chosen: list[_Date] = []
    for item in sorted(found, key=lambda item: (item.begin, -item.end)):
        if not chosen or item.begin >= chosen[-1].end:
            chosen.append(item)
    return chosen


def _attach_years(text: str, dates: list[_Date]) -> list[_Date]:
    """Join a year and the months beside it: Q3 2020, 2020年第三季度, 去年6月."""
    attached: list[_Date] = []
    for item in dates:
        last = attached[-1] if attached else None
        if last and last.is_year and item.lacks_year and _YEAR_THEN.fullmatch(text, last.end, item.begin):
            attached[-1] = replace(item, begin=last.begin, year=last.year, leads=True)
        elif last and last.lacks_year and item.is_year and _THEN_YEAR.fullmatch(text, last.end, item.begin):
            attached[-1] = replace(last, end=item.end, year=item.year)
        else:
            attached.append(item)
    return attached


def _complete_years(text: str, dates: list[_Date]) -> list[_Date]:
    """Give months without a year that of the dates around them in their list or range, or before their "except"."""
    for item, after in reversed([*pairwise(dates)]):  # "June, July and August 2024"
        joint = _joint(text, item, after)
        if joint and item.lacks_year and after.month and after.year and not after.leads:
            item.year = after.year - _turns_year(joint, item, after)
    for before, item in pairwise(dates):  # 2024年6月、7月和8月
        joint = _joint(text, before, item)
        if joint and item.lacks_year and before.month and before.year:
            item.year, item.leads = before.year + _turns_year(joint, before, item), before.leads
        elif item.lacks_year and before.is_year:
            is_excluded = cues.with_negation(text, before.end, item.begin, item.end)[2]
            item.year = before.year if is_excluded else 0
    return dates


def _turns_year(joint: str, first: _Date, second: _Date) -> bool:
    """Tell whether a range reaches into the next year: "November to February", 3月至次年6月."""
    if not cues.RANGE_TO.fullmatch(joint):
        return False
    return (first.month, first.day) > (second.month, second.day) or bool(re.search("年|year", joint))


def _joint(text: str, first: _Date, second: _Date) -> str | None:
    """Return what joins two dates to a list or range, without the part of them that is named; ``None`` if nothing."""
    after = _PART_AFTER.match(text, first.end, second.begin)
    between = text[after.end() if after else first.end : second.begin]
    between = _PART_BEFORE.sub(" ", between) if len(between) <= _REACH else ""
    return between if _JOINT.fullmatch(between) or cues.RANGE_TO.fullmatch(between) else None


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


def _months_named(unit: int, match: re.Match[str], today: date) -> _Date:
    """Read months of a year, in units of 1, 3 or 6: June, Q3, 3Q21, "last two quarters", 前三个月, 上半年."""
    groups = match.groupdict(default="")
    if several := groups.get("several"):
        count = min(int(read_any(several)) * unit, 12)
        return _Date(month=13 - count if match[0].lower().startswith("last") else 1, count=count)
    rank, most, year = groups["rank"].lower(), 12 // unit, int(groups.get("year") or 0)
    number = most if rank in ("last", "latter") else _RANKS.get(rank) or int(read_any(rank.rstrip("stndrh")))
    return _Date(year=year + 2000 * (0 < year < 100), month=(min(number, most) - 1) * unit + 1, count=unit)


def _until_now(match: re.Match[str], today: date) -> _Date:
    """Read "the last five years" or 近五年: from then until now."""
    count = 3 if match["n"] in (None, "few", "几", "数") else int(read_any(match["n"]))
    unit = _UNITS[match["u"].lower()]
    if isinstance(unit, timedelta):
        return _Date(period=Period(today - count * unit, None, "span"))
    first = _add_months(today, -count * unit)
    day = min(today.day, calendar.monthrange(first.year, first.month)[1])
    return _Date(period=Period(first.replace(day=day), None, "years" if count * unit % 12 == 0 else "month"))


def _relative(match: re.Match[str], today: date) -> _Date:
    """Read this or the last year, quarter, month or week; 前年 is the year before the last."""
    text, unit = match[0].lower(), _UNITS[match["u"].lower()]
    # how many back: 0 for "this", "current", 今, 本 and 这, 1 for "last", "previous", 去 and 上
    back = 2 if text == "前年" else int(text[0] not in "tc今本这")
    if isinstance(unit, timedelta):
        monday = today - back * unit - today.weekday() * _DAY
        return _Date(period=Period(monday, monday + unit, "span"))
    if unit == 12:
        return _Date(year=today.year - back, leads=True)
    first = _add_months(today.replace(day=1, month=(today.month - 1) // unit * unit + 1), -back * unit)
    return _Date(period=_months(first.year, first.month, unit, _GRAINS[unit]))


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
_H = "〇零一二三四五六七八九十两"
_Y = r"(?:1[0-9]|20|21)\d\d"
_N = rf"\d{{1,3}}|{NUMBER_WORDS}"
_RANK = r"first|second|third|fourth|[1-4](?:st|nd|rd|th)"
_RANKS = {"first": 1, "second": 2, "third": 3, "fourth": 4, "上": 1, "下": 2, **MONTHS}
_GRAINS = {1: "month", 3: "quarter", 12: "year"}  # of as many months
_MONTHS_OF = {"month": 1, "year": 12}
_DAY, _WEEK = timedelta(days=1), timedelta(days=7)
_UNITS: dict[str, int | timedelta] = {
    "year": 12, "年": 12, "quarter": 3, "季度": 3, "month": 1, "月": 1, "week": _WEEK, "周": _WEEK, "星期": _WEEK,
    "day": _DAY, "天": _DAY, "日": _DAY,
}  # fmt: skip
_MONTH = "|".join(sorted(MONTHS, key=len, reverse=True))
_JOINT = re.compile(r"(?:[\s/&、,，和与及]|\b(?:and|or|the)\b|以及|或者?)+", re.IGNORECASE)
_YEAR_THEN = re.compile(r"(?:['’]s)?\s*[年的]?\s*-?\s*(?:the\s+)?", re.IGNORECASE)
_THEN_YEAR = re.compile(
    r"(?:\s+of|\s*,)?\s*(?:the\s+)?(?:(?:fiscal|financial)\s+)?(?:year\s+)?", re.IGNORECASE
)
_B, _E = r"(?<![A-Za-z])", r"(?![A-Za-z\d])"
_H2 = rf"(?:\d{{1,2}}|[{_H}]{{1,2}})"
_FIRST = rf"(?:(?<![\d.,A-Za-z{_H}])|第)"
_LISTED = r"\s*(?:[-–—~～、,，/和与及或至到]|以及|或者)\s*第?"
_CODE_YEAR = rf"(?:['’]?(?P<year>{_Y}|(?<=['’])\d\d))?"
_MakeDate = Callable[[re.Match[str], date], _Date]
_month, _quarter, _half = (partial(_months_named, unit) for unit in (1, 3, 6))
_PATTERNS: tuple[tuple[_MakeDate, str], ...] = (
    (_month, rf"{_B}(?P<rank>{_MONTH}){_E}(?:\.(?=\s*[-–/,]))?"),
    (_month, rf"(?<![\d/.-])(?P<rank>0?[1-9]|1[0-2])/(?P<year>{_Y})(?![\d/-])"),
    (_month, rf"\b(?:first|last)\s+(?P<several>{_N})\s+months(?=\s+of\b)"),
    (_month, rf"(?<=年)前(?P<several>\d{{1,2}}|[{_H}]{{1,2}})个月"),
    (_quarter, rf"{_B}q(?P<rank>[1-4]){_CODE_YEAR}{_E}"),
    (_quarter, rf"(?<![\w.])(?P<rank>[1-4])q['’]?(?P<year>{_Y}|\d\d)?{_E}"),
    (_quarter, rf"(?<=q[1-4][-–/])(?P<rank>[1-4])(?=\s+{_Y})"),
    (_quarter, rf"\b(?P<rank>{_RANK}|last(?=\s+quarter\s+of\b))\s+quarter\b"),
    (_quarter, rf"\b(?:first|last)\s+(?P<several>{_N})\s+quarters(?=\s+of\b)"),
    (_quarter, r"第?(?P<rank>[1-4一二三四])季度"),
    (_quarter, r"前(?P<several>[23二两三])个?季度"),
    (_half, rf"{_B}h(?P<rank>[12]){_CODE_YEAR}{_E}"),
    (_half, rf"(?<![\w.])(?P<rank>[12])h['’]?(?P<year>{_Y}|\d\d){_E}"),
    (_half, r"\b(?P<rank>first|second|1st|2nd|latter)\s+half\b"),
    (_half, r"(?P<rank>[上下])半年"),
    # the 6 and 7 of 6、7、8月, the "first" of "first and second quarter"
    (_month, rf"{_FIRST}(?P<rank>{_H2})(?=(?:{_LISTED}{_H2}){{1,11}}\s*月)"),
    (_quarter, rf"{_FIRST}(?P<rank>{_H2})(?=(?:{_LISTED}{_H2}){{1,3}}季度)"),
    (
        _quarter,
        rf"\b(?P<rank>{_RANK})(?=(?:(?:,|\s+(?:and|or|to|through))\s+(?:the\s+)?(?:{_RANK})){{1,3}}\s+quarter)",
    ),
    (
        _until_now,
        rf"\b(?:last|past|previous|recent)\s+(?:(?P<n>few|{_N})\s+)?(?P<u>year|quarter|month|week|day)s\b",
    ),
    (
        _until_now,
        rf"(?:最近|近|过去|(?<![年代])前)(?P<n>\d{{1,3}}|[{_H}]{{1,3}}|几|数)个?(?P<u>月|季度|星期|年|周|天|日)(?:里|内|间|来|以来)?",
    ),
    (_relative, r"\b(?:this|current|last|previous)\s+(?P<u>year|quarter|month|week)\b"),
    (_relative, r"(?:[今去前](?=年)|(?:本|这个?|上个?)(?=月|季度|周|星期))(?P<u>年|月|季度|周|星期)"),
)
#: Forms of dates that `find_values` does not read: a function from match and today to the date, and the pattern.
_FORMS = [(make_date, re.compile(pattern, re.IGNORECASE)) for make_date, pattern in _PATTERNS]
