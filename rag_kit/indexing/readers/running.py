"""Running heads, running feet and page numbers: lines at the edges of pages that are no text of the document."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence

_PAGE_NUMBER = re.compile(
    r"[-–—]?\s*(?:page\s+)?(?:\d{1,4}|[ivxlc]{1,7})(?:\s*(?:/|of)\s*\d{1,4})?\s*[-–—]?"
    r"|第\s*\d{1,4}\s*页(?:\s*[,，/|]?\s*共\s*\d{1,4}\s*页)?",
    re.I,
)
_LONGEST = 150  # a longer line is text


def running_lines(edges: Sequence[Mapping[int, str]]) -> list[set[int]]:
    """Find what comes back at the edges of pages, also where its text changes: by page, or by chapter.

    Lines that are equal but for their digits are running lines where at least half of the pages (and three) have
    them, or where each stands on three pages in a row or more (left and right ones may alternate), which together are
    half of the pages. So is a line that is a page number alone.

    Args:
        edges: For each page the lines at its top and bottom edge, by numbers of the caller's.

    Returns:
        For each page the numbers of its running lines.

    Example:
        >>> texts = ["Oil the pump.", "Open the lid.", "Fill the tank.", "Wait."]
        >>> running_lines([{0: f"Pumps | {page}", 1: text} for page, text in enumerate(texts)])
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
    return [
        {
            number
            for number, text in lines.items()
            if _key(text) in repeated or _PAGE_NUMBER.fullmatch(text.strip())
        }
        for lines in edges
    ]


def _key(text: str) -> str:
    """The text of a line with every number as 0: equal for lines that differ in numbers alone."""
    return " ".join(re.sub(r"\d+", "0", text).split())
