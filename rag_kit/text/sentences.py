"""Sentences with their exact place in the source, in English and Chinese."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from rag_kit.errors import InvalidInputError
from rag_kit.text.sentence_rules import (
    CLOSERS,
    ends_sentence,
    joins_next_line,
)

_STOP = re.compile(
    rf"(?P<stop>[.!?。！？｡．]+|…+|\.{{3,}})(?P<close>[{CLOSERS}]*)"
    r"(?P<cite>(?:[ \t]?\[\d{1,3}(?:[,，–-] ?\d{1,3})*\])*)"
)
_LINE = re.compile(r"[^\r\n\x0b\x0c\x85\u2028\u2029]*(?:\r\n|[\r\n\x0b\x0c\x85\u2028\u2029]|$)")
_SOFT = (re.compile(r"[;；]"), re.compile(r"[,，、:：]"), re.compile(r"\s"))


class Sentence(NamedTuple):
    """A sentence and where it stands: ``text == source[start:end]``."""

    text: str
    start: int
    end: int


def sentences(text: str, *, max_chars: int = 1000) -> list[Sentence]:
    """Cut a text into sentences.

    Ends are English and Chinese stops with the quotes, brackets and citation marks that follow them; blank
    lines, headings, list items and table rows stand alone; a hard-wrapped line runs on. Abbreviations, initials,
    decimals, list numbers, book titles (《…！》) and dots inside words do not end a sentence. What stays longer
    than ``max_chars`` is cut at a semicolon, comma or space.

    Args:
        text: Any text.
        max_chars: Longest sentence, in characters; at least 20.

    Returns:
        The sentences in order, without surrounding white space; together they hold every visible character.

    Raises:
        InvalidInputError: ``max_chars`` below 20.

    Example:
        >>> [s.text for s in sentences("Dr. Li paid $3.50. “真的吗？”他问。对。")]
        ['Dr. Li paid $3.50.', '“真的吗？”他问。', '对。']
    """
    if max_chars < 20:
        raise InvalidInputError(f"max_chars={max_chars} is too small; use 20 or more.")
    found: list[Sentence] = []
    for start, end in _blocks(text):
        for a, b in _cut_block(text, start, end):
            for c, d in _bounded(text, a, b, max_chars):
                found.append(Sentence(text[c:d], c, d))
    return found


def _blocks(text: str) -> Iterator[tuple[int, int]]:
    """Spans that no sentence crosses: lines, with hard-wrapped ones put together."""
    start = previous_start = previous_end = -1
    for match in _LINE.finditer(text):
        a, b = match.start(), match.end()
        if a == b:
            continue
        line = text[a:b]
        if not line.strip():
            if start >= 0:
                yield start, previous_end
            start = -1
            continue
        if start >= 0 and not joins_next_line(text[previous_start:previous_end], line):
            yield start, previous_end
            start = -1
        if start < 0:
            start = a
        previous_start, previous_end = a, b
    if start >= 0:
        yield start, previous_end


def _cut_block(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    begin = start
    for match in _STOP.finditer(text, start, end):
        if match.end() <= begin:
            continue
        cut = ends_sentence(text, begin, end, match)
        if cut:
            yield begin, cut
            begin = cut
    if begin < end:
        yield begin, end


def _bounded(text: str, start: int, end: int, limit: int) -> Iterator[tuple[int, int]]:
    """Trim white space, then cut what is too long where it hurts least."""
    while True:
        while start < end and text[start].isspace():
            start += 1
        while end > start and text[end - 1].isspace():
            end -= 1
        if start >= end:
            return
        if end - start <= limit:
            yield start, end
            return
        cut = start + limit
        for pattern in _SOFT:
            places = [m.end() for m in pattern.finditer(text, start + limit // 2, start + limit)]
            if places:
                cut = places[-1]
                break
        stop = cut
        while stop > start and text[stop - 1].isspace():
            stop -= 1
        if stop > start:
            yield start, stop
        start = cut
