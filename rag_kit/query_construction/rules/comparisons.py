"""Comparisons of a field with the dates or numbers that a question names."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rag_kit.query_construction.rules import cues

_LISTED = re.compile(r"(?:\s|[,、/]|\b(?:and|or|nor)\b|或者?|和|与|及)*", re.IGNORECASE)
_NEXT = re.compile(r"\s*(?:the\s+)?(?:years?\s+)?")


@dataclass(frozen=True)
class Amount:
    """A date or number in a text, the field that it belongs to, and where the words before it begin that say so."""

    begin: int
    end: int
    value: Any
    field: str
    name_begin: int


@dataclass(frozen=True)
class Comparison:
    """A comparison read from a text: ``$eq`` for "in 2010"; ``high`` is the upper end of a range."""

    begin: int
    end: int
    field: str
    operator: str
    low: Any
    high: Any = None
    negated: bool = False


def compare(
    text: str, amounts: Sequence[Amount], barriers: Sequence[tuple[int, int]] = ()
) -> Iterator[Comparison]:
    """Read how each date or number is compared; no cue reaches over `barriers`, other things named in the text."""
    position = last = 0
    previous: Comparison | None = None
    while position < len(amounts):
        amount = amounts[position]
        floor = max([last, amount.begin - cues.REACH, *(end for _, end in barriers if end <= amount.begin)])
        left = text[floor : amount.begin]
        following = amounts[position + 1] if position + 1 < len(amounts) else None
        if following and following.field == amount.field and _is_range(text, left, amount, following):
            position += 1
            comparison = _read_range(text, left, amount, following)
        else:
            comparison = _read_single(text, left, amount, following)
        if previous and previous.negated and previous.operator == comparison.operator == "$eq":
            listed = _LISTED.fullmatch(text[previous.end : comparison.begin])  # "not in 2010 or 2012"
            comparison = replace(comparison, negated=comparison.negated or listed is not None)
        last, previous = comparison.end, comparison
        yield comparison
        position += 1


def _is_range(text: str, left: str, first: Amount, second: Amount) -> bool:
    """Whether two amounts are the ends of a range: "5 to 7", "between 5 and 7"."""
    between = text[first.end : second.begin]
    if cues.RANGE_TO.fullmatch(between):
        return True
    if not cues.RANGE_AND.fullmatch(between):
        return False
    opening = cues.BETWEEN.search(left)
    # 在 stands before plain lists too, so 之间 must follow
    sure = opening is not None and opening.group() != "在"
    return sure or text[second.end :].lstrip().startswith(("之间", "年间"))


def _read_range(text: str, left: str, first: Amount, second: Amount) -> Comparison:
    opening = cues.BETWEEN.search(left) or cues.FROM.search(left)
    start = opening.start() if opening else len(left)
    begin, end, negated = _with_negation(text, first, left, start, second.end)
    return Comparison(begin, end, first.field, "$eq", first.value, second.value, negated=negated)


def _read_single(text: str, left: str, amount: Amount, following: Amount | None) -> Comparison:
    """One amount with the words before or after it that say how it is compared: "at least 5", "5 or more"."""
    operator, start, end = "$eq", len(left), amount.end
    for pattern, meaning in cues.LEFT:
        if match := pattern.search(left):
            operator, start = meaning, match.start()
            break
    opening = cues.FROM.search(left)
    for pattern, meaning in cues.RIGHT:
        match = pattern.match(text, amount.end)
        # in "before 1995 or after 2015" the words are of the next
        if match and not (following and _NEXT.fullmatch(text, match.end(), following.begin)):
            operator, end = meaning, match.end()
            break
    else:
        if opening and (match := cues.ONWARD.match(text, amount.end)):
            operator, end = "$gte", match.end()
    if opening and operator == "$gte":
        start = min(start, opening.start())
    begin, end, negated = _with_negation(text, amount, left, start, end)
    return Comparison(begin, end, amount.field, operator, amount.value, negated=negated)


def _with_negation(text: str, amount: Amount, left: str, start: int, end: int) -> tuple[int, int, bool]:
    """Begin and end with the field's name and a negation before or after, and whether there is a negation."""
    floor = amount.begin - len(left)
    start = max(0, min(start, amount.name_begin - floor))
    before, after = cues.NEGATED.search(left[:start]), cues.EXCLUDED_AFTER.match(text, end)
    begin = floor + (before.start() if before else start)
    return begin, after.end() if after else end, bool(before or after)
