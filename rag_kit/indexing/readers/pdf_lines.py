"""The lines of a PDF page with their words, positions and sizes, and its rules, read from PDFium."""

from __future__ import annotations

import ctypes
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import groupby
from typing import Any, TypeAlias

import pypdfium2.raw as raw

from rag_kit.concurrency.notes import write_note
from rag_kit.indexing.readers.parts import LEFT_OUT
from rag_kit.indexing.readers.pdf_characters import HYPHEN, WORD, Characters, Frame
from rag_kit.indexing.readers.tables import split_runs

_LINE = re.compile(r"[^\r\n]+")
_TYPED = (4, 5, 6)  # PDFium's numbers of fields with a choice, a list or a text
_BOXES = (2, 3)  # and of those that are ticked
_BELOW_BOX = 3  # points from the foot of a box down to the foot of its text, at most
_MAX_TYPED = 200_000  # bytes of a field
_MAX_RULES = 2_000  # of a page; more are a drawing
THICK = 3  # points; what is wider has two sides, and near ones touch
_SHORT = 5  # points; no rule is so short
_Span: TypeAlias = tuple[int, int]  # a word, as the indices of its first character and behind its last one


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
    """A line of a page; lengths in points."""

    text: str
    left: float
    right: float
    bottom: float
    end_bottom: float  # of the last character
    size: float  # of the type
    height: float  # where it is on the page, from 0 (bottom) to 1
    bold: bool = False
    mono: bool = False  # in a font of fixed width
    words: list[Word] = field(default_factory=list)
    block: bool = False  # whether `text` is finished markdown
    aslant: bool = False  # as a watermark runs
    level: int = 0  # of a heading; this and the next two are noted by `Layout`
    column_left: float = 0.0  # where its column begins
    column_right: float = 0.0  # where it ends

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
        """Tell whether two rules cross or meet, or are so near that they look so."""
        overlaps = self.start < other.end + THICK and other.start < self.end + THICK
        if self.upright == other.upright:
            return overlaps and abs(self.at - other.at) < THICK
        crosses_self = self.start - THICK < other.at < self.end + THICK
        return crosses_self and other.start - THICK < self.at < other.end + THICK


@dataclass
class Sheet:
    """The lines of a page that run in one direction, and its drawn rules, as if the page were turned to read them."""

    lines: list[Line]
    rules: list[Rule]


def read_sheets(page: Any, form: Any) -> list[Sheet]:
    """Read the text of a page and of its form fields: one sheet a direction, the one with most text first."""
    rotation = page.get_rotation()
    lines_of = _lines_by_turn(page, rotation)
    lengths = Counter({turn: sum(len(line.text) for line in lines) for turn, lines in lines_of.items()})
    sheets: list[Sheet] = []
    turns = [turn for turn, _ in lengths.most_common()] or [rotation]  # without text there may be form fields
    is_headed = any(
        line.height > 0.5 for line in lines_of.get(rotation, [])
    )  # by upright text, as by a title
    turns.sort(key=lambda turn: is_headed and turn != rotation)
    for turn in turns:
        lines = lines_of.get(turn, [])
        if turn != rotation:  # PDFium finds the words and lines well only of text that is upright on the page
            page.set_rotation(turn)
            lines = _lines_by_turn(page, turn).get(turn, [])
        frame = Frame(turn, *page.get_bbox())
        if not sheets:
            _add_fields(lines, page, form, frame)
        if lines:
            lines.sort(key=lambda line: line.aslant)  # a watermark behind the text
            sheets.append(Sheet(lines, _page_rules(page, frame)))
    page.set_rotation(rotation)
    return sheets


def _lines_by_turn(page: Any, rotation: int) -> dict[int, list[Line]]:
    """Map each direction of text (degrees) to its lines; the page is turned by ``rotation``, and measured so."""
    lines: dict[int, list[Line]] = {}
    with closing(page.get_textpage()) as text_page:
        frame = Frame(rotation, *page.get_bbox())
        characters = Characters(text_page.raw, frame)
        if characters.may_be_cut():
            write_note(f"text behind the first 32,767 bytes of a string{LEFT_OUT}PDFium reads no more")
        for turn, spans in _turned_spans(characters):
            for level in _level_spans(characters, spans):
                if line := _read_line(characters, level, frame):
                    lines.setdefault(turn, []).append(line)
    return lines


def _turned_spans(characters: Characters) -> Iterator[tuple[int, list[_Span]]]:
    """Yield the direction (degrees) and the words of each line; a line is cut where its direction changes."""
    for line in _LINE.finditer(characters.text):
        spans = [word.span() for word in WORD.finditer(characters.text, *line.span())]
        if not spans:
            continue
        first, last = characters.turn(spans[0][0]), characters.turn(spans[-1][0])
        if first == last:  # the usual case: the words between, taken to run the same way, are not asked
            yield first, spans
            continue
        for turn, words in groupby(spans, lambda span: characters.turn(span[0])):
            yield turn, list(words)


def _level_spans(characters: Characters, spans: list[_Span]) -> list[list[_Span]]:
    """Cut a line of words where the next one is apart and at another height: PDFium makes one line of some cells."""
    near = 0.4 * characters.size(spans[0][0])
    _, first_bottom, _ = characters.extent(spans[0][0])
    _, last_bottom, _ = characters.extent(spans[-1][1] - 1)
    if abs(first_bottom - last_bottom) < near:
        return [spans]

    def goes_on(word: _Span, after: _Span) -> bool:
        next_left, next_bottom, _ = characters.extent(after[0])
        _, bottom, _ = characters.extent(word[0])
        _, _, right = characters.extent(word[1] - 1)
        return -near < next_left - right < 2 * near or abs(next_bottom - bottom) < near

    return split_runs(spans, goes_on)


