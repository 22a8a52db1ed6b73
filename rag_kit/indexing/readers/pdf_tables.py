"""Tables of a PDF page: by their ruled grid, else by words that begin below each other."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain, groupby, pairwise
from typing import TypeAlias

from rag_kit.indexing.readers.pdf_grids import find_grids, join_texts
from rag_kit.indexing.readers.pdf_lines import THICK, Line, Rule, Word
from rag_kit.indexing.readers.pdf_rows import ALIGNED, Column, join_lines, line_above, repeat_names, row_step
from rag_kit.indexing.readers.tables import (
    has_values,
    join_header,
    join_second_row,
    markdown_table,
    split_runs,
)

_COLUMN = 12  # sizes of the font; a line that much higher begins another column
_MAX_CELL = 60  # characters of a cell; longer ones are prose
_BULLETS = frozenset("•●○▪■◦‣⁃∙·")
_DASHES = frozenset("-–—")  # of lists, or for empty cells
_INDENT = 3  # sizes of the font from a dash to the text of its item, at most
_MAX_WORDS = 4  # of a cell of a table without rules, on average
_WORD = re.compile(r"[\u2e80-\u9fff]{1,2}|[^\s\u2e80-\u9fff]+")
_FEW_ROWS = 3
_MAX_SPANNING = 0.15  # most cells of such a table that span columns, as a share of its cells
_MIN_FILLED = 0.35  # least share of its cells that hold text
_Pair: TypeAlias = tuple[Word, Word]  # a word and the next one of its row


def with_tables(lines: Sequence[Line], rules: Sequence[Rule]) -> list[Line]:
    """Replace the lines of each table of a page by one line that holds it as markdown."""
    page = list(lines)
    for grid in find_grids(rules):  # first the tables with ruled lines
        inside = [line for line in page if grid.holds(line)]
        if table := grid.cell_texts([word for line in inside for word in line.words]):
            page = _replace_by_table(page, inside, markdown_table(join_header(table)))
    for stretch in _table_stretches(_with_late_cells(page)):  # then those by the positions of words
        for rows in _row_groups(stretch):
            if table := _read_table(_cells_by_row(rows), rules):
                page = _replace_by_table(page, [line for row in rows for line in row], markdown_table(table))
    return page


def _with_late_cells(lines: Sequence[Line]) -> list[Line]:
    """Move cells that the file draws late, as programs for sheets do with Chinese ones, to the others of their rows."""
    ordered: list[Line] = []
    for stack in split_runs(lines, _is_stacked):
        is_late = all(_index_in_row(ordered, line) is not None for line in stack)
        for line in stack:
            index = _index_in_row(ordered, line) if is_late else None
            ordered.insert(len(ordered) if index is None else index, line)
    return ordered


def _is_stacked(line: Line, after: Line) -> bool:
    overlaps = line.left < after.right and after.left < line.right
    return overlaps and 0.4 * after.size < abs(line.bottom - after.bottom) < 2.5 * after.size


def _index_in_row(lines: Sequence[Line], late: Line) -> int | None:
    """Return the index in ``lines`` behind the row of a table that a late line belongs to; None without such a row."""
    level = [n for n, line in enumerate(lines) if abs(line.bottom - late.bottom) < 0.4 * late.size]
    late_cells, cells = _read_cells(late), [_read_cells(lines[n]) for n in level]
    are_read = late_cells and all(cells)  # a finished block has no cells
    is_row = len(late_cells) > 1 or len(late_cells) + sum(map(len, cells)) > 2
    are_short = all(_word_count(cell.text) <= 2 * _MAX_WORDS for row in (late_cells, *cells) for cell in row)
    return level[-1] + 1 if level and are_read and is_row and are_short else None


def join_torn_rows(pages: Sequence[list[Line]]) -> None:
    """Join the rows of tables that a page break cuts, where the next page repeats the header of the table.

    A row below that header is the rest of the last row above if its first cell is empty and at most half are filled.
    """
    for lines, next_lines in pairwise(pages):
        if not (lines and next_lines and lines[-1].block and next_lines[0].block):
            continue
        table, next_table = lines[-1].text.splitlines(), next_lines[0].text.splitlines()
        # a header, a line of dashes, a row above the break, and two below: the rest, and one that stays
        if len(table) < 3 or len(next_table) < 4 or table[0] != next_table[0] or not table[0].startswith("|"):
            continue
        row, rest = _split_row(table[-1]), _split_row(next_table[2])
        if not rest[0] and len(row) == len(rest) and 2 * sum(map(bool, rest)) <= len(rest):
            table[-1] = f"| {' | '.join(map(join_texts, row, rest))} |"
            del next_table[2]
            lines[-1].text, next_lines[0].text = "\n".join(table), "\n".join(next_table)


def _split_row(line: str) -> list[str]:
    cells = re.split(r"(?<!\\)\|", line.strip("|"))  # a bar inside a cell is escaped
    return [cell.strip() for cell in cells]


def _replace_by_table(lines: list[Line], inside: list[Line], markdown: str) -> list[Line]:
    """Replace the lines inside a table by one block that holds its markdown; other lines between them are kept."""
    replaced = {id(line) for line in inside}  # by identity: others may be equal
    indices = [index for index, line in enumerate(lines) if id(line) in replaced]
    first, last = indices[0], indices[-1]
    bottoms = [line.bottom for line in inside]
    block = replace(lines[first].as_block(markdown), bottom=max(bottoms), end_bottom=min(bottoms))
    between = [block, *(line for line in lines[first:last] if id(line) not in replaced)]
    # lines above the table, such as a title that the file draws late, come before it
    between.sort(key=lambda line: line.bottom <= block.bottom)
    return [*lines[:first], *between, *lines[last + 1 :]]


def _read_cells(line: Line) -> list[Word]:
    """Read the cells of a line: words with narrow gaps between them are one."""
    return list(map(_as_cell, word_runs(line)))


def word_runs(line: Line) -> list[list[Word]]:
    """Cut the words of a line at wide gaps, but not behind the mark of a list item."""

    def goes_on(word: Word, after: Word) -> bool:
        gap = after.left - word.right
        is_bullet = word.text in _BULLETS or (word.text in _DASHES and gap < _INDENT * line.size)
        if is_bullet and word is line.words[0] and after.text[0].isalpha():
            return True  # the text of an item may be far to the right of its bullet
        return -0.5 * line.size < gap < 0.9 * line.size

    return split_runs(line.words, goes_on)


def _as_cell(run: Sequence[Word]) -> Word:
    return replace(run[0], text=" ".join(word.text for word in run), right=run[-1].right)


def _word_count(text: str) -> int:
    return len(_WORD.findall(text))


def _cells_by_row(rows: Sequence[Sequence[Line]]) -> list[list[Word]]:
    """Read the cells of rows from left to right; a narrow gap cuts, too, where other rows have a column's edge."""
    runs_by_row = [[run for line in row for run in word_runs(line)] for row in rows]
    for runs in runs_by_row:
        runs.sort(key=lambda run: run[0].left)
    names = list(map(_as_cell, runs_by_row[0]))
    neighbours = [pair for runs in runs_by_row for pair in pairwise(chain.from_iterable(runs))]
    fewest = max(_FEW_ROWS, 0.5 * len(rows))  # rows in which a column shows
    column_lefts = [run[0].left for runs in runs_by_row for run in runs[1:]]
    column_lefts += _lefts_below_names(names, neighbours, fewest)
    is_table = 2 * sum(len(runs) > 1 for runs in runs_by_row) > len(runs_by_row)
    words_below = [word for runs in runs_by_row[1:] if len(runs) > 1 for run in runs for word in run]

    def goes_on(word: Word, after: Word) -> bool:
        near, middle = ALIGNED * word.size, (word.right + after.left) / 2
        if not is_table or any(other.left < middle < other.right for other in words_below):
            return True
        if any(abs(left - after.left) < near for left in column_lefts):
            return False
        aligned = [pair for pair in neighbours if abs(pair[0].right - word.right) < near]
        return not _ends_column(aligned, near, fewest)

    body = [[_as_cell(part) for run in runs for part in split_runs(run, goes_on)] for runs in runs_by_row[1:]]
    return [names, *body]  # names of columns, which may have several words, are not cut


