"""From recognised lines of text to a sheet as that of a PDF page: level, in reading order, with the rules drawn."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from math import atan2, cos, degrees, hypot, radians, sin, tan
from statistics import median
from typing import Any, NamedTuple, TypeAlias

from rag_kit.indexing.readers.pdf_characters import HYPHEN
from rag_kit.indexing.readers.pdf_lines import Line, Rule, Sheet, Word
from rag_kit.indexing.readers.tables import split_runs

Picture: TypeAlias = Any  # an array of rows, columns and colours
_TYPE = 0.8  # size of type by the height of its box
_DESCENT = 0.2  # of a box: its lowest part, below the baseline
_SAME_SIZE = (0.75, 1.35)  # of a page's usual type; boxes are no more exact
_ROW = 0.5  # sizes of type; lines that begin no further below each other are beside each other
_PROSE = 12  # sizes of type; lines of a column are longer, cells of a table shorter
_GUTTER = 3  # rows that a gap between columns goes through at least
_RULE = 3  # heights of a line; shorter strokes are of letters
MAX_SIDE = 2_400  # pixels of the picture that is worked on; of a strip, of its short side
STRIP = 2  # lengths of a side to the other; a picture with more is a strip, such as a long web page
_ANGLE_SIDE, _ANGLE_STEPS = 1_000, 25  # pixels of the picture, tenths of a degree to each side
_MAX_RULES = 2_000
_CUT_WORD = re.compile(r"(?<=[^\W\d_])[-‐]$")


class Box(NamedTuple):
    """A line of text and its four corners in pixels, clockwise from the top left one."""

    text: str
    corners: Any

    @property
    def height(self) -> float:
        """The length of the left side."""
        (x, y), *_, (low_x, low_y) = self.corners
        return float(hypot(low_x - x, low_y - y))

    @property
    def angle(self) -> float:
        """The slope of the top side in radians; positive where it falls."""
        (x, y), (more_x, more_y), *_ = self.corners
        return float(atan2(more_y - y, more_x - x))


def long_side(picture: Picture) -> int:
    """Return the long side of a picture in pixels; of a strip, that of a page that is as wide."""
    short, long = sorted(picture.shape[:2])
    return int(min(long, max(MAX_SIDE, STRIP * short)))


def read_sheet(boxes: Sequence[Box], picture: Picture, points: float) -> Sheet:
    """Arrange recognised lines in reading order, and find the rules; ``points`` is the size of a pixel."""
    if not boxes:
        return Sheet([], [])
    angle, lines = _level_lines(boxes, picture, points)
    rules = list(_find_rules(picture, angle, median(box.height for box in boxes), points))
    ordered = list(_in_reading_order(_join_pieces(lines)))
    return Sheet(ordered, rules if len(rules) <= _MAX_RULES else [])


def ordered_boxes(boxes: Sequence[Box], picture: Picture) -> list[Box]:
    """Sort boxes in reading order."""
    if not boxes:
        return []
    _, lines = _level_lines(boxes, picture, 1.0)
    box_of = {id(line.words[0]): box for line, box in zip(lines, boxes, strict=True)}
    return [box_of[id(word)] for line in _in_reading_order(_join_pieces(lines)) for word in line.words]


def _level_lines(boxes: Sequence[Box], picture: Picture, points: float) -> tuple[float, list[Line]]:
    """Measure the angle of a page, and turn each box into a level line."""
    angle = _page_angle(boxes, picture)
    size = median(box.height for box in boxes) * _TYPE * points
    return angle, [_as_line(box, angle, points, picture.shape[0] * points, size) for box in boxes]


def _page_angle(boxes: Sequence[Box], picture: Picture) -> float:
    """Measure by how much the lines of a page fall, in radians.

    The longer boxes give it roughly; near it, the angle wins at which rows of pixels with and without ink differ most.
    """
    import cv2
    import numpy as np

    longest = sorted(boxes, key=lambda box: -len(box.text))[: max(3, len(boxes) // 2)]
    rough = median(box.angle for box in longest)
    scale = min(1.0, _ANGLE_SIDE / long_side(picture))
    y, x = np.nonzero(_ink(cv2.resize(picture, None, fx=scale, fy=scale, interpolation=cv2.INTER_AREA)))

    def sharpness(angle: float) -> float:
        heights = np.bincount((y - x * tan(angle) + 4 * _ANGLE_SIDE).astype(int))
        return float((np.diff(heights) ** 2).sum())

    steps = range(-_ANGLE_STEPS, _ANGLE_STEPS + 1)
    return max((rough + radians(step / 10) for step in steps), key=sharpness)


def _ink(picture: Picture) -> Picture:
    """Mark the pixels that are darker than those around them."""
    import cv2

    grey = cv2.cvtColor(picture, cv2.COLOR_BGR2GRAY) if picture.ndim > 2 else picture
    return cv2.adaptiveThreshold(grey, 255, cv2.ADAPTIVE_THRESH_MEAN_C, cv2.THRESH_BINARY_INV, 25, 12)


def _as_line(box: Box, angle: float, points: float, height: float, usual: float) -> Line:
    """Make a level line of a box, in points from the bottom of the page; a size near the usual one is made equal."""
    turned = [(x * cos(angle) + y * sin(angle), y * cos(angle) - x * sin(angle)) for x, y in box.corners]
    left, right = sorted((turned[0][0] + turned[3][0], turned[1][0] + turned[2][0]))
    high, low = sorted((turned[0][1] + turned[1][1], turned[2][1] + turned[3][1]))
    left, right, high, low = (value / 2 * points for value in (left, right, high, low))
    size = (low - high) * _TYPE
    size = usual if _SAME_SIZE[0] * usual < size < _SAME_SIZE[1] * usual else size
    bottom, size = height - low + _DESCENT * (low - high), round(size * 2) / 2 or 0.5
    text = box.text.strip()
    word = Word(text, left, right, bottom, size)
    return Line(text, left, right, bottom, bottom, size, bottom / height, words=[word])


def _join_pieces(lines: Sequence[Line]) -> list[Line]:
    """Join lines that were found in several pieces; sort all from top to bottom."""
    joined: list[Line] = []
    for row in _rows(lines):
        pieces = split_runs(row, lambda line, after: after.left - line.right < 0.6 * line.size)
        for piece in pieces:
            text = piece[0].text
            for line in piece[1:]:
                wide = text[-1:] >= "\u2e80" or line.text[:1] >= "\u2e80"
                text += ("" if wide else " ") + line.text
            words = [word for line in piece for word in line.words]
            text = _CUT_WORD.sub(HYPHEN, text)
            joined.append(replace(piece[0], text=text, right=piece[-1].right, words=words))
    return joined


def _rows(lines: Sequence[Line]) -> list[list[Line]]:
    """Group lines that stand beside each other, from left to right; the rows from top to bottom."""
    rows: list[list[Line]] = []
    for line in sorted(lines, key=lambda line: -line.bottom):
        if rows and rows[-1][0].bottom - line.bottom < _ROW * min(line.size, rows[-1][0].size):
            rows[-1].append(line)
        else:
            rows.append([line])
    return [sorted(row, key=lambda line: line.left) for row in rows]


def _in_reading_order(lines: Sequence[Line]) -> Iterator[Line]:
    """Yield columns of prose one after the other, all else row by row; a line across columns ends them."""
    gutter = _find_gutter(lines)
    if gutter is None:
        yield from (line for row in _rows(lines) for line in row)
        return
    band: list[Line] = []
    for line in [line for row in _rows(lines) for line in row]:
        if line.left < gutter < line.right:
            yield from _columns(band, gutter)
            band = []
            yield line
        else:
            band.append(line)
    yield from _columns(band, gutter)


def _columns(band: Sequence[Line], gutter: float) -> Iterator[Line]:
    for side in (True, False):
        if part := [line for line in band if (line.right <= gutter) is side]:
            yield from _in_reading_order(part)


def _find_gutter(lines: Sequence[Line]) -> float | None:
    """Find where a gap between two columns of prose is, in most rows; None where there is no such gap."""
    gaps = [
        (line.right, after.left)
        for row in _rows(lines)
        for line, after in pairwise(row)
        if after.left - line.right > 0.5 * line.size
    ]
    best, most = None, _GUTTER - 1
    for _, end in gaps:
        x = end - 0.1
        crossing = sum(line.left < x < line.right for line in lines)
        count = sum(left <= x < right for left, right in gaps) - crossing
        sides = [line for line in lines if line.right <= x], [line for line in lines if line.left >= x]
        if count > most and all(_is_prose(side) for side in sides):
            best, most = x, count
    return best


def _is_prose(lines: Sequence[Line]) -> bool:
    widths = sorted((line.right - line.left) / line.size for line in lines)
    return len(widths) >= _GUTTER and widths[len(widths) // 2] >= _PROSE


def _find_rules(picture: Picture, angle: float, type_height: float, points: float) -> Iterator[Rule]:
    """Yield the straight lines drawn in a picture, which is turned level first, in points from its bottom."""
    import cv2
    import numpy as np

    grey = cv2.cvtColor(picture, cv2.COLOR_BGR2GRAY)
    if abs(degrees(angle)) > 0.05:
        matrix = np.array([[cos(angle), sin(angle), 0.0], [-sin(angle), cos(angle), 0.0]])
        grey = cv2.warpAffine(grey, matrix, grey.shape[::-1], borderValue=255)
    ink = _ink(grey)
    shortest = max(30, int(_RULE * type_height))
    height = picture.shape[0] * points
    for upright in (False, True):
        bridge, kernel = ((1, 7), (1, shortest)) if upright else ((7, 1), (shortest, 1))
        closed = cv2.morphologyEx(ink, cv2.MORPH_CLOSE, cv2.getStructuringElement(cv2.MORPH_RECT, bridge))
        found = cv2.morphologyEx(closed, cv2.MORPH_OPEN, cv2.getStructuringElement(cv2.MORPH_RECT, kernel))
        # what noise has cut is joined, and the ends are where they were
        found = cv2.dilate(found, cv2.getStructuringElement(cv2.MORPH_RECT, (3, 9) if upright else (9, 3)))
        _, _, stats, _ = cv2.connectedComponentsWithStats(found)
        for left, top, wide, high, _ in stats[1:].tolist():
            if (wide if upright else high) > max(12, 0.5 * type_height):
                continue
            if upright:
                start, end = height - (top + high - 4) * points, height - (top + 4) * points
                yield Rule(True, (left + wide // 2) * points, start, end)
            else:
                start, end = (left + 4) * points, (left + wide - 4) * points
                yield Rule(False, height - (top + high // 2) * points, start, end)
