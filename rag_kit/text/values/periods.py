"""The periods of time that a text names, English and Chinese: days, months, quarters, years, "the last five years"."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta

from rag_kit.text.values.forms import DIGITS, MONTH, MONTHS, YEAR
from rag_kit.text.values.numbers import NUMBER_WORDS, read_any
from rag_kit.text.values.period import DAY, MONTHS_OF, Period, add_months, first_day
from rag_kit.text.values.reading import find_values
from rag_kit.text.values.value import Value


@dataclass(frozen=True, eq=False)
class TextSpan:
    """A span of a text: the characters from `begin` to before `end`."""

    begin: int
    end: int

    def overlaps(self, others: Iterable[TextSpan]) -> bool:
        """Tell whether it shares characters with one of the others."""
        return any(self.begin < other.end and other.begin < self.end for other in others)


@dataclass(frozen=True, eq=False)
class NamedPeriod(TextSpan):
    """A period named in a text; `bare` if by digits alone, which may be a number as well."""

    period: Period
    bare: bool = False

    def with_year(self, year: int | None) -> NamedPeriod | None:
        """Return it with a year; ``None`` without one, if it has one, or if there is no such day."""
        period = None if year is None or self.period.has_year else self.period.in_year(year)
        return replace(self, period=period) if period else None


def find_periods(text: str, today: date | None = None) -> list[NamedPeriod]:
    """Find the periods that a text names, in order; of those that overlap, the first one stays, the longest there.

    Unit and year may be named once in a list or range: "June, July and August 2024", 2024年6-8月. The part of a date
    that is named with it ("the end of 2015", 年底), and an "around", are read into it, so that what compares stands
    outside: in "before the end of 2015" it is "before". Relative periods ("last year") are read from `today`, and so
    are those without a year: the last one that has begun. Without `today` no relative ones are found, and "around
    1990" is 1990 alone.

    Example:
        >>> [(found.period.start.isoformat(), str(found.period.end)) for found in find_periods("Q3 2020, 2024年6、7月")]
        [('2020-07-01', '2020-10-01'), ('2024-06-01', '2024-07-01'), ('2024-07-01', '2024-08-01')]
    """
    periods: list[NamedPeriod] = []
    last_end = 0
    for named in complete_years(text, _attach_years(text, _find_dates(text, today))):
        period = named.period.last_begun(today) if today else named.period
        # a half without a year may be of a game or a form
        if period is not None and (period.has_year or period.grain != "half"):
            periods.append(_with_part(text, last_end, replace(named, period=period), today))
            last_end = periods[-1].end
    return periods


def _find_dates(text: str, today: date | None) -> list[NamedPeriod]:
    """Find dates, years alone and months without a year; of those that overlap the first, longest one."""
    found = [_read_date(text, value) for value in find_values(text) if value.dimension in ("date", "decade")]
    lowered = text.lower()
    for make, hints, pattern in _FORMS if today else _FORMS[:_RELATIVE_FROM]:
        if any(hint in lowered for hint in hints):
            found += [(*match.span(), make(match, today or date.min)) for match in pattern.finditer(text)]
    chosen: list[NamedPeriod] = []
    last_end = 0
    for begin, end, period in sorted(found, key=lambda entry: (entry[0], -entry[1])):
        if begin >= last_end:
            last_end = end  # also of what is no period, such as 2025-13-01: a part of it is none, either
            chosen += [NamedPeriod(begin, end, period)] if period else []
    return chosen


def _read_date(text: str, value: Value) -> tuple[int, int, Period | None]:
    """Return where a date or decade begins and ends, and its period; "1914-17" is from 1914 to the end of 1917."""
    begin, end = value.start, value.end
    if value.dimension == "decade":
        return begin, end, Period.of_months(int(value.amount), 1, 120)
    year, month, day = (*(int(part or 0) for part in value.key.split("-")), 0, 0)[:3]  # "-05" is May
    period = Period.of_date(year, month, day, is_open=value.open)
    short = _SHORT_YEAR.match(text, end) if period and not month else None
    if period and short and year % 100 < int(short[1]):
        last_year = year - year % 100 + int(short[1])  # the 17 of 1914-17
        return begin, short.end(), period.through(Period.of_months(last_year, 1, 12))
    return begin, end, period


def _attach_years(text: str, dates: list[NamedPeriod]) -> list[NamedPeriod]:
    """Join a year and the months beside it: Q3 2020, 2020年第三季度, 去年6月."""
    attached: list[NamedPeriod] = []
    for named in dates:
        last = attached[-1] if attached else named
        gap, joined = (last.end, named.begin), None
        year_then_months = _YEAR_THEN.fullmatch(text, *gap) or _THEN_QUARTER.match(text, last.end)
        months_then_year = _THEN_YEAR.fullmatch(text, *gap) or _YEAR_IN_BRACKETS.match(text, last.end)
        if year_then_months and last.period.grain == "year":
            joined = named.with_year(last.period.start.year)
        elif months_then_year and named.period.grain == "year":
            joined = last.with_year(named.period.start.year)
        if joined:
            attached[-1] = replace(joined, begin=last.begin, end=named.end)
        else:
            attached.append(named)
    return attached


def complete_years(text: str, dates: Sequence[NamedPeriod]) -> list[NamedPeriod]:
    """Give months without a year that of the ones beside them in a list or range: "June and July 2024"."""
    completed = list(dates)
    for at in reversed(range(len(dates) - 1)):  # from the right: of three months, the last one has the year
        first, second = completed[at : at + 2]
        if not _YEAR_FIRST.match(text, second.begin):  # 6月，2024年7月
            completed[at] = first.with_year(_year_beside(text, first, second)) or first
    for at in range(1, len(dates)):  # from the left: 2024年6月、7月和8月
        first, second = completed[at - 1 : at + 1]
        completed[at] = second.with_year(_year_beside(text, first, second)) or second
    return completed


def _year_beside(text: str, first: NamedPeriod, second: NamedPeriod) -> int | None:
    """Return the year of one of two periods without a year in a list or range, by the other; ``None`` if it has none.

    A range may reach into the next year: "November to February 2024", 3月至次年6月.
    """
    without, with_year = sorted((first.period, second.period), key=lambda period: period.has_year)
    if without.has_year or not with_year.has_year or with_year.grain in ("year", "years"):
        return None
    year = with_year.start.year
    after = _PART_AFTER.match(text, first.end, second.begin)
    between = text[after.end() if after else first.end : second.begin]
    between = _PART_BEFORE.sub(" ", between) if len(between) <= _REACH else ""
    if not RANGE_TO.fullmatch(between):
        return year if LISTED.fullmatch(between) else None
    begins, ends = ((named.period.start.month, named.period.start.day) for named in (first, second))
    reaches_next_year = begins > ends or re.search("年|year", between) is not None
    if not reaches_next_year:
        return year
    return year + 1 if without is second.period else year - 1


def _with_part(text: str, floor: int, named: NamedPeriod, today: date | None) -> NamedPeriod:
    """Read the words beside a period, from `floor` on, that say which part of it is meant, and "around"."""
    begin, end, period = named.begin, named.end, named.period
    words, floor = text[begin:end], max(floor, begin - _REACH)
    before, after = _PART_BEFORE.search(text, floor, begin), _PART_AFTER.match(text, end)
    if after and not (after[0].endswith("半年") or _PART_ENDS.match(text, after.end())):
        after = None  # 1990年代初创企业: it goes on as another word
    if (part := before or after) and period.end < date.max:
        name = str(part.lastgroup)
        is_fiscal = words.lower().startswith(("fy", "fiscal"))
        # the months of a fiscal year are not known, so its part stays the whole
        period = replace(period, edge=name) if is_fiscal else period.part(name)
        begin, end = before.start() if before else begin, after.end() if after else end
    before, after = _AROUND_BEFORE.search(text, floor, begin), _AROUND_AFTER.match(text, end)
    if before or after:
        period = period.around() if today else period
        begin, end = before.start() if before else begin, after.end() if after else end
    return NamedPeriod(begin, end, period, words.isdecimal())


def _months_named(match: re.Match[str], today: date) -> Period | None:
    """Read months of a year, in units of 1, 3 or 6: June, Q3, 3Q21, "last two quarters", 前三个月, 上半年."""
    groups = match.groupdict(default="")
    months_in_unit = _MONTHS_IN.get(groups.get("u", "").lower(), 1)
    year = int(groups.get("year") or 0)
    if 0 < year < 100:  # '22
        year += 1900 if year >= 50 else 2000
    if several := groups.get("several"):
        count = min(int(read_any(several)) * months_in_unit, 12)
        first_month = 13 - count if match[0].lower().startswith("last") else 1
        return Period.of_months(year, first_month, count)
    rank = groups["rank"].lower()
    if not rank:
        return Period.of_months(year, 1, 12)
    if rank in ("last", "latter"):
        rank = str(12 // months_in_unit)
    number = _RANKS.get(rank) or int(read_any(rank.rstrip("stndrh")))  # the third quarter begins with month 7
    return Period.of_months(year, (number - 1) * months_in_unit + 1, months_in_unit)


def _until_now(match: re.Match[str], today: date) -> Period | None:
    """Read "the last five years" or 近五年: from then until now; ``None`` for none, and for over a thousand."""
    count = 3 if match["n"] in (None, "few", "几", "数") else int(read_any(match["n"]))
    unit = match["u"].lower()
    if not 0 < count <= 1_000:
        return None
    if days := _DAYS_IN.get(unit):
        return Period(today - timedelta(count * days), date.max, "span")
    months = count * _MONTHS_IN[unit]
    first = add_months(today, -months)  # of its month
    last = add_months(first, 1) - DAY
    start = min(
        first + timedelta(today.day - 1), last
    )  # a month before 31 March begins at the end of February
    return Period(start, date.max, "years" if months % 12 == 0 else "month")


def _relative(match: re.Match[str], today: date) -> Period | None:
    """Read yesterday, this or the last year, quarter, month or week; 前年 is the year before the last."""
    text, unit = match[0].lower(), match["u"].lower()
    is_current = (
        text[0] in "tc今本这"
    )  # "this", "current"; others are 1 back: "last", "previous", 去, 昨 and 上
    units_back = 2 if text == "前年" else int(not is_current)
    if days := _DAYS_IN.get(unit):
        since_monday = today.weekday() if days == 7 else 0
        start = today - timedelta(units_back * days + since_monday)
        return Period(start, start + timedelta(days), "day" if days == 1 else "span")
    months = _MONTHS_IN[unit]
    first = add_months(first_day(today, months), -units_back * months)
    return Period.of_months(first.year, first.month, months)


RANGE_TO = re.compile(
    r"(?i)\s*(?:[-–—~～]{1,2}|\.\.\.?|\b(?:to|through(?:\s+to)?|thru|(?:up\s+)?until|till)\b|\b(?:right\s+)?up\s+to(?:\s+and\s+including)?\b"
    r"|[到至](?:[次翌]年|第二年)?)\s*(?:the\s+)?(?:years?\s+)?$",
)
"""The text between the two ends of a range."""
LISTED = re.compile(r"(?:[\s/&、,，和与及]|\b(?:and|or|the)\b|以及|或者?)+", re.IGNORECASE)
"""The text between the periods of a list."""
_REACH = 60  # characters before a period in which its part is named
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
# what may follow such a part: no other character of its word
_PART_ENDS = re.compile(
    r"\s*$|\W|\d|(?<!期)[A-Za-z]|[至或之到及于是为的有被带含里了任与和以止起]|在(?!校)|开始|外(?=[的，,。？?]|$)"
    r"|[一二三四五六七八九十两几]+年|前(?![列沿瞻臂后])|后(?![续果端期])|前后|左右|截止|包[含括]|涉及|[关有]于|有关|针对|研究|讨论"
    r"|属于|主题|关键词|标[签注记]|索引|词|哪些|[那这]些|论文|文[章献]|发[表布]|出版|签[订署]|年份|时间"
)
_AROUND_BEFORE = re.compile(
    r"(?:\b(?:around|circa|ca?\.|approximately|roughly)\s+(?:the\s+)?(?:years?\s+)?|(?:大约|大概)[在于]?)$",
    re.IGNORECASE,
)
_AROUND_AFTER = re.compile(
    r"\s*(?:前后(?!端)|左右(?!脑(?![卒血梗瘤炎出外])|手(?![术机游工动写])|眼(?![科底镜动])|侧|半球|声道|翼))|\s+or\s+so\b",
    re.IGNORECASE,
)
_N = rf"\d{{1,3}}|{NUMBER_WORDS}"
_RANK = r"first|second|third|fourth|[1-4](?:st|nd|rd|th)"
_RANKS = {"first": 1, "second": 2, "third": 3, "fourth": 4, "上": 1, "下": 2, **MONTHS}
_MONTHS_IN = {**MONTHS_OF, "q": 3, "h": 6, "年": 12, "半年": 6, "季度": 3, "月": 1}
_DAYS_IN = {"week": 7, "周": 7, "星期": 7, "day": 1, "天": 1, "日": 1}
_SHORT_YEAR = re.compile(r"[-–/](\d\d)(?![\dA-Za-z/-])")  # 1914-17, 1939/40
_YEAR_THEN = re.compile(r"(?:['’]s)?\s*[年的]?\s*-?\s*(?:the\s+)?", re.IGNORECASE)
_THEN_QUARTER = re.compile(r"年?\s?[,，/(（]\s?(?=(?:Q\d|第[一二三四1-4]季度)(?![\s,]*\d\d))")
_YEAR_FIRST = re.compile(r"\d{4}|[〇零一二三四五六七八九]{4}年|[今去前]年")
_THEN_YEAR = re.compile(r"(?i)(?:\s+of|\s*[-,/])?\s*(?:the\s+)?(?:(?:fiscal|financial)\s+)?(?:year\s+)?")
_YEAR_IN_BRACKETS = re.compile(r"\s*[(（](?=\d{4}年?[)）])")
_B, _E = r"(?<![A-Za-z])", r"(?![A-Za-z\d])"
_H2 = rf"(?:\d{{1,2}}|[{DIGITS}]{{1,2}})"
_FIRST = rf"(?:(?<![\d.,A-Za-z{DIGITS}])|第)"
_LISTED = r"\s*(?:[-–—~～、,，/和与及或至到]|以及|或者)\s*第?"
_EN_LISTED = r"(?:,|\s+(?:and|or|to|through))\s+(?:the\s+)?"
_RECENT = "最近|近|过去|(?<![年代])前"
# not the first quarter of a treatment
_OF_YEAR = r"(?!\s+of\s+(?!(?:the\s+)?(?:last|past|previous|this|current|fiscal|financial|fy|year|calendar|['’]?\d)))"
_CODE_YEAR = rf"(?:['’]?(?P<year>{YEAR}|(?<=['’])\d\d))?"
_EN_UNIT, _ZH_UNIT = "year|quarter|month|week", "年|季度|月|周|星期"
_MONTH_HINTS = " ".join({name[:3] for name in MONTHS})
_MakePeriod = Callable[[re.Match[str], date], Period | None]
_PATTERNS: tuple[tuple[_MakePeriod, str, str], ...] = (
    (_months_named, _MONTH_HINTS, rf"{_B}(?P<rank>{MONTH}){_E}(?:\.(?=\s*[-–/,]))?"),
    (_months_named, "/1 /2", rf"(?<![\d/.第-])(?<!\bN[or]\. )(?P<rank>0?[1-9]|1[0-2])/(?P<year>{YEAR})(?![\d/-])"),
    (_months_named, "months quarters", rf"\b(?:first|last)\s+(?P<several>{_N})\s+(?P<u>month|quarter)s(?=\s+of\b)"),
    (_months_named, "个月", rf"(?<=年)前(?P<several>{_H2})个(?P<u>月)"),
    (_months_named, "季度", r"前(?P<several>[23二两三])个?(?P<u>季度)"),
    (_months_named, "q1 q2 q3 q4 h1 h2 h3 h4", rf"{_B}(?P<u>[qh])(?P<rank>[1-4]){_CODE_YEAR}{_E}"),
    (
        _months_named, "1q 2q 3q 4q 1h 2h 3h 4h",
        rf"(?<![\w.])(?P<rank>[1-4])(?P<u>q|h(?=['’]?\d))['’]?(?P<year>{YEAR}|\d\d)?{_E}",
    ),
    (_months_named, "q1 q2 q3 q4", rf"(?<=(?P<u>q)[1-4][-–/])(?P<rank>[1-4])(?=\s+{YEAR})"),
    (
        _months_named, "quarter half",
        rf"\b(?P<rank>{_RANK}|latter|last(?=\s+quarter\s+of\b))\s+(?P<u>quarter|half)\b{_OF_YEAR}",
    ),
    (_months_named, "季度", r"第?(?P<rank>[1-4一二三四])(?P<u>季度)"),
    (_months_named, "半年", r"(?P<rank>[上下])(?P<u>半年)"),
    # the 6 and 7 of 6、7、8月, the "first" of "first and second quarter"
    (_months_named, "月 季度", rf"{_FIRST}(?P<rank>{_H2})(?=(?:{_LISTED}{_H2}){{1,11}}\s*(?P<u>月|季度))"),
    (_months_named, "quarter", rf"\b(?P<rank>{_RANK})(?=(?:{_EN_LISTED}(?:{_RANK})){{1,3}}\s+(?P<u>quarter))"),
    # not '30 km/h'
    (_months_named, "' ’", r"(?<=\s)['’](?P<year>\d\d)(?=[\s,.;:?!)]|$)(?![^'’]*[^\s'’]['’](?!\w))(?P<rank>)"),
    (
        _until_now, "last past previous recent",
        rf"\b(?:last|past|previous|recent)\s+(?:(?P<n>few|{_N})\s+)?(?P<u>{_EN_UNIT}|day)s\b",
    ),
    (
        _until_now, "近 过去 前",
        rf"(?:{_RECENT})(?P<n>\d{{1,3}}|[{DIGITS}几数]{{1,3}})个?(?P<u>{_ZH_UNIT}|天|日)(?:[里内间来]|以来)?",
    ),
    (_relative, "this current last previous", rf"\b(?:this|current|last|previous)\s+(?P<u>{_EN_UNIT})\b"),
    (
        _relative, "年 月 季度 周 星期",
        rf"(?:[今去前](?=年)|(?:本|这个?|上个?)(?=月|季度|周|星期))(?P<u>{_ZH_UNIT})",
    ),
    (_relative, "yesterday 昨", r"(?:\b(?<!before )(?!(?-i:Y)\w+ by\b)yester|昨)(?P<u>day\b|[天日])"),  # not a title
)  # fmt: skip
#: Forms of dates that `find_values` does not read: a function from match and today to the period, texts of which one
#: stands in each such date, in lower case, and the pattern. The last ones are relative to today.
_FORMS = [(make, hints.split(), re.compile(pattern, re.IGNORECASE)) for make, hints, pattern in _PATTERNS]
_RELATIVE_FROM = [make for make, _, _ in _PATTERNS].index(_until_now)
