"""The characters of a PDF page as PDFium gives them: text, positions, fonts, and how they are turned."""

from __future__ import annotations

import ctypes
import re
import unicodedata
from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from math import hypot, pi
from operator import itemgetter
from typing import Any

import pypdfium2.raw as raw

from rag_kit.indexing.readers.numbers import lowered, raised

HYPHEN = "\x02"  # a hyphen at a line's end, as PDFium marks it
# signs between blanks and control characters, with `HYPHEN`; wide blanks before one are an indent
WORD = re.compile(r"(?!\u3000)[^\0\1\3-\x20\xa0]+")
_UNMARKED_HYPHEN = re.compile(r"[\u2010\xad](?=[\0\1\3-\x20\xa0]*(?:[\r\n]|\Z))")  # at a line's end
_BREAK = re.compile(r"[ \0]*\r\n[ \0]*")
# what may be raised or lowered in a word: the "nd" of 2nd, the mark of a footnote as in "1,2)" or "*", the -3 of 10-3
_SHIFTED = re.compile(r"(?<=\d)[a-z]+(?:[+−–-]\d+)?|[\d*†‡§][\d*†‡§,]*\)?|[+−–-]\d+")
_LEADING = re.compile(r"(?<![^\r\n])(?:\d{1,3}|[*†‡§]+)(?=[^\W\d])")  # a mark before its footnote
_BOLD = re.compile(rb"bold|black|heavy|[a-z]bx\d|-bd\b")  # cmbx10, sfbx1000: TeX
_MONO = re.compile(rb"courier|mono|typewriter|consol|menlo|(?:cm|sf)tt")
_LARGE = 100  # points; no type is so large
_ASLANT = 0.15  # of a right angle
_LEVEL = 0.3  # points; characters at such heights are level
_FORCE_BOLD = 0x40000  # the flag of a font in PDF
_CUT = {32_767, 16_384}  # characters, of one byte or two, at which PDFium cuts a string
_INVISIBLE = re.compile("[\ufeff\u200b\xad\0]")  # marks of width zero, soft hyphens, closed breaks
_PRIVATE = re.compile("[\ue000-\uf8ff\x80-\x9f]")  # codes under which each font has its own signs
_CONTROL = re.compile("[\x01\x03-\x1f\x80-\x9f\ue000-\uf8ff]")  # these, and codes that show nothing
_LIGATURE_OR_RADICAL = re.compile("[\u2e80-\u2fdf\ufb00-\ufb06]")


@dataclass(frozen=True)
class Frame:
    """Turns coordinates of a page so that text in one direction runs to the right; lengths in points."""

    turn: int  # that direction in degrees, against the clock: 90 for text that runs upwards
    left: float
    bottom: float
    right: float
    top: float

    def point(self, x: float, y: float) -> tuple[float, float]:
        """Convert a point of the page to this frame: how far it is from its left edge, and from its foot."""
        if self.turn == 90:
            return y, self.left + self.right - x
        if self.turn == 180:
            return self.left + self.right - x, self.bottom + self.top - y
        return (self.bottom + self.top - y, x) if self.turn == 270 else (x, y)

    def box(self, left: float, bottom: float, right: float, top: float) -> tuple[float, float, float, float]:
        """Convert a box of the page to this frame: left, bottom, right, top."""
        (x, y), (other_x, other_y) = self.point(left, bottom), self.point(right, top)
        return min(x, other_x), min(y, other_y), max(x, other_x), max(y, other_y)

    def height_of(self, y: float) -> float:
        """Return how far up ``y`` is in this frame, from 0 (bottom of the page) to 1."""
        low, high = (self.left, self.right) if self.turn in (90, 270) else (self.bottom, self.top)
        return (y - low) / ((high - low) or 1.0)