def _lefts_below_names(names: list[Word], neighbours: list[_Pair], fewest: float) -> Iterator[float]:
    """Yield where the second of two words begins if each is below a name of its own, as in ``fewest`` rows at least."""

    def names_above(word: Word) -> list[Word]:
        return [name for name in names if name.left < word.right and word.left < name.right]

    names_of_pairs = [(names_above(word), names_above(after)) for word, after in neighbours]
    for (_, after), (left, right) in zip(neighbours, names_of_pairs, strict=True):
        have_own_names = len(left) == len(right) == 1 and left != right
        if have_own_names and names_of_pairs.count((left, right)) >= fewest:
            yield after.left


def _ends_column(aligned: Sequence[_Pair], near: float, fewest: float) -> bool:
    """Tell whether numbers that end at one x are a column; words after them that are all at one place are a unit."""
    if len(aligned) < fewest or not has_values([number.text for number, _ in aligned]):
        return False
    numbers, words = zip(*aligned, strict=True)
    numbers_vary = _extent([number.left for number in numbers]) > near
    words_vary = max(_extent([word.left for word in words]), _extent([word.right for word in words])) > near
    return numbers_vary and words_vary


def _extent(positions: Sequence[float]) -> float:
    return max(positions) - min(positions)


def _table_stretches(lines: Sequence[Line]) -> Iterator[list[Line]]:
    """Yield stretches of lines that may be a table: of one column and size, with short cells, some side by side."""
    for column in split_runs(lines, _is_same_column):
        for is_short, group in groupby(column, _has_short_cells):
            stretch = list(group)
            gaps = ((abs(line.bottom - after.bottom), after.size) for line, after in pairwise(stretch))
            has_level_lines = any(gap < 0.4 * size for gap, size in gaps)
            if is_short and (has_level_lines or any(len(_read_cells(line)) > 1 for line in stretch)):
                yield stretch


