"""Numbers that a question compares with a field that it names: "more than 100 pages", "rating above 4"."""

from __future__ import annotations

import re
from collections.abc import Sequence

from langchain_core.structured_query import Comparator

from rag_kit.query_construction.coercion import parse_number
from rag_kit.query_construction.fields import MetadataField, Schema
from rag_kit.query_construction.rules import cues
from rag_kit.query_construction.rules.quantities import by_unit, by_word
from rag_kit.query_construction.rules.spans import Span

_NUMBER = re.compile(
    r"(?<![A-Za-z0-9_.])(?:[$€£¥]\s?)?(\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?)(?![\d.]*\w*[a-z]\d)",
    re.IGNORECASE,
)
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
    ]
    owner: MetadataField | None = None
    previous = None
    for match in matches:
        year = match.span(1) in years
        mine, comparator, words = _owner(text, match, fields, year)
        ranged = (
            previous is not None
            and year == (previous.span(1) in years)
            and (
                cues.RANGE_TO.fullmatch(text[previous.end() : match.start()])
                or cues.RANGE_AND.fullmatch(text[previous.end() : match.start()])
            )
        )
        if mine is None and ranged:
            mine = owner
        elif mine is not None and ranged and owner is None and previous is not None:
            found.append(Span(previous.start(), previous.end(), parse_number(previous[1]), mine.name))
        if mine is not None:
            number = parse_number(match[1])
            found.append(Span(match.start(), match.end(), number, mine.name, comparator, words))
        owner, previous = mine, match
    return found


def _owner(
    text: str, match: re.Match[str], fields: Sequence[MetadataField], year: bool
) -> tuple[MetadataField | None, Comparator | None, int]:
    """The field that a number is of, with what ``by_word`` says."""
    left = text[max(0, match.start() - cues.REACH) : match.start()]
    skipped = match.start() - len(left)
    if (said := by_word(left, fields)) and said[1] is not None:
        return said[0], said[1], skipped + said[2]
    for pattern, _ in cues.LEFT:
        if cue := pattern.search(left):
            left = left[: cue.start()]
            break
    left = re.sub(r"(?:\bbetween|\bfrom|介于|在)\s*$", "", left, flags=re.IGNORECASE)
    for field in fields:
        for name in _names(field):
            if named := re.search(rf"(?<![a-z0-9]){name}{_LINK}$", left, re.IGNORECASE):
                return field, None, skipped + named.start()
            if not year and re.match(
                rf"\s*(?:or\s+more\s+|or\s+fewer\s+|\+\s*|-)?{name}(?![a-z0-9])",
                text[match.end() :],
                re.IGNORECASE,
            ):
                return field, None, match.start()
    if said := by_word(left, fields):
        return said[0], None, skipped + said[2]
    return by_unit(text, match.start(1), match.end(), fields, counted=not year), None, match.start()


def _names(field: MetadataField) -> list[str]:
    names = []
    for name in (field.name, *field.aliases):
        words = re.split(r"[\s_\-]+", name)
        pattern = r"[\s_\-]+".join(re.escape(word) for word in words)
        stem = pattern[:-1] if pattern.endswith("s") and len(pattern) > 3 else pattern
        names.append(rf"{stem}s?")
    return names
