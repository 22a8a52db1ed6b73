"""From recognised lines of text to a sheet as that of a PDF page: level, in reading order, with the rules drawn."""

from __future__ import annotations

import re
from bisect import bisect
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from math import atan2, cos, degrees, dist, radians, sin, tan
from operator import attrgetter
from statistics import median
from typing import Any, NamedTuple, TypeAlias

from rag_kit.indexing.readers.pdf_characters import HYPHEN
from rag_kit.indexing.readers.pdf_lines import Line, Rule, Sheet, Word
from rag_kit.indexing.readers.tables import split_runs

Picture: TypeAlias = Any  # an array of rows, columns and colours
_TYPE = 0.8  # size of type by the height of its box
_DESCENT = 0.2  # of a box: its lowest part, below the baseline
_LEAST_SAME, _MOST_SAME = 0.75, 1.35  # of a page's usual size of type; boxes are no more exact
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
        top_left, _, _, low_left = self.corners
        return float(dist(top_left, low_left))

    @property
    def angle(self) -> float:
        """The slope of the top side in radians; positive where it falls."""
        (left, left_y), (right, right_y), _, _ = self.corners
        return float(atan2(right_y - left_y, right - left))


def long_side(picture: Picture) -> int:
    """Return the long side of a picture in pixels; a long strip counts as a page of the same width."""
    short, long = sorted(picture.shape[:2])
    return int(min(long, max(MAX_SIDE, STRIP * short)))


def read_sheet(boxes: Sequence[Box], picture: Picture, points: float) -> Sheet:
    """Make a sheet of recognised lines, in reading order, and of the rules drawn; ``points`` is the size of a pixel."""
    if not boxes:
        return Sheet([], [])
    angle, lines = _level_lines(boxes, picture, points)
    rules = list(_find_rules(picture, angle, median(box.height for box in boxes), points))
    return Sheet(_in_reading_order(_join_pieces(lines)), rules if len(rules) <= _MAX_RULES else [])


def ordered_boxes(boxes: Sequence[Box], picture: Picture) -> list[Box]:
    """Sort boxes in reading order."""
    if not boxes:
        return []
    _, lines = _level_lines(boxes, picture, points=1.0)  # each of one word
    # lines are joined, but each keeps its word, the same object, which leads back to its box; two words may be equal
    box_of_word = {id(line.words[0]): box for line, box in zip(lines, boxes, strict=True)}
    words = [word for line in _in_reading_order(_join_pieces(lines)) for word in line.words]
    return [box_of_word[id(word)] for word in words]


def _level_lines(boxes: Sequence[Box], picture: Picture, points: float) -> tuple[float, list[Line]]:
    """Return the slope of a page in radians, and a level line for each box; ``points`` is the size of a pixel."""
    angle = _page_angle(boxes, picture)
    usual_size = median(box.height for box in boxes) * _TYPE * points
    return angle, [_as_line(box, angle, points, picture.shape[0] * points, usual_size) for box in boxes]


