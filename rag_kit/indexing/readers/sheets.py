"""Excel workbooks, through openpyxl: each table on a sheet, in groups of rows that repeat its header."""

from __future__ import annotations

import re
import warnings
from bisect import bisect_left
from collections.abc import Iterator
from functools import partial
from typing import Any

from rag_kit.concurrency.notes import write_note
from rag_kit.indexing.readers.cell_formats import CHINESE_FORMATS, plain_text, shown
from rag_kit.indexing.readers.numbers import lowered, raised
from rag_kit.indexing.readers.package import Package, xml_bytes
from rag_kit.indexing.readers.parts import (
    LEFT_OUT,
    Context,
    OverLimit,
    Part,
    Unreadable,
    leave_out,
    reason_of,
)
from rag_kit.indexing.readers.tables import find_header, has_own_header, is_value, split_runs, table_groups

_NO_VALUE = re.compile(rb"(?:</f>|<f[^>]*/>)\s*(?:<v\s*/>|<v></v>)?\s*</c>")
_SHEET = re.compile(r"xl/worksheets/[^/]+\.xml")
_BESIDE_CELLS = re.compile(r"docProps/|xl/(?!workbook|sharedStrings|styles|_rels/workbook)")
_CELLS = ("cols", "sheetData", "mergeCells")
_MAX_MERGE = 10_000  # cells of a merged range whose text is repeated

Rows = dict[int, dict[int, str]]


def read_xlsx(data: bytes, context: Context) -> Iterator[Part]:
    """Yield the tables of each sheet, with ``sheet``, ``row_start`` and ``row_end`` (rows of the sheet, from 1)."""
    package = Package(data, context.limits)
    title = package.title()
    for sheet, formulas in _open_sheets(package):
        if sheet.sheet_state != "visible":
            write_note(f"sheet {sheet.title}{LEFT_OUT}it is hidden")
            continue
        rows = _drop_hidden(sheet, _read_cells(sheet, formulas))
        heading = f"# {sheet.title}\n\n"
        merged = {area.min_row for area in sheet.merged_cells.ranges if area.min_col < area.max_col}
        parts = [part for block in _find_tables(rows) for part in _table_parts(block, merged)]
        for part in [*parts, *map(Part, _chart_titles(sheet))]:
            part.text, heading = heading + part.text, ""
            part.metadata |= {"sheet": sheet.title, "heading": sheet.title, "title": title}
            yield part


def _open_sheets(package: Package) -> list[tuple[Any, Any]]:
    """Yield each sheet, with the sheet of its formulas where some were never computed.

    Where openpyxl does not read the workbook as a whole, each sheet is opened by itself, with its cells alone.
    """
    parts = [name for name in package.names if _SHEET.fullmatch(name)]
    try:
        return _load_sheets(package, {}, parts)
    except (OverLimit, MemoryError):
        raise
    except Exception as error:  # noqa: BLE001 - of any broken part
        failure = error
    sheets = []
    for part in parts:
        with leave_out(f"part {part}"):
            try:
                sheets += _load_sheets(package, _only_cells(package, part, parts, keep_formats=True), [part])
            except Exception:  # noqa: BLE001 - the formats may be what is broken
                sheets += _load_sheets(package, _only_cells(package, part, parts, keep_formats=False), [part])
    if not sheets:
        raise Unreadable(f"its sheets cannot be read ({reason_of(failure)})") from failure
    write_note(f"all but the cells of its sheets{LEFT_OUT}{reason_of(failure)}")
    names = [node.get("name") for node in package.xml(package.related("officeDocument")).iter("{*}sheet")]
    return sorted(sheets, key=lambda pair: names.index(pair[0].title))


def _load_sheets(package: Package, changes: dict[str, bytes], parts: list[str]) -> list[tuple[Any, Any]]:
    import openpyxl
    from openpyxl.styles.numbers import BUILTIN_FORMATS

    BUILTIN_FORMATS.update(CHINESE_FORMATS)  # files name them by number only, and openpyxl does not know them
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about fonts and extensions that carry no text
        book, formulas = (
            package.open(partial(openpyxl.load_workbook, data_only=True, rich_text=True), changes),
            None,
        )
        if any(_NO_VALUE.search(package.read(name)) for name in parts):  # show the formula
            formulas = package.open(openpyxl.load_workbook, changes)
    return [(sheet, formulas[sheet.title] if formulas else None) for sheet in book.worksheets]


def _only_cells(package: Package, part: str, parts: list[str], *, keep_formats: bool) -> dict[str, bytes]:
    """Return the changes that strip a package to one sheet, and that sheet to its cells."""
    changes = {name: b"" for name in package.names if name in parts or _BESIDE_CELLS.match(name)}
    for name, kept in ((part, _CELLS), (package.related("officeDocument"), ("sheets", "workbookPr"))):
        root = package.xml(name)
        for child in list(root):
            if child.tag.rpartition("}")[2] not in kept:
                root.remove(child)
        for cell in root.iter("{*}c") if not keep_formats else ():
            cell.attrib.pop("s", None)
        changes[name] = xml_bytes(root)
    return changes if keep_formats else {**changes, "xl/styles.xml": b""}


