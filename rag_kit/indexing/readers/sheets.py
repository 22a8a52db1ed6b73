"""Excel workbooks, through openpyxl: each table on a sheet, in groups of rows that repeat its header."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from typing import Any

from rag_kit.indexing.readers.cell_dates import plain_text
from rag_kit.indexing.readers.cell_formats import CHINESE_FORMATS, shown
from rag_kit.indexing.readers.numbers import lowered, raised
from rag_kit.indexing.readers.package import Package
from rag_kit.indexing.readers.parts import Context, Part, Unreadable
from rag_kit.indexing.readers.tables import find_header, has_own_header, is_value, split_runs, table_groups

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
        merged = {area.min_row for area in sheet.merged_cells.ranges if area.min_col < area.max_col}
        parts = [part for block in _find_tables(rows) for part in _table_parts(block, merged)]
        for part in [*parts, *map(Part, _chart_titles(sheet))]:
            part.text, heading = heading + part.text, ""
            part.metadata |= {"sheet": sheet.title, "heading": sheet.title, "title": title}
            yield part


def _open_workbook(stream: Any, *, values: bool) -> Any:
    import openpyxl
    from openpyxl.styles.numbers import BUILTIN_FORMATS
    from openpyxl.utils.exceptions import InvalidFileException

    BUILTIN_FORMATS.update(CHINESE_FORMATS)  # files name them by number only, and openpyxl does not know them
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about fonts and extensions that carry no text
        try:
            return openpyxl.load_workbook(stream, data_only=values, rich_text=True)
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
    """The value of a cell as its format shows it."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).upper()
    value = getattr(value, "text", value)  # an array formula is an object that holds its text
    if isinstance(value, list):
        value = _rich_text(value)
    code = (cell.number_format or "General") if cell.has_style else "General"
    is_formula = isinstance(value, str) and value.startswith("=")
    return " ".join((plain_text(value) if is_formula or code == "General" else shown(value, code)).split())


def _rich_text(blocks: list[Any]) -> str:
    """A text of which parts have fonts of their own: superscripts and subscripts."""
    text = ""
    for block in blocks:
        shift = getattr(getattr(block, "font", None), "vertAlign", None)
        write = {"superscript": raised, "subscript": lowered}.get(str(shift))
        text += write(text, str(block)) if write else str(block)
    return text


def _find_tables(block: Rows, *, by_columns: bool = False, left: int = 3) -> list[Rows]:
    """The separate tables of a sheet: cut between rows, then between columns, then between rows again."""
    if not block or not left:
        return [block] if block else []
    pieces = _cut_at_gaps(block, by_columns=by_columns)
    tables = [
        table for piece in pieces for table in _find_tables(piece, by_columns=not by_columns, left=left - 1)
    ]
    return sorted(tables, key=lambda table: (min(table), min(min(row) for row in table.values())))


def _cut_at_gaps(block: Rows, *, by_columns: bool) -> Iterator[Rows]:
    """The pieces of a block between empty rows or columns: two of them, or one between tables of their own."""
    numbers = sorted({column for row in block.values() for column in row} if by_columns else block)
    runs = split_runs(numbers, lambda number, after: after == number + 1)
    areas = [_area(block, run, by_columns=by_columns) for run in runs]
    kept: list[int] = []
    for place, (run, area) in enumerate(zip(runs, areas, strict=True)):
        wide = place and run[0] - kept[-1] > 2
        if place and (wide or (_are_apart if by_columns else _is_below)(areas[place - 1], area)):
            yield _area(block, kept, by_columns=by_columns)
            kept = []
        kept += run
    yield _area(block, kept, by_columns=by_columns)


def _area(block: Rows, numbers: list[int], *, by_columns: bool) -> Rows:
    """The rows or columns of a block that have these numbers."""
    if not by_columns:
        return {row: block[row] for row in numbers}
    piece = set(numbers)
    cut = {row: {at: cells[at] for at in cells.keys() & piece} for row, cells in block.items()}
    return {row: cells for row, cells in cut.items() if cells}


def _is_below(upper: Rows, lower: Rows) -> bool:
    """Whether the rows below an empty one are not of the same table: a note, or a table with a header."""
    if all(len(cells) == 1 for cells in lower.values()):
        return True
    return has_own_header(_grid(upper)) and has_own_header(_grid(lower))


def _are_apart(left: Rows, right: Rows) -> bool:
    """Whether two blocks are tables of their own: headers at different heights, or names of rows in both."""
    grids = _grid(left), _grid(right)
    if min(len(grid[0]) for grid in grids) < 2:
        return False
    heights = [sorted(rows)[find_header(grid)] for rows, grid in zip((left, right), grids, strict=True)]
    return heights[0] != heights[1] or all(has_own_header(grid) and _has_row_names(grid) for grid in grids)


def _has_row_names(grid: list[list[str]]) -> bool:
    names = [row[0] for row in grid[find_header(grid) + 1 :]]
    return len(set(names)) == len(names) and not any(map(is_value, names))


def _grid(block: Rows) -> list[list[str]]:
    """The texts of a block by row, those of empty cells too."""
    columns = sorted({column for row in block.values() for column in row})
    return [[block[number].get(column, "") for column in columns] for number in sorted(block)]


def _table_parts(block: Rows, merged: set[int]) -> Iterator[Part]:
    """A table in groups of rows; titles above its header come before the first, a header of two rows is joined."""
    numbers, lines = sorted(block), _grid(block)
    first = find_header(lines)
    titles = "\n".join(" ".join(dict.fromkeys(filter(None, line))) for line in lines[:first])
    if len(lines[0]) == 1 or len(lines) == 1:
        text = "\n".join(" ".join(cell for cell in line if cell) for line in lines)
        yield Part(text, {"row_start": numbers[0], "row_end": numbers[-1]})
        return
    header = lines[first]
    if numbers[first] in merged and first + 2 < len(lines) and not any(map(is_value, lines[first + 1])):
        first += 1
        header = [
            " ".join(dict.fromkeys(filter(None, names))) for names in zip(header, lines[first], strict=True)
        ]
    head = titles + "\n\n" * bool(titles)
    for table, start, end in table_groups(header, lines[first + 1 :]):
        yield Part(head + table, {"row_start": numbers[first + start], "row_end": numbers[first + end]})
        head = ""


def _chart_titles(sheet: Any) -> Iterator[str]:
    """The titles of charts, whose figures are in the cells."""
    for chart in getattr(sheet, "_charts", []):
        if rich := getattr(getattr(chart.title, "tx", None), "rich", None):
            yield "Chart: " + "".join(run.t for paragraph in rich.p for run in paragraph.r or [] if run.t)
