"""From the lines of PDF pages to paragraphs, list items and headings.

A PDF has no paragraphs, only lines. They are joined where the next line's first word would not have fitted on
the one before; so a sentence is whole, and the splitter can cut between sentences.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from functools import reduce
from itertools import chain, pairwise

from rag_kit.indexing.readers.pdf_characters import HYPHEN
from rag_kit.indexing.readers.pdf_grids import join_texts
from rag_kit.indexing.readers.pdf_lines import Line
from rag_kit.indexing.readers.tables import split_runs

_CJK = "\u2e80-\u303f\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff00-\uffef"
_WIDE = re.compile(f"[{_CJK}]")
_HAN = "一二三四五六七八九十百零〇"
_MARK = re.compile(  # of a list item
    rf"(?:[•●○▪■◦‣⁃∙·*–—-]|\(?\d{{1,3}}[.)]|\(?[a-zA-Z][.)])\s"
    rf"|[①-⑳㉠-㉻]|（[{_HAN}\d]{{1,3}}）|\([{_HAN}]{{1,3}}\)|\(\d{{1,3}}\)(?=[{_CJK}])|[{_HAN}\d]{{1,3}}、"
)
_CLAUSE = re.compile(  # the number of a clause at a line's beginning: 第三条, Section 4, 2.1 Scope
    rf"第[{_HAN}\d]{{1,6}}[条條章节節款编編](?P<apart>[\s：:（(【]|$)?"
    rf"|(?:Article|Section|Clause|§)\s*\d|\d{{1,2}}(?:\.\d{{1,3}})+\.?\s+[A-ZÄÖÜ{_CJK}]"
)
_OPEN_END = re.compile(r"[、，,第和及或与至]$")  # ends a line whose sentence goes on
_BULLET = re.compile(r"^[•●○▪■◦‣⁃∙]\s*")
_END = re.compile(r"[.!?。！？…：:;；][\"'”’)\]）」』]*$")
_KEY = re.compile(r"[^.,:。，、：]{1,30}[:：]")  # of a form, as in "Name: Ann"
_LEADER = re.compile(r"(?:…|(?:[.·] ?){3}) {0,9}[\divxlc]{1,5}$")  # in a table of contents: ... 12
_HYPHENATED = re.compile(f"(\\w+){HYPHEN}(?=(\\w*))")
_COMPOUND = re.compile(r"\w+-\w+")
_MAX_HEADING = 150  # characters
_LEVELS = 4  # of headings: three by size, one by bold type
_TEXT, _ITEM, _BLOCK = 0, -1, -2  # kinds beside heading levels; a block is a finished table or code
_GAP = 4  # sizes of type between words of a line that are no sentence, at least
_NARROW = 9  # sizes of type; no column is narrower
_ROW = 60  # characters of a line that can be the row of a table or form


class Layout:
    """Writes pages as markdown, in order; keeps the heading under which the next page begins."""

    def __init__(self, pages: Sequence[Sequence[Line]]) -> None:
        characters: Counter[float] = Counter()  # by size of type
        self._compounds: set[str] = set()
        for line in chain.from_iterable(pages):
            if not line.block and not line.aslant:
                characters[line.size] += len(line.text)
                self._compounds.update(_COMPOUND.findall(line.text.lower()))
        self.body = characters.most_common(1)[0][0] if characters else 0.0
        large = sorted((size for size in characters if size >= self.body * 1.12), reverse=True)
        self._sizes = large[: _LEVELS - 1]  # of headings: the largest are of level 1
        self._path: list[tuple[int, str]] = []  # level and text of the present headings
        self.first_heading = ""

    @property
    def heading(self) -> str:
        """The headings above what was read so far: ``"A > B"``."""
        return " > ".join(title for _, title in self._path)

    def page_text(self, lines: Sequence[Line]) -> str:
        """Join the lines of one page into headings, paragraphs and list items, and write these as markdown."""
        for index, line in enumerate(lines):
            line.level = self._level(lines, index)
        for run in split_runs(lines, _is_same_column):
            left, right = min(line.left for line in run), max(line.right for line in run)
            for line in run:
                line.column_left, line.column_right = left, right
        page, kind_before = "", _TEXT
        for block in _blocks(lines):
            kind, text = self._write_block(block)
            page += ("\n" if kind == kind_before == _ITEM else "\n\n") + text
            kind_before = kind
        return page.strip("\n")

    def _write_block(self, block: Sequence[Line]) -> tuple[int, str]:
        """Return a block's kind (a heading level, `_TEXT`, `_ITEM`, `_BLOCK`) and markdown; note a heading."""
        kind = block[0].level
        text = self._join_hyphenated(reduce(join_texts, (line.text for line in block)))
        if kind == _BLOCK:
            return _BLOCK, text
        text = " ".join(text.split())
        if kind > 0:
            self._path = [*((level, title) for level, title in self._path if level < kind), (kind, text)]
            self.first_heading = self.first_heading or text
            return kind, "#" * kind + " " + text
        kind = _ITEM if _MARK.match(text) else _TEXT
        text = _BULLET.sub("- ", text)
        return kind, "\\" + text if text.startswith("#") else text  # it must not look like a heading

    def _level(self, lines: Sequence[Line], index: int) -> int:
        """Return a line's heading level, by its size or else bold type; `_TEXT` or `_BLOCK` if it is no heading."""
        line = lines[index]
        text = line.text.strip()
        if line.block:
            return _BLOCK
        if line.aslant or len(text) > _MAX_HEADING or not re.search(r"[^\W\d_]", text) or HYPHEN in text:
            return _TEXT
        ends_sentence = _END.search(text)
        # a sentence must be much larger than the body text; sizes vary a little, hence 0.97 here and 0.95 below
        if not ends_sentence or line.size >= self.body * 1.4:
            for level, size in enumerate(self._sizes, 1):
                if line.size >= size * 0.97:
                    return level
        if not line.bold or ends_sentence or _BULLET.match(text) or line.size < self.body * 0.95:
            return _TEXT
        # a long bold line right above or below another one belongs to a bold paragraph
        near = [*lines[max(0, index - 1) : index], *lines[index + 1 : index + 2]] if len(text) > _ROW else []
        if any(other.bold and abs(other.bottom - line.bottom) < 1.6 * line.size for other in near):
            return _TEXT
        return len(self._sizes) + 1

    def _join_hyphenated(self, text: str) -> str:
        """Join words cut at a line's end; those that the document writes with a hyphen elsewhere keep it."""

        def join(match: re.Match[str]) -> str:
            head, tail = match.groups()
            is_compound = not tail or tail[0].isdigit() or tail[0].isupper() or head[-1].isdigit()
            return f"{head}-" if is_compound or f"{head}-{tail}".lower() in self._compounds else head

        joined = _HYPHENATED.sub(join, text)
        return joined.replace(HYPHEN, "-")  # hyphens at line ends with no word before them


