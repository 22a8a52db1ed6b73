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
# ends a name that goes on, such as "Ministry of"
_OPEN_END = re.compile(
    r"\s(?:&|and|at|by|for|from|in|of|on|or|per|the|to|with|und|am|bei|der|des|für|im|mit|von|zum|zur|de|du|et|la|le|les)$"
)
_PITCH = 1.6  # sizes of the font from one line of a cell to the next, at most
_TIGHT = 0.9  # of the least step between two rows of a table; lines of one cell may be nearer to each other
_SURELY_TIGHT = 0.7  # the same; a line that near is surely one of the cell above
Row: TypeAlias = list[Word]  # its cells
Column: TypeAlias = tuple[float, float]  # its left and right edge


def row_step(rows: Sequence[Row]) -> float:
    """Return the least distance between lines of several cells, given as their cells; 0 if there are too few."""
    heights = sorted(row[0].bottom for row in rows if len(row) > 1)
    steps = [after - height for height, after in pairwise(heights)]
    return min(steps) if len(steps) > 1 else 0.0


def begun_above(cell: Word, cells: Sequence[Word], step: float = 0.0) -> Word | None:
    """Return the cell whose next line a text is; None where the text begins a cell of its own.

    It is right above, with the same left edge, and ends within a sentence; the text's first word did not fit there.
    That is not asked of a text much nearer to it than rows are to each other, whose ``step`` is given if it is known.
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
    # the characters of the text's first word, with a blank: had they fitted on the line above, they would be there
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
    pairs = ((cell, begun_above(cell, cells, step)) for cell in cells)
    begun = {cell: above for cell, above in pairs if above and not _is_cut_off(cell, above, rules)}
    return [_joined_cells(row, begun) for row in _groups(lines, begun, _Joining(lines, begun).joins)]


class _Joining:
    """Decides whether a line belongs to a row above; ``begun`` has, for each further line of a cell, the line above."""

    def __init__(self, lines: Sequence[Row], begun: Mapping[Word, Word]) -> None:
        names_end = min(cell.right for line in lines for cell in line)
        names = {cell for line in lines for cell in line if cell.left < names_end}  # in the first column
        longest_rows = _groups(lines, begun, lambda line, row: True)  # if all that may go on did
        # rows that begin for sure, with the row above; how far the first one is from the header tells nothing
        pairs = pairwise(longest_rows[1:])
        sure = [pair for pair in pairs if len(pair[1]) > 1 and not any(map(names.isdisjoint, pair))]
        cell_counts = (sum(begun.get(cell) not in row for cell in row) for _, row in sure)
        unnamed = [line for line in lines[1:] if names.isdisjoint(line) and not begun.keys() >= set(line)]
        self._begun, self._names = begun, names
        self._step = min((above[-1].bottom - row[0].bottom for above, row in sure), default=0.0)
        self._has_steps = len(sure) > 1
        self._fewest_cells = min(cell_counts, default=0)  # of a row
        self._has_small_names = any(row[0].text[0].islower() for row in longest_rows[1:])
        self._are_all_named = len(unnamed) < 2

    def joins(self, line: Row, row: Row) -> bool:
        """Tell whether a line, some cells of which may be begun in a row above it, belongs to that row."""
        begun, names = self._begun, self._names
        further = [cell for cell in line if begun.get(cell) in row]
        has_name = not names.isdisjoint(further)
        if len(further) < len(line) and not names.isdisjoint(row):  # others may be of the name above
            are_open = all(_OPEN_END.search(begun[cell].text) for cell in further)
            return are_open and begun.keys() >= set(row[1:])
        first, step = line[0], 0.3 * line[0].size
        # of a cell that is centred, a line may be above and one below the other cells
        if len(line) == 1 and not has_name:
            top = begun[first].bottom - step
            if any(first.bottom + step < other.bottom < top for other in row):
                return True
        pitch = max(begun[cell].bottom - cell.bottom for cell in further)
        is_near = pitch < _TIGHT * self._step
        is_alone = len(line) == 1 and (not self._step or pitch < self._step / _TIGHT)
        if not has_name:
            return is_near or (is_alone and self._are_all_named)
        name = next(cell for cell in further if cell in names)
        first_name = next((cell for cell in row if cell in names), name)
        is_small = name.text[0].islower() and not (self._has_small_names or first_name.text[0].islower())
        if is_small or _OPEN_END.search(begun[name].text):  # it goes on from the name above, or is none
            return is_near or is_alone
        # cells that look like names are last lines if they are fewer than a row has, or Chinese; and shorter
        are_few = len(further) < self._fewest_cells or all(CHINESE.match(cell.text) for cell in further)
        are_shorter = any(cell.right < begun[cell].right - 0.5 * cell.size for cell in further)
        return is_near and self._has_steps and are_few and are_shorter


def _is_cut_off(cell: Word, above: Word, rules: Sequence[Rule]) -> bool:
    """Tell whether a level rule between two lines goes on beside them; one that does not is an underline."""
    left, right = cell.left - 0.5 * cell.size, max(cell.right, above.right) + 0.5 * cell.size
    between = [rule for rule in rules if cell.bottom + 0.5 * cell.size < rule.at < above.bottom]
    return any(not rule.upright and rule.start <= x <= rule.end for rule in between for x in (left, right))


def _groups(lines: Sequence[Row], begun: Mapping[Word, Word], joins: Callable[[Row, Row], bool]) -> list[Row]:
    """Group the cells of lines into rows: a line may join the row from which a cell of it goes on, and all below."""
    rows: list[Row] = []
    for line in lines:
        above = next((begun[cell] for cell in line if cell in begun), None)
        start = next((n for n, row in enumerate(rows) if above in row), len(rows))
        row = list(chain.from_iterable(rows[start:]))
        joined = {*row, *line}
        first_lines = [cell for cell in joined if begun.get(cell) not in joined]
        is_apart = not any(_is_below(cell, other) for cell, other in product(first_lines, joined))
        if row and is_apart and joins(line, row):
            rows[start:] = [[*row, *line]]
        else:
            rows.append(list(line))
    return rows


def _is_below(cell: Word, other: Word) -> bool:
    is_lower = other.bottom > cell.bottom + 0.4 * cell.size
    return is_lower and other.left < cell.right and cell.left < other.right


def _joined_cells(cells: Sequence[Word], begun: Mapping[Word, Word]) -> list[Word]:
    """Join the lines of a row's cells, from left to right; ``begun`` maps each line of a cell to the one above it."""
    index_of: dict[Word, int] = {}  # of the cell in the row that a line belongs to
    row: list[Word] = []
    for line in sorted(cells, key=lambda line: -line.bottom):
        index = index_of[line] = index_of.get(begun.get(line, line), len(row))
        if index == len(row):
            row.append(line)
        else:
            cell = row[index]
            text, right = join_texts(cell.text, line.text), max(cell.right, line.right)
            row[index] = replace(cell, text=text, right=right)
    return sorted(row, key=lambda cell: cell.left)


def repeat_names(table: list[list[str]], heights: Sequence[float]) -> list[list[str]]:
    """Repeat each name in the first column in every row that it spans; ``heights`` are those of the rows on a page."""
    body = [n for n in range(1, len(table)) if any(table[n][1:])]  # rows with texts behind the first column
    named = [n for n in range(1, len(table)) if table[n][0]]  # rows with a name in it
    if not body or not named:
        return table
    groupings = (_groups_by_edge(table, body, named), _groups_by_middle(body, named, heights))
    # of both ways to group, the one whose largest group is smaller
    groups = min(filter(None, groupings), key=lambda grouping: max(map(len, grouping)), default=[])
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
    is_whole = sum(map(len, groups)) == len(body) and set(named) <= set(body)
    return groups if len(spanned) > 1 and are_full and is_whole else []


def _groups_by_middle(body: Sequence[int], named: Sequence[int], heights: Sequence[float]) -> list[list[int]]:
    """Group row numbers so that each name is at the middle of its group, where the heights of the rows fall.

    [] if one is not, or if all are at the top of their groups, which says nothing of the middle.
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
