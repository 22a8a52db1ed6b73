"""Excel workbooks, through openpyxl: each table on a sheet, in groups of rows that repeat its header."""

from __future__ import annotations

import re
import warnings
from bisect import bisect_left
from collections.abc import Iterator
from functools import partial
from itertools import pairwise
from typing import Any

from rag_kit.concurrency.notes import write_note
from rag_kit.indexing.readers import tables
from rag_kit.indexing.readers.cell_formats import CHINESE_FORMATS, plain_text, shown
from rag_kit.indexing.readers.limits import ReadLimits
from rag_kit.indexing.readers.numbers import join_runs, struck
from rag_kit.indexing.readers.package import MC, A, Package, R, xml_bytes
from rag_kit.indexing.readers.parts import LEFT_OUT, Context, OverCap, Part, Unreadable, leave_out, reason_of

_NO_VALUE = re.compile(rb"(?:</f>|<f[^>]*/>)\s*(?:<v\s*/>|<v></v>)?\s*</c>")  # no value behind a formula
_SHEET = re.compile(r"xl/worksheets/[^/]+\.xml")
_BESIDE_CELLS = re.compile(r"docProps/|xl/(?!workbook|sharedStrings|styles|_rels/workbook)")
_STYLES = "xl/styles.xml"
# children of a sheet, of the workbook and of its styles, without which cells cannot be read
_KEPT = (("cols", "sheetData", "mergeCells"), ("sheets", "workbookPr"), ("numFmts", "fonts", "cellXfs"))
_ESCAPE = re.compile(r"_x([0-9A-Fa-f]{4})_")  # a character that XML does not hold, such as a carriage return
_SHIFTS = {"superscript": 1, "subscript": -1}
_RANGE = re.compile(  # ranges of which openpyxl makes all cells, also those that are not in the file
    rb"(<(?:\w+:)?(?:mergeCell|hyperlink)\s[^<>]*?\bref=[\"'][$A-Za-z]+[$\d]+):[$A-Za-z]+[$\d]+"
)
Rows = dict[int, dict[int, str]]  # the text of each filled cell, by row and column
_MAX_MERGE = 10_000  # cells of such a range, and of one whose text is repeated


class _Repeat(str):
    """The text of a merged cell in another of the cells that it covers."""

    __slots__ = ()


def read_xlsx(data: bytes, context: Context) -> Iterator[Part]:
    """Yield the tables of each sheet, with ``sheet``, ``row_start`` and ``row_end`` (rows of the sheet, from 1)."""
    package = Package(data, context.limits)
    title = package.title()
    for sheet, formulas in _open_sheets(package):
        if sheet.sheet_state != "visible":
            write_note(f"sheet {sheet.title}{LEFT_OUT}it is hidden")
            continue
        rows = _drop_hidden(sheet, _read_cells(sheet, formulas))
        parts = [part for table in _find_tables(rows) for part in _table_parts(table)]
        parts += map(Part, [*_chart_titles(sheet), *_box_texts(package, sheet.title)])
        for number, part in enumerate(parts):
            part.text = part.text if number else f"# {sheet.title}\n\n{part.text}"
            part.metadata |= {"sheet": sheet.title, "heading": sheet.title, "title": title}
            yield part


def first_sheet(data: bytes) -> tuple[Rows, list[str]]:
    """Read a workbook's first sheet as `_read_cells` does with ``all_text``; also name the other sheets with cells."""
    package = Package(data, ReadLimits())
    [(sheet, formulas), *others] = _load_sheets(package, {}, list(filter(_SHEET.fullmatch, package.names)))
    filled = [other.title for other, _ in others if other.max_row > 1]  # an empty one has a row
    return _read_cells(sheet, formulas, all_text=True), filled


def _open_sheets(package: Package) -> list[tuple[Any, Any]]:
    """Return each sheet of values with the same sheet of formulas, or None if all formulas have a computed value.

    Where openpyxl does not read the workbook as a whole, each sheet is opened by itself, with its cells alone.
    """
    parts = [name for name in package.names if _SHEET.fullmatch(name)]
    try:
        return _load_sheets(package, {}, parts)
    except (OverCap, MemoryError):
        raise
    except Exception as error:  # noqa: BLE001 - of any broken part
        failure = error
    sheets = []
    for part in parts:
        with leave_out(f"part {part}"):
            try:
                sheets += _load_sheets(package, _only_cells(package, part, parts, keep_formats=True), [part])
            except Exception:  # noqa: BLE001 - once more without formats, which may be broken
                sheets += _load_sheets(package, _only_cells(package, part, parts, keep_formats=False), [part])
    if not sheets:
        raise Unreadable(f"its sheets cannot be read ({reason_of(failure)})") from failure
    write_note(f"all but the cells of its sheets{LEFT_OUT}{reason_of(failure)}")
    names = [node.get("name") for node in package.xml(package.related("officeDocument")).iter("{*}sheet")]
    return sorted(sheets, key=lambda pair: names.index(pair[0].title))


