"""Source code of a PDF page: lines in a font of fixed width, fenced."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from statistics import median

from rag_kit.indexing.readers.pdf_lines import Line

_ENDED = re.compile(r"[.:!?。：]\s*$")


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
