"""Comparisons of a field with the dates or numbers that a question names."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from langchain_core.structured_query import Comparator

from rag_kit.query_construction.rules import cues

_LISTED = re.compile(r"(?:\s|[,、/]|\b(?:and|or|nor)\b|或者?|和|与|及)*", re.IGNORECASE)
_WIDER = {Comparator.GT: Comparator.GTE, Comparator.LT: Comparator.LTE}


@dataclass(frozen=True)
class Span:
    """A date or number in a text.

    Attributes:
        begin: First character.
        end: Character after the last.
        value: What it is.
        field: The field it belongs to.
        comparator: How it is compared, if its own words say so ("cheaper than").
        words: Where the words begin that name its field; ``None`` for none.
    """

    begin: int
    end: int
    value: Any
    field: str
    comparator: Comparator | None = None
    words: int | None = None


@dataclass(frozen=True)
class Compared:
    """A comparison read from a text.

    Attributes:
        begin: First character, cue words included.
        end: Character after the last.
        field: The field.
        comparator: How it is compared; ``EQ`` for "in 2010".
        low: The date or number.
        high: The upper end of a range.
        open: The ends of the range are left out.
        negated: It must not hold.
    """

    begin: int
    end: int
    field: str
    comparator: Comparator
    low: Any
    high: Any = None
    negated: bool = False
    open: bool = False


def compare(text: str, spans: Sequence[Span], barriers: Sequence[tuple[int, int]] = ()) -> Iterator[Compared]:
    """Read how each date or number is compared.

    Args:
        text: The question.
        spans: The dates or numbers in it, in order, without overlap.
        barriers: Other things named in the text, over which no cue reaches.
    """
    position = 0
    last = 0
    previous: Compared | None = None
    while position < len(spans):
        span = spans[position]
        left = text[max(_floor(span.begin, barriers, last), span.begin - cues.REACH) : span.begin]
        following = spans[position + 1] if position + 1 < len(spans) else None
        if following is not None and following.field == span.field and _range(text, left, span, following):
            position += 1
            item = _ranged(text, left, span, following)
        else:
            item = _single(text, left, span, following)
        if (
            previous is not None
            and previous.negated
            and not item.negated
            and item.comparator == Comparator.EQ
        ):
            between = text[previous.end : item.begin]
            if previous.comparator == Comparator.EQ and _LISTED.fullmatch(between):
                item = replace(item, negated=True)
        last, previous = item.end, item
        yield item
        position += 1


def _floor(begin: int, barriers: Sequence[tuple[int, int]], last: int) -> int:
    return max([last, *(end for _, end in barriers if end <= begin)])


def _range(text: str, left: str, first: Span, second: Span) -> bool:
    between = text[first.end : second.begin]
    if cues.RANGE_TO.fullmatch(between):
        return True
    if not cues.RANGE_AND.fullmatch(between):
        return False
    open_ = cues.BETWEEN.search(left)
    # 在 stands before plain lists too, so 之间 must follow
    sure = open_ is not None and open_.group() != "在"
    return sure or re.match(r"\s*(?:之间|年间)", text[second.end :]) is not None


def _ranged(text: str, left: str, first: Span, second: Span) -> Compared:
    end = second.end
    if after := cues.RANGE_AFTER.match(text, end):
        end = after.end()
    open_ = cues.EXCLUSIVE.match(text, end)
    if open_:
        end = open_.end()
    opening = cues.BETWEEN.search(left) or cues.FROM.search(left) or cues.PLAIN_LEFT.search(left)
    start = _with_name(first, left, opening.start() if opening else len(left))
    negated, start = _negation(left, start)
    if excluded := cues.EXCLUDED_AFTER.match(text, end):
        negated, end = True, excluded.end()
    return Compared(
        first.begin - len(left) + start,
        end,
        first.field,
        Comparator.EQ,
        first.value,
        second.value,
        negated,
        open_ is not None,
    )


def _single(text: str, left: str, span: Span, following: Span | None) -> Compared:
    comparator, start, end = Comparator.EQ, len(left), span.end
    for pattern, found in cues.LEFT:
        if match := pattern.search(left):
            comparator, start = found, match.start()
            break
    if span.comparator is not None:  # "older than" is below for a date, above for an age
        comparator, start = span.comparator, len(left)
    start = _with_name(span, left, start)
    for pattern, found in cues.RIGHT:
        if (match := pattern.match(text, span.end)) and not _of_next(text, match.end(), following):
            comparator, end = found, match.end()
            break
    else:
        if cues.FROM.search(left) and (match := cues.ONWARD.match(text, span.end)):
            comparator, end = Comparator.GTE, match.end()
    if comparator in _WIDER and (match := cues.INCLUSIVE.match(text, end)):
        comparator, end = _WIDER[comparator], match.end()
    negated, start = _negation(left, start)
    if not negated:
        plain = cues.PLAIN_LEFT.search(left[:start])
        start = plain.start() if plain else start
        if comparator == Comparator.GTE and (opening := cues.FROM.search(left)):
            start = min(start, opening.start())
        negated, start = _negation(left, start)
    if excluded := cues.EXCLUDED_AFTER.match(text, end):
        negated, end = True, excluded.end()
    return Compared(span.begin - len(left) + start, end, span.field, comparator, span.value, negated=negated)


def _with_name(span: Span, left: str, start: int) -> int:
    """The beginning with the field's name before it, if that is near."""
    if span.words is None:
        return start
    return min(start, max(0, span.words - (span.begin - len(left))))


def _of_next(text: str, end: int, following: Span | None) -> bool:
    """Whether the words belong to the next one: "before 1995 or after 2015"."""
    return (
        following is not None
        and re.fullmatch(r"\s*(?:the\s+)?(?:years?\s+)?", text[end : following.begin]) is not None
    )


def _negation(left: str, start: int) -> tuple[bool, int]:
    before = left[:start]
    match = cues.NEGATED.search(before)
    return (True, match.start()) if match else (False, start)