def _load_sheets(package: Package, changes: dict[str, bytes], parts: list[str]) -> list[tuple[Any, Any]]:
    """Open a package with changed parts by openpyxl, and return its sheets as `_open_sheets` does."""
    import openpyxl
    from openpyxl.styles.numbers import BUILTIN_FORMATS

    BUILTIN_FORMATS.update(CHINESE_FORMATS)  # files name them by number only, and openpyxl does not know them
    load_values = partial(openpyxl.load_workbook, data_only=True, rich_text=True)
    for name in parts:
        data = changes.get(name) or package.read(name)
        if (shrunk := _RANGE.sub(_shrink_range, data)) != data:
            changes = changes | {name: shrunk}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about fonts and extensions that carry no text
        book = package.open(load_values, changes)
        lacks_values = any(_NO_VALUE.search(package.read(name)) for name in parts)
        formulas = package.open(openpyxl.load_workbook, changes) if lacks_values else None
    for sheet in book.chartsheets:
        write_note(f"sheet {sheet.title}{LEFT_OUT}it is a chart, whose figures are in the cells of others")
    return [(sheet, formulas[sheet.title] if formulas else None) for sheet in book.worksheets]


def _shrink_range(match: re.Match[bytes]) -> bytes:
    """Return a range of cells, such as ``<mergeCell ref="A1:B2``; of very many cells the first: ``ref="A1``."""
    from openpyxl.utils import range_boundaries

    column, row, last_column, last_row = range_boundaries(match[0].decode().rpartition("ref=")[2][1:])
    return match[0] if (last_column - column + 1) * (last_row - row + 1) <= _MAX_MERGE else match[1]


def _only_cells(package: Package, part: str, parts: list[str], *, keep_formats: bool) -> dict[str, bytes]:
    """Return the changes that strip a package to one sheet (``part`` of ``parts``), and that sheet to its cells."""
    changes = {name: b"" for name in package.names if name in parts or _BESIDE_CELLS.match(name)}  # removed
    workbook = package.related("officeDocument")
    styles = [_STYLES] if keep_formats and _STYLES in package.names else []
    changes[_STYLES] = b""
    for name, kept in zip((part, workbook, *styles), _KEPT, strict=False):
        root = package.xml(name)
        for child in list(root):
            if child.tag.rpartition("}")[2] not in kept:
                root.remove(child)
        for cell in root.iter("{*}c") if not keep_formats else ():
            cell.attrib.pop("s", None)
        changes[name] = xml_bytes(root)
    return changes


def _drop_hidden(sheet: Any, rows: Rows) -> Rows:
    """Return rows with hidden ones emptied (they keep their numbers) and without hidden columns; note how many."""
    columns = {column for cells in rows.values() for column in cells}
    last_column, last_row = max(columns, default=0), max(rows, default=0)
    hidden_rows = {row for row, shape in sheet.row_dimensions.items() if shape.hidden and row <= last_row}
    hidden_columns: set[int] = set()
    for shape in sheet.column_dimensions.values():  # each of columns side by side
        if shape.hidden and shape.min:
            hidden_columns.update(range(shape.min, min(shape.max, last_column) + 1))
    row_count, column_count = len(hidden_rows & rows.keys()), len(hidden_columns & columns)
    if row_count or column_count:
        counts = f"{row_count} hidden rows, {column_count} hidden columns"
        write_note(f"sheet {sheet.title}: {counts}{LEFT_OUT}the sheet does not show them")
    ordered = sorted(hidden_columns)
    # a column moves to the left by the number of hidden ones before it
    new_column = {column: column - bisect_left(ordered, column) for column in columns - hidden_columns}
    shown_rows: Rows = {row: {} for row in hidden_rows}
    for row in rows.keys() - hidden_rows:
        shown_rows[row] = {new_column[n]: text for n, text in rows[row].items() if n in new_column}
    return shown_rows


