"""Dates in common forms, English and Chinese, as spans of days."""

from __future__ import annotations

import calendar
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from functools import lru_cache
from typing import Any

from rag_kit.query_construction import cues
from rag_kit.query_construction.cues import QuestionSpan
from rag_kit.text.values.forms import MONTHS
from rag_kit.text.values.numbers import NUMBER_WORDS, read_any
from rag_kit.text.values.reading import find_values

DAY = timedelta(days=1)
MONTHS_OF = {"month": 1, "quarter": 3, "half": 6, "year": 12}
_ANY_YEAR = 2000  # of what is said of no year; it has a 29 February


@dataclass(frozen=True)
class Period:
    """The days from `start` to before `end`; an `end` of ``None`` means until now ("the last five years").

    `grain` is what was named: ``"day"``, a name of `MONTHS_OF`, ``"years"``, or ``"span"`` for any other.
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
        months = MONTHS_OF[grain]
        after = high if high == date.max else _add_months(_first_day(high - DAY, months), months)
        return _first_day(low, months), after

    def consists_of(self, *units: int) -> bool:
        """Tell whether it begins and ends as units of one of some numbers of months do, from January on."""
        ends = (self.start, self.end or self.start)
        return any(all(day == _first_day(day, months) for day in ends) for months in units)

    def meets(self, low: date, end: date) -> bool:
        """Tell whether it has days from `low` to before `end`."""
        return self.start < end and (self.end or date.max) > low

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

    def in_year(self, year: int) -> Period | None:
        """Return it in another year, which is known so; ``None`` if there is no such day, as 29 February of 2023."""
        try:
            start = self.start.replace(year=year)
            if self.grain == "day" or self.end is None:
                return replace(self, start=start, end=start + DAY, has_year=True)
            end = self.end.replace(year=year + self.end.year - self.start.year)
        except (ValueError, OverflowError):
            return None
        return replace(self, start=start, end=end, has_year=True)

    def last_begun(self, today: date) -> Period | None:
        """Return it as it is, without a year the last one that has begun."""
        if self.has_year:
            return self
        ever = (self.in_year(today.year - ago) for ago in range(8))  # 29 February
        last = next((period for period in ever if period is not None and period.start <= today), None)
        return last and replace(last, has_year=False)


@dataclass(frozen=True, eq=False)
class NamedPeriod(QuestionSpan):
    """A period named in a text; `bare` if by digits alone, which may be a number as well."""

    period: Period
    bare: bool = False
    leads: bool = False  # its year is written before the rest

    def with_year(self, year: int, *, leads: bool = False) -> NamedPeriod | None:
        """Return it with a year; ``None`` if it has one, or there is no such day."""
        period = None if self.period.has_year else self.period.in_year(year)
        return replace(self, period=period, leads=leads) if period else None


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
        day = datetime.fromisoformat(text)
    except ValueError:
        return None
    return _day(day.year, day.month, day.day, is_open=False)


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
    for named in _complete_years(text, _attach_years(text, _find_dates(text, today))):
        period = named.period.last_begun(today)
        # a half without a year may be of a game or a form
        if period is not None and (period.has_year or period.grain != "half"):
            periods.append(_with_part(text, last_end, named.begin, named.end, period))
            last_end = periods[-1].end
    return periods


def _find_dates(text: str, today: date) -> list[NamedPeriod]:
    """Find dates, years alone and months without a year; of those that overlap the first, longest one."""
    found: list[tuple[int, int, Period | None, bool]] = []  # with whether the year is written first
    for make_period, pattern in _FORMS:
        found += [(*match.span(), make_period(match, today), False) for match in pattern.finditer(text)]
    for value in find_values(text):
        start, end = value.start, value.end
        if value.dimension == "date":
            year, month, day = (*(int(part or 0) for part in value.key.split("-")), 0, 0)[:3]  # "-05" is May
            leads = not text.endswith(str(year), start, end)
            found.append((start, end, _day(year, month, day, value.open), leads))
        # 1990年代 is read as a year
        is_decade = value.key.isdecimal() and text.startswith("代", end)
        if is_decade or value.dimension == "decade":
            found.append((start, end + is_decade, _months(int(value.amount), 1, 120), False))
    chosen: list[NamedPeriod] = []
    last_end = 0
    for start, end, period, leads in sorted(found, key=lambda item: (item[0], -item[1])):
        if start >= last_end:
            last_end = end
            chosen += [NamedPeriod(start, end, period, leads=leads)] if period else []
    return chosen


def _attach_years(text: str, dates: list[NamedPeriod]) -> list[NamedPeriod]:
    """Join a year and the months beside it: Q3 2020, 2020年第三季度, 去年6月."""
    attached: list[NamedPeriod] = []
    for item in dates:
        last, joined = attached[-1] if attached else item, None
        if last.period.grain == "year" and _YEAR_THEN.fullmatch(text, last.end, item.begin):
            joined = item.with_year(last.period.start.year, leads=True)
        elif item.period.grain == "year" and _THEN_YEAR.fullmatch(text, last.end, item.begin):
            joined = last.with_year(item.period.start.year)
        if joined:
            attached[-1] = replace(joined, begin=last.begin, end=item.end)
        else:
            attached.append(item)
    return attached


def _complete_years(text: str, dates: list[NamedPeriod]) -> list[NamedPeriod]:
    """Give months without a year that of the dates around them in their list or range, or before their "except"."""
    for index in reversed(range(len(dates) - 1)):  # "June, July and August 2024"
        item, after = dates[index : index + 2]
        if not after.leads and (joint := _joint(text, item, after)):
            year = after.period.start.year - _turns_year(joint, item, after)
            dates[index] = item.with_year(year) or item
    for index in range(1, len(dates)):  # 2024年6月、7月和8月
        before, item = dates[index - 1 : index + 1]
        year = before.period.start.year
        if joint := _joint(text, before, item):
            year += _turns_year(joint, before, item)
            dates[index] = item.with_year(year, leads=before.leads) or item
        elif before.period.grain == "year" and cues.with_negation(text, before.end, item.begin, item.end)[2]:
            dates[index] = item.with_year(year) or item
    return dates


def _turns_year(joint: str, first: NamedPeriod, second: NamedPeriod) -> bool:
    """Tell whether a range reaches into the next year: "November to February", 3月至次年6月."""
    if not cues.RANGE_TO.fullmatch(joint):
        return False
    begins, ends = first.period.start, second.period.start
    return (begins.month, begins.day) > (ends.month, ends.day) or bool(re.search("年|year", joint))


def _joint(text: str, first: NamedPeriod, second: NamedPeriod) -> str | None:
    """Return what joins two dates to a list or range, without the part of them that is named.

    ``None`` if nothing does, or not one of them alone has a year, with months.
    """
    told = [one for one in (first.period, second.period) if one.has_year]
    if len(told) != 1 or told[0].grain in ("year", "years"):
        return None
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


def _months(year: int, month: int, count: int) -> Period | None:
    """Return some months, of any year if it is 0; ``None`` for none, and outside of the years 1000 to 2999."""
    if not (1 <= month <= 12 and count and (year == 0 or 1000 <= year <= 2999)):
        return None
    start = date(year or _ANY_YEAR, month, 1)
    return Period(start, _add_months(start, count), _GRAINS.get(count, "span"), has_year=year > 0)


def _day(year: int, month: int, day: int, is_open: bool) -> Period | None:
    """Return a day, or the month, or year, if no day, or month, is given; ``None`` if there is no such day."""
    if not day:
        return _months(year, month or 1, 1 if month else 12) if year or month else None
    try:
        start = date(year or _ANY_YEAR, month, day)
    except ValueError:
        return None
    if start.year in (date.min.year, date.max.year):  # they mean "always", and cannot be computed with
        return None
    return Period(start, start + DAY, "day", is_open=is_open, has_year=year > 0)


def _first_day(day: date, months: int) -> date:
    """Return the first day of the month, quarter, half or year, by its number of months, that a day is in."""
    return day.replace(month=(day.month - 1) // months * months + 1, day=1)


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


def _months_named(match: re.Match[str], today: date) -> Period | None:
    """Read months of a year, in units of 1, 3 or 6: June, Q3, 3Q21, "last two quarters", 前三个月, 上半年."""
    groups = match.groupdict(default="")
    unit, year = _MONTHS_IN.get(groups.get("u", "").lower(), 1), int(groups.get("year") or 0)
    if several := groups.get("several"):
        count = min(int(read_any(several)) * unit, 12)
        return _months(year, 13 - count if match[0].lower().startswith("last") else 1, count)
    rank = groups["rank"].lower()
    number = (
        12 // unit if rank in ("last", "latter") else _RANKS.get(rank) or int(read_any(rank.rstrip("stndrh")))
    )
    return _months(year + 2000 * (0 < year < 100), (number - 1) * unit + 1, unit)


def _until_now(match: re.Match[str], today: date) -> Period | None:
    """Read "the last five years" or 近五年: from then until now; ``None`` for none, and for over a thousand."""
    count = 3 if match["n"] in (None, "few", "几", "数") else int(read_any(match["n"]))
    unit = match["u"].lower()
    if not 0 < count <= 1_000:
        return None
    if days := _DAYS_IN.get(unit):
        return Period(today - timedelta(count * days), None, "span")
    months = count * _MONTHS_IN[unit]
    first = _add_months(today, -months)
    day = min(today.day, calendar.monthrange(first.year, first.month)[1])
    return Period(first.replace(day=day), None, "years" if months % 12 == 0 else "month")


def _relative(match: re.Match[str], today: date) -> Period | None:
    """Read this or the last year, quarter, month or week; 前年 is the year before the last."""
    text, unit = match[0].lower(), match["u"].lower()
    # how many back: 0 for "this", "current", 今, 本 and 这, 1 for "last", "previous", 去 and 上
    back = 2 if text == "前年" else int(text[0] not in "tc今本这")
    if unit in _DAYS_IN:
        monday = today - timedelta(7 * back + today.weekday())
        return Period(monday, monday + timedelta(7), "span")
    months = _MONTHS_IN[unit]
    first = _add_months(_first_day(today, months), -back * months)
    return _months(first.year, first.month, months)


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
_GRAINS = {**{months: grain for grain, months in MONTHS_OF.items()}, 120: "years"}
_MONTHS_IN = {**MONTHS_OF, "q": 3, "h": 6, "年": 12, "半年": 6, "季度": 3, "月": 1}
_DAYS_IN = {"week": 7, "周": 7, "星期": 7, "day": 1, "天": 1, "日": 1}
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
_EN_LISTED = r"(?:,|\s+(?:and|or|to|through))\s+(?:the\s+)?"
_RECENT = "最近|近|过去|(?<![年代])前"
# not the first quarter of a treatment
_OF_YEAR = r"(?!\s+of\s+(?!(?:the\s+)?(?:last|past|previous|this|current|fiscal|financial|fy|year|calendar|['’]?\d)))"
_CODE_YEAR = rf"(?:['’]?(?P<year>{_Y}|(?<=['’])\d\d))?"
_EN_UNIT, _ZH_UNIT = "year|quarter|month|week", "年|季度|月|周|星期"
_MakePeriod = Callable[[re.Match[str], date], Period | None]
_PATTERNS: tuple[tuple[_MakePeriod, str], ...] = (
    (_months_named, rf"{_B}(?P<rank>{_MONTH}){_E}(?:\.(?=\s*[-–/,]))?"),
    (_months_named, rf"(?<![\d/.-])(?P<rank>0?[1-9]|1[0-2])/(?P<year>{_Y})(?![\d/-])"),
    (_months_named, rf"\b(?:first|last)\s+(?P<several>{_N})\s+(?P<u>month|quarter)s(?=\s+of\b)"),
    (_months_named, rf"(?<=年)前(?P<several>{_H2})个(?P<u>月)"),
    (_months_named, r"前(?P<several>[23二两三])个?(?P<u>季度)"),
    (_months_named, rf"{_B}(?P<u>[qh])(?P<rank>[1-4]){_CODE_YEAR}{_E}"),
    (_months_named, rf"(?<![\w.])(?P<rank>[1-4])(?P<u>q|h(?=['’]?\d))['’]?(?P<year>{_Y}|\d\d)?{_E}"),
    (_months_named, rf"(?<=(?P<u>q)[1-4][-–/])(?P<rank>[1-4])(?=\s+{_Y})"),
    (
        _months_named,
        rf"\b(?P<rank>{_RANK}|latter|last(?=\s+quarter\s+of\b))\s+(?P<u>quarter|half)\b{_OF_YEAR}",
    ),
    (_months_named, r"第?(?P<rank>[1-4一二三四])(?P<u>季度)"),
    (_months_named, r"(?P<rank>[上下])(?P<u>半年)"),
    # the 6 and 7 of 6、7、8月, the "first" of "first and second quarter"
    (_months_named, rf"{_FIRST}(?P<rank>{_H2})(?=(?:{_LISTED}{_H2}){{1,11}}\s*(?P<u>月|季度))"),
    (_months_named, rf"\b(?P<rank>{_RANK})(?=(?:{_EN_LISTED}(?:{_RANK})){{1,3}}\s+(?P<u>quarter))"),
    (_until_now, rf"\b(?:last|past|previous|recent)\s+(?:(?P<n>few|{_N})\s+)?(?P<u>{_EN_UNIT}|day)s\b"),
    (
        _until_now,
        rf"(?:{_RECENT})(?P<n>\d{{1,3}}|[{_H}几数]{{1,3}})个?(?P<u>{_ZH_UNIT}|天|日)(?:[里内间来]|以来)?",
    ),
    (_relative, rf"\b(?:this|current|last|previous)\s+(?P<u>{_EN_UNIT})\b"),
    (_relative, rf"(?:[今去前](?=年)|(?:本|这个?|上个?)(?=月|季度|周|星期))(?P<u>{_ZH_UNIT})"),
)
#: Forms of dates that `find_values` does not read: a function from match and today to the period, and the pattern.
_FORMS = [(make_period, re.compile(pattern, re.IGNORECASE)) for make_period, pattern in _PATTERNS]
