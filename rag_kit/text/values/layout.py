"""Tables in HTML and in lines with tabs, written as Markdown tables, so that one reader reads all tables."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence

# up to the next "<table", so that a table without an end is looked at once
_HTML_TABLE = re.compile(r"<table\b(?:(?!<table\b).)*?</table\s*>", re.IGNORECASE | re.DOTALL)
_TAG_OR_LINE_END = re.compile(r"<(?P<end>/?)(?P<name>[a-z]\w*+)(?P<attributes>[^<>]*)>|\n", re.IGNORECASE)
_SPAN = re.compile(r"(col|row)span\s*=\s*[\"']?(\d{1,2})", re.IGNORECASE)
_TABBED = re.compile(r"^(?:[^\t\n|<]*\t[^\n|<]*(?:\n|\Z)){2,}", re.MULTILINE)
_MAX_COLUMNS = 50  # of which spans make cells
_NEW_LINE = ("table", "tr", "caption")
_CELLS = ("td", "th")

_Edit = tuple[int, int, str]  # a span of the text, and what stands for it


def as_markdown(text: str) -> tuple[str, Sequence[int]]:
    """Write the HTML tables of a text, and lines cut alike by tabs, as Markdown tables.

    Returns the new text, and for each of its characters, and its end, the offset in the old one.

    Example:
        >>> as_markdown("Model\\tPrice\\nP-12\\t900")[0]
        '| Model | Price |\\n| P-12 | 900 |'
    """
    edits = sorted([*_html_edits(text), *_tab_edits(text)])
    if not edits:
        return text, range(len(text) + 1)
    pieces: list[str] = []
    offsets: list[int] = []
    position = 0
    for start, end, new in edits:
        pieces += [text[position:start], new]
        offsets += [*range(position, start), *[start] * len(new)]
        position = end
    offsets += range(position, len(text) + 1)
    return "".join([*pieces, text[position:]]), offsets


def _html_edits(text: str) -> Iterator[_Edit]:
    """Yield what stands for the tags of tables; a cell over several columns or rows has empty cells beside it."""
    for table in _HTML_TABLE.finditer(text):
        rows_left: dict[int, int] = defaultdict(int)  # column -> rows that a cell above still covers
        column = width = 0
        for tag in _TAG_OR_LINE_END.finditer(text, table.start(), table.end()):
            name, new = (tag["name"] or "").lower(), " "
            if name in _CELLS and not tag["end"]:
                spans = {kind.lower(): int(count) for kind, count in _SPAN.findall(tag["attributes"])}
                width, new = min(spans.get("col", 1), max(1, _MAX_COLUMNS - column)), "| "
                while rows_left[column]:  # covered from above
                    rows_left[column] -= 1
                    column, new = column + 1, new + "| "
                rows_left.update(dict.fromkeys(range(column, column + width), spans.get("row", 1) - 1))
                column += width
            elif name in _CELLS:
                new = " |" * (width - 1) + " "
            elif name in _NEW_LINE:
                new = " |\n" if name == "tr" and tag["end"] else "\n"
                column = 0
            yield tag.start(), tag.end(), new


def _tab_edits(text: str) -> Iterator[_Edit]:
    """Yield what stands for the tabs of lines that have as many each, and a figure below the first line."""
    for block in _TABBED.finditer(text):
        lines = block[0].rstrip("\n").split("\n")
        is_table = len({line.count("\t") for line in lines}) == 1 and any(line[0] != "\t" for line in lines)
        if not is_table or not any(map(str.isdigit, "".join(lines[1:]))):
            continue
        start = block.start()
        for line in lines:
            end = start + len(line)
            yield start, start, "| "
            yield from ((start + n, start + n + 1, " | ") for n, sign in enumerate(line) if sign == "\t")
            yield end, end, " |"
            start = end + 1