def _read_cells(sheet: Any, formulas: Any, *, all_text: bool = False) -> Rows:
    """Read the texts of filled cells by row and column; each cell of a merged range has the text of the range.

    `formulas` is the same sheet opened with its formulas. With ``all_text``, line ends and hidden texts are kept, and
    struck text is not marked.
    """
    rows: Rows = {}
    uncomputed = 0  # formulas without a value
    for (row, column), cell in sheet._cells.items():
        value = cell.value
        if value is None and formulas is not None and cell.data_type != "str":  # not an empty text
            value = formulas.cell(row, column).value
            uncomputed += value is not None
        text = _cell_text(value, cell, all_text=all_text)
        text = text.strip() if all_text else " ".join(text.split())
        is_run = isinstance(value, list)  # of pieces with fonts of their own
        if cell.has_style and cell.font.strike and not is_run and not all_text:
            text = struck(text)
        if text:
            rows.setdefault(row, {})[column] = text
    if comments := sum(cell.comment is not None for cell in sheet._cells.values()):
        write_note(f"sheet {sheet.title}: {comments} comments{LEFT_OUT}only cells are read")
    if uncomputed:
        problem = f"{uncomputed} formulas have no computed value and are read as they are written"
        write_note(f"sheet {sheet.title}: {problem}")
    for area in sheet.merged_cells.ranges:
        merged = rows.get(area.min_row, {}).get(area.min_col)
        if merged:
            for row in range(area.min_row, area.max_row + 1):
                for column in range(area.min_col, area.max_col + 1):
                    rows.setdefault(row, {}).setdefault(column, _Repeat(merged))
    return rows


def _cell_text(value: Any, cell: Any, *, all_text: bool) -> str:
    """Return the text of a cell: its value as its number format shows it, a formula as it is written."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).upper()
    value = getattr(value, "text", value)  # an array formula is an object that holds its text
    if isinstance(value, list):  # pieces of text, some with a font of their own
        fonts = [getattr(block, "font", None) for block in value]
        shifts = [_SHIFTS.get(str(getattr(font, "vertAlign", None)), 0) for font in fonts]
        are_struck = (not all_text and bool(getattr(font, "strike", False)) for font in fonts)
        value = join_runs(zip(map(str, value), shifts, are_struck, strict=True))
    code = (cell.number_format or "General") if cell.has_style else "General"
    is_formula = isinstance(value, str) and value.startswith("=")
    if isinstance(value, str):
        value = _ESCAPE.sub(lambda match: chr(int(match[1], 16)), value)
    text = plain_text(value) if is_formula or code == "General" else shown(value, code)
    return text if text.strip() or not all_text else plain_text(value)  # a format such as ;;; shows nothing


def _find_tables(block: Rows, *, by_columns: bool = False, cuts: int = 3) -> list[Rows]:
    """Cut a block of cells into separate tables: between rows, then columns, then rows again; ``cuts`` are left."""
    if not any(block.values()):  # nothing, or hidden rows alone
        return []
    if not cuts:
        return [block]
    found = []
    for piece in _cut_at_gaps(block, by_columns=by_columns):
        found += _find_tables(piece, by_columns=not by_columns, cuts=cuts - 1)
    return sorted(found, key=lambda table: (min(table), min(min(row) for row in table.values() if row)))


def _cut_at_gaps(block: Rows, *, by_columns: bool) -> Iterator[Rows]:
    """Cut a block at two empty rows (or columns), or at one between tables; not before rows of the table above."""
    numbers = sorted({column for row in block.values() for column in row} if by_columns else block)
    runs = tables.split_runs(numbers, lambda number, after: after == number + 1)  # without a gap
    areas = [_area(block, run, by_columns=by_columns) for run in runs]
    are_separate = _are_separate_columns if by_columns else _are_separate_rows
    piece = list(runs[0])  # numbers since the last cut
    for run, (upper, lower), after in zip(runs[1:], pairwise(areas), [*areas[2:], {}], strict=False):
        gap = run[0] - piece[-1] - 1  # empty rows or columns
        is_cut = gap > 1 or are_separate(upper, lower)
        if is_cut and not by_columns:
            top = {row: block[row] for row in piece[: tables.TOP_ROWS]}
            # a single text below one empty row may be the name of a group, below which the table goes on
            is_group_name = gap == 1 and tables.are_notes(_grid(lower))
            grid, count = _grid(top | (after if is_group_name else lower)), len(_filled(top))
            is_cut = not (0 < count < len(grid) and tables.continues_table(grid[:count], grid[count:]))
        if is_cut:
            yield _area(block, piece, by_columns=by_columns)
            piece = []
        piece += run
    yield _area(block, piece, by_columns=by_columns)


def _area(block: Rows, numbers: list[int], *, by_columns: bool) -> Rows:
    """Return the rows or columns of a block that have the numbers, without rows that become empty only by that."""
    if not by_columns:
        return {row: block[row] for row in numbers}
    columns = set(numbers)
    cut = {row: {n: cells[n] for n in cells.keys() & columns} for row, cells in block.items()}
    return {row: cells for row, cells in cut.items() if cells or not block[row]}


def _are_separate_rows(upper: Rows, lower: Rows) -> bool:
    """Tell whether the rows below an empty one are a remark of one column, or a table with a header of its own."""
    if not any(upper.values()) or not any(lower.values()):  # hidden rows alone
        return False
    is_remark = all(len(cells) <= 1 for cells in lower.values())  # no comma makes cells of it
    return is_remark or (tables.has_own_header(_grid(upper)) and tables.has_own_header(_grid(lower)))


def _are_separate_columns(left: Rows, right: Rows) -> bool:
    """Tell whether blocks side by side are separate: their headers are in other rows, or both begin with row names."""
    left_grid, right_grid = _grid(left), _grid(right)
    if len(left_grid[0]) < 2 or len(right_grid[0]) < 2:
        return _is_aside(left, right_grid) or _is_aside(right, left_grid)
    if _filled(left)[tables.find_header(left_grid)] != _filled(right)[tables.find_header(right_grid)]:
        return True
    return _has_row_names(left_grid) and _has_row_names(right_grid)


def _has_row_names(grid: list[list[str]]) -> bool:
    """Tell whether a table has a header, and below it names in the first column, each once."""
    names = [row[0] for row in grid[tables.find_header(grid) + 1 :]]
    is_named = len(set(names)) == len(names) and not any(map(tables.is_value, names))
    return is_named and tables.has_own_header(grid)


def _is_aside(block: Rows, table: list[list[str]]) -> bool:
    """Tell whether a block is a single column beside a table: a name and, right below it, a few values."""
    numbers, grid = _filled(block), _grid(block)
    name, *values = [row[0] for row in grid]
    is_column = len(grid[0]) == 1 and numbers[-1] - numbers[0] == len(values) > 0  # without gaps
    is_named = not tables.is_value(name) and all(map(tables.is_value, values))
    return is_column and is_named and 2 * len(values) < len(table) and tables.has_own_header(table)


def _grid(block: Rows) -> list[list[str]]:
    """Return the texts of a block's filled rows, "" for empty cells; columns without any text are left out."""
    columns = sorted({column for row in block.values() for column in row})
    return [[block[number].get(column, "") for column in columns] for number in _filled(block)]