def _drop_hidden(sheet: Any, rows: Rows) -> Rows:
    """Empty hidden rows, and remove hidden columns."""
    columns = {column for row in rows.values() for column in row}
    areas = [area for area in sheet.column_dimensions.values() if area.hidden and area.min]
    last = max(columns, default=0)
    hidden_columns = sorted({n for area in areas for n in range(area.min, min(area.max, last) + 1)})
    shown_columns = columns.difference(hidden_columns)
    new_column = {column: column - bisect_left(hidden_columns, column) for column in shown_columns}
    last_row = max(rows, default=0)
    hidden = {row for row, area in sheet.row_dimensions.items() if area.hidden and row <= last_row}
    if (filled := len(hidden & rows.keys())) or len(new_column) < len(columns):
        what = f"{filled} hidden rows, {len(columns) - len(new_column)} hidden columns"
        write_note(f"sheet {sheet.title}: {what}{LEFT_OUT}the sheet does not show them")
    shown = {
        row: {new_column[column]: text for column, text in cells.items() if column in new_column}
        for row, cells in rows.items()
        if row not in hidden
    }
    return {**{row: {} for row in hidden}, **shown}


def _read_cells(sheet: Any, formulas: Any) -> Rows:
    """Read the texts of filled cells by row and column; each cell of a merged range has its text."""
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
    """Write the value of a cell as its format shows it."""
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
    """Write a text with superscripts and subscripts."""
    text = ""
    for block in blocks:
        shift = getattr(getattr(block, "font", None), "vertAlign", None)
        write = {"superscript": raised, "subscript": lowered}.get(str(shift))
        text += write(text, str(block)) if write else str(block)
    return text


def _find_tables(block: Rows, *, by_columns: bool = False, left: int = 3) -> list[Rows]:
    """Find the separate tables of a sheet: cut between rows, then between columns, then rows again."""
    if not any(block.values()):  # nothing, or hidden rows alone
        return []
    if not left:
        return [block]
    pieces = _cut_at_gaps(block, by_columns=by_columns)
    tables = [
        table for piece in pieces for table in _find_tables(piece, by_columns=not by_columns, left=left - 1)
    ]
    return sorted(tables, key=lambda table: (min(table), min(min(row) for row in table.values() if row)))


def _cut_at_gaps(block: Rows, *, by_columns: bool) -> Iterator[Rows]:
    """Cut a block where two rows (or columns) are empty, or one between separate tables."""
    numbers = sorted({column for row in block.values() for column in row} if by_columns else block)
    runs = split_runs(numbers, lambda number, after: after == number + 1)
    areas = [_area(block, run, by_columns=by_columns) for run in runs]
    kept: list[int] = []
    are_separate = _are_separate_columns if by_columns else _are_separate_rows
    for number, (run, area) in enumerate(zip(runs, areas, strict=True)):
        if number and (run[0] - kept[-1] > 2 or are_separate(areas[number - 1], area)):
            yield _area(block, kept, by_columns=by_columns)
            kept = []
        kept += run
    yield _area(block, kept, by_columns=by_columns)


def _area(block: Rows, numbers: list[int], *, by_columns: bool) -> Rows:
    """Cut some rows or columns out of a block."""
    if not by_columns:
        return {row: block[row] for row in numbers}
    piece = set(numbers)
    cut = {row: {n: cells[n] for n in cells.keys() & piece} for row, cells in block.items()}
    return {row: cells for row, cells in cut.items() if cells or not block[row]}


def _are_separate_rows(upper: Rows, lower: Rows) -> bool:
    """Tell whether the rows below an empty one are a note, or a table with a header of its own."""
    if not any(upper.values()) or not any(lower.values()):  # hidden rows alone
        return False
    if all(len(cells) <= 1 for cells in lower.values()):
        return True
    return has_own_header(_grid(upper)) and has_own_header(_grid(lower))


def _are_separate_columns(left: Rows, right: Rows) -> bool:
    """Tell whether blocks side by side are separate: headers at other heights, or row names in both."""
    grids = _grid(left), _grid(right)
    if min(len(grid[0]) for grid in grids) < 2:
        return False
    heights = [_filled(rows)[find_header(grid)] for rows, grid in zip((left, right), grids, strict=True)]
    return heights[0] != heights[1] or all(has_own_header(grid) and _has_row_names(grid) for grid in grids)


def _has_row_names(grid: list[list[str]]) -> bool:
    names = [row[0] for row in grid[find_header(grid) + 1 :]]
    return len(set(names)) == len(names) and not any(map(is_value, names))


def _grid(block: Rows) -> list[list[str]]:
    """Return the texts of a block by row, with those of empty cells."""
    columns = sorted({column for row in block.values() for column in row})
    return [[block[number].get(column, "") for column in columns] for number in _filled(block)]


def _filled(block: Rows) -> list[int]:
    """Return the numbers of the rows that hold something; a hidden row holds nothing."""
    return [number for number in sorted(block) if block[number]]


def _table_parts(block: Rows, merged: set[int]) -> Iterator[Part]:
    """Yield a table in groups of rows; titles above the header are in the first, two header rows are joined."""
    numbers, lines = _filled(block), _grid(block)
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
    """Yield the titles of charts; their figures are in the cells."""
    for chart in getattr(sheet, "_charts", []):
        if rich := getattr(getattr(chart.title, "tx", None), "rich", None):
            yield "Chart: " + "".join(run.t for paragraph in rich.p for run in paragraph.r or [] if run.t)
