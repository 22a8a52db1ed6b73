"""Comparisons of a field with the dates or numbers that a question names."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rag_kit.query_construction.rules import cues

_LISTED = re.compile(r"(?:\s|[,、/]|\b(?:and|or|nor)\b|或者?|和|与|及)*", re.IGNORECASE)


@dataclass(frozen=True)
class Span:
    """A date or number in a text, and the field that it belongs to.

    ``operator`` is how it is compared, if its own words say so ("cheaper than"), ``words`` where the words begin that
    name its field.
    """

    begin: int
    end: int
    value: Any
    field: str
    operator: str | None = None
    words: int | None = None


@dataclass(frozen=True)
class Compared:
    """A comparison read from a text: ``$eq`` for "in 2010"; ``high`` is the upper end of a range."""

    begin: int
    end: int
    field: str
    operator: str
    low: Any
    high: Any = None
    negated: bool = False


def compare(text: str, spans: Sequence[Span], barriers: Sequence[tuple[int, int]] = ()) -> Iterator[Compared]:
    """Read how each date or number is compared; no cue reaches over `barriers`, other things named in the text."""
    position = last = 0
    previous: Compared | None = None
    while position < len(spans):
        span = spans[position]
        floor = max([last, span.begin - cues.REACH, *(end for _, end in barriers if end <= span.begin)])
        left = text[floor : span.begin]
        following = spans[position + 1] if position + 1 < len(spans) else None
        if following and following.field == span.field and _is_range(text, left, span, following):
            position += 1
            item = _range(text, left, span, following)
        else:
            item = _single(text, left, span, following)
        if previous and previous.negated and previous.operator == item.operator == "$eq":
            listed = _LISTED.fullmatch(text[previous.end : item.begin])  # "not in 2010 or 2012"
            item = replace(item, negated=item.negated or listed is not None)
        last, previous = item.end, item
        yield item
        position += 1


def _is_range(text: str, left: str, first: Span, second: Span) -> bool:
    between = text[first.end : second.begin]
    if cues.RANGE_TO.fullmatch(between):
        return True
    if not cues.RANGE_AND.fullmatch(between):
        return False
    opening = cues.BETWEEN.search(left)
    # 在 stands before plain lists too, so 之间 must follow
    sure = opening is not None and opening.group() != "在"
    return sure or re.match(r"\s*(?:之间|年间)", text[second.end :]) is not None


def _range(text: str, left: str, first: Span, second: Span) -> Compared:
    opening = cues.BETWEEN.search(left) or cues.FROM.search(left)
    start = _with_name(first, left, opening.start() if opening else len(left))
    begin, end, negated = _negation(text, first.begin - len(left), left, start, second.end)
    return Compared(begin, end, first.field, "$eq", first.value, second.value, negated=negated)


def _single(text: str, left: str, span: Span, following: Span | None) -> Compared:
    operator, start, end = "$eq", len(left), span.end
    for pattern, found in cues.LEFT:
        if match := pattern.search(left):
            operator, start = found, match.start()
            break
    if span.operator is not None:  # "older than" is below for a date, above for an age
        operator, start = span.operator, len(left)
    start = _with_name(span, left, start)
    for pattern, found in cues.RIGHT:
        if (match := pattern.match(text, span.end)) and not _of_next(text, match.end(), following):
            operator, end = found, match.end()
            break
    else:
        if cues.FROM.search(left) and (match := cues.ONWARD.match(text, span.end)):
            operator, end = "$gte", match.end()
    if operator == "$gte" and (opening := cues.FROM.search(left)) and not cues.NEGATED.search(left[:start]):
        start = min(start, opening.start())
    begin, end, negated = _negation(text, span.begin - len(left), left, start, end)
    return Compared(begin, end, span.field, operator, span.value, negated=negated)


def _with_name(span: Span, left: str, start: int) -> int:
    """The beginning with the field's name before it, if that is near."""
    return start if span.words is None else min(start, max(0, span.words - span.begin + len(left)))


def _of_next(text: str, end: int, following: Span | None) -> bool:
    """Whether the words belong to the next one: "before 1995 or after 2015"."""
    between = r"\s*(?:the\s+)?(?:years?\s+)?"
    return following is not None and re.fullmatch(between, text[end : following.begin]) is not None


def _negation(text: str, floor: int, left: str, start: int, end: int) -> tuple[int, int, bool]:
    """Begin and end with a negation before or after, and whether there is one."""
    match, excluded = cues.NEGATED.search(left[:start]), cues.EXCLUDED_AFTER.match(text, end)
    begin = floor + (match.start() if match else start)
    return begin, excluded.end() if excluded else end, bool(match or excluded)