def _filled(block: Rows) -> list[int]:
    """Return the numbers of the rows that hold something; a hidden row holds nothing."""
    return [number for number in sorted(block) if block[number]]


def _table_parts(table: Rows) -> Iterator[Part]:
    """Yield the parts of a table, each a group of rows with the header; the first also has titles above that."""
    numbers, lines = _filled(table), _grid(table)
    if len(lines[0]) == 1 or len(lines) == 1:
        text = "\n".join(" ".join(filter(None, line)) for line in lines)
        yield Part(text, {"row_start": numbers[0], "row_end": numbers[-1]})
        return
    first_header = tables.find_header(lines)  # the first of its rows; those above are titles
    titles = ([text for text in line if not isinstance(text, _Repeat)] for line in lines[:first_header])
    head = "".join(f"{' '.join(filter(None, title))}\n" for title in titles if any(title))
    head += "\n" if head else ""
    columns = list(filter(any, zip(*lines[first_header:], strict=True)))  # titles may span more
    header, *body = tables.join_header(list(zip(*columns, strict=True)))
    numbers = numbers[-len(body) - 1 :]  # of the header's last row and the rows below
    for text, start, end in tables.row_groups(header, body):  # the first row below the header is 1
        yield Part(head + text, {"row_start": numbers[start], "row_end": numbers[end]})
        head = ""


def _chart_titles(sheet: Any) -> Iterator[str]:
    """Yield the titles of charts; their figures are in the cells."""
    for chart in getattr(sheet, "_charts", []):
        if rich := getattr(getattr(chart.title, "tx", None), "rich", None):
            yield "Chart: " + "".join(run.t for paragraph in rich.p for run in paragraph.r or [] if run.t)


def _box_texts(package: Package, title: str) -> Iterator[str]:
    """Yield the texts of the boxes that are drawn on the sheet with a title."""
    workbook = package.related("officeDocument")
    parts = package.targets(workbook)
    with leave_out(f"text boxes of sheet {title}"):
        sheets = [node for node in package.xml(workbook).iter("{*}sheet") if node.get("name") == title]
        for drawing in package.all_related("drawing", parts.get(sheets[0].get(f"{R}id"), "")):
            for box in package.xml(drawing).iter("{*}txBody"):
                if next(box.iterancestors(f"{MC}Fallback"), None) is not None:
                    continue  # the same once more, for programs that do not know the box
                lines = ("".join(paragraph.itertext(f"{A}t")) for paragraph in box.iter(f"{A}p"))
                yield "\n".join(filter(str.strip, lines))
