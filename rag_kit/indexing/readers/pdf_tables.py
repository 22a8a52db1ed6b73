"""Tables of a PDF page: by their ruled grid, else by how their words stand below each other."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import groupby, pairwise, product
from statistics import fmean

from rag_kit.indexing.readers.pdf_characters import HYPHEN
from rag_kit.indexing.readers.pdf_lines import Line, Rule, Word
from rag_kit.indexing.readers.tables import markdown_table, split_runs

_COLUMN = 12  # sizes of the font; what stands that much higher begins another column
_MAX_CELL = 60  # characters of a cell; longer ones are prose
_WORDS = 4  # most words of a cell of a table without rules, on average
_MAX_CELLS = 5_000  # of a ruled table; more are a drawing
_CHINESE = re.compile("[\u2e80-\u9fff\uf900-\ufaff\uff00-\uffef]")
_FEW_ROWS = 3
_MAX_SPANNING = 0.15  # most cells of such a table that span columns, as a share of its cells
_MIN_FILLED = 0.35  # least share of its cells that hold text


def with_tables(lines: Sequence[Line], rules: Sequence[Rule]) -> list[Line]:
    """Replace the lines of each table of a page by one line that holds it as markdown."""
    left = list(lines)
    for grid in _find_grids(rules):
        inside = [line for line in left if grid.holds(line)]
        rows = grid.rows([word for line in inside for word in line.words]) if inside else []
        if rows:
            left = _replace_by_table(left, inside, markdown_table(rows))
    for stretch in _table_stretches(left):
        for group in _row_groups(stretch):
            cells = [[cell for line in row for cell in _read_cells(line)] for row in group]
            if rows := _read_table(cells, rules):
                left = _replace_by_table(left, [line for row in group for line in row], markdown_table(rows))
    return left


def join_torn_rows(pages: Sequence[list[Line]]) -> None:
    """Put what stands of a row below the header that the next page repeats to the rest of the row."""
    for lines, after in pairwise(pages):
        if not (lines and after and lines[-1].block and after[0].block):
            continue
        above, below = lines[-1].text.splitlines(), after[0].text.splitlines()
        if len(below) < 4 or above[0] != below[0] or not above[0].startswith("|"):
            continue
        row, rest = ([cell.strip() for cell in line.strip("|").split("|")] for line in (above[-1], below[2]))
        if not rest[0] and len(row) == len(rest) and 2 * sum(map(bool, rest)) <= len(rest):
            above[-1] = f"| {' | '.join(map(join_texts, row, rest))} |"
            del below[2]
            lines[-1].text, after[0].text = "\n".join(above), "\n".join(below)


def _replace_by_table(lines: list[Line], inside: list[Line], text: str) -> list[Line]:
    """Replace lines by one block that holds their table."""
    taken = {id(line) for line in inside}
    first = next(index for index, line in enumerate(lines) if id(line) in taken)
    rest = [line for line in lines[first:] if id(line) not in taken]
    bottoms = [line.bottom for line in inside]
    block = replace(lines[first].as_block(text), bottom=max(bottoms), end_bottom=min(bottoms))
    return [*lines[:first], block, *rest]


# --- ruled grids


@dataclass
class _Grid:
    """The rules of a table: ``xs`` from left to right, ``ys`` from top to bottom."""

    xs: list[float]
    ys: list[float]
    rules: list[Rule]

    def holds(self, line: Line) -> bool:
        middle = (line.left + line.right) / 2
        return not line.block and self.xs[0] < middle < self.xs[-1] and self.ys[-1] < line.bottom < self.ys[0]

    def rows(self, words: Sequence[Word]) -> list[list[str]]:
        """Return the texts of the cells, a merged one in each cell that it covers; empty if this is not a table."""
        columns, count = len(self.xs) - 1, len(self.ys) - 1
        cells: list[list[list[Word]]] = [[[] for _ in range(columns)] for _ in range(count)]
        for row, column in product(range(count), range(columns)):
            x, y = fmean(self.xs[column : column + 2]), fmean(self.ys[row : row + 2])
            if column and not self._has_rule(Rule(True, self.xs[column], y, y)):
                cells[row][column] = cells[row][column - 1]
            elif row and not self._has_rule(Rule(False, self.ys[row], x, x)):
                cells[row][column] = cells[row - 1][column]
        for word in words:
            column = sum(x <= (word.left + word.right) / 2 for x in self.xs) - 1
            row = sum(y >= word.bottom + word.size / 4 for y in self.ys) - 1
            cells[min(max(row, 0), count - 1)][min(max(column, 0), columns - 1)].append(word)
        distinct = {id(cell): cell for row in cells for cell in row}
        texts = {key: _join_words(cell) for key, cell in distinct.items()}
        rows = [line for row in cells if any(line := [texts[id(cell)] for cell in row])]
        filled = [sum(map(bool, column)) for column in zip(*rows, strict=True)]
        rows = [[text for text, count in zip(row, filled, strict=True) if count] for row in rows]
        fits = len(rows) > 1 and sum(map(bool, filled)) > 1 and sum(filled) > 0.3 * len(rows) * columns
        # in a drawing most lines end somewhere
        fits = fits and 2 * len(distinct) > count * columns
        return rows if fits else []

    def _has_rule(self, side: Rule) -> bool:
        """Tell whether a rule is drawn at the side of a cell whose middle is given."""
        return any(rule.upright == side.upright and rule.touches(side) for rule in self.rules)


def _join_words(words: Sequence[Word]) -> str:
    ordered = sorted(words, key=lambda word: (-round(word.bottom / (word.size or 1) * 2), word.left))
    return reduce(join_texts, (word.text for word in ordered), "")


def join_texts(text: str, more: str) -> str:
    """Two lines of a paragraph or a cell as one text, with a blank between words that have one."""
    wide = text and more and _CHINESE.match(text[-1]) and _CHINESE.match(more[0])
    return text + more if wide or text.endswith(HYPHEN) else f"{text} {more}".strip()


def _find_grids(rules: Sequence[Rule]) -> list[_Grid]:
    """Find the grids of touching rules with at least two rows and two columns."""
    left, grids = list(rules), []
    while left:
        group, todo = [], [left.pop()]
        while todo:
            rule = todo.pop()
            group.append(rule)
            near = [other for other in left if rule.touches(other)]
            todo += near
            left = [other for other in left if not rule.touches(other)]
        upright, level = ([rule for rule in group if rule.upright == side] for side in (True, False))
        # a table without lines around it ends where those inside end
        xs = _distinct_positions([*(rule.at for rule in upright), *_ends(level)])
        ys = _distinct_positions([*(rule.at for rule in level), *_ends(upright)])[::-1]
        if len(xs) > 2 and len(ys) > 2 and len(xs) * len(ys) < _MAX_CELLS:
            grids.append(_Grid(xs, ys, group))
    return grids


def _ends(rules: Sequence[Rule]) -> list[float]:
    return [min(rule.start for rule in rules), max(rule.end for rule in rules)] if rules else []


def _distinct_positions(positions: list[float]) -> list[float]:
    """Sort positions, and take those within three points of each other as one."""
    return [near[0] for near in split_runs(sorted(positions), lambda before, after: after - before <= 3)]


# --- tables without rules


def _read_cells(line: Line) -> list[Word]:
    """Join words that are close together into the cells of a line."""
    low, high = -0.5 * line.size, 0.9 * line.size
    cells = split_runs(line.words, lambda word, after: low < after.left - word.right < high)
    return [
        replace(words[0], text=" ".join(word.text for word in words), right=words[-1].right)
        for words in cells
    ]


def _table_stretches(lines: Sequence[Line]) -> Iterator[list[Line]]:
    """Yield stretches of lines that may be a table: one font size, one column, short cells."""
    for column in split_runs(lines, _is_same_column):
        for is_short, stretch in groupby(column, _has_short_cells):
            rows = list(stretch)
            several = [
                number
                for number, line in enumerate(rows, 1)
                if len(_read_cells(line)) > 1 or (number > 1 and _is_beside(rows[number - 2], line))
            ]
            if is_short and several:
                yield rows[: several[-1]]


def _is_beside(line: Line, after: Line) -> bool:
    return abs(line.bottom - after.bottom) < 0.4 * after.size and after.left > line.right


def _is_same_column(line: Line, after: Line) -> bool:
    """Tell whether the next line has the same font size and does not begin the next column."""
    same = abs(after.size - line.size) <= 0.08 * after.size
    return same and after.bottom - line.bottom <= _COLUMN * after.size


def _has_short_cells(line: Line) -> bool:
    cells = [] if line.block else _read_cells(line)
    return bool(cells) and all(len(cell.text) <= _MAX_CELL for cell in cells)


def _row_groups(stretch: list[Line]) -> list[list[list[Line]]]:
    """Group the lines of a stretch into tables of rows; cut at wide gaps, drop single cells at the ends."""
    ordered = sorted(stretch, key=lambda line: -line.bottom)
    rows = split_runs(ordered, lambda line, after: line.bottom - after.bottom < 0.4 * after.size)
    groups = split_runs(rows, lambda row, after: row[0].bottom - after[0].bottom < 3.2 * after[0].size)
    trimmed = []
    for group in groups:
        if full := [n for n, row in enumerate(group) if sum(len(_read_cells(line)) for line in row) > 1]:
            trimmed.append(group[full[0] : full[-1] + 1])
    return trimmed


def _read_table(rows: list[list[Word]], rules: Sequence[Rule]) -> list[list[str]]:
    """Arrange the cells of rows in columns; an empty table where the rows are prose."""
    columns = _find_columns(rows)
    if len(columns) < 2 or len(rows) < _FEW_ROWS:
        return []
    table = [[""] * len(columns) for _ in rows]
    spanning = 0  # cells over more than one column
    for row, texts in zip(rows, table, strict=True):
        for cell in sorted(row, key=lambda cell: cell.left):
            covered = [n for n, (low, high) in enumerate(columns) if cell.left < high and low < cell.right]
            covered = covered or [min(range(len(columns)), key=lambda n: abs(columns[n][0] - cell.left))]
            spanning += len(covered) > 1
            for column in covered if len(row) > 1 else covered[:1]:
                texts[column] = f"{texts[column]} {cell.text}".strip()
    filled = [text for texts in table for text in texts if text]
    words = sum(len(re.findall(r"[\u2e80-\u9fff]{1,2}|[^\s\u2e80-\u9fff]+", text)) for text in filled)
    is_table = (
        spanning <= _MAX_SPANNING * sum(map(len, rows))
        and words <= _WORDS * len(filled)
        and len(filled) > _MIN_FILLED * len(table) * len(columns)
    )
    if not is_table:
        return []
    names = [row[0] for row in rows]
    cuts = [n for n in range(1, len(rows)) if _is_ruled_off(names[n - 1], names[n], rules, columns[0])]
    return _with_row_spans(table, [name.bottom for name in names], cuts)


def _is_ruled_off(word: Word, after: Word, rules: Sequence[Rule], column: tuple[float, float]) -> bool:
    """Tell whether a rule crosses a column between two rows."""
    x, low, high = fmean(column), after.bottom + 0.5 * after.size, word.bottom
    return any(not rule.upright and rule.start <= x <= rule.end and low < rule.at < high for rule in rules)


def _with_row_spans(table: list[list[str]], heights: Sequence[float], cuts: Sequence[int]) -> list[list[str]]:
    """Repeat each name in the first column in every row that it stands for.

    Its rows are those between two ``cuts``, where rules are drawn. Without rules, the name is in the first of its rows,
    whose other cells are all filled, or at their middle. Rows are known by their numbers.
    """
    body = [n for n in range(1, len(table)) if any(table[n][1:])]
    names = [n for n in range(1, len(table)) if table[n][0]]
    if not body or not names:
        return table
    bands = list(pairwise([*cuts, len(table)] if len(cuts) > 1 and cuts[0] == 1 else []))
    in_bands = (start <= name < end for name, (start, end) in zip(names, bands, strict=False))
    if len(bands) == len(names) and all(in_bands):
        groups = [[n for n in body if start <= n < end] for start, end in bands]
    else:
        groups = [[n for n in body if name <= n < after] for name, after in pairwise([*names, len(table)])]
        spanned = [group for group in groups if len(group) > 1]
        full = all(all(table[n][1:]) for group in spanned for n in group)
        if len(spanned) < 2 or not full or body[0] != names[0] or set(names) - set(body):
            groups = _centred_groups(body, names, heights)
    for name, group in zip(names, groups, strict=False):
        for n in group:
            table[n][0] = table[name][0]
    return [row for n, row in enumerate(table) if not n or n in body or not groups]


def _centred_groups(body: Sequence[int], names: Sequence[int], heights: Sequence[float]) -> list[list[int]]:
    """Group rows by names that stand at the middle of theirs; empty if one does not, or all head theirs."""
    left, groups = list(body), []
    for name in names:
        if not left:
            return []
        step = abs(heights[left[0]] - heights[left[-1]]) / max(1, len(left) - 1)
        foot = 2 * heights[name] - heights[left[0]]
        group = [n for n in left if heights[n] > foot - 0.3 * step]
        if not group or abs(heights[group[-1]] - foot) > 0.3 * step:
            return []
        groups.append(group)
        left = left[len(group) :]
    shifted = any(name not in group[:1] for name, group in zip(names, groups, strict=True))
    return groups if shifted and not left else []


def _find_columns(rows: list[list[Word]]) -> list[tuple[float, float]]:
    """Find the columns from the fullest rows first; a cell over two columns widens neither."""
    spans: list[list[float]] = []
    for row in sorted(rows, key=len, reverse=True):
        for cell in row:
            hits = [span for span in spans if cell.left < span[1] and span[0] < cell.right]
            if not hits:
                spans.append([cell.left, cell.right])
            elif len(hits) == 1:
                hits[0][:] = min(hits[0][0], cell.left), max(hits[0][1], cell.right)
    return sorted((left, right) for left, right in spans)
