"""The lines of a PDF page with their words, place and size, and its rules, read from PDFium."""

from __future__ import annotations

import ctypes
import re
import unicodedata
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any

HYPHEN = "\x02"  # a hyphen at a line's end, as PDFium marks it
_BOLD = re.compile(rb"bold|black|heavy|[a-z]bx\d|-bd\b")  # cmbx10, sfbx1000: TeX
_MONO = re.compile(rb"courier|mono|typewriter|consol|menlo|(?:cm|sf)tt")
_FORCE_BOLD = 0x40000
_HYPHENS = (0x2010, 0xAD)  # of a line's end, where PDFium does not mark them
_LINE_ENDS = frozenset((10, 13))
_BLANKS = frozenset((*range(33), 0xA0)) - {ord(HYPHEN)}
_INVISIBLE = re.compile("[\ufeff\u200b\xad\0]")
_PRIVATE = re.compile("[\ue000-\uf8ff\x80-\x9f]")
_CONTROL = re.compile("[\x01\x03-\x1f\x80-\x9f\ue000-\uf8ff]")
_LIGATURE_OR_RADICAL = re.compile("[\u2e80-\u2fdf\ufb00-\ufb06]")
_TYPED = (4, 5, 6)  # PDFium's numbers of fields with a choice, a list or a text
_MOST_TYPED = 200_000  # bytes of a field
_MOST_RULES = 2_000  # of a page; more are a drawing


@dataclass(frozen=True)
class Word:
    """A word of a line; lengths in points."""

    text: str
    left: float
    right: float
    bottom: float
    size: float


@dataclass
class Line:
    """A line of a page; lengths in points, ``place`` is the height on the page from 0 (bottom) to 1.

    ``mono`` says that it is set in a font of fixed width, ``block`` that ``text`` is finished markdown.
    """

    text: str
    left: float
    right: float
    bottom: float
    end_bottom: float
    size: float
    place: float
    bold: bool = False
    mono: bool = False
    words: list[Word] = field(default_factory=list)
    block: bool = False

    def as_block(self, text: str) -> Line:
        """A line that holds finished markdown in the place of this one."""
        return replace(self, text=text, block=True, words=[])


@dataclass(frozen=True)
class Rule:
    """A straight line drawn on a page: at ``at`` on its own axis, from ``start`` to ``end`` on the other."""

    upright: bool
    at: float
    start: float
    end: float

    def touches(self, other: Rule) -> bool:
        """Whether two rules cross or meet."""
        if self.upright == other.upright:
            return abs(self.at - other.at) < 3 and self.start < other.end + 3 and other.start < self.end + 3
        return other.start - 3 < self.at < other.end + 3 and self.start - 3 < other.at < self.end + 3


def page_lines(page: Any) -> list[Line]:
    """All lines of a page that are not blank, in the order in which PDFium gives them."""
    text_page = page.get_textpage()
    try:
        return _PageText(text_page.raw, page.get_height()).lines()
    finally:
        text_page.close()


