"""Years, months and spans of time in running text, English and Chinese."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from rag_kit.text.values.period import DAY, Period
from rag_kit.text.values.periods import RANGE_TO, find_periods
from rag_kit.text.values.reading import level

_SINCE = re.compile(r"(?:\b(?:since|after)\s{0,4}(?:the )?|[自从由]\s{0,4})$", re.IGNORECASE)
_SINCE_OR_FROM = re.compile(rf"{_SINCE.pattern}|\bfrom\s{{0,4}}$", re.IGNORECASE)
_UNTIL = re.compile(r"(?:\b(?:until|till|before|by)|直到)\s{0,4}(?:the )?$", re.IGNORECASE)
_PAIR = re.compile(r"(?:\b(?:from|between)|[(（,，自从由])\s{0,4}(?:the )?$", re.IGNORECASE)
_ON = re.compile(
    r"\s{0,4}(?:[-至]{1,4}\s{0,4})?(?:present|now|今|现在|以来|-\s{0,4}[)）])|\s{0,4}起", re.IGNORECASE
)
_YEAR = re.compile(r"\d{4}|年代|[〇零一二三四五六七八九]{4}年|\d0['’]?s|(?i:\bFY) ?['’]?\d\d|['’]\d\d\b")
_LIFETIME = 20  # years at least between two days in brackets that are taken for those of birth and death
_IN_BRACKETS = re.compile(r"\([^()]*$")
_LOWEST, _HIGHEST = 0.0, 10_000.0
_INSIDE = 0.7  # overlap of a longer span that holds the question's
_WORDS_BEFORE = 12  # characters before a time in which "since", "until" ... are looked for


class TimeSpan(NamedTuple):
    """A span of time in years: from ``start`` to before ``end``."""

    start: float
    end: float


@lru_cache(maxsize=1024)
def time_spans(text: str) -> tuple[TimeSpan, ...]:
    """Find the spans of time that a text names, in order, in whole months; only the years from 1000 to 2999 count.

    "Since 1990" ends at 10000 and "until 1990" starts at 0. Days of birth and death in brackets are left out.

    Example:
        >>> time_spans("She led the club from May 1990 to 1994, and again in 2001.")
        (TimeSpan(start=1990.3333333333333, end=1995.0), TimeSpan(start=2001.0, end=2002.0))
        >>> time_spans("1912年至2001年")
        (TimeSpan(start=1912.0, end=2002.0),)
        >>> time_spans("2001-07-01 – 2003-06-30: in the 1990s style")
        (TimeSpan(start=2001.5, end=2003.5), TimeSpan(start=1990.0, end=2000.0))
        >>> time_spans("2025年第二季度") == time_spans("2025Q2") == (TimeSpan(start=2025.25, end=2025.5),)
        True
    """
    plain = level(text)
    if not _YEAR.search(plain):
        return ()
    named = [one for one in find_periods(plain) if one.period.has_year]
    spans: list[TimeSpan] = []
    while named:
        first = named.pop(0)
        span = _span(first.period)
        before = plain[max(0, first.begin - _WORDS_BEFORE) : first.begin]
        between = plain[first.end : named[0].begin] if named else ""
        # figures "from Q3 2020" are of that quarter alone
        since = _SINCE if first.period.grain in ("quarter", "half") else _SINCE_OR_FROM
        is_pair = between.strip().lower() == "and" and _PAIR.search(before)  # between 1990 and 1994
        if named and (is_pair or RANGE_TO.fullmatch(between)):  # 1990 to 1994
            last = _span(named.pop(0).period)
            spans += [TimeSpan(span.start, last.end)] if last.end > span.start else [span, last]
            is_long = first.period.grain == "day" and last.end - span.start > _LIFETIME
            if is_long and _IN_BRACKETS.search(plain, max(0, first.begin - 80), first.begin):
                del spans[-1]
        elif _ON.match(plain, first.end) or since.search(before):
            spans.append(TimeSpan(span.start, _HIGHEST))
        elif _UNTIL.search(before):
            # "by the end of 2023" is in that year
            is_of_year = first.period.edge and first.period.grain == "year"
            spans.append(TimeSpan(int(span.start) if is_of_year else _LOWEST, span.end))
        else:
            spans.append(span)
    return tuple(spans)


def _span(period: Period) -> TimeSpan:
    """Return the months of a period, in years."""
    start, last = period.start, period.end - DAY
    return TimeSpan(start.year + (start.month - 1) / 12, last.year + last.month / 12)


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
    has_first = any(int(span.start) == first for span in named)
    has_last = any(last in (int(span.end - 1e-6), int(span.start)) for span in named)
    return (has_first + has_last) / 2


def _overlap(question: TimeSpan, span: TimeSpan) -> float:
    """Return intersection over union, or 0.7 times the share of the question's span, whichever is more."""
    shared = max(0.0, min(question.end, span.end) - max(question.start, span.start))
    union = max(question.end, span.end) - min(question.start, span.start)
    return max(shared / union, _INSIDE * shared / (question.end - question.start))


def _recency(question: TimeSpan, span: TimeSpan) -> float:
    """Score how closely a span's start precedes the question's: less for each year, half if it ended before that."""
    years = question.start - span.start
    if years <= 0:
        return 1.0 if span.start < question.end else 0.0  # it starts within the question's span, or later
    goes_on = span.end > question.start - 1
    return (1.0 if goes_on else 0.5) / (1 + years / 4)
