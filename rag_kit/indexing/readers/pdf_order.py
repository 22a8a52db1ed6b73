"""What a PDF page's lines need before they are joined: letterheads first, source code kept together."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from statistics import median

from rag_kit.indexing.readers.pdf_lines import Line

_ENDED = re.compile(r"[.:!?。：]\s*$")
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
