"""Excel workbooks, through openpyxl: each table on a sheet, in groups of rows that repeat its header."""

from __future__ import annotations

import datetime
import re
import warnings
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from rag_kit.indexing.readers.package import Package
from rag_kit.indexing.readers.parts import Context, Part, Unreadable
from rag_kit.indexing.readers.tables import table_groups

_NO_VALUE = re.compile(rb"(?:</f>|<f[^>]*/>)\s*(?:<v\s*/>|<v></v>)?\s*</c>")
_MAX_MERGE = 10_000  # cells of a merged range whose text is repeated

Rows = dict[int, dict[int, str]]


def read_xlsx(data: bytes, context: Context) -> Iterator[Part]:
    """The tables of each sheet; ``sheet``, ``row_start`` and ``row_end`` (rows of the sheet, from 1) say where."""
    package = Package(data, context.limits)
    title = package.title()
    clean = package.repacked()
    book, formulas = _open_workbook(clean, values=True), None
    sheets = [name for name in package.names if name.startswith("xl/worksheets/") and name.endswith(".xml")]
    if any(_NO_VALUE.search(package.read(name)) for name in sheets):
        clean.seek(0)
        formulas = _open_workbook(clean, values=False)  # a formula that was never computed: show the formula
    for sheet in book.worksheets:
        rows = _read_cells(sheet, formulas[sheet.title] if formulas is not None else None)
        heading = f"# {sheet.title}\n\n"
        parts = [part for block in _find_tables(rows) for part in _table_parts(block)]
        for part in [*parts, *map(Part, _chart_titles(sheet))]:
            part.text, heading = heading + part.text, ""
            part.metadata |= {"sheet": sheet.title, "heading": sheet.title, "title": title}
            yield part


def _open_workbook(stream: Any, *, values: bool) -> Any:
    import openpyxl
    from openpyxl.utils.exceptions import InvalidFileException

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about fonts and extensions that carry no text
        try:
            return openpyxl.load_workbook(stream, data_only=values)
        except (InvalidFileException, KeyError, ValueError, TypeError, IndexError, AttributeError) as error:
            raise Unreadable(f"its sheets cannot be read ({error})") from error


def _read_cells(sheet: Any, formulas: Any) -> Rows:
    """The texts of all filled cells by row and column; a merged range has its text in each cell."""
    rows: Rows = {}
    for (row, column), cell in sheet._cells.items():
        value = cell.value
        if value is None and formulas is not None:
            value = formulas.cell(row, column).value
        text = _cell_text(value, cell)
        if text:
            rows.setdefault(row, {})[column] = text
    for area in sheet.merged_cells.ranges:
        merged = rows.get(area.min_row, {}).get(area.min_col)
        if merged and area.size["rows"] * area.size["columns"] <= _MAX_MERGE:
            for row in range(area.min_row, area.max_row + 1):
                for column in range(area.min_col, area.max_col + 1):
                    rows.setdefault(row, {}).setdefault(column, merged)
    return rows


def _cell_text(value: Any, cell: Any) -> str:
    """The value of a cell as it is read: dates in ISO form, percentages with their sign."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, datetime.datetime):
        return value.isoformat(sep=" ").removesuffix(" 00:00:00")
    if isinstance(value, float):
        percent = "%" in (cell.number_format or "")
        return f"{value * 100:.10g}%" if percent else f"{value:.15g}"
    text = getattr(value, "text", value)  # an array formula is an object that holds its text
    return " ".join(str(text).split())


def _find_tables(rows: Rows) -> list[Rows]:
    """The separate tables of a sheet: cut at empty rows, then at empty columns, then at rows again."""
    blocks = [rows] if rows else []
    for by_columns in (False, True, False):
        blocks = [piece for block in blocks for piece in _cut_at_gaps(block, by_columns=by_columns)]
    return sorted(blocks, key=lambda block: (min(block), min(min(row) for row in block.values())))


def _cut_at_gaps(block: Rows, *, by_columns: bool) -> Iterator[Rows]:
    """The pieces of a block between its empty rows or columns."""
    numbers = sorted({column for row in block.values() for column in row} if by_columns else block)
    starts = [n for n, number in enumerate(numbers) if not n or numbers[n - 1] != number - 1]
    for first, end in pairwise([*starts, len(numbers)]):
        piece = set(numbers[first:end])
        if by_columns:
            cut = {row: {at: cells[at] for at in cells.keys() & piece} for row, cells in block.items()}
            yield {row: cells for row, cells in cut.items() if cells}
        else:
            yield {row: block[row] for row in piece}


def _table_parts(block: Rows) -> Iterator[Part]:
    numbers = sorted(block)
    columns = sorted({column for row in block.values() for column in row})
    lines = [[block[number].get(column, "") for column in columns] for number in numbers]
    if len(columns) == 1 or len(lines) == 1:
        text = "\n".join(" ".join(cell for cell in line if cell) for line in lines)
        yield Part(text, {"row_start": numbers[0], "row_end": numbers[-1]})
        return
    for table, first, last in table_groups(lines[0], lines[1:]):
        yield Part(table, {"row_start": numbers[first], "row_end": numbers[last]})


def _chart_titles(sheet: Any) -> Iterator[str]:
    """The titles of charts, whose figures are in the cells."""
    for chart in getattr(sheet, "_charts", []):
        if rich := getattr(getattr(chart.title, "tx", None), "rich", None):
            yield "Chart: " + "".join(run.t for paragraph in rich.p for run in paragraph.r or [] if run.t)
