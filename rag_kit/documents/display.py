"""Texts and tables for people, on a terminal or in Jupyter; nothing that a text holds can steer, hide or be markup."""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

# C0 and C1 controls (without tab and newline), soft hyphen, Arabic letter mark, Mongolian vowel separator,
# zero-width characters and bidirectional marks, line and paragraph separators, bidirectional embeddings and
# isolates, invisible operators, fillers that show as nothing, byte-order mark, interlinear annotation,
# musical and shorthand format controls, tag characters, lone surrogates.
UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    "\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff0-\ufffb"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff\ud800-\udfff]"
)

MORE = "... and {0} more rows: to_pandas() has them all"


def clean_text(text: str) -> str:
    r"""Make a text safe to show: nothing in it can move the cursor, hide, or turn the reading order.

    Control characters except newline and tab (so also ANSI escapes), bidirectional and zero-width characters,
    tag characters and lone surrogates become visible escapes such as ``\x1b`` and ``\u202e``.

    Example:
        >>> print(clean_text("red \x1b[31m, \u202eturned"))
        red \x1b[31m, \u202eturned
    """
    return UNSAFE.sub(lambda match: match.group().encode("unicode_escape").decode(), text)


@dataclass(frozen=True)
class Table:
    """A table: a header and rows.

    ``None`` is a ``-``, floats get three decimals, and in HTML a list has a line for each item. Columns whose numbers
    are in ``right`` are set flush right; a cell wider than ``width`` columns of a terminal is cut. Rows beyond
    ``limit`` are not shown; the line ``more`` tells their number.

    Example:
        >>> print(Table(["name", "mean"], [["bm25", 0.5], ["混合", None]], right=[1]).text())
        name   mean
        bm25  0.500
        混合      -
        >>> "&lt;b&gt;" in Table(["name"], [["<b>"]]).html()
        True
    """

    header: Sequence[str]
    rows: Sequence[Sequence[Any]]
    heading: str = ""
    right: Sequence[int] = ()
    width: int = 60
    limit: int | None = None
    more: str = MORE

    def text(self) -> str:
        """Write the table with two blanks between columns; Chinese characters count as two columns."""
        heading = [f"\n{one_line(self.heading)}"] if self.heading else []
        rows = [self.header, *self.rows[: self.limit]]
        cells = [[cut(one_line(cell), self.width) for cell in row] for row in rows]
        widths = [max(map(columns, column)) for column in zip(*cells, strict=True)]
        lines = []
        for row in cells:
            padded = [_pad(cell, widths[number], number in self.right) for number, cell in enumerate(row)]
            lines.append("  ".join(padded).rstrip())
        return "\n".join([*heading, *lines, *self._hidden_rows()])

    def html(self) -> str:
        """Write the table as an HTML element; the first cell of a row is its header."""
        heading = html.escape(one_line(self.heading))
        caption = f'<caption style="text-align:left">{heading}</caption>' if heading else ""
        head = self._row(self.header, 'th scope="col"', 'th scope="col"')
        body = "".join(self._row(row, 'th scope="row"', "td") for row in self.rows[: self.limit])
        table = f"<table>{caption}<thead>{head}</thead><tbody>{body}</tbody></table>"
        return _inert(table + _notes(self._hidden_rows()))

    def _hidden_rows(self) -> list[str]:
        """Return a line with the number of rows beyond the limit; no line if there are none."""
        hidden = 0 if self.limit is None else len(self.rows) - self.limit
        return [self.more.format(hidden)] if hidden > 0 else []

    def _row(self, cells: Sequence[Any], first_tag: str, tag: str) -> str:
        """Write a row as an HTML element; ``first_tag`` opens its first cell, ``tag`` the others, with attributes."""
        elements = []
        for number, cell in enumerate(cells):
            side = "right" if number in self.right else "left"
            lines = cell if isinstance(cell, list) else [cell]
            inner = "<br>".join(f"<bdi>{html.escape(one_line(line))}</bdi>" for line in lines)
            opening = tag if number else first_tag
            closing = opening.split()[0]
            elements.append(f'<{opening} style="text-align:{side};vertical-align:middle">{inner}</{closing}>')
        return f"<tr>{''.join(elements)}</tr>"


class TabularResult:
    """Base of results that ``print`` and Jupyter show as a title, tables and notes, which `_contents` returns."""

    def _contents(self) -> tuple[str, list[Table], list[str]]:
        raise NotImplementedError

    def __str__(self) -> str:
        return tables_text(*self._contents())

    def _repr_html_(self) -> str:
        return tables_html(*self._contents())


def tables_text(title: str, tables: Iterable[Table], notes: Iterable[str] = ()) -> str:
    """Join a title, the tables that have rows, and notes into one text."""
    head = map(one_line, title.split("\n"))
    return "\n".join([*head, *(table.text() for table in tables if table.rows), *map(one_line, notes)])


def tables_html(title: str, tables: Iterable[Table], notes: Iterable[str] = ()) -> str:
    """Join a title, the tables that have rows, and notes into HTML for Jupyter."""
    lines = [html.escape(one_line(line)) for line in title.split("\n") if line]
    head = "".join(f"<p><strong>{line}</strong></p>" for line in lines)
    return _inert(head) + "".join(table.html() for table in tables if table.rows) + _inert(_notes(notes))


def one_line(value: Any) -> str:
    """Write a value as one line without control or invisible characters; floats get three decimals, None is ``-``."""
    if value is None:
        return "-"
    text = f"{value:.3f}" if isinstance(value, float) else str(value)
    return clean_text(" ".join(text.split()))


def columns(text: str) -> int:
    """Count the columns that a text takes on a terminal: Chinese characters take two, combining marks none."""
    if text.isascii():
        return len(text)
    visible = [character for character in text if not unicodedata.combining(character)]
    return len(visible) + sum(unicodedata.east_asian_width(character) in "WF" for character in visible)


def cut(text: str, width: int, end: str = "...") -> str:
    """Cut a text to at most ``width`` columns; a cut text ends in ``end``.

    Example:
        >>> cut("检索检索检索", 9, "…")
        '检索检索…'
    """
    if len(text) <= width and columns(text) <= width:
        return text
    text = text[:width]  # nearly every character is a column at least, and a text may be very long
    while text and columns(text) > width - len(end):
        text = text[:-1]
    return text + end


def _pad(cell: str, width: int, right: bool) -> str:
    blanks = " " * (width - columns(cell))
    return blanks + cell if right else cell + blanks


def _notes(notes: Iterable[str]) -> str:
    return "".join(f"<p><em>{html.escape(one_line(note))}</em></p>" for note in notes if note)


def _inert(markup: str) -> str:
    # The two classes keep MathJax from reading formulas into "$".
    return f'<div class="tex2jax_ignore mathjax_ignore">{markup}</div>' if markup else ""