class _PageText:
    """The characters of a page as PDFium gives them: their codes, places and fonts."""

    def __init__(self, handle: Any, height: float) -> None:
        import pypdfium2.raw as raw

        self._raw, self._handle, self._height = raw, handle, height
        self._codes = [raw.FPDFText_GetUnicode(handle, n) for n in range(raw.FPDFText_CountChars(handle))]

    def lines(self) -> list[Line]:
        """The lines that are not blank."""
        stretches = _stretches(self._codes, 0, len(self._codes), _LINE_ENDS)
        return [line for start, end in stretches if (line := self._line(start, end)) is not None]

    def _line(self, start: int, end: int) -> Line | None:
        codes = self._codes
        places = list(_stretches(codes, start, end, _BLANKS))
        if not places:
            return None
        first, last = places[0][0], places[-1][1] - 1
        if codes[last] in _HYPHENS:
            codes[last] = 2
        text = _decode(codes[first : last + 1])
        if not text.strip():
            return None
        left, bottom, _ = self._place(first)
        _, end_bottom, right = self._place(last)
        # a bullet before the word may be of another font
        letter = next((index for index in range(first, last + 1) if chr(codes[index]).isalnum()), first)
        size, bold, mono = self._font(letter)
        if bold or mono:
            _, end_bold, end_mono = self._font(last if codes[last] > 32 else (letter + last) // 2)
            bold, mono = bold and end_bold, mono and end_mono
        words = [
            Word(word, self._place(begin)[0], self._place(stop - 1)[2], bottom, size)
            for begin, stop in places
            if (word := _decode(codes[begin:stop]))
        ]
        height = bottom / self._height if self._height else 0.5
        return Line(text, left, right, bottom, end_bottom, round(size, 1), height, bold, mono, words)

    def _place(self, index: int) -> tuple[float, float, float]:
        """Left edge, baseline and right edge of a character."""
        left, right, bottom, top, x, y = (ctypes.c_double() for _ in range(6))
        self._raw.FPDFText_GetCharBox(self._handle, index, left, right, bottom, top)
        self._raw.FPDFText_GetCharOrigin(self._handle, index, x, y)
        return left.value, y.value, right.value

    def _font(self, index: int) -> tuple[float, bool, bool]:
        """Size in points as it stands on the page, and whether the font is bold, and of fixed width."""
        raw, handle = self._raw, self._handle
        size, matrix = raw.FPDFText_GetFontSize(handle, index), raw.FS_MATRIX()
        if raw.FPDFText_GetMatrix(handle, index, matrix):
            size *= (matrix.b**2 + matrix.d**2) ** 0.5
        buffer, flags = ctypes.create_string_buffer(128), ctypes.c_int()
        raw.FPDFText_GetFontInfo(handle, index, buffer, 128, flags)
        name = buffer.value.lower()
        bold = bool(_BOLD.search(name) or flags.value & _FORCE_BOLD)
        return float(size), bold, bool(_MONO.search(name))


def _stretches(
    codes: Sequence[int], start: int, end: int, breaks: Collection[int]
) -> Iterator[tuple[int, int]]:
    """Start and end of each stretch of characters between breaks."""
    for broken, indexes in groupby(range(start, end), lambda index: codes[index] in breaks):
        if not broken:
            first, *rest = indexes
            yield first, (rest[-1] if rest else first) + 1


def with_fields(lines: list[Line], page: Any, form: Any) -> list[Line]:
    """The lines with what is typed into the fields of a form, each behind the line that ends at its left."""
    import pypdfium2.raw as raw

    height = page.get_height()
    for index in range(raw.FPDFPage_GetAnnotCount(page)):
        field = raw.FPDFPage_GetAnnot(page, index)
        try:
            size = raw.FPDFAnnot_GetFormFieldValue(form, field, None, 0)
            if raw.FPDFAnnot_GetFormFieldType(form, field) not in _TYPED or not 2 < size < _MOST_TYPED:
                continue
            buffer = (ctypes.c_ushort * (size // 2))()
            raw.FPDFAnnot_GetFormFieldValue(form, field, buffer, size)
            box = raw.FS_RECTF()
            raw.FPDFAnnot_GetRect(field, box)
        finally:
            raw.FPDFPage_CloseAnnot(field)
        value = " ".join(bytes(buffer).decode("utf-16-le", "replace").replace("\0", " ").split())
        if not value:
            continue
        beside = [
            number
            for number, line in enumerate(lines)
            if box.bottom <= line.bottom <= box.top and line.right <= box.left
        ]
        if beside:
            at = max(beside, key=lambda number: lines[number].right)
            line = lines[at]
            word = Word(value, box.left, box.right, line.bottom, line.size)
            lines[at] = replace(line, text=f"{line.text} {value}", right=box.right, words=[*line.words, word])
        else:
            low, points = box.bottom, min(10.0, box.top - box.bottom)
            word = Word(value, box.left, box.right, low, points)
            place = low / height if height else 0.5
            lines.append(Line(value, box.left, box.right, low, low, points, place, words=[word]))
    return lines


def page_rules(page: Any) -> list[Rule]:
    """The straight lines and sides of boxes that are drawn on a page; none of a page that is a drawing."""
    import pypdfium2.raw as raw

    rules: list[Rule] = []
    for index in range(raw.FPDFPage_CountObjects(page.raw)):
        drawn = raw.FPDFPage_GetObject(page.raw, index)
        if raw.FPDFPageObj_GetType(drawn) != raw.FPDF_PAGEOBJ_PATH:
            continue
        box = [ctypes.c_float() for _ in range(4)]
        raw.FPDFPageObj_GetBounds(drawn, *box)
        left, bottom, right, top = (side.value for side in box)
        points = raw.FPDFPath_CountSegments(drawn)
        if points > 6 or (points < 4 and min(top - bottom, right - left) > 3):
            continue  # a drawing, or a line aslant
        if top - bottom > 5:
            rules += [Rule(True, x, bottom, top) for x in {left, right if right - left > 3 else left}]
        if right - left > 5:
            rules += [Rule(False, y, left, right) for y in {bottom, top if top - bottom > 3 else bottom}]
        if len(rules) > _MOST_RULES:
            return []
    return rules


def _decode(codes: Sequence[int]) -> str:
    """The text of characters, without invisible ones; a font's private sign at its beginning is a bullet."""
    # PDFium gives characters beyond the first plane in halves
    text = "".join(map(chr, codes)).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    text = _INVISIBLE.sub("", text.replace("\ufffe", HYPHEN))
    if _PRIVATE.match(text):
        text = f"•{text[1:]}"
    text = _CONTROL.sub(" ", text)
    # ligatures as letters, and for radicals the characters that Chinese PDFs mean (⽂ is 文)
    return _LIGATURE_OR_RADICAL.sub(lambda match: unicodedata.normalize("NFKC", match[0]), text)
