"""From the lines of a PDF table without rules to its rows: cells of several lines, and names of several rows."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import chain, pairwise, product
from typing import TypeAlias

from rag_kit.indexing.readers.pdf_grids import CHINESE, join_texts
from rag_kit.indexing.readers.pdf_lines import Rule, Word
from rag_kit.indexing.readers.tables import is_value

ALIGNED = 0.15  # sizes of the font; edges of words that near are at one place
_SHORT_CELL = 8  # characters; a shorter cell is seldom the first line of one
_OPEN_END = re.compile(  # ends a name that goes on, such as "Ministry of"
    r"\s(?:&|and|at|by|for|from|in|of|on|or|per|the|to|with|und|am|bei|der|des|für|im|mit|von|zum|zur|de|du|et|la|le|les)$"
)
_PITCH = 1.6  # sizes of the font from one line of a cell to the next, at most
_TIGHT = 0.9  # of the least step between two rows of a table; lines of one cell may be nearer to each other
_SURELY_TIGHT = 0.7  # the same; a line that near is surely one of the cell above
Row: TypeAlias = list[Word]  # its cells, or of a row of several lines the lines of its cells
Column: TypeAlias = tuple[float, float]  # its left and right edge


def row_step(rows: Sequence[Row]) -> float:
    """Return the least distance between rows of several cells; 0 if there are too few to tell."""
    heights = sorted(row[0].bottom for row in rows if len(row) > 1)
    steps = [upper - lower for lower, upper in pairwise(heights)]
    return min(steps) if len(steps) > 1 else 0.0


def line_above(cell: Word, cells: Sequence[Word], step: float = 0.0) -> Word | None:
    """Return the line of a cell that goes on in ``cell``, which is a further line of it; None if ``cell`` begins anew.

    It is right above, with the same left edge, and ends within a sentence; the first word of ``cell`` did not fit.
    That is not asked of a line much nearer to it than rows are to each other, whose ``step`` is given if it is known.
    """
    near = ALIGNED * cell.size
    column = [other for other in cells if abs(other.left - cell.left) < near]
    higher = [other for other in column if other.bottom > cell.bottom + near]
    above = min(higher, key=lambda other: other.bottom, default=None)
    if above is None or above.bottom - cell.bottom > _PITCH * cell.size:
        return None
    are_texts = not is_value(cell.text) and not is_value(above.text)
    if are_texts and above.bottom - cell.bottom < _SURELY_TIGHT * step:
        return above
    if len(above.text) < _SHORT_CELL:
        return None
    # the characters of the first word, with a blank: had they fitted on the line above, they would be there
    if CHINESE.match(cell.text):  # which breaks anywhere
        goes_on, needed = not is_value(cell.text), 1
    else:
        is_cut = cell.text[0].islower() or bool(_OPEN_END.search(above.text))
        goes_on, needed = is_cut and " " in above.text, len(cell.text.split()[0]) + 1
    character_width = (cell.right - cell.left) / len(cell.text)
    column_right = max(other.right for other in (*column, cell))
    return above if goes_on and above.right + needed * character_width > column_right else None


def join_lines(lines: Sequence[Row], rules: Sequence[Rule]) -> list[Row]:
    """Join lines of a table, each given as its cells, into rows, of which some cells have several lines.

    In doubt a line is a row: that tears a cell, while two rows in one would give a name the value of another.
    """
    cells = list(chain.from_iterable(lines))
    step = row_step(lines)
    pairs = ((cell, line_above(cell, cells, step)) for cell in cells)
    above = {cell: upper for cell, upper in pairs if upper and not _is_ruled_off(cell, upper, rules)}
    return [_joined_cells(row, above) for row in _groups(lines, above, _Joining(lines, above).joins)]


class _Joining:
    """Decides whether a line belongs to a row; ``above`` maps each further line of a cell to the one above it."""

    def __init__(self, lines: Sequence[Row], above: Mapping[Word, Word]) -> None:
        first_column_right = min(cell.right for line in lines for cell in line)
        names = {cell for line in lines for cell in line if cell.left < first_column_right}  # of rows
        longest_rows = _groups(lines, above, lambda line, row: True)  # if all lines that may go on a row did
        unnamed = [line for line in lines[1:] if names.isdisjoint(line) and not above.keys() >= set(line)]
        # rows with a name and more, each with a named row above; how far the first is from the header tells nothing
        pairs = pairwise(longest_rows[1:])
        sure_pairs = [pair for pair in pairs if len(pair[1]) > 1 and not any(map(names.isdisjoint, pair))]
        steps = (upper[-1].bottom - lower[0].bottom for upper, lower in sure_pairs)
        cell_counts = (sum(above.get(cell) not in row for cell in row) for _, row in sure_pairs)
        self._above, self._names = above, names
        self._least_step = min(steps, default=0.0)  # from row to row
        self._fewest_cells = min(cell_counts, default=0)  # of a row
        self._has_steps = len(sure_pairs) > 1
        self._has_small_names = any(row[0].text[0].islower() for row in longest_rows[1:])
        self._are_all_named = len(unnamed) < 2

    def joins(self, line: Row, row: Row) -> bool:
        """Tell whether a line, with a cell that is a further line of one in the row, belongs to the row."""
        above, names = self._above, self._names
        further = [cell for cell in line if above.get(cell) in row]
        has_name = not names.isdisjoint(further)
        if len(further) < len(line) and not names.isdisjoint(row):  # its other cells may be of the name above
            are_open = all(_OPEN_END.search(above[cell].text) for cell in further)
            return are_open and above.keys() >= set(row[1:])
        pitch = max(above[cell].bottom - cell.bottom for cell in further)
        is_near = pitch < _TIGHT * self._least_step
        is_alone = len(line) == 1 and (not self._least_step or pitch < self._least_step / _TIGHT)
        if not has_name:
            return is_near or (is_alone and self._are_all_named)
        name = next(cell for cell in further if cell in names)
        first_name = next((cell for cell in row if cell in names), name)
        is_small = name.text[0].islower() and not (self._has_small_names or first_name.text[0].islower())
        if is_small or _OPEN_END.search(above[name].text):  # it goes on from the name above, or is none
            return is_near or is_alone
        # cells that look like names are last lines if they are fewer than a row has, or Chinese; and shorter
        are_few = len(further) < self._fewest_cells or all(CHINESE.match(cell.text) for cell in further)
        are_shorter = any(cell.right < above[cell].right - 0.5 * cell.size for cell in further)
        return is_near and self._has_steps and are_few and are_shorter


def _is_ruled_off(cell: Word, above: Word, rules: Sequence[Rule]) -> bool:
    """Tell whether a level rule between two lines goes on beside them; one that does not is an underline."""
    left, right = cell.left - 0.5 * cell.size, max(cell.right, above.right) + 0.5 * cell.size
    between = [rule for rule in rules if cell.bottom + 0.5 * cell.size < rule.at < above.bottom]
    return any(not rule.upright and rule.start <= x <= rule.end for rule in between for x in (left, right))


def _groups(lines: Sequence[Row], above: Mapping[Word, Word], joins: Callable[[Row, Row], bool]) -> list[Row]:
    """Group the cells of lines into rows: a line may join the row in which a cell of it begins, with all rows below."""
    rows: list[Row] = []
    for line in lines:
        upper = next((above[cell] for cell in line if cell in above), None)
        start = next((n for n, row in enumerate(rows) if upper in row), len(rows))
        row = list(chain.from_iterable(rows[start:]))
        joined = {*row, *line}
        first_lines = [cell for cell in joined if above.get(cell) not in joined]
        is_apart = not any(_is_below(cell, other) for cell, other in product(first_lines, joined))
        if row and is_apart and joins(line, row):
            rows[start:] = [[*row, *line]]
        else:
            rows.append(list(line))
    return rows


def _is_below(cell: Word, other: Word) -> bool:
    is_lower = other.bottom > cell.bottom + 0.4 * cell.size
    return is_lower and other.left < cell.right and cell.left < other.right


def _joined_cells(lines: Sequence[Word], above: Mapping[Word, Word]) -> list[Word]:
    """Join the lines of a row's cells; return the cells from left to right."""
    index_of: dict[Word, int] = {}  # line -> index of its cell
    cells: list[Word] = []
    for line in sorted(lines, key=lambda line: -line.bottom):
        upper = above.get(line, line)
        if upper not in index_of:
            index_of[line] = len(cells)
            cells.append(line)
            continue
        index = index_of[line] = index_of[upper]
        text, right = join_texts(cells[index].text, line.text), max(cells[index].right, line.right)
        cells[index] = replace(cells[index], text=text, right=right)
    return sorted(cells, key=lambda cell: cell.left)


