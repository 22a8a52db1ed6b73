"""Grids of cells as markdown tables, and long ones in groups of rows that each repeat the header."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise, zip_longest
from statistics import median_high
from typing import TypeVar

from rag_kit.concurrency.notes import write_note
from rag_kit.indexing.readers.parts import LEFT_OUT

T = TypeVar("T")
_GROUP_CHARACTERS = 900  # below the splitter's default chunk_size, so that a group stays one chunk
_MAX_SPAN = 1000  # columns of a table in which the text of a merged cell is repeated
_MAX_REPEATS = 100_000  # cells of a table that repeat the text of a merged one
_VALUE = re.compile(r"\W*\d[\d\s.,:/+\-–年月日]*\W*[A-Za-z]{0,3}\W*")
_PAIR = re.compile(r"[^:：]{1,20}[:：]\s*\S")  # a name and its value, as in "Date: 3 May"
_YEAR = re.compile(r"\s*(?:19|20)\d\d\s*")  # it may be the name of a column
_DATE = re.compile(r"\s*(?:(?:19|20)\d\d年?|\d{1,2}月|.*\d[-./]\d{1,2}[-./].*)\s*")
_FEW_ROWS = 3  # a title, a header and a row
TOP_ROWS = 30  # rows in which a header is looked for


def split_runs(items: Iterable[T], goes_on: Callable[[T, T], bool]) -> list[list[T]]:
    """Cut items into runs: ``goes_on(item, next_item)`` tells whether the next one is in the same run."""
    runs: list[list[T]] = []
    for item in items:
        if runs and goes_on(runs[-1][-1], item):
            runs[-1].append(item)
        else:
            runs.append([item])
    return runs


def row_line(cells: Sequence[str]) -> str:
    """Write a row of a markdown table; bars inside of cells are escaped."""
    return "| " + " | ".join(" ".join(cell.split()).replace("|", "\\|") for cell in cells) + " |"


def markdown_table(rows: Sequence[Sequence[str]]) -> str:
    """Write a grid as a markdown table; the first row is the header, short rows are filled up."""
    width = max((len(row) for row in rows), default=0)
    full = [[*row, *[""] * (width - len(row))] for row in rows]
    return "\n".join([*_head(full[0]), *map(row_line, full[1:])]) if width else ""


def _head(header: Sequence[str]) -> list[str]:
    return [row_line(header), "| " + " | ".join(["---"] * len(header)) + " |"]


def join_rows(rows: Sequence[Sequence[str]]) -> list[str]:
    """Join the texts of each column with blanks, each once: that of a cell merged over several rows is repeated."""
    return [" ".join(dict.fromkeys(filter(None, column))) for column in zip(*rows, strict=True)]


def row_groups(
    header: Sequence[str], rows: Iterable[Sequence[str]], separator: str = " "
) -> Iterator[tuple[str, int, int]]:
    """Yield markdown tables of at most 900 characters (but at least one row), each with the header.

    With each come the numbers of its first and last row; the row below the header is 1, a header alone is 0. Cells
    beyond the header's go into the last one, with the separator between them.
    """
    width = len(header)
    top = _head(header)
    lines: list[str] = []
    size = base = sum(map(len, top)) + 2  # with line ends
    first, number = 1, 0
    for number, row in enumerate(rows, 1):
        last = separator.join(filter(None, row[width - 1 :]))
        line = row_line([*row[: width - 1], *[""] * (width - 1 - len(row)), last])
        if lines and size + len(line) + 1 > _GROUP_CHARACTERS:
            yield "\n".join([*top, *lines]), first, number - 1
            lines, size, first = [], base, number
        lines.append(line)
        size += len(line) + 1
    if lines or not number:
        yield "\n".join([*top, *lines]), min(first, number), number


def find_header(rows: Sequence[Sequence[str]]) -> int:
    """Return the index of a table's header: the first of its top rows that goes as far to the right as most do.

    Rows above it are titles: one text, or pairs of names and values in the first columns.

    Example:
        >>> find_header([["Prices"], ["Date", "May"], ["", "Net", "Gross"], ["Apple", "1", "2"], ["Pear", "2", "3"]])
        2
    """
    filled = [[column for column, cell in enumerate(row) if cell.strip()] for row in rows[:TOP_ROWS]]
    if len(filled) < _FEW_ROWS:
        return 0
    texts = [[rows[row][column] for column in columns] for row, columns in enumerate(filled)]
    ends = Counter(columns[-1] for columns in filled if columns)  # how many rows end in each column
    usual_end = max(ends, key=lambda end: (ends[end], end))
    usual_count = median_high(len(columns) for columns in filled if columns and columns[-1] == usual_end)
    wide_rows = []
    for row, columns in enumerate(filled[:-1]):
        is_wide = columns and columns[-1] >= usual_end and 2 * len(columns) >= usual_count
        is_merged = len(columns) > 1 and len(set(texts[row])) == 1  # a title over several columns
        if is_wide and not is_merged:
            wide_rows.append(row)
    chosen = wide_rows[-1] if wide_rows else 0
    for row, after in pairwise(wide_rows):
        # a line of text with separators in it, or of remarks, may be as wide as the names of columns below it
        are_names_below = len(texts[after]) == usual_end + 1 and not any(map(is_value, texts[after]))
        are_values_below_names = are_names_below and any(map(is_value, texts[after + 1]))
        # pairs as in "Date: May", not "Price: EUR" among the names of columns
        are_pairs = len(texts[row]) <= usual_end and all(map(_PAIR.match, texts[row]))
        is_unlike_names = filled[row][-1] > usual_end or any(map(is_value, texts[row])) or are_pairs
        has_repeats = len(set(texts[row])) < len(texts[row])
        if has_repeats or not (is_unlike_names and are_values_below_names):
            chosen = row
            break
    return _header_above(rows, filled, chosen)


def _header_above(rows: Sequence[Sequence[str]], filled: Sequence[Sequence[int]], chosen: int) -> int:
    """Return the index of the header: the row ``chosen``, or one above it if the chosen one is data.

    A row of data may be the widest by a note beside the table: ``Apple, 3, sold out`` below ``Item, Price``. It has a
    value in a column of values, or a text that its column repeats. ``filled`` are the filled columns of each row.
    """
    texts = {column: rows[chosen][column] for column in filled[chosen]}
    body = rows[chosen + 1 : TOP_ROWS]
    below = {column: [row[column] for row in body if column < len(row)] for column in texts}
    equal_counts = (sum(n < len(row) and row[n] == text for n, text in texts.items()) for row in body)
    is_repeated_header = any(count > 1 for count in equal_counts)
    values = {column for column, text in texts.items() if is_value(text)}
    repeats_text = not is_repeated_header and any(texts[n] in below[n] for n in texts.keys() - values)
    sure_values = {n for n in values if not _YEAR.fullmatch(texts[n]) and has_values([texts[n], *below[n]])}
    for row in reversed(range(chosen)):
        names = [rows[row][column] for column in filled[row]]
        hold_values = any(is_value(name) or _PAIR.match(name) for name in names)
        are_names = len(set(names)) == len(names) > 1 and not hold_values
        note_columns = {column for column in texts if column > max(filled[row], default=0)}
        is_data = repeats_text or (sure_values & set(filled[row]) and not note_columns & values)
        if are_names and note_columns and is_data and len(texts) <= 2 * len(names):
            return row
    return chosen


def join_header(rows: Sequence[Sequence[str]]) -> list[list[str]]:
    """Join the rows of a table's header into one; the text of a merged cell is given in each column that it covers.

    Example:
        >>> join_header([["Item", "Price", "Price"], ["Item", "2024", "2025"], ["Apple", "3", "4"]])
        [['Item', 'Price 2024', 'Price 2025'], ['Apple', '3', '4']]
    """
    count = 1
    while count + 1 < len(rows) and _is_in_header(rows[count], rows[count - 1], rows[count + 1 :]):
        count += 1
    return [join_rows(rows[:count]), *map(list, rows[count:])]


def join_second_row(rows: list[list[str]]) -> list[list[str]]:
    """Join the second row of a table into its header if it names a column of values whose first row is empty."""
    upper, lower, *body = rows
    columns = zip(upper, lower, zip(*body, strict=True), strict=True)
    if any(name and not (above or is_value(name)) and has_values(below) for above, name, below in columns):
        return [join_rows([upper, lower]), *body]
    return rows


def _is_in_header(row: Sequence[str], upper: Sequence[str], body: Sequence[Sequence[str]]) -> bool:
    """Tell whether a row belongs to the same header as the row above it (``upper``); ``body`` is all below.

    It does if a cell of ``upper`` spans columns, and beside it the row repeats ``upper``, is empty, or names columns.
    """
    if row[0] and len(set(row)) == 1 < len(row):  # the name of a group
        return False
    neighbours = zip(["", *upper[:-1]], [*upper[1:], ""], strict=True)
    are_spanning = [bool(name) and name in pair for name, pair in zip(upper, neighbours, strict=True)]
    cells = zip(row, upper, are_spanning, strict=True)
    are_repeated = [text == name for text, name, is_spanning in cells if text and not is_spanning]
    if not any(are_spanning) or len(set(upper)) == 1:
        return bool(are_repeated) and all(are_repeated)
    if any(are_repeated) or not are_repeated:
        return True
    return not any(map(is_value, row)) and any(map(has_values, zip(*body, strict=True)))


def has_values(column: Sequence[str]) -> bool:
    """Tell whether most cells of a column are values."""
    return 2 * sum(map(is_value, column)) > len(column)


def has_own_header(rows: Sequence[Sequence[str]]) -> bool:
    """Tell whether a table begins with names of columns, below which some column has mostly values."""
    first = find_header(rows)
    names, body = rows[first], rows[first + 1 :]
    are_names = len(names) > 1 and all(names) and not any(map(is_value, names))
    return are_names and any(map(has_values, zip(*body, strict=True)))


def continues_table(upper: Sequence[Sequence[str]], lower: Sequence[Sequence[str]]) -> bool:
    """Tell whether rows below two blank ones belong to the table above: as wide, and without a header of their own.

    Where columns above have values, those below have them too; a line with one text begins a table.
    """
    names, *body = upper[find_header(upper) :]
    above, below = (list(zip_longest(*rows, fillvalue="")) for rows in ([names, *body], lower))  # by column
    filled, filled_below = ([n for n, column in enumerate(part) if any(column)] for part in (above, below))
    is_as_wide = (filled[0], filled[-1]) == (filled_below[0], filled_below[-1])
    repeated_names = sum(text == name != "" for text, name in zip(lower[0], names, strict=False))
    if not body or not is_as_wide or sum(map(bool, lower[0])) < 2 or 2 * repeated_names > len(filled):
        return False
    # a year, month or date in a column that has none further down names the column
    dates = ([bool(_DATE.fullmatch(text)) for text in column] for column in below)
    names_dates = any(is_date and not any(further_down) for is_date, *further_down in dates)
    value_columns = [n for n, column in enumerate(above) if has_values(column[1:])]
    if len(lower) > 1 and (names_dates or not value_columns):
        return False
    if has_own_header(list(zip(*(below[n] for n in filled_below), strict=True))):
        return False
    texts_below = [[text for text in column if text] or ["0"] for column in below]  # a blank column fits any
    return all(has_values(texts_below[n]) for n in value_columns if n < len(below))


def are_notes(rows: Sequence[Sequence[str]], above: Sequence[Sequence[str]] = ()) -> bool:
    """Tell whether rows apart from a table may be notes: each has one text, or none of values after "Note: ".

    One cell may also be a sum, or a task that nobody has yet: if the rows ``above`` are given, one text must begin as
    "Note: " does, or be over twice as long as all in its column.
    """
    for row in rows:
        texts = [cell for cell in row if cell.strip()]
        if len(texts) > 1 and (not _PAIR.match(texts[0]) or any(map(is_value, texts))):
            return False
    longest = [max(map(len, column)) for column in zip_longest(*above[find_header(above) :], fillvalue="")]
    cells = (cell for row in rows for cell in zip(row, longest, strict=False))
    stand_out = not above or any(_PAIR.match(text) or len(text) > 2 * length for text, length in cells)
    return len(rows) < TOP_ROWS and stand_out


def is_value(text: str) -> bool:
    """Tell whether the text of a cell is a number, an amount, a date or a time."""
    return bool(_VALUE.fullmatch(text))


def fill_spans(rows: Iterable[Iterable[tuple[str, int, int]]]) -> list[list[str]]:
    """Make rows of equal length; the text of a merged cell is repeated in each cell that it covers.

    A cell is given as its text and the numbers of columns and rows that it covers. The last columns and rows are left
    out if no cell begins there. Beyond 100,000 repeats in a table, cells cover only themselves, and a note says so.

    Example:
        >>> fill_spans([[("a", 2, 1), ("b", 1, 2)], [("c", 1, 1)]])
        [['a', 'a', 'b'], ['c', '', 'b']]
    """
    grid: defaultdict[int, dict[int, str]] = defaultdict(dict)  # row -> column -> text
    all_rows = [list(cells) for cells in rows]
    end, repeats = 0, _MAX_REPEATS
    for row, cells in enumerate(all_rows):
        column = 0
        for text, width, height in cells:
            while column in grid[row]:
                column += 1
            end = max(end, column + 1)
            width, height = max(1, min(width, _MAX_SPAN - column)), max(1, min(height, len(all_rows) - row))
            repeats -= width * height - 1
            if repeats < 0:
                write_note(f"texts of merged cells{LEFT_OUT}repeated over {_MAX_REPEATS} times in one table")
                width = height = 1
            for covered_row in range(row, row + height):
                for covered in range(column, column + width):
                    grid[covered_row].setdefault(covered, text)
    return [[grid[row].get(column, "") for column in range(end)] for row in range(len(all_rows))]
