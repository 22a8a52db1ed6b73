"""The lines of a PDF page with their words, place and size, and its rules, read from PDFium."""

from __future__ import annotations

import ctypes
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import pypdfium2.raw as raw

from rag_kit.indexing.readers.pdf_characters import HYPHEN, WORD, Characters, Frame, first_letter
from rag_kit.indexing.readers.tables import split_runs

_LINE = re.compile(r"[^\r\n]+")
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
    """A line of a page; lengths in points, ``height`` is where it is on the page, from 0 (bottom) to 1.

    ``mono`` says that it is set in a font of fixed width, ``block`` that ``text`` is finished markdown, ``aslant`` that
    it runs aslant, as a watermark. `Layout` notes the ``level`` of a heading, and where its column begins (``edge``)
    and ends (``column``).
    """

    text: str
    left: float
    right: float
    bottom: float
    end_bottom: float
    size: float
    height: float
    bold: bool = False
    mono: bool = False
    words: list[Word] = field(default_factory=list)
    block: bool = False
    aslant: bool = False
    level: int = 0
    edge: float = 0.0
    column: float = 0.0

    def as_block(self, text: str) -> Line:
        """Return this line with finished markdown in place of its words."""
        return replace(self, text=text, block=True, words=[])


@dataclass(frozen=True)
class Rule:
    """A straight line drawn on a page."""

    upright: bool
    at: float  # x of an upright rule, y of a level one
    start: float  # the ends on the other axis
    end: float

    def touches(self, other: Rule) -> bool:
        """Whether two rules cross or meet."""
        if self.upright == other.upright:
            return abs(self.at - other.at) < 3 and self.start < other.end + 3 and other.start < self.end + 3
        return other.start - 3 < self.at < other.end + 3 and self.start - 3 < other.at < self.end + 3


@dataclass
class Sheet:
    """The text of one direction on a page, with the drawn rules, as if the page were turned to read it."""

    lines: list[Line]
    rules: list[Rule]


def read_sheets(page: Any, form: Any) -> list[Sheet]:
    """Read the text of a page and of its form fields: one sheet a direction, the one with most text first."""
    shown = page.get_rotation()
    read = {shown: _lines_by_turn(page, shown)}
    lengths = Counter({turn: sum(len(line.text) for line in lines) for turn, lines in read[shown].items()})
    sheets: list[Sheet] = []
    for turn, _ in lengths.most_common() or [(shown, 0)]:
        if turn not in read:  # PDFium finds words and lines of text that is shown upright
            page.set_rotation(turn)
            read[turn] = _lines_by_turn(page, turn)
        frame, lines = _frame(page, turn), read[turn].get(turn, [])
        if form is not None and not sheets:
            _add_fields(lines, page, form, frame)
        if lines:
            lines.sort(key=lambda line: line.aslant)  # a watermark behind the text
            sheets.append(Sheet(lines, _page_rules(page, frame)))
    page.set_rotation(shown)
    return sheets


def _frame(page: Any, turn: int) -> Frame:
    return Frame(turn, *page.get_bbox())


def _lines_by_turn(page: Any, shown: int) -> dict[int, list[Line]]:
    """Map each direction of text to its lines, measured on the page turned as ``shown``."""
    text_page = page.get_textpage()
    try:
        frame = _frame(page, shown)
        characters = Characters(text_page.raw, frame)
        lines: dict[int, list[Line]] = {}
        for turn, spans in _turned_spans(characters):
            if line := _read_line(characters, spans, frame):
                lines.setdefault(turn, []).append(line)
        return lines
    finally:
        text_page.close()


def _turned_spans(characters: Characters) -> Iterator[tuple[int, list[tuple[int, int]]]]:
    """Yield the words of each line; a line is cut where the text turns in another direction."""
    for line in _LINE.finditer(characters.text):
        spans = [word.span() for word in WORD.finditer(characters.text, *line.span())]
        if not spans:
            continue
        turns = [characters.turn(spans[0][0]), characters.turn(spans[-1][0])]
        if turns[0] == turns[1]:
            yield turns[0], spans
        else:
            runs = split_runs(
                spans, lambda span, after: characters.turn(span[0]) == characters.turn(after[0])
            )
            yield from ((characters.turn(run[0][0]), run) for run in runs)


def _read_line(characters: Characters, spans: list[tuple[int, int]], frame: Frame) -> Line | None:
    """Make a line of some characters, with its position, font size and weight."""
    (first, _), (_, end) = spans[0], spans[-1]
    content = characters.decoded(first, end)
    if not content.strip():
        return None
    left, bottom, _ = characters.extent(first)
    _, end_bottom, right = characters.extent(end - 1)
    letter = first_letter(characters.text, first, end)
    bold, mono = characters.weight(letter)
    if bold or mono:
        last = end - 1 if characters.text[end - 1] != HYPHEN else (letter + end - 1) // 2
        end_bold, end_mono = characters.weight(last)
        bold, mono = bold and end_bold, mono and end_mono
    size = characters.size(letter)
    words = [
        Word(word, characters.extent(start)[0], characters.extent(stop - 1)[2], bottom, size)
        for start, stop in spans
        if (word := characters.decoded(start, stop))
    ]
    height, aslant = frame.height_of(bottom), characters.is_aslant(letter)
    return Line(
        content, left, right, bottom, end_bottom, round(size, 1), height, bold, mono, words, aslant=aslant
    )


def _add_fields(lines: list[Line], page: Any, form: Any, frame: Frame) -> None:
    """Insert the texts typed into a form, each behind the line that ends at its left."""
    for value, box in _field_values(page, form):
        left, low, right, high = frame.box(box.left, box.bottom, box.right, box.top)
        beside = [line for line in lines if low <= line.bottom <= high and line.right <= left]
        points = min(10.0, high - low)
        if beside:
            line = max(beside, key=lambda line: line.right)
            low, points = line.bottom, line.size
            line.text, line.right = f"{line.text} {value}", right
        else:
            line = Line(value, left, right, low, low, points, frame.height_of(low))
            lines.append(line)
        line.words.append(Word(value, left, right, low, points))


def _field_values(page: Any, form: Any) -> Iterator[tuple[str, Any]]:
    """Yield the text of each filled form field, with its rectangle."""
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


def _page_rules(page: Any, frame: Frame) -> list[Rule]:
    """List the straight lines and sides of boxes drawn on a page; none if there are so many that it is a drawing."""
    rules: list[Rule] = []
    for index in range(raw.FPDFPage_CountObjects(page.raw)):
        drawn = raw.FPDFPage_GetObject(page.raw, index)
        if raw.FPDFPageObj_GetType(drawn) != raw.FPDF_PAGEOBJ_PATH:
            continue
        box = [ctypes.c_float() for _ in range(4)]
        raw.FPDFPageObj_GetBounds(drawn, *box)
        left, bottom, right, top = frame.box(*(side.value for side in box))
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
