"""The text of shapes on slides, with the numbers and superscripts that PowerPoint shows."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any

from rag_kit.indexing.readers.numbers import list_number, lowered, raised

A = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
_BULLETS = tuple(A + name for name in ("buNone", "buChar", "buBlip", "buAutoNum"))
_SCHEME = re.compile(r"(\w+?)(?:[12](?=Minus))?(ParenBoth|ParenR|Period|Plain|Minus)")
_FRAMES = {"ParenBoth": "({})", "ParenR": "{})", "Period": "{}.", "Minus": "{}-"}
_STYLES = {
    "alphaLc": "lowerLetter",
    "alphaUc": "upperLetter",
    "romanLc": "lowerRoman",
    "romanUc": "upperRoman",
    "arabicDb": "decimalFullWidth",
    "circleNumDb": "decimalEnclosedCircle",
    "circleNumWdBlack": "decimalEnclosedCircle",
    "circleNumWdWhite": "decimalEnclosedCircle",
    "ea1Chs": "chineseCounting",
    "ea1Cht": "chineseCounting",
    "ea1JpnChsDb": "chineseCounting",
    "ea1JpnKor": "chineseCounting",
}


def line_text(frame: Any) -> str:
    """The text of a frame in one line."""
    return " ".join(" ".join(map(_paragraph_text, frame.paragraphs)).split())


def list_text(frame: Any, shape: Any = None) -> str:
    """The paragraphs of a frame as lines; bullets and numbers written as list items.

    A number counts on over deeper paragraphs and those that say no other start; it begins anew after a paragraph of
    its level or above that has none.
    """
    lines: list[str] = []
    reached: dict[
        int, tuple[str, str, int]
    ] = {}  # level -> its scheme of numbers, where they start, the last number
    for paragraph in frame.paragraphs:
        if text := " ".join(_paragraph_text(paragraph).split()):
            level = int(paragraph.level or 0)
            bullet = _bullet(paragraph, frame, shape, level)
            before = reached.get(level)
            reached = {each: last for each, last in reached.items() if each < level}
            mark = "- " if level or (bullet is not None and bullet.tag == f"{A}buChar") else ""
            if bullet is not None and bullet.tag == f"{A}buAutoNum":
                scheme, start = bullet.get("type") or "", bullet.get("startAt") or ""
                goes_on = before is not None and before[0] == scheme and start in ("", before[1])
                number = before[2] + 1 if before and goes_on else _start(start)
                reached[level] = scheme, before[1] if before and goes_on else start, number
                mark = _number_text(scheme, number) + " "
            lines.append("  " * level + mark + text)
    return "\n".join(lines)


def _paragraph_text(paragraph: Any) -> str:
    text = ""
    for shift, runs in groupby(paragraph._p.content_children, _shift):
        piece = "".join(run.text for run in runs)
        text += raised(text, piece) if shift > 0 else lowered(text, piece) if shift < 0 else piece
    return text


def _shift(run: Any) -> int:
    """1 for a superscript, -1 for a subscript, else 0."""
    properties = run.find(f"{A}rPr")
    baseline = "0" if properties is None else (properties.get("baseline") or "0").rstrip("%")
    return -1 if baseline.startswith("-") else int(baseline.strip("0.") != "")


def _bullet(paragraph: Any, frame: Any, shape: Any, level: int) -> Any:
    """Give what PowerPoint shows before a paragraph: its own bullet or number, else one that its shape inherits."""
    own = paragraph._p.pPr
    if bullets := _bullets([] if own is None else own):
        return bullets[0]
    for styles in _inherited_styles(frame, shape):
        if bullets := _bullets(styles.findall(f"{A}lvl{level + 1}pPr/*")):
            return bullets[0] if bullets[0].tag == f"{A}buAutoNum" else None
    return None


def _bullets(properties: Iterable[Any]) -> list[Any]:
    return [each for each in properties if each.tag in _BULLETS]


def _inherited_styles(frame: Any, shape: Any) -> Iterator[Any]:
    """The list styles of a frame, then those of the placeholders of layout and master that its shape is of."""
    yield from frame._txBody.iterchildren(f"{A}lstStyle")
    while (
        getattr(shape, "is_placeholder", False)
        and (shape := getattr(shape, "_base_placeholder", None)) is not None
    ):
        yield from shape.element.iter(f"{A}lstStyle")


def _start(text: str) -> int:
    return int(text) if re.fullmatch(r"\d{1,5}", text) else 1


def _number_text(scheme: str, number: int) -> str:
    """A number in one of PowerPoint's schemes, such as ``alphaLcParenBoth``."""
    match = _SCHEME.fullmatch(scheme)
    style, frame = match.groups() if match else ("", "Period")
    return _FRAMES.get(frame, "{}").format(list_number(number, _STYLES.get(style, "decimal")))
