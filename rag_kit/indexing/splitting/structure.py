"""The skeleton of a markdown text: sections under headings, paragraphs, tables, code, list items."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from langchain_core.documents import Document

_SPECIAL = re.compile(
    r"^(?: {0,3}(?P<mark>\#{1,6})[ \t]+(?P<title>\S[^\n]*)"
    r"|(?P<setext>[^\s#|>\-*+`~][^\n]*)\n={3,}[ \t]*$"
    r"|(?P<fence>[ ]{0,3}(?:`{3,}|~{3,}))[^\n]*"
    r"|(?P<table>[ \t]*\|[^\n]*(?:\n[ \t]*\|[^\n]*)*)"
    r"|(?P<item>[ \t]*(?:[-*+•]|\d{1,4}[.)])[ \t])"
    r"|(?P<blank>[ \t]*$))",
    re.M,
)
_VISIBLE = re.compile(r"\S")
#: Formats of documents whose text is not markdown.
NOT_MARKDOWN = frozenset({"txt", "json", "jsonl"})
_MAX_TITLE = 200  # characters of a heading, for each chunk below it carries the whole path
_DELIMITER = re.compile(r"[ \t]*\|(?:[ \t]*:?-+:?[ \t]*\|)*[ \t]*:?-+:?[ \t]*\|?[ \t]*$")


@dataclass(frozen=True)
class Keep:
    """A stretch that is cut only between its lines, and only if it does not fit: a table, code, a list item."""

    kind: Literal["table", "code", "item"]
    start: int
    end: int
    header: str = ""


@dataclass
class Section:
    """What stands under one heading (or several that follow each other at once)."""

    start: int
    end: int
    heading: str
    ends: list[int] = field(default_factory=list)  # where paragraphs and blocks end
    keeps: list[Keep] = field(default_factory=list)


def sections(text: str, *, heading: str = "", markdown: bool = True) -> Iterator[Section]:
    """Cut a text at its headings and note where its blocks end.

    Each line is looked at once, so the time grows with the text; a heading counts with its first 200 characters.

    Args:
        text: The text.
        heading: Headings above its beginning (``"A > B"``), from the page before.
        markdown: Whether ``#`` lines, tables and fences mean something; else only blank lines do.

    Example:
        >>> [(s.heading, s.start, s.end) for s in sections("# A\\n\\none\\n\\n## B\\n\\ntwo")]
        [('A', 0, 10), ('A > B', 10, 19)]
    """
    path: list[tuple[int, str]] = [
        (level, title) for level, title in enumerate(heading.split(" > "), 1) if title
    ]
    current = Section(0, len(text), heading)
    bare, body = True, 0  # only headings so far in this section; where its text could begin
    visible = _visible(text, body)
    item: int | None = None
    skip = 0
    for match in _SPECIAL.finditer(text):
        start, kind = match.start(), match.lastgroup
        if start < skip:
            continue
        if not markdown and kind != "blank":
            continue
        if visible < start:
            bare = False
        if item is not None:
            current.keeps.append(Keep("item", item, start))
            item = None
        if not bare:
            _end(current, start)
        if kind in ("title", "setext"):
            title = match["title"].rstrip("# \t") if kind == "title" else match["setext"].strip()
            level = len(match["mark"]) if kind == "title" else 1
            path = [entry for entry in path if entry[0] < level]
            path.append((level, " ".join(title.split())[:_MAX_TITLE]))
            joined = " > ".join(name for _, name in path if name)
            if bare:
                current.heading = joined
            else:
                current.end = start
                yield current
                current = Section(start, len(text), joined)
            skip = body = match.end()
            bare, visible = True, _visible(text, body)
            _heading_done(current, skip)
        elif kind == "item":
            item, bare = start, False
        elif kind in ("fence", "table"):
            skip, header, bare = match.end(), "", False
            if kind == "fence":
                fence = re.escape(match["fence"].strip())
                close = re.compile(rf"^[ ]{{0,3}}{fence}[`~]*[ \t]*$", re.M).search(text, skip)
                skip = close.end() if close else len(text)
            else:
                lines = match["table"].split("\n", 2)
                header = "\n".join(lines[:2]) if len(lines) > 1 and _DELIMITER.match(lines[1]) else ""
            current.keeps.append(Keep("code" if kind == "fence" else "table", start, skip, header))
            current.ends.append(skip)
    if item is not None:
        current.keeps.append(Keep("item", item, len(text)))
    _end(current, len(text))
    yield current


def _visible(text: str, start: int) -> int:
    """The place of the first character after ``start`` that is no white space."""
    match = _VISIBLE.search(text, start)
    return match.start() if match else len(text)


def _end(section: Section, position: int) -> None:
    """A block ends here."""
    if position > section.start and (not section.ends or section.ends[-1] < position):
        section.ends.append(position)


def _heading_done(section: Section, position: int) -> None:
    """No cut between a heading and what follows it: drop the block ends up to here."""
    while section.ends and section.ends[-1] <= position:
        section.ends.pop()


class Headings:
    """The headings of a document.

    Args:
        document: Its text is taken as markdown unless metadata ``format`` says otherwise.

    Attributes:
        markdown: Whether it is.

    Example:
        >>> from langchain_core.documents import Document
        >>> headings = Headings(Document("# Lake\\n\\nIt is deep.\\n\\n## Fish\\n\\nTrout."))
        >>> headings.at(10), headings.at(35)
        ('Lake', 'Lake > Fish')
    """

    def __init__(self, document: Document) -> None:
        given = document.metadata.get("heading")
        self.markdown = document.metadata.get("format") not in NOT_MARKDOWN
        title = given if isinstance(given, str) else ""
        found = list(sections(document.page_content, heading=title, markdown=self.markdown))
        self._starts = [section.start for section in found]
        self._headings = [section.heading for section in found]

    def at(self, place: int) -> str:
        """The headings above a place, ``""`` where there are none."""
        index = bisect_right(self._starts, place) - 1
        return self._headings[index] if index >= 0 else ""

    def metadata_at(self, place: int | None) -> dict[str, str]:
        """The field ``heading`` of what begins at a place; no field where nothing stands above it."""
        heading = "" if place is None else self.at(place)
        return {"heading": heading} if heading else {}
