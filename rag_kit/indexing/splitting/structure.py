"""The skeleton of a markdown text: sections under headings, paragraphs, tables, code, list items."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from operator import attrgetter
from typing import NamedTuple

from langchain_core.documents import Document

_CELL = r"[ \t]*+:?-+:?[ \t]*+"  # of the line below a table's header
_MARKUP = re.compile(
    r"^(?: {0,3}(?P<mark>\#{1,6})[ \t]+(?P<title>\S[^\n]*)"  # "## Oil"
    r"|(?P<underlined>[^\s#|>\-*+`~][^\n]*)\n={3,}[ \t]*$"  # "Oil", and "===" on the next line
    # the same of level 2, below a blank line; no item, picture, tag, sentence or paragraph, with a line to end a part
    r"|(?<![^\n]\n)(?=[^\n]+\n-{3,}[ \t]*$)(?!\d{1,4}[.)]\s)"
    r"(?P<dashed>[^\s#|>\-*+`~<!][^\n|]{0,199}(?<![\s.,;!。，；！]))[ \t]*\n-+"
    r"|(?P<code>\A---\n[\w-]+:[^\n]*(?:\n(?!---[ \t]*$|\#)[^\n]*){0,200}+\n---[ \t]*$"  # front matter
    # code goes up to a line that only closes its fence, else to the end ("*+", for going back is of no use)
    r"|[ ]{0,3}(?P<fence>`{3,}|~{3,})[^\n]*(?:\n(?![ ]{0,3}(?P=fence)[`~]*[ \t]*$)[^\n]*)*+(?:\n[^\n]*)?)"
    r"|(?P<table>[ \t]*\|[^\n]*(?:\n[ \t]*\|[^\n]*)*)"
    # a table without bars at its edges, to be known by the line below its header
    rf"|(?P<inner>(?=[^\n|]+\|)[^\n]*\n[ \t]*+\|?(?:{_CELL}\|)+{_CELL}\|?[ \t]*$(?:\n(?=[^\n|]*\|)[^\n]*)*)"
    r"|(?P<item>[ \t]*(?:[-*+•]|\d{1,4}[.)])[ \t])"  # "- ", "12. "
    r"|(?P<blank>[ \t]*$))",
    re.M,
)
_BLANK_LINE = re.compile(r"^(?P<blank>[ \t]*$)", re.M)
# "| Name | Size |", and "|---|:-:|" on the next line
_TABLE_HEADER = re.compile(rf"[^\n]*\n[ \t]*+\|?(?:{_CELL}\|)*{_CELL}\|?[ \t]*$", re.M)
_HEADINGS = frozenset({"title", "underlined", "dashed"})
_CLOSING_SIGNS = re.compile(r"(?:^|(?<=[ \t]))#+$")
_NOT_MARKDOWN = frozenset({"txt", "json", "jsonl"})  # formats of documents
_MAX_TITLE = 200  # characters of a heading, for each chunk below it carries the whole path


class Block(NamedTuple):
    """A ``table``, ``code`` or list ``item``: cut only between its lines, and only if it is too long."""

    kind: str
    start: int
    end: int
    header: str = ""


@dataclass
class Section:
    """Part of a text under one heading (or several that follow each other at once)."""

    start: int
    end: int
    heading: str
    ends: list[int] = field(default_factory=list)  # ends of paragraphs and blocks: the best points to cut
    blocks: list[Block] = field(default_factory=list)  # what should stay whole


def sections(text: str, *, heading: str = "", markdown: bool = True) -> Iterator[Section]:
    """Cut a text at its headings into sections, with the ends of blocks in each; takes linear time.

    ``heading`` is the path of headings above its beginning (``"A > B"``), from the page before. Without ``markdown``
    only blank lines mean something. Headings are cut to 200 characters.
    """
    path = [(level, title) for level, title in enumerate(heading.split(" > "), 1) if title]
    section, last_end = Section(0, len(text), heading), 0
    has_text = False  # of this section: headings that follow each other at once are one section
    matches = list((_MARKUP if markdown else _BLANK_LINE).finditer(text))
    next_starts = [*(match.start() for match in matches[1:]), len(text)]
    for match, next_start in zip(matches, next_starts, strict=False):
        (start, end), kind = match.span(), match.lastgroup  # the last to close: an outer group
        has_text = has_text or bool(text[last_end:start].strip())
        last_end = end
        if has_text:
            section.ends.append(start)
        if kind in _HEADINGS:
            if has_text:
                section.end = start
                yield section
                section, has_text = Section(start, len(text), ""), False
            level = 2 if kind == "dashed" else len(match["mark"] or "#")
            upper = [(above, title) for above, title in path if above < level]
            path = [*upper, (level, _heading_text(match))]
            section.heading = " > ".join(title for _, title in path if title)
        elif kind in ("code", "table", "inner"):
            header = None if kind == "code" else _TABLE_HEADER.match(text, start, end)
            section.blocks.append(Block(kind, start, end, header[0] if header else ""))
            section.ends.append(end)
            has_text = True
        elif kind == "item":
            section.blocks.append(Block("item", start, next_start))
            has_text = True
    section.ends.append(len(text))
    yield section


def first_heading(text: str) -> str:
    """Return the first heading of a markdown text, ``""`` if it has none."""
    headings = (match for match in _MARKUP.finditer(text) if match.lastgroup in _HEADINGS)
    return next(filter(None, map(_heading_text, headings)), "")


def _heading_text(match: re.Match[str]) -> str:
    """Return the text of a heading, without signs that close it: "Oil" for "## Oil ##", but "C#" for "# C#"."""
    title = match[match.lastgroup or 0].rstrip()
    if match.lastgroup == "title":  # other headings are underlined
        title = _CLOSING_SIGNS.sub("", title)
    return " ".join(title.split())[:_MAX_TITLE]


def is_markdown(document: Document) -> bool:
    """Tell whether a document's text is taken as markdown."""
    return document.metadata.get("format") not in _NOT_MARKDOWN


def heading_lookup(document: Document) -> Callable[[int | None], dict[str, str]]:
    """Return a function from an offset to the headings above it: ``{"heading": "A > B"}``, or ``{}`` without one."""
    heading = document.metadata.get("heading")
    heading = heading if isinstance(heading, str) else ""
    in_order = list(sections(document.page_content, heading=heading, markdown=is_markdown(document)))

    def heading_at(offset: int | None) -> dict[str, str]:
        if offset is None:
            return {}
        section = in_order[bisect_right(in_order, offset, key=attrgetter("start")) - 1]  # around the offset
        return {"heading": section.heading} if section.heading else {}

    return heading_at
