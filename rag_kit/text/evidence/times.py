"""Years, months and spans of time in running text, English and Chinese."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from typing import NamedTuple

_NAMES = "january february march april may june july august september october november december"
_MONTHS = {form: at for at, name in enumerate(_NAMES.split()) for form in (name, name[:3], name[:4])}
_MONTH = "|".join(sorted(_MONTHS, key=len, reverse=True))
_POINT = (
    rf"(?:\b(?P<month>{_MONTH})\b\.?(?: \d{{1,2}})?(?: ?,)? )?"
    r"(?<!\d)(?<!\d[.,])(?P<year>1[0-9]{3}|20[0-9]{2})(?![\d%]|[.,]\d)"
    r"(?P<iso>-(?:0[1-9]|1[0-2])(?:-(?:0[1-9]|[12]\d|3[01]))(?!\d))?"
    r"(?P<short>[-–—/]\d{2}(?!\d))?(?P<decade>['’]?s\b)?(?: ?年 ?(?:(?P<zh>1[0-2]|[1-9]) ?月)?)?"
)
_SPAN = re.compile(
    r"(?:(?:(?P<pair>from|between|[(（,，自从由])|(?P<since>since|after)|(?P<until>until|till|before|by|直到))"
    rf"\s{{0,4}}(?:\d{{1,2}} )?)?{_POINT}"
    # the end of the span; "and" joins after "between" and the like alone
    r"(?:\s{0,4}(?:\d{1,2}\s{0,4}日)?\s{0,4}(?:[-–—~〜至到]{1,4}|to|until|till|through|(?(pair)and|(?!)))"
    rf"\s{{0,4}}(?:the )?(?:\d{{1,2}} )?{_POINT.replace('?P<', '?P<last_')})?"
    r"(?P<present>\s{0,4}(?:[-–—至]{1,4}\s{0,4})?(?:present|now|今|现在|以来|[-–—]\s{0,4}[)）])|\s{0,4}起)?"
)
_YEAR = re.compile(r"1\d{3}|20\d{2}")
_LOWEST, _HIGHEST = 0.0, 9999.0
_INSIDE = 0.7


class Span(NamedTuple):
    """A span of time in years; ``start`` is in it, ``end`` is not."""

    start: float
    end: float


def time_spans(text: str) -> list[Span]:
    """The spans of time that a text names, in order; only years from 1000 to 2099 count.

    "Since 1990" ends at 9999 and "until 1990" starts at 0.

    Example:
        >>> time_spans("She led the club from May 1990 to 1994, and again in 2001.")
        [Span(start=1990.3333333333333, end=1995.0), Span(start=2001.0, end=2002.0)]
        >>> time_spans("1912年至2001年")
        [Span(start=1912.0, end=2002.0)]
        >>> time_spans("2001-07-01 – 2003-06-30: in the 1990s style")
        [Span(start=2001.5, end=2003.5), Span(start=1990.0, end=2000.0)]
    """
    text = unicodedata.normalize("NFKC", text).casefold()
    spans: list[Span] = []
    for match in _SPAN.finditer(text) if _YEAR.search(text) else ():
        first = _point(match)
        if match["last_year"]:
            last = _point(match, "last_")
            spans += [Span(first.start, last.end)] if last.end > first.start else [first, last]
        elif match["present"] or match["since"] or match["pair"] in ("from", "自", "从"):
            spans.append(Span(first.start, _HIGHEST))
        else:
            spans.append(Span(_LOWEST, first.end) if match["until"] else first)
    return spans


def _point(match: re.Match[str], part: str = "") -> Span:
    """One year, month or decade as a span; "1914-17" and "1939/40" run to the end of the second year."""
    names = ("year", "decade", "short", "month", "iso", "zh")
    digits, decade, short, month, iso, zh = match.group(*(part + name for name in names))
    year = float(digits)
    if decade and year % 10 == 0:
        return Span(year, year + 10)
    if short and (end := year - year % 100 + float(short[1:])) > year:
        return Span(year, end + 1)
    number = int(iso[1:3] if iso else zh or (_MONTHS[month] + 1 if month else 0))
    return Span(year + (number - 1) / 12, year + number / 12) if number else Span(year, year + 1)


class TimeFit(NamedTuple):
    """How well the times of a sentence fit those of a question, each from 0 to 1."""

    edges: float = 0.0  # share of the question's start and end that the sentence names
    overlap: float = 0.0  # best intersection over union; 0.7 where a longer span holds the question's
    recent: float = 0.0  # how closely its latest start precedes the question's: what began last still holds


def fit_in_time(question_times: Sequence[Span], named: Sequence[Span]) -> TimeFit:
    """How well the spans of a sentence fit those of a question.

    Example:
        >>> fit_in_time([Span(1979, 1982)], [Span(1979, 1982)])
        TimeFit(edges=1.0, overlap=1.0, recent=1.0)
    """
    if not question_times or not named:
        return TimeFit()
    return TimeFit(
        max(_match_edges(question, named) for question in question_times),
        max(_overlap(question, span) for question in question_times for span in named),
        max(_recency(question, span) for question in question_times for span in named),
    )


def _match_edges(question: Span, named: Sequence[Span]) -> float:
    """Whether the first and the last year of a question's span begin or end a named one: 0, 0.5 or 1."""
    last = int(question.end - 1e-6)
    starts = any(int(span.start) == int(question.start) for span in named)
    ends = any(int(span.end - 1e-6) == last or int(span.start) == last for span in named)
    return (starts + ends) / 2


def _overlap(question: Span, span: Span) -> float:
    shared = max(0.0, min(question.end, span.end) - max(question.start, span.start))
    union = max(question.end, span.end) - min(question.start, span.start)
    return max(shared / union, _INSIDE * shared / (question.end - question.start))


def _recency(question: Span, span: Span) -> float:
    """Less for each year by which a span begins before the question's, and half where it ended before."""
    gap = question.start - span.start
    if gap <= 0:
        return float(gap > question.start - question.end)
    return (1.0 if span.end > question.start - 1 else 0.5) / (1 + gap / 4)
