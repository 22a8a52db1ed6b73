"""What a PDF page's lines need before they are joined: running heads out, letterheads first, code together."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import pairwise
from statistics import median

from rag_kit.indexing.readers.pdf_lines import Line

_ENDED = re.compile(r"[.:!?。：]\s*$")
_PAGE_NUMBER = re.compile(
    r"[-–—]?\s*(?:page\s+)?(?:\d{1,4}|[ivxlc]{1,7})(?:\s*(?:/|of)\s*\d{1,4})?\s*[-–—]?"
    r"|第\s*\d{1,4}\s*页(?:\s*[,，/|]?\s*共\s*\d{1,4}\s*页)?",
    re.I,
)
_LONGEST = 150  # a longer line is text
_TOP = 0.75  # of the page's height; below it the file's order stands


def letterhead_first(lines: Sequence[Line]) -> list[Line]:
    """The lines of a page, blocks at its top that the file draws after what stands below them moved there."""
    blocks: list[list[Line]] = []
    for line in lines:
        before = blocks[-1][-1] if blocks else None
        if before is not None and 0 <= before.end_bottom - line.bottom < 2.5 * line.size:
            blocks[-1].append(line)
        else:
            blocks.append([line])
    ordered: list[list[Line]] = []
    for block in blocks:
        left, right, foot = (
            min(line.left for line in block),
            max(line.right for line in block),
            block[-1].bottom,
        )
        at = len(ordered)
        while (
            block[-1].place > _TOP and at and all(line.bottom < foot - line.size for line in ordered[at - 1])
        ):
            at -= 1
        passed = [line for other in ordered[at:] for line in other]
        if at and not any(line.left < right and left < line.right for line in passed):
            at = len(ordered)  # the head of a column that stands beside them
        ordered.insert(at, block)
    return [line for block in ordered for line in block]


def with_code(lines: Sequence[Line]) -> list[Line]:
    """The lines of a page, each stretch of a fixed-width font replaced by one line of fenced code."""
    found: list[Line] = []
    code: list[Line] = []
    for line in [*lines, None]:
        if line is not None and line.mono and not line.block:
            code.append(line)
            continue
        before = found[-1] if found else None
        if len(code) == 1 and before and not before.block and not _ENDED.search(before.text):
            found += code  # an address or a code word that fills a line within a sentence
        elif code:
            found.append(code[0].as_block(_fenced(code)))
        code = []
        if line is not None:
            found.append(line)
    return found


def _fenced(lines: Sequence[Line]) -> str:
    """Lines of code with the indents and blanks that the places of their words stand for."""
    width = median((line.right - line.left) / max(1, len(line.text)) for line in lines) or 1.0
    left = min(line.left for line in lines)
    steps = [one.bottom - other.bottom for one, other in pairwise(lines)]
    leading = median([step for step in steps if step > 0] or [1.0])
    texts: list[str] = []
    for line, step in zip(lines, [leading, *steps], strict=True):
        text = texts.pop() if texts and abs(step) < 0.3 * line.size else ""
        if step > 1.6 * leading:
            texts.append("")
        for word in line.words:
            blanks = round((word.left - left) / width) - len(text)
            text += " " * (blanks if blanks > 2 or not text else 1) + word.text
        texts.append(text)
    return "```\n" + "\n".join(texts).replace("```", "'''") + "\n```"


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
