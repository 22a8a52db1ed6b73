"""The text of shapes on slides, with the numbers and superscripts that PowerPoint shows."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import groupby
from typing import Any

from rag_kit.indexing.readers.numbers import list_number, lowered, raised

A = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
_BULLETS = ("buNone", "buChar", "buBlip", "buAutoNum")
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

    A number counts on over deeper paragraphs, and begins anew after one of its level or above that has none.
    """
    lines: list[str] = []
    reached: dict[int, tuple[Any, int]] = {}  # level -> its scheme of numbers, and the last number
    for paragraph in frame.paragraphs:
        if text := " ".join(_paragraph_text(paragraph).split()):
            level = int(paragraph.level or 0)
            bullet = _bullet(paragraph, frame, shape, level)
            scheme = bullet is not None and bullet.tag == f"{A}buAutoNum" and sorted(bullet.items())
            before, number = reached.get(level, (None, 0))
            reached = {each: last for each, last in reached.items() if each < level}
            mark = "- " if level or (bullet is not None and bullet.tag == f"{A}buChar") else ""
            if scheme is not False:
                number = number + 1 if before == scheme else _start(bullet)
                reached[level] = scheme, number
                mark = _number_text(bullet.get("type") or "", number) + " "
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
    """What PowerPoint shows before a paragraph: its own bullet or number, else a number that its shape inherits."""
    own = paragraph._p.pPr
    for properties in () if own is None else (own,):
        for bullet in properties:
            if bullet.tag.removeprefix(A) in _BULLETS:
                return bullet
    for styles in _inherited_styles(frame, shape):
        found = styles.findall(f"{A}lvl{level + 1}pPr/*")
        if bullets := [each for each in found if each.tag.removeprefix(A) in _BULLETS]:
            return bullets[0] if bullets[0].tag == f"{A}buAutoNum" else None
    return None


def _inherited_styles(frame: Any, shape: Any) -> Iterator[Any]:
    """The list styles of a frame, then those of the placeholders of layout and master that its shape is of."""
    yield from frame._txBody.iterchildren(f"{A}lstStyle")
    while (
        getattr(shape, "is_placeholder", False)
        and (shape := getattr(shape, "_base_placeholder", None)) is not None
    ):
        yield from shape.element.iter(f"{A}lstStyle")


def _start(bullet: Any) -> int:
    start = bullet.get("startAt") or ""
    return int(start) if re.fullmatch(r"\d{1,5}", start) else 1


def _number_text(scheme: str, number: int) -> str:
    """A number in one of PowerPoint's schemes, such as ``alphaLcParenBoth``."""
    match = _SCHEME.fullmatch(scheme)
    style, frame = match.groups() if match else ("", "Period")
    return _FRAMES.get(frame, "{}").format(list_number(number, _STYLES.get(style, "decimal")))
