"""The lines of a PDF page with their words, place and size, and its rules, read from PDFium."""

from __future__ import annotations

import ctypes
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import pypdfium2.raw as raw

HYPHEN = "\x02"  # a hyphen at a line's end, as PDFium marks it
_UNMARKED_HYPHEN = re.compile(r"[\u2010\xad](?=[\0\1\3-\x20\xa0]*(?:[\r\n]|\Z))")
_LINE = re.compile(r"[^\r\n]+")
_WORD = re.compile(r"[^\0\1\3-\x20\xa0]+")
_BOLD = re.compile(rb"bold|black|heavy|[a-z]bx\d|-bd\b")  # cmbx10, sfbx1000: TeX
_MONO = re.compile(rb"courier|mono|typewriter|consol|menlo|(?:cm|sf)tt")
_FORCE_BOLD = 0x40000
_INVISIBLE = re.compile("[\ufeff\u200b\xad\0]")
_PRIVATE = re.compile("[\ue000-\uf8ff\x80-\x9f]")
_CONTROL = re.compile("[\x01\x03-\x1f\x80-\x9f\ue000-\uf8ff]")
_LIGATURE_OR_RADICAL = re.compile("[\u2e80-\u2fdf\ufb00-\ufb06]")
_TYPED = (4, 5, 6)  # PDFium's numbers of fields with a choice, a list or a text
_MAX_TYPED = 200_000  # bytes of a field
_MAX_RULES = 2_000  # of a page; more are a drawing


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

    ``mono`` says that it is set in a font of fixed width, ``block`` that ``text`` is finished markdown. `Layout` notes
    the ``level`` of a heading, and where the ``column`` ends at the right.
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
    level: int = 0
    column: float = 0.0

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
        return list(_read_lines(text_page.raw, page.get_height() or 1.0))
    finally:
        text_page.close()


def _read_lines(page: Any, height: float) -> Iterator[Line]:
    """The lines of a page with their places, size and weight of letters, as PDFium gives its characters."""
    text = "".join(chr(raw.FPDFText_GetUnicode(page, n)) for n in range(raw.FPDFText_CountChars(page)))
    text = _UNMARKED_HYPHEN.sub(HYPHEN, text)
    for line in _LINE.finditer(text):
        spans = [word.span() for word in _WORD.finditer(text, *line.span())]
        if not spans:
            continue
        (first, _), (_, end) = spans[0], spans[-1]
        content = _decode(text[first:end])
        if not content.strip():
            continue
        left, bottom, _ = _character_place(page, first)
        _, end_bottom, right = _character_place(page, end - 1)
        # a bullet before the word may be of another font
        letter = next((index for index in range(first, end) if text[index].isalnum()), first)
        size, bold, mono = _character_font(page, letter)
        if bold or mono:
            last = end - 1 if text[end - 1] != HYPHEN else (letter + end - 1) // 2
            _, end_bold, end_mono = _character_font(page, last)
            bold, mono = bold and end_bold, mono and end_mono
        words = [
            Word(word, _character_place(page, start)[0], _character_place(page, stop - 1)[2], bottom, size)
            for start, stop in spans
            if (word := _decode(text[start:stop]))
        ]
        place = bottom / height
        yield Line(content, left, right, bottom, end_bottom, round(size, 1), place, bold, mono, words)


def _character_place(page: Any, index: int) -> tuple[float, float, float]:
    """Left edge, baseline and right edge of a character."""
    left, right, bottom, top, x, y = (ctypes.c_double() for _ in range(6))
    raw.FPDFText_GetCharBox(page, index, left, right, bottom, top)
    raw.FPDFText_GetCharOrigin(page, index, x, y)
    return left.value, y.value, right.value


def _character_font(page: Any, index: int) -> tuple[float, bool, bool]:
    """Size in points as it stands on the page, and whether the font is bold, and of fixed width."""
    size, matrix = raw.FPDFText_GetFontSize(page, index), raw.FS_MATRIX()
    if raw.FPDFText_GetMatrix(page, index, matrix):
        size *= (matrix.b**2 + matrix.d**2) ** 0.5
    buffer, flags = ctypes.create_string_buffer(128), ctypes.c_int()
    raw.FPDFText_GetFontInfo(page, index, buffer, 128, flags)
    name = buffer.value.lower()
    return size, bool(_BOLD.search(name) or flags.value & _FORCE_BOLD), bool(_MONO.search(name))


def add_fields(lines: list[Line], page: Any, form: Any) -> None:
    """Add what is typed into the fields of a form to the lines, each behind the line that ends at its left."""
    height = page.get_height() or 1.0
    for value, box in _field_values(page, form):
        beside = [line for line in lines if box.bottom <= line.bottom <= box.top and line.right <= box.left]
        low, points = box.bottom, min(10.0, box.top - box.bottom)
        if beside:
            line = max(beside, key=lambda line: line.right)
            low, points = line.bottom, line.size
            line.text, line.right = f"{line.text} {value}", box.right
        else:
            line = Line(value, box.left, box.right, low, low, points, low / height)
            lines.append(line)
        line.words.append(Word(value, box.left, box.right, low, points))


def _field_values(page: Any, form: Any) -> Iterator[tuple[str, Any]]:
    """The text and the rectangle of each field that something is typed into."""
    for index in range(raw.FPDFPage_GetAnnotCount(page)):
        field, box = raw.FPDFPage_GetAnnot(page, index), raw.FS_RECTF()
        try:
            size = raw.FPDFAnnot_GetFormFieldValue(form, field, None, 0)
            if raw.FPDFAnnot_GetFormFieldType(form, field) not in _TYPED or not 2 < size < _MAX_TYPED:
                continue
            buffer = (ctypes.c_ushort * (size // 2))()
            raw.FPDFAnnot_GetFormFieldValue(form, field, buffer, size)
            raw.FPDFAnnot_GetRect(field, box)
        finally:
            raw.FPDFPage_CloseAnnot(field)
        if value := " ".join(bytes(buffer).decode("utf-16-le", "replace").replace("\0", " ").split()):
            yield value, box


def page_rules(page: Any) -> list[Rule]:
    """The straight lines and sides of boxes that are drawn on a page; none of a page that is a drawing."""
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
        if len(rules) > _MAX_RULES:
            return []
    return rules


def _decode(characters: str) -> str:
    """The text of characters, without invisible ones; a font's private sign at its beginning is a bullet."""
    # PDFium gives characters beyond the first plane in halves
    text = characters.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    text = _INVISIBLE.sub("", text.replace("\ufffe", HYPHEN))
    if _PRIVATE.match(text):
        text = f"•{text[1:]}"
    text = _CONTROL.sub(" ", text)
    # ligatures as letters, and for radicals the characters that Chinese PDFs mean (⽂ is 文)
    return _LIGATURE_OR_RADICAL.sub(lambda match: unicodedata.normalize("NFKC", match[0]), text)