def _page_angle(boxes: Sequence[Box], picture: Picture) -> float:
    """Measure the slope of a page's lines in radians; it is positive where they fall to the right.

    The boxes with the longest texts give a rough angle. Those near it are tried, a tenth of a degree apart: with the
    picture turned by the right one, rows of pixels full of ink (lines) and empty ones (gaps) differ most sharply.
    """
    import cv2
    import numpy as np

    longest = sorted(boxes, key=lambda box: -len(box.text))[: max(3, len(boxes) // 2)]
    rough = median(box.angle for box in longest)
    scale = min(1.0, _ANGLE_SIDE / long_side(picture))
    small = cv2.resize(picture, None, fx=scale, fy=scale, interpolation=cv2.INTER_AREA)
    y, x = np.nonzero(_ink(small))  # the pixels with ink

    def sharpness(angle: float) -> float:
        # the row of each pixel in the turned picture; the offset is there since bincount takes none below zero
        rows = (y - x * tan(angle) + 4 * _ANGLE_SIDE).astype(int)
        return float((np.diff(np.bincount(rows)) ** 2).sum())

    steps = range(-_ANGLE_STEPS, _ANGLE_STEPS + 1)  # tenths of a degree
    return max((rough + radians(step / 10) for step in steps), key=sharpness)


def _ink(picture: Picture) -> Picture:
    """Return a grey picture with 255 for each pixel that is darker than those around it, else 0."""
    import cv2

    grey = cv2.cvtColor(picture, cv2.COLOR_BGR2GRAY) if picture.ndim > 2 else picture
    return cv2.adaptiveThreshold(grey, 255, cv2.ADAPTIVE_THRESH_MEAN_C, cv2.THRESH_BINARY_INV, 25, 12)


def _as_line(box: Box, angle: float, points: float, page_height: float, usual_size: float) -> Line:
    """Turn a box back by the page's slope, and return its line in points; a size near the usual one is made equal."""
    level = [(x * cos(angle) + y * sin(angle), y * cos(angle) - x * sin(angle)) for x, y in box.corners]
    (x0, y0), (x1, y1), (x2, y2), (x3, y3) = level  # clockwise from the top left one
    left, right = sorted(((x0 + x3) / 2 * points, (x1 + x2) / 2 * points))
    top, foot = sorted(((y0 + y1) / 2 * points, (y2 + y3) / 2 * points))  # down from the top of the page
    size = (foot - top) * _TYPE
    if _LEAST_SAME * usual_size < size < _MOST_SAME * usual_size:
        size = usual_size
    size = round(size * 2) / 2 or 0.5  # in half points
    bottom = page_height - foot + _DESCENT * (foot - top)
    text = box.text.strip()
    word = Word(text, left, right, bottom, size)
    return Line(text, left, right, bottom, bottom, size, bottom / page_height, words=[word])


def _join_pieces(lines: Sequence[Line]) -> list[Line]:
    """Join pieces of a line that are close beside each other; return the lines from top to bottom, left to right."""
    joined: list[Line] = []
    for row in _rows(lines):
        for pieces in split_runs(row, lambda line, after: after.left - line.right < 0.6 * line.size):
            text = pieces[0].text
            for piece in pieces[1:]:
                is_chinese = text[-1:] >= "\u2e80" or piece.text[:1] >= "\u2e80"
                text += piece.text if is_chinese else f" {piece.text}"
            words = [word for piece in pieces for word in piece.words]
            text = _CUT_WORD.sub(HYPHEN, text)  # as PDFium marks a hyphen at a line's end
            joined.append(replace(pieces[0], text=text, right=pieces[-1].right, words=words))
    return joined


def _rows(lines: Sequence[Line]) -> list[list[Line]]:
    """Group lines into rows at one height, from top to bottom; those of a row are ordered from left to right."""
    ordered = sorted(lines, key=lambda line: -line.bottom)
    rows = split_runs(
        ordered, lambda line, after: line.bottom - after.bottom < _ROW * min(line.size, after.size)
    )
    return [sorted(row, key=lambda line: line.left) for row in rows]


def _in_reading_order(lines: Sequence[Line]) -> list[Line]:
    """Sort lines row by row, but two columns of prose one after the other; a line across both (a heading) ends them."""
    ordered = [line for row in _rows(lines) for line in row]
    gutter = _find_gutter(lines)
    if gutter is None:
        return ordered
    result: list[Line] = []
    for is_across, group in groupby(ordered, lambda line: line.left < gutter < line.right):
        band = list(group)
        if is_across:
            result += band
            continue
        left_column = [line for line in band if line.right <= gutter]
        right_column = [line for line in band if line.right > gutter]
        result += _in_reading_order(left_column) + _in_reading_order(right_column)
    return result


def _find_gutter(lines: Sequence[Line]) -> float | None:
    """Return the x of the gap between two columns of prose that most rows have; None where there is no such gap."""
    gaps = list(_gaps(lines))
    gutter, most_rows = None, _GUTTER - 1
    for _, end in gaps:
        x = end - 0.1  # just before the text at the right of the gap
        crossing = sum(line.left < x < line.right for line in lines)
        rows = sum(left <= x < right for left, right in gaps) - crossing  # lines across count against the gap
        columns = [line for line in lines if line.right <= x], [line for line in lines if line.left >= x]
        # prose has lines enough, most of which are longer than the cells of a table
        widths = [sorted((line.right - line.left) / line.size for line in column) for column in columns]
        are_prose = all(len(each) >= _GUTTER and each[len(each) // 2] >= _PROSE for each in widths)
        if rows > most_rows and are_prose:
            gutter, most_rows = x, rows
    return gutter


def _gaps(lines: Sequence[Line]) -> Iterator[tuple[float, float]]:
    """Yield the edges of the gap between each line and what is left of it, whose baseline may be a little off."""
    ordered = sorted(lines, key=attrgetter("bottom"))
    bottoms = [line.bottom for line in ordered]
    for after in lines:
        start, end = (bisect(bottoms, after.bottom + shift) for shift in (-after.size, after.size))
        rights = [line.right for line in ordered[start:end] if after.left - line.right > 0.5 * line.size]
        if rights:
            yield max(rights), after.left


def _find_rules(picture: Picture, angle: float, type_height: float, points: float) -> Iterator[Rule]:
    """Turn a picture level, and yield the straight lines drawn in it, in points (``points`` a pixel) from its foot."""
    import cv2
    import numpy as np

    grey = cv2.cvtColor(picture, cv2.COLOR_BGR2GRAY)
    if abs(degrees(angle)) > 0.05:
        matrix = np.array([[cos(angle), sin(angle), 0.0], [-sin(angle), cos(angle), 0.0]])
        grey = cv2.warpAffine(grey, matrix, grey.shape[::-1], borderValue=255)
    ink = _ink(grey)
    shortest = max(30, int(_RULE * type_height))
    page_height = picture.shape[0] * points
    for upright in (False, True):
        lying = np.ascontiguousarray(ink.T) if upright else ink  # in which the rules looked for are level
        closed = cv2.morphologyEx(lying, cv2.MORPH_CLOSE, np.ones((1, 7), np.uint8))  # bridges gaps
        strokes = cv2.morphologyEx(closed, cv2.MORPH_OPEN, np.ones((1, shortest), np.uint8))
        # strokes grow by 4 pixels at each end, to join pieces that noise has cut; below, these are taken off again
        strokes = cv2.dilate(strokes, np.ones((3, 9), np.uint8))
        _, _, stats, _ = cv2.connectedComponentsWithStats(strokes)
        for left, top, length, thickness, _ in stats[1:].tolist():  # the first component is the background
            if thickness > max(12, 0.5 * type_height):  # too thick for a rule
                continue
            at = (top + thickness // 2) * points
            start, end = (left + 4) * points, (left + length - 4) * points
            if upright:
                yield Rule(upright, at, page_height - end, page_height - start)
            else:
                yield Rule(upright, page_height - at, start, end)
