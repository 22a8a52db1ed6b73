"""Grids of cells as markdown tables, and long ones in groups of rows that each repeat the header."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

_GROUP_CHARACTERS = 900  # below the splitter's default chunk_size, so that a group stays one chunk
_MAX_SPAN = 1000


def row_line(cells: Sequence[str]) -> str:
    """One line of a markdown table; bars inside of cells are escaped.

    Example:
        >>> row_line(["a\\nb", "", "c|d"])
        '| a b |  | c\\\\|d |'
    """
    return "| " + " | ".join(" ".join(cell.split()).replace("|", "\\|") for cell in cells) + " |"


def markdown_table(rows: Sequence[Sequence[str]]) -> str:
    """A grid as a markdown table; the first row is the header, short rows are filled up.

    Example:
        >>> print(markdown_table([["x", "y"], ["1"]]))
        | x | y |
        | --- | --- |
        | 1 |  |
    """
    width = max((len(row) for row in rows), default=0)
    full = [[*row, *[""] * (width - len(row))] for row in rows]
    return "\n".join([*_head(full[0]), *map(row_line, full[1:])]) if width else ""


def _head(header: Sequence[str]) -> list[str]:
    return [row_line(header), "| " + " | ".join(["---"] * len(header)) + " |"]


def table_groups(header: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[tuple[str, int, int]]:
    """Markdown tables of at most 900 characters or one row each, every one with the header.

    Args:
        header: The header's cells.
        rows: The rows below it; taken one at a time.

    Yields:
        The table, and the numbers (from 1, the header not counted) of its first and last row.

    Example:
        >>> [(first, last) for _, first, last in table_groups(["n"], [["1"], ["2"], ["3" * 900]])]
        [(1, 2), (3, 3)]
    """
    width = len(header)
    top = _head(header)
    lines: list[str] = []
    size = base = sum(map(len, top)) + 2
    first = number = 1
    for number, row in enumerate(rows, 1):
        # cells beyond the header's go into the last one, so that no text is lost
        last = " ".join(row[width - 1 :])
        line = row_line([*row[: width - 1], *[""] * (width - 1 - len(row)), last])
        if lines and size + len(line) + 1 > _GROUP_CHARACTERS:
            yield "\n".join([*top, *lines]), first, number - 1
            lines, size, first = [], base, number
        lines.append(line)
        size += len(line) + 1
    if lines:
        yield "\n".join([*top, *lines]), first, number


class Grid:
    """Cells with spans laid out on a grid; a merged cell's text stands in each place it covers."""

    def __init__(self) -> None:
        self.rows: list[dict[int, str]] = []
        self._row = -1

    def new_row(self) -> None:
        """Start the next row."""
        self._row += 1
        while len(self.rows) <= self._row:
            self.rows.append({})

    def add(self, text: str, columns: int = 1, rows: int = 1) -> None:
        """Put a cell in the first free place of the row."""
        if self._row < 0:
            self.new_row()
        columns, rows = max(1, min(columns, _MAX_SPAN)), max(1, min(rows, _MAX_SPAN))
        line = self.rows[self._row]
        column = 0
        while column in line:
            column += 1
        while len(self.rows) < self._row + rows:
            self.rows.append({})
        for down in range(rows):
            for right in range(columns):
                self.rows[self._row + down].setdefault(column + right, text)

    def filled_rows(self) -> list[list[str]]:
        """The grid as rows of equal length; rows that a span promised but never came are dropped."""
        rows = self.rows[: self._row + 1]
        width = max((max(row, default=-1) + 1 for row in rows), default=0)
        return [[row.get(column, "") for column in range(width)] for row in rows]