def repeat_names(table: list[list[str]], heights: Sequence[float]) -> list[list[str]]:
    """Repeat each name in the first column in every row that it spans; ``heights`` are those of the rows on a page."""
    body = [n for n in range(1, len(table)) if any(table[n][1:])]  # rows with texts behind the first column
    named = [n for n in range(1, len(table)) if table[n][0]]  # rows with a name in it
    if not body or not named:
        return table
    groupings = filter(None, (_groups_by_edge(table, body, named), _groups_by_middle(body, named, heights)))
    # of both ways to group, the one whose largest group is smaller
    groups = min(groupings, key=lambda grouping: max(map(len, grouping)), default=[])
    group_of = {name: group for name, group in zip(named, groups, strict=False) if group}
    for name, group in group_of.items():
        for n in group:
            table[n][0] = table[name][0]
    # without rows of a name alone that is now in the rows beside it
    return [row for n, row in enumerate(table) if n in body or n not in group_of]


def _groups_by_edge(table: list[list[str]], body: list[int], named: list[int]) -> list[list[int]]:
    """Group row numbers from each name to the next one or, where the first row has no name, up to each name.

    Returns [] unless several groups have more than one row, and all rows are about as full as those with a name.
    """
    if body[0] == named[0]:
        groups = [[n for n in body if name <= n < after] for name, after in pairwise([*named, len(table)])]
    else:
        groups = [[n for n in body if before < n <= name] for before, name in pairwise([0, *named])]
    spanned = [group for group in groups if len(group) > 1]
    fewest_texts = min(sum(map(bool, table[n])) for n in named) - 1  # beside the name
    rows = [table[n][1:] for group in spanned for n in group]
    are_full = all(texts[0] and sum(map(bool, texts)) >= fewest_texts for texts in rows)
    is_complete = sum(map(len, groups)) == len(body) and set(named) <= set(body)
    return groups if len(spanned) > 1 and are_full and is_complete else []


def _groups_by_middle(body: Sequence[int], named: Sequence[int], heights: Sequence[float]) -> list[list[int]]:
    """Group row numbers so that each name is at the middle of its group, by the heights of the rows on the page.

    Returns [] if a name is not, or if all are at the top of their groups: then they are not centred.
    """
    remaining, groups = list(body), []
    for name in named:
        if not remaining:
            return []
        top = heights[remaining[0]]
        step = (top - heights[remaining[-1]]) / max(1, len(remaining) - 1)  # from row to row
        foot = 2 * heights[name] - top  # where the last row is if the name is at the middle
        group = [n for n in remaining if heights[n] >= foot - 0.3 * abs(step)]
        if not group or abs(heights[group[-1]] - foot) > 0.3 * abs(step):
            return []
        groups.append(group)
        remaining = remaining[len(group) :]
    are_at_top = all(name == group[0] for name, group in zip(named, groups, strict=True))
    return [] if are_at_top or remaining else groups