def _is_same_column(line: Line, after: Line) -> bool:
    """Tell whether the next line has the same font size and does not begin the next column."""
    same = abs(after.size - line.size) <= 0.08 * after.size
    return same and after.bottom - line.bottom <= _COLUMN * after.size


def _has_short_cells(line: Line) -> bool:
    cells = [] if line.block else _read_cells(line)
    return bool(cells) and all(len(cell.text) <= _MAX_CELL for cell in cells)


def _row_groups(stretch: list[Line]) -> Iterator[list[list[Line]]]:
    """Group lines into rows, and rows into tables, cut at wide gaps; rows of one cell at a table's ends are dropped."""
    ordered = sorted(stretch, key=lambda line: -line.bottom)
    rows = split_runs(ordered, lambda line, after: line.bottom - after.bottom < 0.4 * after.size)
    tables = split_runs(rows, lambda row, after: row[0].bottom - after[0].bottom < 3.2 * after[0].size)
    for table in tables:
        cells = [[cell for line in row for cell in _read_cells(line)] for row in table]
        wide_rows = [number for number, row in enumerate(cells) if len(row) > 1]
        if wide_rows:
            start, end = wide_rows[0], wide_rows[-1] + 1
            step = row_step(cells)
            # a row of one cell below belongs to the table if it is a further line of a cell
            while end < len(table) and line_above(cells[end][0], list(chain(*cells[start:end])), step):
                end += 1
            yield table[start:end]


