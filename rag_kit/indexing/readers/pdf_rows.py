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


def join_wrapped(rows: Sequence[Row], rules: Sequence[Rule]) -> list[Row]:
    """Join lines of a table, each given as its cells, into rows, of which some cells have several lines.

    In doubt a line is a row: that tears a cell, while two rows in one would give a name the value of another.
    """
    cells = list(chain.from_iterable(rows))
    least_step = row_step(rows)
    pairs = ((cell, begun_above(cell, cells, least_step)) for cell in cells)
    begun = {cell: above for cell, above in pairs if above and not _is_cut_off(cell, above, rules)}
    names_end = min(cell.right for cell in cells)
    names = {cell for cell in cells if cell.left < names_end}  # the cells of the first column
    longest_rows = _groups(rows, begun, lambda row, group: True)  # if all that may go on did
    # rows that begin for sure, with the row above; how far the first one is from the header tells nothing
    pairs_of_rows = pairwise(longest_rows[1:])
    sure = [pair for pair in pairs_of_rows if len(pair[1]) > 1 and not any(map(names.isdisjoint, pair))]
    step = min((above[-1].bottom - row[0].bottom for above, row in sure), default=0.0)
    fewest_cells = min((sum(begun.get(cell) not in row for cell in row) for _, row in sure), default=0)
    begin_small = any(row[0].text[0].islower() for row in longest_rows[1:])  # names, with small letters
    are_rows_named = sum(names.isdisjoint(row) and not begun.keys() >= set(row) for row in rows[1:]) < 2

    def joins(row: Row, group: Row) -> bool:
        """Tell whether a line, some cells of which are begun in a row above (the group), is a line of that row."""
        more = [cell for cell in row if begun.get(cell) in group]
        # besides, it has cells of its own, which may be those of the name above
        if len(more) < len(row) and not names.isdisjoint(group):
            return begun.keys() >= set(group[1:]) and all(_OPEN_END.search(begun[cell].text) for cell in more)
        if len(row) == 1 and names.isdisjoint(more) and _has_cell_between(row[0], begun[row[0]], group):
            return True
        pitch = max(begun[cell].bottom - cell.bottom for cell in more)
        is_near = pitch < _TIGHT * step
        is_alone = len(row) == 1 and (not step or pitch < step / _TIGHT)
        if names.isdisjoint(more):
            return is_near or (is_alone and are_rows_named)
        name = next(cell for cell in more if cell in names)
        first_name = next((cell for cell in group if cell in names), name)
        begins_small = name.text[0].islower() and not (begin_small or first_name.text[0].islower())
        if begins_small or _OPEN_END.search(begun[name].text):  # surely no name of its own
            return is_near or is_alone
        # else it is the last line of a name if rows have more cells, or it is Chinese, and if it is shorter
        is_less = len(more) < fewest_cells or all(CHINESE.match(cell.text) for cell in more)
        is_shorter = any(cell.right < begun[cell].right - 0.5 * cell.size for cell in more)
        return is_near and len(sure) > 1 and is_less and is_shorter

    return [_joined_cells(group, begun) for group in _groups(rows, begun, joins)]


def _has_cell_between(cell: Word, above: Word, group: Row) -> bool:
    """Tell whether a row has a cell at a height between two lines of another cell, as one that is centred has."""
    step = 0.3 * cell.size
    return any(cell.bottom + step < other.bottom < above.bottom - step for other in group)


def _is_cut_off(cell: Word, above: Word, rules: Sequence[Rule]) -> bool:
    """Tell whether a level rule between two lines goes on beside them; one that does not is an underline."""
    left, right = cell.left - 0.5 * cell.size, max(cell.right, above.right) + 0.5 * cell.size
    between = [rule for rule in rules if cell.bottom + 0.5 * cell.size < rule.at < above.bottom]
    return any(not rule.upright and rule.start <= x <= rule.end for rule in between for x in (left, right))


def _groups(lines: Sequence[Row], begun: Mapping[Word, Word], joins: Callable[[Row, Row], bool]) -> list[Row]:
    """Group the cells of a table's lines into rows, of one line or several.

    A line in which a cell goes on (``begun`` has the one above) joins the row of that, and those between, if no two of
    their cells are one below the other, and ``joins(line, row)`` is true.
    """
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


def with_row_spans(table: list[list[str]], heights: Sequence[float]) -> list[list[str]]:
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
    """Group row numbers so that each name is at the middle of its group; [] if one is not, or all are at the top."""
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
    are_at_top = all(name in group[:1] for name, group in zip(named, groups, strict=True))
    return [] if are_at_top or remaining else groups
