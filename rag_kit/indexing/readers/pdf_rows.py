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
_OPEN = re.compile(
    r"\s(?:&|and|at|by|for|from|in|of|on|or|per|the|to|with|und|am|bei|der|des|für|im|mit|von|zum|zur|de|du|et|la|le|les)$"
)
_PITCH = 1.6  # sizes of the font from one line of a cell to the next, at most
_TIGHT = 0.9  # of the least step between two rows of a table; lines of one cell may be nearer to each other
_NEAR = 0.7  # the same, from which a line is surely one of the cell above
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
    if above.bottom - cell.bottom < _NEAR * step and not (is_value(cell.text) or is_value(above.text)):
        return above
    if len(above.text) < _SHORT_CELL:
        return None
    # how many characters more the line above would have held, had the text begun there
    if CHINESE.match(cell.text):
        goes_on, needed = not is_value(cell.text), 1
    else:
        is_cut = cell.text[0].islower() or bool(_OPEN.search(above.text))
        goes_on, needed = is_cut and " " in above.text, len(cell.text.split()[0]) + 1
    character_width = (cell.right - cell.left) / len(cell.text)
    column_right = max(other.right for other in (*column, cell))
    return above if goes_on and above.right + needed * character_width > column_right else None


def join_wrapped(rows: Sequence[Row], rules: Sequence[Rule]) -> list[Row]:
    """Join lines of a table, each given as its cells, into rows, of which some cells have several lines.

    In doubt a line is a row: that tears a cell, while two rows in one would give a name the value of another.
    """
    cells = list(chain.from_iterable(rows))
    near = row_step(rows)
    pairs = ((cell, begun_above(cell, cells, near)) for cell in cells)
    begun = {cell: above for cell, above in pairs if above and not _is_cut_off(cell, above, rules)}
    key_end = min(cell.right for cell in cells)
    keys = {cell for cell in cells if cell.left < key_end}  # in the first column
    loose = _groups(rows, begun, lambda row, group: True)
    # rows that begin for sure, with the row above; how far the first one is from the header tells nothing
    pairs_of_rows = pairwise(loose[1:])
    sure = [pair for pair in pairs_of_rows if len(pair[1]) > 1 and not any(map(keys.isdisjoint, pair))]
    step = min((above[-1].bottom - row[0].bottom for above, row in sure), default=0.0)
    fewest = min((sum(begun.get(cell) not in row for cell in row) for _, row in sure), default=0)  # cells
    have_small = any(row[0].text[0].islower() for row in loose[1:])  # letters at the beginning of names
    have_keys = sum(keys.isdisjoint(row) and not begun.keys() >= set(row) for row in rows[1:]) < 2

    def is_part(row: Row, group: Row) -> bool:
        more = [cell for cell in row if begun.get(cell) in group]
        if len(more) < len(row) and not keys.isdisjoint(group):  # the row may be that of the name above
            return begun.keys() >= set(group[1:]) and all(_OPEN.search(begun[cell].text) for cell in more)
        if len(row) == 1 and keys.isdisjoint(more) and _has_cell_between(row[0], begun[row[0]], group):
            return True
        pitch = max(begun[cell].bottom - cell.bottom for cell in more)
        is_near = pitch < _TIGHT * step
        is_alone = len(row) == 1 and (not step or pitch < step / _TIGHT)
        if keys.isdisjoint(more):
            return is_near or (is_alone and have_keys)
        name = next(cell for cell in more if cell in keys)
        first_name = next((cell for cell in group if cell in keys), name)
        is_small = name.text[0].islower() and not (have_small or first_name.text[0].islower())
        if is_small or _OPEN.search(begun[name].text):
            return is_near or is_alone
        # else they are lines of a name if rows have more cells, or it is Chinese, and its last line is not full
        is_less = len(more) < fewest or all(CHINESE.match(cell.text) for cell in more)
        is_last = any(cell.right < begun[cell].right - 0.5 * cell.size for cell in more)
        return is_near and len(sure) > 1 and is_less and is_last

    return [_joined_cells(group, begun) for group in _groups(rows, begun, is_part)]