def _read_table(lines: list[list[Word]], rules: Sequence[Rule]) -> list[list[str]]:
    """Arrange the cells of lines in a grid of texts, header first; an empty one where they are prose or a list."""
    cells = list(chain.from_iterable(lines))
    is_prose = sum(_word_count(cell.text) for cell in cells) > _MAX_WORDS * len(cells)
    is_list = all(line[0].text in _DASHES for line in lines if len(line) > 1)
    if len(lines) < _FEW_ROWS or is_prose or is_list:
        return []
    rows = join_lines(lines, rules)
    columns = _join_columns(_find_columns(rows), rows)
    table = _arrange(rows, columns) if len(columns) > 1 and len(rows) > 1 else []
    if not table:
        return []
    joined = join_header(table)
    if len(joined) == len(table) > _FEW_ROWS:
        joined = join_second_row(table)
    header_rows = len(table) - len(joined) + 1
    return repeat_names(joined, [row[0].bottom for row in rows[header_rows - 1 :]])


def _arrange(rows: list[list[Word]], columns: Sequence[Column]) -> list[list[str]]:
    """Write the cells of rows into columns; [] if too few places are filled, or too many cells span columns."""
    table = [[""] * len(columns) for _ in rows]
    spanning = 0  # cells over more than one column
    for row, texts in zip(rows, table, strict=True):
        for cell in row:
            covered = _covered_columns((cell.left, cell.right), columns)
            spanning += len(covered) > 1
            for column in covered if len(row) > 1 else covered[:1]:  # a cell alone in its row is not repeated
                texts[column] = f"{texts[column]} {cell.text}".strip()
    filled = sum(text != "" for texts in table for text in texts)
    is_ragged = spanning > _MAX_SPANNING * sum(map(len, rows))
    is_sparse = filled <= _MIN_FILLED * len(table) * len(columns)
    return [] if is_ragged or is_sparse else table


def _join_columns(columns: list[Column], rows: list[list[Word]]) -> list[Column]:
    """Join two columns that are one: a header, and cells beside it since they are aligned to the other side."""
    rows_of: list[set[int]] = [set() for _ in columns]  # numbers of the rows with a cell in this column alone
    for number, row in enumerate(rows):
        for cell in row:
            covered = _covered_columns((cell.left, cell.right), columns)
            if len(covered) == 1:
                rows_of[covered[0]].add(number)

    def heads(column: int, other: int) -> bool:  # one has a header alone, the other all but that
        return rows_of[column] == {0} and 0 not in rows_of[other]

    joined: list[Column] = []
    # in a run of columns, those with a header alone and those without one take turns: they are joined in pairs
    for run in split_runs(range(len(columns)), lambda n, after: heads(n, after) or heads(after, n)):
        unpaired = [columns[n] for n in run]
        if len(run) % 2 and len(run) > 1 and heads(run[1], run[0]):
            joined.append(unpaired.pop(0))  # the odd one: names of rows seldom have a header
            # a header between two columns, over both, is none of a column beside it
            if len(run) == 3 and len(_covered_columns(unpaired[0], [joined[-1], unpaired[1]])) > 1:
                del unpaired[0]
        pairs = zip(unpaired[::2], unpaired[1::2], strict=False)
        joined += [(left, right) for (left, _), (_, right) in pairs]
        joined += unpaired[len(unpaired) // 2 * 2 :]  # the last of an odd number
    return joined


def _covered_columns(cell: Column, columns: Sequence[Column]) -> list[int]:
    """Return the numbers of the columns that a cell lies over, or else those of the nearest one or two."""
    cell_left, cell_right = cell
    gaps = [max(left - cell_right, cell_left - right) for left, right in columns]  # < 0: they overlap
    nearest = min(gaps)
    return [n for n, gap in enumerate(gaps) if gap < 0 or (nearest >= 0 and gap <= nearest + THICK)]


def _find_columns(rows: list[list[Word]]) -> list[Column]:
    """Find the left and right edges of columns, from the fullest rows first; a cell over two columns widens neither."""
    spans: list[list[float]] = []  # left and right of each column so far
    for row in sorted(rows, key=len, reverse=True):
        for cell in row:
            hits = [span for span in spans if cell.left < span[1] and span[0] < cell.right]
            if not hits:
                spans.append([cell.left, cell.right])
            elif len(hits) == 1:
                hits[0][:] = min(hits[0][0], cell.left), max(hits[0][1], cell.right)
    return sorted((left, right) for left, right in spans)
