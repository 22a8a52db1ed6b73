"""Packing a text into spans of limited length, cut at the best points there are."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from operator import attrgetter
from typing import NamedTuple

from rag_kit.errors import InvalidInputError
from rag_kit.indexing.splitting.structure import Block, Section, sections
from rag_kit.text import sentences

_SOFT_MARKS = ("\n", ";；", ",，、:：", " \t\u3000")  # a long sentence is cut at the first kind it has
_BLANK = re.compile(r"\s+")
_PARAGRAPH_END = re.compile(r"\n[^\S\n]*\n")
_BLANK_LINES = re.compile(r"(?:[ \t]*\n)+")
_MAX_CLUSTER = 64  # the longest run of combining marks and joined emoji that is respected


class Span(NamedTuple):
    """A chunk: ``text[start:end]``, the headings above it, and the header of the table that it continues."""

    start: int
    end: int
    heading: str
    table_header: str


def check_sizes(chunk_size: int, chunk_overlap: int | None, default: int = 100) -> int:
    """Return the overlap, for None the default or half of a smaller size; InvalidInputError if one is not allowed."""
    overlap = default if chunk_overlap is None else chunk_overlap
    for name, value in (("chunk_size", chunk_size), ("chunk_overlap", overlap)):
        if isinstance(value, bool) or not isinstance(value, int):
            raise InvalidInputError(f"{name} must be a whole number of characters, not {value!r}.")
    if chunk_size < 20:
        raise InvalidInputError(f"chunk_size={chunk_size} is too small; use 20 characters or more.")
    if chunk_overlap is None:
        return min(overlap, chunk_size // 2)
    if not 0 <= overlap <= chunk_size // 2:
        allowed = f"from 0 to half of chunk_size={chunk_size}"
        raise InvalidInputError(f"chunk_overlap={overlap} is not allowed: {allowed}.")
    return overlap


def split_spans(
    text: str, *, chunk_size: int = 1000, chunk_overlap: int = 100, heading: str = "", markdown: bool = True
) -> Iterator[Span]:
    """Cut a text, one span at a time; none is blank or too long, every visible character is in one.

    ``heading`` is the path of headings above the text (``"A > B"``). Sizes are in characters, and were checked;
    the overlap is of whole sentences. Without ``markdown``, headings, tables and fences are text like any other.
    """
    for section in sections(text, heading=heading, markdown=markdown):
        yield from _SectionPacker(text, section, chunk_size, chunk_overlap).spans()


def pack_sentences(
    text: str, breaks: Iterable[int], chunk_size: int, chunk_overlap: int = 0
) -> Iterator[tuple[int, int]]:
    """Cut a text between sentences; yield start and end of spans, none of which crosses one of the ``breaks``."""
    for start, end in pairwise([0, *breaks, len(text)]):
        for span in _SectionPacker(text, Section(start, end, ""), chunk_size, chunk_overlap).spans():
            yield span[:2]


@dataclass
class _SectionPacker:
    """Packs the text of one section into spans."""

    text: str
    section: Section
    size: int
    overlap: int
    _sentence_ends_of: dict[int, list[int]] = field(default_factory=dict)  # by a paragraph's number

    def spans(self) -> Iterator[Span]:
        """Yield the spans of a section: each ends at the best cut there is, and may repeat text of the one before."""
        # the next span begins at position; what is in it up to packed_to repeats text of the span before
        position = packed_to = self.section.start
        section_end = position + len(self.text[position : self.section.end].rstrip())
        while packed_to < section_end:
            block = self._block_at(position)
            is_in_code = block is not None and block.kind == "code"  # where the indentation of a line stays
            blank = (_BLANK_LINES if is_in_code else _BLANK).match(self.text, position, section_end)
            position = blank.end() if blank else position
            fits = section_end - position <= self.size
            cut = section_end if fits else self._best_cut(position, max(packed_to, position))
            if cut < 0:  # nothing new fits behind the repeated sentences: do without them
                position = packed_to
                continue
            span_end = position + len(self.text[position:cut].rstrip())
            next_position = cut
            if span_end > position:
                yield Span(position, span_end, self.section.heading, self._table_header(position))
                if cut < section_end and self.overlap:
                    next_position = self._overlap_start(span_end, cut)
            if next_position <= position:
                next_position = cut  # a chunk is never repeated whole
            position, packed_to = next_position, cut

    @cached_property
    def _paragraphs(self) -> list[int]:
        """The offsets where the section's paragraphs begin, and its end."""
        start, end = self.section.start, self.section.end
        return [start, *(match.end() for match in _PARAGRAPH_END.finditer(self.text, start, end)), end]

    def _sentence_ends(self, paragraph: int) -> list[int]:
        """Return the offsets where the sentences of a paragraph (by its number) end; they are found only once."""
        if paragraph not in self._sentence_ends_of:
            start, end = self._paragraphs[paragraph : paragraph + 2]
            # `sentences` cuts none that is no longer than the paragraph; it takes 20 or more
            uncut = sentences(self.text[start:end].rstrip(), max_chars=max(20, end - start))
            self._sentence_ends_of[paragraph] = [start + sentence.end for sentence in uncut]
        return self._sentence_ends_of[paragraph]

    def _last_sentence_end(self, low: int, high: int) -> int:
        """Return the last end of a sentence in ``(low, high]``, else -1."""
        # from the paragraph that ``high`` is in, back to the one that ``low`` is in
        last_paragraph = min(bisect_right(self._paragraphs, high), len(self._paragraphs) - 1) - 1
        for paragraph in range(last_paragraph, -1, -1):
            if self._paragraphs[paragraph + 1] <= low:
                break
            if (end := _last_between(self._sentence_ends(paragraph), low, high)) >= 0:
                return end
        return -1

    def _next_sentence_end(self, low: int) -> int:
        """Return the first end of a sentence from ``low`` on, else the end of the section."""
        for number in range(bisect_right(self._paragraphs, low) - 1, len(self._paragraphs) - 1):
            for end in self._sentence_ends(number):
                if end >= low:
                    return end
        return self.section.end

    def _block_before(self, position: int) -> Block | None:
        """Return the last table, code or list item that begins at a position or before it."""
        index = bisect_right(self.section.blocks, position, key=attrgetter("start")) - 1
        return self.section.blocks[index] if index >= 0 else None

    def _block_at(self, position: int) -> Block | None:
        """Return the table, code or list item that a position is in."""
        block = self._block_before(position)
        return block if block is not None and position < block.end else None

    def _best_cut(self, position: int, packed_to: int) -> int:
        """Return the best end of a span from ``position``; -1 if nothing after ``packed_to`` fits with the overlap.

        The choices, best first: a block's end in the span's second half, an edge or line of the table, code or list
        item at the limit, a sentence's end, a point inside the sentence.
        """
        limit = position + self.size
        block_end = _last_between(self.section.ends, packed_to, limit)  # -1 if no block ends there
        if block_end - position >= self.size // 2:
            return block_end
        if (cut := self._cut_at_block(position, packed_to, limit)) >= 0:
            return cut
        if (cut := self._last_sentence_end(packed_to, limit)) >= 0:
            return cut
        # a sentence is cut only where nothing is repeated; else the caller tries again without the overlap
        repeated = self.text[position:packed_to].strip()
        return -1 if repeated else self._cut_sentence(position, limit)

    def _cut_at_block(self, position: int, packed_to: int, limit: int) -> int:
        """Return where to cut if the limit is in a table, code or item: before it or between its lines; else -1."""
        block = self._block_at(limit)
        if block is None:
            return -1
        # before it, if it fits the next span whole, or if this span is half full there
        fits_next_span = block.end - block.start <= self.size
        if block.start > packed_to and (fits_next_span or block.start - position >= self.size // 2):
            return block.start if self.text[packed_to : block.start].strip() else -1
        if block.kind == "item":
            return -1  # cut between sentences, not lines
        line_end = self.text.rfind("\n", max(packed_to, block.start), limit) + 1
        # a table's header, with the line break behind it, is no chunk by itself
        header_end = block.start + len(block.header) + 1 if block.header else 0
        return line_end if line_end > max(packed_to, header_end) else -1

    def _cut_sentence(self, position: int, limit: int) -> int:
        """Cut inside a sentence that is too long: after a line, a clause, a word, else between whole characters."""
        for marks in _SOFT_MARKS:  # the last of them in the second half of the span
            last = max(self.text.rfind(mark, position + self.size // 2, limit) for mark in marks)
            if last >= 0:
                return last + 1
        return _between_characters(self.text, limit, position + 1)

    def _overlap_start(self, span_end: int, cut: int) -> int:
        """Return where the next span begins, to repeat text of this one up to ``span_end``; ``cut`` for no overlap."""
        earliest = max(self.section.start, cut - self.overlap)
        block = self._block_before(span_end - 1)
        if block is not None and block.kind == "item" and earliest <= block.start:
            return block.start  # the last item is repeated whole
        if block is not None and block.kind != "item":  # rows and code are not repeated
            if block.end >= span_end:
                return cut
            earliest = max(earliest, block.end)
        sentence_end = self._next_sentence_end(earliest)
        return sentence_end if sentence_end < span_end else cut

    def _table_header(self, position: int) -> str:
        """Return the header of the table that a span continues, unless it is longer than a chunk."""
        block = self._block_at(position)
        is_continued = block and block.start < position and len(block.header) <= self.size
        return block.header if block and is_continued else ""


def _last_between(positions: Sequence[int], low: int, high: int) -> int:
    """Return the last of sorted positions in ``(low, high]``, else -1."""
    index = bisect_right(positions, high) - 1
    return positions[index] if index >= 0 and positions[index] > low else -1


def _between_characters(text: str, cut: int, low: int) -> int:
    """Return a cut, moved back (to ``low`` at most) if it tears a character of several code points, as an emoji."""
    for position in range(cut, max(low, cut - _MAX_CLUSTER) - 1, -1):
        before, after = text[position - 1 : position], text[position : position + 1]
        # marks, and skin tones (Sk, as are "^" and "`")
        combines = after > "\u00ff" and unicodedata.category(after) in ("Mn", "Mc", "Me", "Sk")
        if not combines and "\u200d" not in (before, after):  # the joiner of two emoji
            return position
    return cut
