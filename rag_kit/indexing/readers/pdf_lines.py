"""The lines of a PDF page with their words, place and size, and its rules, read from PDFium."""

from __future__ import annotations

import ctypes
import re
import unicodedata
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

HYPHEN = "\x02"  # a hyphen at a line's end, as PDFium marks it
_BOLD = re.compile(rb"bold|black|heavy|[a-z]bx\d|-bd\b")  # cmbx10, sfbx1000: TeX
_MONO = re.compile(rb"courier|mono|typewriter|consol|menlo|(?:cm|sf)tt")
_FORCE_BOLD = 0x40000
_HYPHENS = (0x2010, 0xAD)  # of a line's end, where PDFium does not mark them
_DROP = (0xFEFF, 0x200B, 0xAD, 0x0)
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
    import pypdfium2.raw as raw

    text_page = page.get_textpage()
    try:
        return _lines(raw, text_page.raw, page.get_height())
    finally:
        text_page.close()


def _lines(raw: Any, handle: Any, height: float) -> list[Line]:
    lines: list[Line] = []
    unicode_of = raw.FPDFText_GetUnicode
    codes = [unicode_of(handle, index) for index in range(raw.FPDFText_CountChars(handle))]
    codes.append(10)
    start = 0
    for index, code in enumerate(codes):
        if code not in (10, 13):
            continue
        first, last = start, index - 1
        start = index + 1
        while first <= last and codes[first] <= 32 and codes[first] != 2:
            first += 1
        while last >= first and codes[last] in (32, 9, 0xA0):
            last -= 1
        if last < first:
            continue
        if codes[last] in _HYPHENS:
            codes[last] = 2
        text = _decode(codes[first : last + 1])
        if not text.strip():
            continue
        left, bottom = _place(raw, handle, first)[0:2]
        right, last_bottom = _place(raw, handle, last)[2:4]
        word = next((place for place in range(first, last + 1) if chr(codes[place]).isalnum()), first)
        # a bullet before the word may be of another font
        size, *styles = _font(raw, handle, word)
        if any(styles):
            _, *end = _font(raw, handle, last if codes[last] > 32 else (word + last) // 2)
            styles = [one and other for one, other in zip(styles, end, strict=True)]
        bold, mono = styles
        place = bottom / height if height else 0.5
        words = _words(raw, handle, codes, first, last, bottom, size)
        lines.append(Line(text, left, right, bottom, last_bottom, round(size, 1), place, bold, mono, words))
    return lines


def _words(
    raw: Any, handle: Any, codes: list[int], first: int, last: int, bottom: float, size: float
) -> list[Word]:
    words, start = [], first
    for index in range(first, last + 2):
        if index <= last and ((codes[index] > 32 and codes[index] != 0xA0) or codes[index] == 2):
            continue
        text = _decode(codes[start:index])
        if text:
            left, right = _place(raw, handle, start)[0], _place(raw, handle, index - 1)[2]
            words.append(Word(text, left, right, bottom, size))
        start = index + 1
    return words


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


def _decode(codes: list[int]) -> str:
    pieces = []
    high = 0
    for code in codes:
        if 0xD800 <= code < 0xDC00:  # PDFium hands characters beyond the first plane out in halves
            high = code
            continue
        if 0xDC00 <= code < 0xE000:
            code = 0x10000 + ((high - 0xD800) << 10) + (code - 0xDC00) if high else 0xFFFD
        high = 0
        if code in (2, 0xFFFE):
            pieces.append(HYPHEN)
        elif code in _DROP:
            continue
        elif 0xE000 <= code <= 0xF8FF or 0x80 <= code < 0xA0:  # a font's private sign: bullets, mostly
            pieces.append("•" if not pieces else " ")
        elif code < 32:
            pieces.append(" ")
        else:
            pieces.append(_plain(code))
    return "".join(pieces)


@cache
def _plain(code: int) -> str:
    """A character; ligatures as letters, and for radicals the characters that Chinese PDFs mean (⽂ is 文)."""
    strange = 0x2E80 <= code < 0x2FE0 or 0xFB00 <= code <= 0xFB06
    return unicodedata.normalize("NFKC", chr(code)) if strange else chr(code)


def _place(raw: Any, handle: Any, index: int) -> tuple[float, float, float, float]:
    """Left, baseline, right, baseline of a character."""
    left, right, bottom, top = (ctypes.c_double() for _ in range(4))
    raw.FPDFText_GetCharBox(handle, index, left, right, bottom, top)
    x, y = ctypes.c_double(), ctypes.c_double()
    raw.FPDFText_GetCharOrigin(handle, index, x, y)
    return left.value, y.value, right.value, y.value


def _font(raw: Any, handle: Any, index: int) -> tuple[float, bool, bool]:
    """Size in points as it stands on the page, and whether the font is bold, and of fixed width."""
    size = raw.FPDFText_GetFontSize(handle, index)
    matrix = raw.FS_MATRIX()
    if raw.FPDFText_GetMatrix(handle, index, matrix):
        size *= (matrix.b**2 + matrix.d**2) ** 0.5
    buffer = ctypes.create_string_buffer(128)
    flags = ctypes.c_int()
    raw.FPDFText_GetFontInfo(handle, index, buffer, 128, flags)
    name = buffer.value.lower()
    bold = bool(_BOLD.search(name) or flags.value & _FORCE_BOLD)
    return float(size), bold, bool(_MONO.search(name))
