"""Tables of a PDF page that are ruled: the grids of its rules, and the texts of their cells."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import product
from statistics import fmean

from rag_kit.indexing.readers.pdf_characters import HYPHEN
from rag_kit.indexing.readers.pdf_lines import THICK, Line, Rule, Word
from rag_kit.indexing.readers.tables import split_runs

_MAX_CELLS = 5_000  # of a ruled table; more are a drawing
CHINESE = re.compile("[\u2e80-\u9fff\uf900-\ufaff\uff00-\uffef]")


@dataclass
class Grid:
    """The rules of a table: those upright are at ``xs``, from left to right, those level at ``ys``, from the top."""

    xs: list[float]
    ys: list[float]
    rules: list[Rule]

    def holds(self, line: Line) -> bool:
        """Tell whether a line is inside the rules."""
        middle = (line.left + line.right) / 2
        return not line.block and self.xs[0] < middle < self.xs[-1] and self.ys[-1] < line.bottom < self.ys[0]

    def cell_texts(self, words: Sequence[Word]) -> list[list[str]]:
        """Return the texts of the cells by row, with a merged cell repeated; empty if the grid is not a table."""
        cells = self._empty_cells()
        for word in words:
            # the rules left of a word, or above it, less 1; a word beyond an edge belongs to the outermost cell
            column = sum(x <= (word.left + word.right) / 2 for x in self.xs) - 1
            row = sum(y >= word.bottom + word.size / 4 for y in self.ys) - 1
            row, column = max(0, min(row, len(cells) - 1)), max(0, min(column, len(cells[0]) - 1))
            cells[row][column].append(word)
        distinct = {id(cell): cell for row in cells for cell in row}  # a merged cell is one list, repeated
        text_of = {key: _cell_text(cell) for key, cell in distinct.items()}
        rows = [[text_of[id(cell)] for cell in row] for row in cells]
        rows = [row for row in rows if any(row)]
        text_counts = [sum(map(bool, column)) for column in zip(*rows, strict=True)]  # by column
        is_filled = sum(map(bool, text_counts)) > 1 and sum(text_counts) > 0.3 * len(rows) * len(cells[0])
        # in a drawing most lines end somewhere, so that most cells are merged
        is_drawing = 2 * len(distinct) <= len(cells) * len(cells[0])
        if len(rows) < 2 or not is_filled or is_drawing:
            return []
        # only filled columns
        return [[text for text, count in zip(row, text_counts, strict=True) if count] for row in rows]

    def _empty_cells(self) -> list[list[list[Word]]]:
        """Make an empty list of words for each cell, by row; cells without a rule between them share one list."""
        cells: list[list[list[Word]]] = [[[] for _ in self.xs[1:]] for _ in self.ys[1:]]
        for row, column in product(range(len(cells)), range(len(cells[0]))):
            x, y = fmean(self.xs[column : column + 2]), fmean(self.ys[row : row + 2])
            if column and not self._has_rule(Rule(upright=True, at=self.xs[column], start=y, end=y)):
                cells[row][column] = cells[row][column - 1]
            elif row and not self._has_rule(Rule(upright=False, at=self.ys[row], start=x, end=x)):
                cells[row][column] = cells[row - 1][column]
        return cells

    def _has_rule(self, side: Rule) -> bool:
        """Tell whether a rule is drawn at a side of a cell; ``side`` is a rule of no length at the middle of that."""
        return any(rule.upright == side.upright and rule.touches(side) for rule in self.rules)


def _cell_text(words: Sequence[Word]) -> str:
    """Join the words of a cell line by line; those less than about half their size apart in height are one line."""
    in_order = sorted(words, key=lambda word: (-round(word.bottom / (word.size or 1) * 2), word.left))
    return reduce(join_texts, (word.text for word in in_order), "")


def find_grids(rules: Sequence[Rule]) -> Iterator[Grid]:
    """Yield the grids that touching rules make, if they have at least two rows and two columns."""
    for group in _touching_groups(rules):
        upright = [rule for rule in group if rule.upright]
        level = [rule for rule in group if not rule.upright]
        # a table without lines around it ends where those inside end
        xs = _distinct_positions([*(rule.at for rule in upright), *_ends(level)])
        ys = _distinct_positions([*(rule.at for rule in level), *_ends(upright)])[::-1]
        if len(xs) > 2 and len(ys) > 2 and len(xs) * len(ys) < _MAX_CELLS:
            yield Grid(xs, ys, group)


def _touching_groups(rules: Sequence[Rule]) -> Iterator[list[Rule]]:
    """Yield groups of rules that touch each other, directly or through others of the group."""
    remaining = list(rules)
    while remaining:
        group, unvisited = [], [remaining.pop()]
        while unvisited:
            rule = unvisited.pop()
            group.append(rule)
            unvisited += [other for other in remaining if rule.touches(other)]
            remaining = [other for other in remaining if not rule.touches(other)]
        yield group


def _ends(rules: Sequence[Rule]) -> list[float]:
    return [min(rule.start for rule in rules), max(rule.end for rule in rules)] if rules else []


def _distinct_positions(positions: list[float]) -> list[float]:
    """Sort positions, and take those within three points of each other as one."""
    return [near[0] for near in split_runs(sorted(positions), lambda before, after: after - before <= THICK)]


def join_texts(text: str, after: str) -> str:
    """Join two lines of a paragraph or a cell with a blank, or without one in Chinese and behind a hyphen."""
    is_chinese = text and after and CHINESE.match(text[-1]) and CHINESE.match(after[0])
    return text + after if is_chinese or text.endswith(HYPHEN) else f"{text} {after}".strip()