def _is_same_column(line: Line, after: Line) -> bool:
    """Tell whether a line is in the column of the one before: close below it, about as far left and as large."""
    pitch = line.end_bottom - after.bottom
    is_below = -0.3 * line.size < pitch < 2.2 * line.size
    is_aligned = abs(line.left - after.left) < 5 * max(line.size, 6)
    return is_below and is_aligned and abs(line.size - after.size) < 0.2 * line.size + 0.1


def _blocks(lines: Sequence[Line]) -> list[list[Line]]:
    """Group lines into headings, paragraphs, list items and finished blocks."""
    blocks: list[list[Line]] = []
    for line in lines:
        if blocks and _goes_on(blocks[-1], line):
            blocks[-1].append(line)
        else:
            blocks.append([line])
    return blocks


def _goes_on(block: Sequence[Line], after: Line) -> bool:
    """Tell whether the next line belongs to a block of lines: to its heading, or to its paragraph or list item."""
    line = block[-1]
    if line.level != after.level or line.level == _BLOCK:
        return False
    if line.level > 0:
        return 0 < line.bottom - after.bottom < 2 * after.size
    if _begins_paragraph(line, after) or abs(line.size - after.size) > 0.15 * line.size:
        return False
    pitch = line.end_bottom - after.bottom
    if pitch < 0:  # the next line begins another column: the paragraph goes on there if a sentence is cut
        begins_within_sentence = after.text[0].islower() or bool(_WIDE.match(after.text))
        return begins_within_sentence and not _END.search(line.text) and _has_no_room(line, after)
    overlaps = after.left <= line.right and after.right >= line.left
    if not overlaps or not 0.3 * line.size < pitch < 2.2 * line.size:
        return False
    indent = 0.7 * line.size
    is_indented = after.left > line.left + indent and not _MARK.match(line.text)
    # a single line that ends a sentence is a paragraph of its own if the next line is indented
    is_whole = len(block) == 1 and bool(_END.search(line.text)) and after.left > after.column_left + indent
    return not is_indented and not is_whole and _has_no_room(line, after)


def _begins_paragraph(line: Line, after: Line) -> bool:
    """Tell whether the next line begins a paragraph: with the mark of a list item, the number of a clause, or a key."""
    is_form = _KEY.match(line.text) and _KEY.match(after.text)  # "Name: Ann" below "Date: May"
    if is_form or _LEADER.search(line.text) or _has_gap(line) or _has_gap(after):
        return True
    is_open = _OPEN_END.search(line.text) is not None  # as behind "and, ": a number below goes on with it
    if _MARK.match(after.text):
        is_bullet = after.text[0] in "•●○▪■◦‣⁃∙·*–—-"
        return is_bullet or not is_open
    clause = _CLAUSE.match(after.text)
    if clause is None or is_open:
        return False
    is_ended = _END.search(line.text) and not re.search(r"\d\.$", line.text)  # 2020. is half of a date
    is_apart = clause["apart"] is not None  # as in 第三条：
    return is_apart or bool(is_ended)


def _has_gap(line: Line) -> bool:
    """Tell whether a line has one wide gap between its words, as between a job and its years in a CV."""
    gaps = sorted(after.left - word.right for word, after in pairwise(line.words))
    return len(gaps) > 1 and gaps[-1] > _GAP * line.size > _GAP * gaps[-2]


def _has_no_room(line: Line, after: Line) -> bool:
    """Tell whether the first word of the next line would not have fitted on this one."""
    if line.text.endswith(HYPHEN):
        return True
    if line.right - line.left < _NARROW * line.size:
        return False
    word = after.text.split(" ", 1)[0]
    word_length = min(2, len(word)) if _WIDE.search(word[:2]) else len(word)  # Chinese breaks anywhere
    character_width = (after.right - after.left) / max(1, len(after.text))
    return line.right + (word_length + 1) * character_width > line.column_right - 0.5 * line.size
