"""Years, months and spans of time in running text, English and Chinese."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from rag_kit.text.values.reading import find_values, level
from rag_kit.text.values.value import Value

_SINCE = re.compile(r"(?:\b(?:since|after|from)|[自从由])\s{0,4}$", re.IGNORECASE)
_UNTIL = re.compile(r"(?:\b(?:until|till|before|by)|直到)\s{0,4}$", re.IGNORECASE)
_PAIR = re.compile(r"(?:\b(?:from|between)|[(（,，自从由])\s{0,4}$", re.IGNORECASE)
_TO = re.compile(r"\s{0,4}(?:[-~至到]{1,4}|\b(?:to|until|till|through))\s{0,4}(?:the )?$", re.IGNORECASE)
_ON = re.compile(
    r"\s{0,4}(?:[-至]{1,4}\s{0,4})?(?:present|now|今|现在|以来|-\s{0,4}[)）])|\s{0,4}起", re.IGNORECASE
)
_YEAR = re.compile(r"\d{4}|年代|[〇零一二三四五六七八九]{4}年|\d0['’]?s")
_BESIDE = re.compile(r"[\s,/年的(（-]{0,2}| of ")  # between a quarter and its year
_SHORT = re.compile(r"[-/](\d\d)(?!\d)")  # 1914-17, 1939/40
_LOWEST, _HIGHEST = 0.0, 10_000.0
_INSIDE = 0.7  # overlap of a longer span that holds the question's
_WORDS_BEFORE = 12  # characters before a time in which "since", "until" ... are looked for


class TimeSpan(NamedTuple):
    """A span of time in years: from ``start`` to before ``end``."""

    start: float
    end: float


def time_spans(text: str) -> list[TimeSpan]:
    """Find the spans of time that a text names, in order; only years from 1000 on count.

    "Since 1990" ends at 10000 and "until 1990" starts at 0.

    Example:
        >>> time_spans("She led the club from May 1990 to 1994, and again in 2001.")
        [TimeSpan(start=1990.3333333333333, end=1995.0), TimeSpan(start=2001.0, end=2002.0)]
        >>> time_spans("1912年至2001年")
        [TimeSpan(start=1912.0, end=2002.0)]
        >>> time_spans("2001-07-01 – 2003-06-30: in the 1990s style")
        [TimeSpan(start=2001.5, end=2003.5), TimeSpan(start=1990.0, end=2000.0)]
        >>> time_spans("2025年第二季度") == time_spans("2025Q2") == [TimeSpan(start=2025.25, end=2025.5)]
        True
    """
    plain = level(text)
    if not _YEAR.search(plain):
        return []
    values = find_values(text)
    span_of = {value: _span(plain, value) for value in values} | _quarters(plain, values)
    named = [(value, span) for value, span in span_of.items() if span]
    spans: list[TimeSpan] = []
    while named:
        value, span = named.pop(0)
        before = plain[max(0, value.start - _WORDS_BEFORE) : value.start]
        between = plain[value.end : named[0][0].start] if named else ""
        is_pair = between.strip().lower() == "and" and _PAIR.search(before)  # between 1990 and 1994
        if named and (is_pair or _TO.fullmatch(between)):  # 1990 to 1994
            _, last = named.pop(0)
            spans += [TimeSpan(span.start, last.end)] if last.end > span.start else [span, last]
        elif _ON.match(plain, value.end) or _SINCE.search(before):
            spans.append(TimeSpan(span.start, _HIGHEST))
        elif _UNTIL.search(before):
            spans.append(TimeSpan(_LOWEST, span.end))
        else:
            spans.append(span)
    return spans


def _quarters(text: str, values: Sequence[Value]) -> dict[Value, TimeSpan]:
    """Map each year with a quarter beside it, as in "Q2 2025", to the span of that quarter."""
    quarters: dict[Value, TimeSpan] = {}
    for one, other in pairwise(values):
        year, quarter = (other, one) if one.dimension == "quarter" else (one, other)
        is_year = year.dimension in ("", "date") and 1000 <= year.amount < 2200 and "-" not in year.key
        if is_year and quarter.dimension == "quarter" and _BESIDE.fullmatch(text[one.end : other.start]):
            start = year.amount + (quarter.amount - 1) / 4
            quarters[year] = TimeSpan(start, start + 1 / 4)
    return quarters


def _span(text: str, value: Value) -> TimeSpan | None:
    """Return the years of a date or decade, None for another value; "1914-17" runs to the end of 1917."""
    if value.dimension == "decade":
        return TimeSpan(value.amount, value.amount + 10)
    if value.dimension != "date" or value.amount < 1000:
        return None
    year, _, month_and_day = value.key.partition("-")
    start = float(year)
    if month_and_day:
        month = int(month_and_day[:2])
        return TimeSpan(start + (month - 1) / 12, start + month / 12)
    short = _SHORT.match(text, value.end)  # the last two figures of a later year
    if short and start % 100 < float(short[1]):
        return TimeSpan(start, start - start % 100 + float(short[1]) + 1)
    return TimeSpan(start, start + 1)


class TimeFit(NamedTuple):
    """How well the times of a sentence fit those of a question, each from 0 to 1."""

    edges: float = 0.0  # share of the question's start and end that the sentence names
    overlap: float = 0.0  # best intersection over union; 0.7 where a longer span holds the question's
    recent: float = 0.0  # how closely its latest start precedes the question's: what began last still holds


def fit_in_time(question_times: Sequence[TimeSpan], named: Sequence[TimeSpan]) -> TimeFit:
    """Measure how well the spans of a sentence fit those of a question.

    Example:
        >>> fit_in_time([TimeSpan(1979, 1982)], [TimeSpan(1979, 1982)])
        TimeFit(edges=1.0, overlap=1.0, recent=1.0)
    """
    if not question_times or not named:
        return TimeFit()
    return TimeFit(
        max(_match_edges(question, named) for question in question_times),
        max(_overlap(question, span) for question in question_times for span in named),
        max(_recency(question, span) for question in question_times for span in named),
    )


def _match_edges(question: TimeSpan, named: Sequence[TimeSpan]) -> float:
    """Score whether the first and last year of a question's span begin or end a named one: 0, 0.5 or 1."""
    first, last = int(question.start), int(question.end - 1e-6)  # an end is the start of the next day or year
    starts = any(int(span.start) == first for span in named)
    ends = any(last in (int(span.end - 1e-6), int(span.start)) for span in named)
    return (starts + ends) / 2


def _overlap(question: TimeSpan, span: TimeSpan) -> float:
    """Return intersection over union, or 0.7 times the share of the question's span, whichever is more."""
    shared = max(0.0, min(question.end, span.end) - max(question.start, span.start))
    union = max(question.end, span.end) - min(question.start, span.start)
    return max(shared / union, _INSIDE * shared / (question.end - question.start))


def _recency(question: TimeSpan, span: TimeSpan) -> float:
    """Score how closely a span's start precedes the question's: less for each year, half if it ended before that."""
    years = question.start - span.start
    if years <= 0:  # it starts within the question's span, or later
        return 1.0 if span.start < question.end else 0.0
    goes_on = span.end > question.start - 1
    return (1.0 if goes_on else 0.5) / (1 + years / 4)
