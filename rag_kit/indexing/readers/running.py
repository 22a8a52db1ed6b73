"""Running heads, running feet and page numbers: lines at the edges of pages that are no text of the document."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

_PAGE_NUMBER = re.compile(
    r"[-–—]?\s*(?:page\s+)?(?:\d{1,4}|[ivxlc]{1,7})(?:\s*(?:/|of)\s*\d{1,4})?\s*[-–—]?"
    r"|第\s*\d{1,4}\s*页(?:\s*[,，/|]?\s*共\s*\d{1,4}\s*页)?",
    re.I,
)
# a page number before or behind a title; what a separator sets off at the end is hardly anything else
_FIRST = re.compile(r"(\d{1,4})[\s|·•–—/]\s*\S")
_LAST = re.compile(r".*\S\s*([\s|·•–—/]|\bpage\s|\bp\.\s?|第)\s*(\d{1,4})\s*页?", re.I)
_LONGEST = 150  # a longer line is text


def running_lines(edges: Sequence[Mapping[int, str]]) -> list[set[int]]:
    """Find what comes back at the edges of pages, also where its text changes: by page, or by chapter.

    Lines that are equal but for their digits are running lines where at least half of the pages (and three) have
    them, or where each stands on three pages in a row or more (left and right ones may alternate), which together are
    half of the pages. So is a line that begins or ends with the page's number on half of the pages, and a line that
    is a page number alone.

    Args:
        edges: For each page the lines at its top and bottom edge, by numbers of the caller's.

    Returns:
        For each page the numbers of its running lines.

    Example:
        >>> heads = ["Pumps | 10", "Pumps | 11", "Valves | 12", "Valves | 13"]
        >>> running_lines([{0: head, 1: f"Text of {head[:4]}."} for head in heads])
        [{0}, {0}, {0}, {0}]
    """
    edges = [{n: text for n, text in lines.items() if len(text) <= _LONGEST} for lines in edges]
    enough = max(3, (len(edges) + 1) // 2)
    pages: dict[str, list[int]] = defaultdict(list)
    for page, lines in enumerate(edges):
        for key in {_key(text) for text in lines.values()}:
            pages[key].append(page)
    repeated = {key for key, on in pages.items() if len(on) >= enough}
    by_chapter = {
        key: on
        for key, on in pages.items()
        if key not in repeated and len(on) >= 3 and on[-1] - on[0] <= 2 * len(on)
    }
    if len(set().union(*by_chapter.values())) >= enough:
        repeated |= by_chapter.keys()
    numbered = _lines_with_page_number(edges, enough)
    return [
        {
            number
            for number, text in lines.items()
            if _key(text) in repeated or _PAGE_NUMBER.fullmatch(text.strip()) or (page, number) in numbered
        }
        for page, lines in enumerate(edges)
    ]


def _key(text: str) -> str:
    """The text of a line with every number as 0: equal for lines that differ in numbers alone."""
    return " ".join(re.sub(r"\d+", "0", text).split())


class _Numbered(NamedTuple):
    """A line that begins or ends with a number; ``set_off``: by a separator or a word such as "page"."""

    page: int
    line: int
    key: str
    set_off: bool


def _lines_with_page_number(edges: Sequence[Mapping[int, str]], enough: int) -> set[tuple[int, int]]:
    """Page and number of the lines that begin or end with a number which grows with the pages.

    Titles that are numbered, one a page ("1 Open the lid", "2 Fill the tank"), do not count: hardly any comes back.
    """
    by_offset: dict[int, list[_Numbered]] = defaultdict(list)  # number of the line minus place of its page
    for page, lines in enumerate(edges):
        for line, text in lines.items():
            if first := _FIRST.match(text.strip()):
                by_offset[int(first[1]) - page].append(_Numbered(page, line, _key(text), False))
            if last := _LAST.fullmatch(text.strip()):
                set_off = bool(last[1].strip())
                by_offset[int(last[2]) - page].append(_Numbered(page, line, _key(text), set_off))
    running = set()
    for found in by_offset.values():
        pages = len({one.page for one in found})
        if pages >= enough:
            texts_recur = 3 * len({one.key for one in found}) <= 2 * pages
            running |= {(one.page, one.line) for one in found if one.set_off or texts_recur}
    return running