def _read_line(characters: Characters, spans: list[_Span], frame: Frame) -> Line | None:
    """Make a line of words, with its position, font size and kind of font; None if they show nothing."""
    start, last = spans[0][0], spans[-1][1] - 1  # its first and last character
    text = characters.decoded(start, last + 1)
    if not text.strip():
        return None
    left, bottom, _ = characters.extent(start)
    _, end_bottom, right = characters.extent(last)
    # a bullet at the beginning may be of another font
    letter = next((n for n in range(start, last + 1) if characters.text[n].isalnum()), start)
    bold, mono = characters.is_bold_and_mono(letter)
    if bold or mono:  # the line is so only if its end is, too; PDFium may have made up a hyphen there
        late = (letter + last) // 2 if characters.text[last] == HYPHEN else last
        end_bold, end_mono = characters.is_bold_and_mono(late)
        bold, mono = bold and end_bold, mono and end_mono
    size = characters.size(letter)
    page_left, page_foot, page_right, page_top = frame.box(frame.left, frame.bottom, frame.right, frame.top)
    if right < page_left or page_right < left or page_top < bottom or bottom + size < page_foot:
        write_note(f"text beside the edge of a page{LEFT_OUT}the page does not show it")
        return None
    line = Line(text, left, right, bottom, end_bottom, round(size, 1), frame.height_of(bottom), bold, mono)
    line.aslant = characters.is_aslant(letter)
    for first, stop in spans:
        if word := characters.decoded(first, stop):
            edges = characters.extent(first)[0], characters.extent(stop - 1)[2]
            line.words.append(Word(word, *edges, bottom, size))
    return line


def _add_fields(lines: list[Line], page: Any, form: Any, frame: Frame) -> None:
    """Add what is filled into a form: each text to the nearest line at its left, or as a line of its own.

    A box to tick may stand before its text, too.
    """
    for text, box in _field_values(page, form):
        left, bottom, right, top = frame.box(box.left, box.bottom, box.right, box.top)
        is_box = text in "☑☐"
        lowest = bottom - _BELOW_BOX if is_box else bottom
        level = (line for line in lines if lowest <= line.bottom <= top)
        if beside := [line for line in level if is_box or line.left < left]:
            line = min(beside, key=lambda line: max(left - line.right, line.left - right, 0))
        else:
            size = min(10.0, top - bottom)  # forms are usually set in 10 points
            line = Line("", left, right, bottom, bottom, size, frame.height_of(bottom))
            lines.append(line)
        texts, index = line.text.split(), sum(word.left < left for word in line.words)
        texts.insert(index if len(texts) == len(line.words) else len(texts), text)
        line.text, line.left, line.right = " ".join(texts), min(line.left, left), max(line.right, right)
        line.words.insert(index, Word(text, left, right, line.bottom, line.size))


def _field_values(page: Any, form: Any) -> Iterator[tuple[str, Any]]:
    """Yield the text of each filled form field and typed remark, ☑ or ☐ for a box to tick, with its rectangle."""
    for index in range(raw.FPDFPage_GetAnnotCount(page)):
        field, box = raw.FPDFPage_GetAnnot(page, index), raw.FS_RECTF()
        try:
            subtype = raw.FPDFAnnot_GetSubtype(field)
            field_type = -1 if form is None else raw.FPDFAnnot_GetFormFieldType(form, field)
            raw.FPDFAnnot_GetRect(field, box)
            if subtype == raw.FPDF_ANNOT_TEXT:
                write_note(f"comments on pages{LEFT_OUT}only the pages are read")
            elif field_type in _BOXES:
                yield "☑" if raw.FPDFAnnot_IsChecked(form, field) else "☐", box
            if subtype == raw.FPDF_ANNOT_FREETEXT:
                read = partial(raw.FPDFAnnot_GetStringValue, field, b"Contents")
            elif field_type in _TYPED:
                read = partial(raw.FPDFAnnot_GetFormFieldValue, form, field)
            else:
                continue
            size = read(None, 0)  # bytes of UTF-16; 2 for no text
            if not 2 < size < _MAX_TYPED:
                continue
            buffer = (ctypes.c_ushort * (size // 2))()
            read(buffer, size)
        finally:
            raw.FPDFPage_CloseAnnot(field)
        if value := " ".join(bytes(buffer).decode("utf-16-le", "replace").replace("\0", " ").split()):
            yield value, box


def _page_rules(page: Any, frame: Frame) -> list[Rule]:
    """List the straight lines and sides of boxes that are drawn on a page; so many that it is a drawing give none."""
    rules: list[Rule] = []
    for index in range(raw.FPDFPage_CountObjects(page.raw)):
        path = raw.FPDFPage_GetObject(page.raw, index)
        if raw.FPDFPageObj_GetType(path) != raw.FPDF_PAGEOBJ_PATH:
            continue
        sides = [ctypes.c_float() for _ in range(4)]
        raw.FPDFPageObj_GetBounds(path, *sides)
        left, bottom, right, top = frame.box(*(side.value for side in sides))
        width, height = right - left, top - bottom
        segments = raw.FPDFPath_CountSegments(path)
        is_aslant = segments < 4 and min(height, width) > THICK
        if segments > 6 or is_aslant:  # more than a box
            continue
        if height > _SHORT:
            xs = {left, right} if width > THICK else {left}  # a thin box is one line
            rules += [Rule(upright=True, at=x, start=bottom, end=top) for x in xs]
        if width > _SHORT:
            ys = {bottom, top} if height > THICK else {bottom}
            rules += [Rule(upright=False, at=y, start=left, end=right) for y in ys]
        if len(rules) > _MAX_RULES:
            return []
    return rules
