"""Packing a text into spans of limited length, cut at the best place there is."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import NamedTuple

from rag_kit.errors import InvalidInputError
from rag_kit.indexing.splitting.structure import Keep, Section, sections
from rag_kit.text import sentences

_SOFT = ("\n", ";；", ",，、:：", " \t\u3000")
_BLANK_LINES = re.compile(r"(?:[ \t]*\n)+")
_CLUSTER = 64  # the longest run of combining marks and joined emoji that is respected


class Span(NamedTuple):
    """A chunk's place: ``text[start:end]``, the headings above it, the header of the table it goes on with."""

    start: int
    end: int
    heading: str
    table_header: str


def check_sizes(chunk_size: int, chunk_overlap: int) -> None:
    """Refuse sizes that make no sense.

    Raises:
        InvalidInputError: Not whole numbers, ``chunk_size`` below 20, or an overlap of over half of it.
    """
    for name, value in (("chunk_size", chunk_size), ("chunk_overlap", chunk_overlap)):
        if isinstance(value, bool) or not isinstance(value, int):
            raise InvalidInputError(f"{name} must be a whole number of characters, not {value!r}.")
    if chunk_size < 20:
        raise InvalidInputError(f"chunk_size={chunk_size} is too small; use 20 characters or more.")
    if not 0 <= chunk_overlap <= chunk_size // 2:
        raise InvalidInputError(
            f"chunk_overlap={chunk_overlap} is not allowed: from 0 to half of chunk_size={chunk_size}."
        )


def split_spans(
    text: str, *, chunk_size: int = 1000, chunk_overlap: int = 100, heading: str = "", markdown: bool = True
) -> Iterator[Span]:
    """Where to cut a text, one span at a time.

    Args:
        text: The text.
        chunk_size: Most characters of a span.
        chunk_overlap: Most characters that a span repeats from the one before; whole sentences only.
        heading: Headings above the text's beginning (``"A > B"``).
        markdown: Whether headings, tables and fences are to be seen.

    Yields:
        Spans in order. None is blank, none is longer than ``chunk_size``, every visible character is in one.

    Raises:
        InvalidInputError: See `check_sizes`.

    Example:
        >>> text = "# Lake\\n\\nIt is deep. It is cold."
        >>> [(text[s.start:s.end], s.heading) for s in split_spans(text, chunk_size=20, chunk_overlap=0)]
        [('# Lake\\n\\nIt is deep.', 'Lake'), ('It is cold.', 'Lake')]
    """
    check_sizes(chunk_size, chunk_overlap)
    packer = _Packer(text, chunk_size, chunk_overlap)
    for section in sections(text, heading=heading, markdown=markdown):
        yield from packer.section(section)


