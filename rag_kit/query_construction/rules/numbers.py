"""Numbers that a question compares with a field that it names: "more than 100 pages", "rating above 4"."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from langchain_core.structured_query import Comparator

from rag_kit.query_construction.coercion import parse_number
from rag_kit.query_construction.date_patterns import NUMBERS
from rag_kit.query_construction.dates import chinese_number
from rag_kit.query_construction.fields import MetadataField, Schema
from rag_kit.query_construction.rules import cues
from rag_kit.query_construction.rules.quantities import by_unit, by_word
from rag_kit.query_construction.rules.spans import Span

_WORDS = {
    word: number
    for word, number in NUMBERS.items()
    if number > 1 and " " not in word and word not in ("few", "several", "hundred")
}
_NUMBER = re.compile(
    r"(?<![A-Za-z0-9_.])(?:[$€£¥]\s?)?(?P<plain>\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?)(?![\d.]*[a-z_]*[a-z]\d)"
    r"(?:\s?(?P<scale>thousand\b|million\b|k\b|[千万亿]))?"
    r"|(?<![第年月一-十])(?P<han>[一二三四五六七八九十百千万两]{1,7})"
    rf"|\b(?P<word>{'|'.join(sorted(_WORDS, key=len, reverse=True))})\b",
    re.IGNORECASE,
)
_MOST = 64  # numbers that are looked at
_SCALES = {"thousand": 1e3, "k": 1e3, "million": 1e6, "千": 1e3, "万": 1e4, "亿": 1e8}
_LINK = r"(?:\s*(?:is|are|was|were|has|of|score|value|a|an|the|with|[=:]|为|是|在|的)\b|\s*[=:])*\s*"


def find_numbers(
    text: str, schema: Schema, taken: Sequence[tuple[int, int]], years: Sequence[tuple[int, int]] = ()
) -> list[Span]:
    """Numbers next to the name of a numeric field.

    Args:
        text: The question.
        schema: The fields.
        taken: Places of what is something else.
        years: Places of what may be a year: a number only where its field stands before it, or its currency.

    Example:
        >>> schema = Schema.of([{"name": "pages", "type": "int"}, {"name": "rating", "type": "float"}])
        >>> [(s.field, s.value) for s in find_numbers("books of 300 pages with a rating above 4.5", schema, [])]
        [('pages', 300), ('rating', 4.5)]
    """
    fields = [
        field for field in schema if field.type in ("int", "float") and not field.many and not field.is_year
    ]
    if not fields:
        return []
    found = []
    matches = [
        match
        for match in _NUMBER.finditer(text)
        if not any(a < match.end() and match.start() < b for a, b in taken)
    ][:_MOST]
    owner: Owner | None = None
    previous: re.Match[str] | None = None
    for match in matches:
        year = match.span("plain") in years
        mine = _owner(text, match, fields, year)
        if not match["plain"] and (mine is None or not _compared(text, match.start(), mine.end)):
            continue  # 三 and "one" are in much that is no number
        if previous is not None:
            between = text[owner.end if owner else previous.end() : match.start()]
            was_year = previous.span("plain") in years
            to, and_ = cues.RANGE_TO.fullmatch(between), cues.RANGE_AND.fullmatch(_without_cue(between))
            if mine is None and owner is not None and year == was_year and (to or and_):
                mine = Owner(owner.field, None, match.start(), match.end())
            elif mine is not None and owner is None and (to or (and_ and year == was_year)):
                found.append(Span(previous.start(), previous.end(), _value(previous), mine.field.name))
        if mine is not None:
            name = mine.field.name
            found.append(Span(match.start(), mine.end, _value(match), name, mine.comparator, mine.begin))
        owner, previous = mine, match
    return found


class Owner(NamedTuple):
    """What a number is of.

    Attributes:
        field: The field.
        comparator: What ``by_word`` says.
        begin: Where the words begin that name the field, if they stand before the number.
        end: End of the number, its unit included.
    """

    field: MetadataField
    comparator: Comparator | None
    begin: int
    end: int


def _owner(text: str, match: re.Match[str], fields: Sequence[MetadataField], year: bool) -> Owner | None:
    begin, end = match.span()
    left = text[max(0, begin - cues.REACH) : begin]
    skipped = begin - len(left)
    unit = by_unit(text, begin, end, fields, counted=not year)
    stop = unit[1] if unit else end
    if (said := by_word(left, fields)) and said[1] is not None:
        return Owner(said[0], said[1], skipped + said[2], stop)
    left = _without_cue(left)
    left = re.sub(r"(?:\bbetween|\bfrom|介于|在)\s*$", "", left, flags=re.IGNORECASE)
    for field in fields:
        for name in _names(field):
            if named := re.search(rf"(?<![a-z0-9]){name}{_LINK}$", left, re.IGNORECASE):
                return Owner(field, None, skipped + named.start(), stop)
            after = rf"\s*(?P<more>or\s+more\s+|or\s+fewer\s+|\+\s*|-)?{name}(?![a-z0-9])"
            if not year and (unit_ := re.compile(after, re.IGNORECASE).match(text, end)):
                return Owner(field, None, begin, end if unit_["more"] else unit_.end())
    if said := by_word(left, fields):
        return Owner(said[0], None, skipped + said[2], stop)
    return Owner(unit[0], None, begin, stop) if unit else None


def _without_cue(left: str) -> str:
    """The text before "more than", "at most", ">=" and their like, if it ends with one."""
    found = next((cue for pattern, _ in cues.LEFT if (cue := pattern.search(left))), None)
    return left[: found.start()] + " " if found else left


def _compared(text: str, begin: int, end: int) -> bool:
    left = text[max(0, begin - cues.REACH) : begin]
    return any(pattern.search(left) for pattern, _ in cues.LEFT) or any(
        pattern.match(text, end) for pattern, _ in cues.RIGHT
    )


def _value(match: re.Match[str]) -> int | float | None:
    if match["han"]:
        return chinese_number(match["han"])
    if match["word"]:
        return _WORDS[match["word"].lower()]
    number = parse_number(match["plain"])
    if number is None or not match["scale"]:
        return number
    scaled = number * _SCALES[match["scale"].lower()]
    return int(scaled) if scaled == int(scaled) else scaled


def _names(field: MetadataField) -> list[str]:
    names = []
    for name in (field.name, *field.aliases):
        words = re.split(r"[\s_\-]+", name)
        pattern = r"[\s_\-]+".join(re.escape(word) for word in words)
        stem = pattern[:-1] if pattern.endswith("s") and len(pattern) > 3 else pattern
        names.append(rf"{stem}s?")
    return names
