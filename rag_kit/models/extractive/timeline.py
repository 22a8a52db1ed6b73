"""What times the sentences of a text state: spans that end, points, states that last until the next one begins."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from typing import NamedTuple

from rag_kit.models.extractive.timespan import HIGHEST, LOWEST, Span, time_spans

_YEAR = r"(?:1[0-9]{3}|20[0-9]{2})"
_DAY = rf"(?:\d{{1,2}} [A-Z][a-z]{{2,8}} |[A-Z][a-z]{{2,8}} \d{{1,2}} ?, ){_YEAR}"
_DAY_ZH = rf"{_YEAR}年\d{{1,2}}月\d{{1,2}}日"
_LIFE = re.compile(
    rf"\([^()]{{0,80}}?{_DAY} ?[-–—] ?{_DAY} ?\)"
    rf"|\b(?:born|b\.|died)[^();.]{{0,40}}?{_YEAR}"
    rf"|[(（][^()（）]{{0,40}}?{_DAY_ZH} ?[-–—－至~～]+ ?{_DAY_ZH}[^()（）]{{0,20}}[)）]"
    rf"|{_YEAR}年(?:\d{{1,2}}月)?(?:\d{{1,2}}日)?(?:出生|生于)|生于[^，。]{{0,12}}?{_YEAR}年"
)
_NUMBERS = {
    word: number
    for number, words in enumerate(
        (
            "零",
            "a one 一",
            "two 二 两",
            "three 三",
            "four 四",
            "five 五",
            "six 六",
            "seven 七",
            "eight 八",
            "nine 九",
            "ten 十",
        )
    )
    for word in words.split()
}
_COUNT = r"(\d{1,2}|a|one|two|three|four|five|six|seven|eight|nine|ten)"
_COUNT_ZH = r"(\d{1,2}|[一二两三四五六七八九十])"
_LATER = re.compile(rf"\b{_COUNT} years? (?:later|after)\b|{_COUNT_ZH}年[之以]?后", re.IGNORECASE)
_LASTED = re.compile(rf"\bfor {_COUNT} (?:years?|seasons?)\b|(?:为期|长达|历时){_COUNT_ZH}年", re.IGNORECASE)
_NEXT = re.compile(r"\b(?:following|next) (?:year|season)\b|次年|翌年|第二年|隔年", re.IGNORECASE)
_SAME = re.compile(
    r"\b(?:that|the same) (?:year|season)\b|\b(?:that|the same) time\b|同年|当年|同期|那一?年", re.IGNORECASE
)
_BEGINS = re.compile(
    r"\b(?:join(?:ed|s)|bec(?:a|o)mes?|(?:was|were|been|is) (?:\w+ )?(?:named|promoted|made|hired|sold|called)"
    r"|appointed|elected|signed|mov(?:ed?|es|ing)|took (?:over|up)|taking over|succeeded|replaced|acquired|bought"
    r"|purchased|founded|established|married|settled|returned|began|started|enlisted|opened|introduced|switched"
    r"|changed|entered|converted|re-?named|redesignated|adopted|transferred)\b"
    r"|加入|成为|担任|出任|就任|任命|上任|接任|继任|当选|改名|更名|改称|迁|搬|转[会到入]|创[立办建]|成立|结婚|开始|进入|返回|回到",
    re.IGNORECASE,
)


class Stated(NamedTuple):
    """A time that a sentence states.

    Attributes:
        span: The span of time.
        how: ``"range"`` (begin and end are named), ``"open"`` (one of them), ``"begun"`` (what begins then and lasts
            until the next thing begins), ``"point"``, or ``"carried"`` (named by an earlier sentence).
    """

    span: Span
    how: str


def without_lives(text: str) -> str:
    """A text without dates of birth and death: who lived in a year need not have done anything in it.

    Example:
        >>> without_lives("Lotte Lenz ( 2 June 1899 – 19 June 1981 ) made films from 1926 to 1935.")
        'Lotte Lenz   made films from 1926 to 1935.'
    """
    return _LIFE.sub(" ", text)


def timeline(texts: Sequence[str]) -> list[list[Stated]]:
    """The times that each sentence states, of sentences in the order of their document.

    "Later that year", "the following year", "two years later" are counted from the time named last; "for two years"
    makes a span; a sentence that names no time takes the last one named, as ``"carried"``.

    Example:
        >>> lines = timeline(["She joined Leeds in 1990.", "Two years later she moved to Hull.", "They won."])
        >>> [(stated.how, stated.span.start, stated.span.end) for line in lines for stated in line]
        [('begun', 1990.0, 1992.0), ('begun', 1992.0, 9999.0), ('carried', 1992.0, 1993.0)]
    """
    lines: list[list[Stated]] = []
    last: Span | None = None
    for text in map(without_lives, texts):
        spans = time_spans(text) or _counted(text, last)
        lines.append(_stated(text, spans, last))
        last = spans[-1] if spans else last
    starts = sorted(
        one.span.start
        for line in lines
        for one in line
        if one.how in ("range", "open", "begun") and one.span.start
    )
    return [[_until_next(one, starts) for one in line] for line in lines]


def _counted(text: str, last: Span | None) -> list[Span]:
    """The year that a sentence counts from the time named last."""
    if last is None or last.start == LOWEST:
        return []
    year = int(last.start)
    if found := _LATER.search(text):
        year += _number(found)
    elif _NEXT.search(text):
        year += 1
    elif not _SAME.search(text):
        return []
    return [Span(float(year), year + 1.0)]


def _stated(text: str, spans: list[Span], last: Span | None) -> list[Stated]:
    lasted = _LASTED.search(text)
    known = spans or ([last] if last else [])
    if lasted and known and known[0].start > LOWEST and all(one.end - one.start <= 1 for one in spans):
        year = int(known[0].start)
        return [Stated(Span(float(year), year + 1.0 + _number(lasted)), "range")]
    begins = _BEGINS.search(text) is not None
    found = []
    for one in spans:
        if one.start == LOWEST or one.end == HIGHEST:
            how = "open"
        elif one.end - one.start > 1:
            how = "range"
        else:
            how = "begun" if begins else "point"
        found.append(Stated(one, how))
    return found or ([Stated(last, "carried")] if last else [])


def _until_next(one: Stated, starts: Sequence[float]) -> Stated:
    """A state that has begun lasts until the next one begins."""
    if one.how != "begun":
        return one
    later = bisect_right(starts, one.span.start)  # a table of years holds thousands
    end = starts[later] if later < len(starts) else HIGHEST
    return Stated(Span(one.span.start, max(one.span.end, end)), "begun")


def _number(found: re.Match[str]) -> int:
    word = next(group for group in found.groups() if group).casefold()
    return int(word) if word.isdigit() else _NUMBERS[word]