class _Packer:
    def __init__(self, text: str, size: int, overlap: int) -> None:
        self.text = text
        self.size = size
        self.overlap = overlap
        self._sentence_ends: list[int] = []

    def sentence_ends(self, section: Section) -> list[int]:
        """Where the sentences of a section end; found when the first of them is cut."""
        if not self._sentence_ends or self._sentence_ends[-1] <= section.start:
            text = self.text[section.start : section.end]
            found = sentences(text, max_chars=max(20, len(text)))
            self._sentence_ends = [section.start + sentence.end for sentence in found]
        return self._sentence_ends

    def section(self, section: Section) -> Iterator[Span]:
        keeps = section.keeps
        starts = [keep.start for keep in keeps]
        position, done = section.start, section.start
        end = self._trim_end(section.start, section.end)
        while done < end:
            position = self._trim_start(position, end, keeps, starts)
            limit = position + self.size
            if end <= limit:
                cut = end
            else:
                cut = self._cut(section, keeps, starts, position, max(done, position), limit)
                if cut < 0:  # nothing new fits behind the repeated sentences: do without them
                    position = done
                    continue
            last = self._trim_end(position, cut)
            if last > position:
                yield Span(position, last, section.heading, self._header(keeps, starts, position))
            began, done, position = position, cut, cut
            if cut < end and self.overlap:
                again = self._repeat(section, keeps, starts, cut)
                position = again if again > began else cut  # a chunk is never repeated whole

    def _cut(
        self, section: Section, keeps: list[Keep], starts: list[int], position: int, done: int, limit: int
    ) -> int:
        """The best place in ``(done, limit]``; -1 where there is none and the span holds repeated text."""
        index = bisect_right(section.ends, limit) - 1
        block = section.ends[index] if index >= 0 and section.ends[index] > done else -1
        if block - position >= self.size // 2:
            return block
        inside = bisect_right(starts, limit) - 1 if starts else -1
        if inside >= 0 and keeps[inside].end > limit:
            keep = keeps[inside]
            if keep.start > done and (
                keep.end - keep.start <= self.size or keep.start - position >= self.size // 2
            ):
                if self.text[done : keep.start].strip():
                    return keep.start
            elif keep.kind != "item":
                line = self.text.rfind("\n", max(done, keep.start), limit) + 1
                if line > done and self._after_header(keep, line):
                    return line
        ends = self.sentence_ends(section)
        before = bisect_right(ends, limit)
        if before and ends[before - 1] > done:
            return ends[before - 1]
        if block > done and self.text[done:block].strip():
            return block
        if position < done and self.text[position:done].strip():
            return -1
        return self._hard(position, limit)

    @staticmethod
    def _after_header(keep: Keep, line: int) -> bool:
        """A table's header alone is no chunk."""
        return not keep.header or line > keep.start + len(keep.header) + 1

    def _hard(self, position: int, limit: int) -> int:
        """Inside a sentence that is too long: after a line, a clause, a word, else between whole characters."""
        text = self.text
        low = position + self.size // 2
        for marks in _SOFT:
            place = max(text.rfind(mark, low, limit) for mark in marks)
            if place >= 0:
                return place + 1
        return whole_character(text, limit, position + 1)

    def _repeat(self, section: Section, keeps: list[Keep], starts: list[int], cut: int) -> int:
        """Where the next span begins, so that it repeats whole sentences of at most ``overlap`` characters."""
        stop = self._trim_end(section.start, cut)
        index = bisect_right(starts, stop - 1) - 1 if starts else -1
        if index >= 0 and keeps[index].end >= stop and keeps[index].kind != "item":
            return cut  # rows and code are not repeated
        low = max(section.start, cut - self.overlap)
        if index >= 0:
            low = max(low, keeps[index].start if keeps[index].kind == "item" else keeps[index].end)
            if low == keeps[index].start and self.text[low:stop].strip():
                return low
        ends = self.sentence_ends(section)
        first = bisect_left(ends, low)
        return ends[first] if first < len(ends) and ends[first] < stop else cut

    def _header(self, keeps: list[Keep], starts: list[int], position: int) -> str:
        if not starts:
            return ""
        index = bisect_right(starts, position) - 1
        if index < 0:
            return ""
        keep = keeps[index]
        # a header as long as a chunk would multiply the text
        fits = len(keep.header) <= self.size
        return keep.header if fits and keep.start < position < keep.end else ""

    def _trim_start(self, position: int, end: int, keeps: list[Keep], starts: list[int]) -> int:
        """Past white space; inside code the indentation of the first line stays."""
        text = self.text
        index = bisect_right(starts, position) - 1 if starts else -1
        if index >= 0 and keeps[index].kind == "code" and position < keeps[index].end:
            match = _BLANK_LINES.match(text, position, end)
            return match.end() if match else position
        while position < end and text[position].isspace():
            position += 1
        return position

    def _trim_end(self, start: int, end: int) -> int:
        text = self.text
        while end > start and text[end - 1].isspace():
            end -= 1
        return end


def whole_character(text: str, cut: int, low: int) -> int:
    """The last place at or before ``cut`` that does not tear a character that is written with several code points.

    Example:
        >>> whole_character("ae\\u0301", 2, 0)
        1
    """
    place = cut
    while place > max(low, cut - _CLUSTER) and _tears(text, place):
        place -= 1
    return place if not _tears(text, place) else cut


def _tears(text: str, place: int) -> bool:
    if place >= len(text) or text[place] < "\u0300":
        return place > 0 and text[place - 1 : place] == "\u200d"
    code = ord(text[place])
    if code in (0x200D, 0xFE0E, 0xFE0F) or 0x1F3FB <= code <= 0x1F3FF or 0xE0020 <= code <= 0xE007F:
        return True
    if text[place - 1] == "\u200d" or unicodedata.category(text[place])[0] == "M":
        return True
    if 0xDC00 <= code < 0xE000 and 0xD800 <= ord(text[place - 1]) < 0xDC00:
        return True
    if 0x1F1E6 <= code <= 0x1F1FF:  # flags are pairs
        run = 0
        while run < place and run < _CLUSTER and 0x1F1E6 <= ord(text[place - 1 - run]) <= 0x1F1FF:
            run += 1
        return run % 2 == 1
    return False