def _has_cell_between(cell: Word, above: Word, group: Row) -> bool:
    """Tell whether a row has a cell at a height between two lines of another one, as one beside a centred cell is."""
    step = 0.3 * cell.size
    return any(cell.bottom + step < other.bottom < above.bottom - step for other in group)


def _is_cut_off(cell: Word, above: Word, rules: Sequence[Rule]) -> bool:
    """Tell whether a level rule between two lines goes on beside them; one that does not is an underline."""
    left, right = cell.left - 0.5 * cell.size, max(cell.right, above.right) + 0.5 * cell.size
    between = [rule for rule in rules if cell.bottom + 0.5 * cell.size < rule.at < above.bottom]
    return any(not rule.upright and rule.start <= x <= rule.end for rule in between for x in (left, right))


def _groups(
    rows: Sequence[Row], begun: Mapping[Word, Word], is_part: Callable[[Row, Row], bool]
) -> list[Row]:
    """Group the cells of lines by row: a line joins the groups from that of a line above on, if ``is_part`` allows."""
    groups: list[Row] = []
    for row in rows:
        above = next((begun[cell] for cell in row if cell in begun), None)
        start = next((n for n, group in enumerate(groups) if above in group), len(groups))
        group = list(chain.from_iterable(groups[start:]))
        joined = {*group, *row}
        first_lines = [cell for cell in joined if begun.get(cell) not in joined]
        has_room = not any(_is_below(cell, other) for cell, other in product(first_lines, joined))
        if not (group and has_room and is_part(row, group)):
            start, group = len(groups), []  # a row of its own
        groups[start:] = [[*group, *row]]
    return groups


def _is_below(cell: Word, other: Word) -> bool:
    return (
        other.bottom > cell.bottom + 0.4 * cell.size and other.left < cell.right and cell.left < other.right
    )


def _joined_cells(cells: Sequence[Word], begun: Mapping[Word, Word]) -> list[Word]:
    """Join the lines of a row's cells, from left to right; ``begun`` maps lines of a cell to the one before each."""
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
    names = [n for n in range(1, len(table)) if table[n][0]]  # rows with a name in it
    if not body or not names:
        return table
    begun, centred = _named_groups(table, body, names), _centred_groups(body, names, heights)
    # of both ways to group, the one whose largest group is smaller
    groups = min(filter(None, (begun, centred)), key=lambda found: max(map(len, found)), default=[])
    spread = {name: group for name, group in zip(names, groups, strict=False) if group}
    for name, group in spread.items():
        for n in group:
            table[n][0] = table[name][0]
    return [row for n, row in enumerate(table) if n in body or n not in spread]


def _named_groups(table: list[list[str]], body: list[int], names: list[int]) -> list[list[int]]:
    """Group row numbers from each name to the next one or, where the first row has no name, up to each name.

    Returns [] unless several groups have more than one row, and all rows are about as full as those with a name.
    """
    if body[0] == names[0]:
        groups = [[n for n in body if name <= n < after] for name, after in pairwise([*names, len(table)])]
    else:
        groups = [[n for n in body if before < n <= name] for before, name in pairwise([0, *names])]
    spanned = [group for group in groups if len(group) > 1]
    least = min(sum(map(bool, table[n])) for n in names) - 1
    are_full = all(table[n][1] and sum(map(bool, table[n][1:])) >= least for group in spanned for n in group)
    is_whole = sum(map(len, groups)) == len(body) and set(names) <= set(body)
    return groups if len(spanned) > 1 and are_full and is_whole else []


def _centred_groups(body: Sequence[int], names: Sequence[int], heights: Sequence[float]) -> list[list[int]]:
    """Group row numbers so that each name is at the middle of its group; [] if one is not, or all are at the top."""
    remaining, groups = list(body), []
    for name in names:
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
    all_in_first_row = all(name in group[:1] for name, group in zip(names, groups, strict=True))
    return [] if all_in_first_row or remaining else groups