class Characters:
    """The characters of a page; coordinates are those of a frame."""

    def __init__(self, page: Any, frame: Frame) -> None:
        self._page = page
        self._frame = frame
        # PDFium writes its answers into these
        self._numbers = [ctypes.c_double() for _ in range(6)]
        self._matrix = raw.FS_MATRIX()
        text = "".join(chr(raw.FPDFText_GetUnicode(page, n)) for n in range(raw.FPDFText_CountChars(page)))
        # The n-th letter is PDFium's character n, so replacements keep the length. PDFium breaks some lines behind a
        # superscript; such breaks are closed.
        self.text = _BREAK.sub(self._close_break, _UNMARKED_HYPHEN.sub(HYPHEN, text))

    def may_be_cut(self) -> bool:
        """Tell whether a string is as long as the longest that PDFium reads: it may go on in the file."""
        positions = range(len(self.text)) if len(self.text) >= min(_CUT) else ()
        strings = (raw.FPDFText_GetTextObject(self._page, n) for n in positions)
        lengths = Counter(ctypes.cast(string, ctypes.c_void_p).value for string in strings)
        return not _CUT.isdisjoint(lengths.values())

    def extent(self, index: int, *, full: bool = False) -> tuple[float, float, float]:
        """Return the left edge, baseline and right edge of a character; with ``full``, of its font's room for it."""
        left, right, bottom, top, x, y = self._numbers
        raw.FPDFText_GetCharBox(self._page, index, left, right, bottom, top)
        raw.FPDFText_GetCharOrigin(self._page, index, x, y)
        if full:  # a 1 has much room at its sides
            raw.FPDFText_GetLooseCharBox(self._page, index, box := raw.FS_RECTF())
            left.value, right.value, bottom.value, top.value = box.left, box.right, box.bottom, box.top
        if not self._frame.turn:
            return left.value, y.value, right.value
        start, _, end, _ = self._frame.box(left.value, bottom.value, right.value, top.value)
        return start, self._frame.point(x.value, y.value)[1], end

    def size(self, index: int) -> float:
        """Return the font size of a character in points, as scaled on the page."""
        size, matrix = raw.FPDFText_GetFontSize(self._page, index), self._matrix
        if not raw.FPDFText_GetMatrix(self._page, index, matrix):
            return float(size)
        # b and d scale along the page's y; a and c along its x, along which letters of turned text rise
        if self._frame.turn in (90, 270):
            return float(size * hypot(matrix.a, matrix.c))
        return float(size * hypot(matrix.b, matrix.d))

    def is_bold_and_mono(self, index: int) -> tuple[bool, bool]:
        """Tell whether a character's font is bold, and whether all its letters have one width (as in Courier)."""
        buffer, flags = ctypes.create_string_buffer(128), ctypes.c_int()
        raw.FPDFText_GetFontInfo(self._page, index, buffer, 128, flags)
        font_name = buffer.value.lower()
        is_bold = bool(_BOLD.search(font_name)) or bool(flags.value & _FORCE_BOLD)
        return is_bold, bool(_MONO.search(font_name))

    def turn(self, index: int) -> int:
        """Return the direction in which a character's text runs: 0, 90 (upwards), 180 or 270 degrees."""
        quarters = float(raw.FPDFText_GetCharAngle(self._page, index)) / (pi / 2)  # clockwise
        return -round(quarters) % 4 * 90  # against the clock

    def is_aslant(self, index: int) -> bool:
        """Tell whether a character's text runs aslant, as a watermark does."""
        quarters = float(raw.FPDFText_GetCharAngle(self._page, index)) / (pi / 2)
        return abs(quarters - round(quarters)) > _ASLANT

    def decoded(self, start: int, end: int) -> str:
        """Return the text from one character to another; superscripts become ``^2`` or ``[1]``, invisible signs go."""
        text, position = "", start
        low, high = (bisect_left(self._shifts, index, key=itemgetter(0)) for index in (start, end))
        for first, last, direction in self._shifts[low:high]:  # those that begin between start and end
            text += _decode(self.text[position:first])
            shifted, after = _decode(self.text[first:last]), self.text[last : last + 1]
            text += raised(text, shifted, after) if direction > 0 else lowered(text, shifted)
            position = last
        return text + _decode(self.text[position:end])

    def _close_break(self, match: re.Match[str]) -> str:
        """Replace a break where the line goes on behind it: by as many blanks, or signs that `decoded` leaves out."""
        before, after = match.start() - 1, match.end()  # the characters at both sides of the break
        if before < 0 or after >= len(match.string):
            return match[0]
        (_, y, right), (left, next_y, _) = self.extent(before), self.extent(after)
        gap, rise = left - right, abs(next_y - y)
        if not -_LARGE < gap < _LARGE:  # the usual case: the next line begins further left
            return match[0]
        small, large = sorted((self.size(before), self.size(after)))
        # the line goes on if they are beside each other, and level or one of them small and raised or lowered
        is_beside = -0.3 * large < gap < 0.6 * large
        is_level = rise <= 0.1 * large or (small <= 0.92 * large and rise <= 0.75 * large)
        if not is_beside or not is_level:
            return match[0]
        room = self.extent(after, full=True)[0] - self.extent(before, full=True)[2]
        has_blank = " " in match[0] or room > 0.15 * large
        return (" " if has_blank else "\u200b") * len(match[0])

    @cached_property
    def _shifts(self) -> list[tuple[int, int, int]]:
        """List the start, the end, and 1 of each superscript, -1 of each subscript, by the baseline of its word."""
        shifts = []
        for word in WORD.finditer(self.text):
            base = word.start()  # the character on whose baseline the word is
            if (mark := _LEADING.match(self.text, base)) and self._shift(base, mark.end()) > 0:
                base = mark.end()
                shifts.append((word.start(), base, 1))
            for run in _SHIFTED.finditer(self.text, base, word.end()):
                start, direction = run.end(), 0
                # the last signs of the run may be shifted alone, as the 2 of 102
                while start > max(run.start(), base + 1) and (shift := self._shift(start - 1, base)):
                    start, direction = start - 1, shift
                if direction:
                    shifts.append((start, run.end(), direction))
        return shifts

    def _shift(self, index: int, base: int) -> int:
        """Return 1 if a character is a superscript of the character ``base``, -1 if a subscript, else 0."""
        rise = self.extent(index)[1] - self.extent(base)[1]
        if abs(rise) < _LEVEL:
            return 0
        size = self.size(base)
        if abs(rise) < 0.08 * size or self.size(index) > 0.92 * size:
            return 0
        return 1 if rise > 0 else -1


def _decode(characters: str) -> str:
    """Clean characters of PDFium: invisible ones go, control ones become blanks, private ones bullets or blanks."""
    # PDFium gives a character above U+FFFF, such as an emoji, as two surrogates: UTF-16 joins them
    text = characters.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    text = _INVISIBLE.sub("", text.replace("\ufffe", HYPHEN))  # another mark of hyphens
    if _PRIVATE.match(text):  # fonts of symbols, such as Wingdings, have their bullets there
        text = f"•{text[1:]}"
    text = _CONTROL.sub(" ", text)
    # NFKC turns ligatures into letters (ﬁ: fi), and radicals into the characters that Chinese PDFs mean (⽂: 文)
    return _LIGATURE_OR_RADICAL.sub(lambda match: unicodedata.normalize("NFKC", match[0]), text)
