"""The rows of Markdown tables, with the values of their cells in the unit of the column."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import chain, pairwise
from typing import NamedTuple, TypeGuard

from rag_kit.text.values.numbers import SCALES
from rag_kit.text.values.reading import find_values, level
from rag_kit.text.values.units import Unit, dimensions_agree, is_money, rate_of, unit_at
from rag_kit.text.values.value import Value, counted_by

DELIMITER = re.compile(r"\s*\|?(?:\s*:?-{2,}:?\s*\|)+(?:\s*:?-{2,}:?\s*)?")
_LINE = re.compile(r"[^\n]+")
_UNIT_NAME = re.compile(r"\s*(?:units?|currency|单位|币种|货币|einheit|währung)\s*", re.IGNORECASE)
_COUNTS_ROWS = re.compile(r"(?:第.*|[期批轮场]?[次数序]?|序?号|[编批]号|阶段|no\.?|#)\s*", re.IGNORECASE)
_ENTITY = re.compile(r".{2,40}(?:公司|集团|银行|大学|学院|医院|中心|研究所|厂|局|委员会)(?:[（(].*)?")
_IN_HEADERS = ("date", "quarter", "ordinal", "weekday", "decade", "century")
_CAPTION = re.compile(r"(?:单位|金额单位|unit|in)\s?[:：]?\s*(?P<unit>[^\n|，。,.;)）]{1,24})", re.IGNORECASE)
_IN_BRACKETS = re.compile(r"[(（\[]([^()（）\[\]]{1,24})[)）\]]")
_NUMBER = re.compile(r"[-+$€£¥≤≥<>±~约]?\s?[\d０-９]")  # at the beginning of a cell
_YEAR = re.compile(r"(?:19|20)\d\d年?")
_NEGATIVE = re.compile(r"[(（][\d,.]+[)）]")  # as in accounts
_AFTER_WORD = re.compile(r"(?:\bin|,|，|/)\s*([^\s,，/]{1,12}(?: \w+)?)\s*$")
# Vacation days, 年假天数
_NAMED = re.compile(r"\b(days|weeks|months|hours|minutes)$|([天月]|小时|分钟)数$", re.IGNORECASE)
_SCALE = re.compile(
    r"(?:in )?(thousands?|millions?|billions?|mn|bn|mio\.?|k|m|千|十万|百万|千万|万|十亿|亿)\s?(?:of )?",
    re.IGNORECASE,
)
# what may follow a unit, as in "weeks after birth" and 天，自下单起
_UNIT_FIRST = re.compile(r"[,，;；]|(?<=s) (?=(?:after|before|from|since|until|of|in|for|at|by)\b)")
_COUNTED = "台套件辆个只支条张人户次份"  # what 万 counts without a unit, as in 万台
_ANSWER = re.compile(r"[-–—✓✔√☑✗✘×☒]+|yes|no|是|否|有|无", re.IGNORECASE)
_MAX_CELLS = 100
_MAX_HEADER_ROWS = 3


class TableCell(NamedTuple):
    """A cell: its text, that of its column's header, and its values, whose offsets count in the cell's text."""

    text: str
    header: str
    values: tuple[Value, ...]


class TableRow(NamedTuple):
    """A row of a table, which stands at ``text[start:end]``, with its cells."""

    start: int
    end: int
    cells: tuple[TableCell, ...]


class Measure(NamedTuple):
    """A scale and a unit that a header names for all numbers below it."""

    scale: float
    unit: Unit | None = None
    per: Unit | None = None


def read_measure(text: str) -> Measure | None:
    """Read a text that is nothing but a scale, a unit or both; None if it is not.

    Example:
        >>> read_measure("万元").scale, read_measure("m EUR").unit.symbol, read_measure("kg").unit.symbol
        (10000.0, 'EUR', 'kg')
    """
    text = level(text).strip()
    if found := unit_at(text, 0):
        behind = text[found.end :].strip()
        if not behind:
            return Measure(1.0, found.unit)
        if behind.startswith(("/", "per ")):  # EUR/kg, EUR per kg
            by = unit_at(behind.lstrip("/").removeprefix("per ").strip(), 0)
            if by or behind.startswith("/"):
                return Measure(1.0, found.unit, by.unit if by else None)
        if is_money(found.unit.dimension) and (scale := _SCALE.fullmatch(behind)):  # EUR thousand
            return Measure(_scale_of(scale[1]), found.unit)
    return _read_scale(text)


def _read_scale(text: str) -> Measure | None:
    """Read a scale that may have a unit behind it: 万元, "m EUR", 万台; None if there is anything else."""
    scale = _SCALE.match(text)
    if scale is None:
        return None
    factor = _scale_of(scale[1])
    if unit := unit_at(text, scale.end()):
        # a single letter scales money alone: "m EUR", and no "m t"
        may_scale = is_money(unit.unit.dimension) or not scale[1].isascii() or len(scale[1]) > 1
        if may_scale and not text[unit.end :].strip("/ 件人月年"):
            return Measure(factor, unit.unit)
    counts_things = len(text) > 1 and not text[scale.end() :].strip(_COUNTED)  # 万台, but no single letter
    return Measure(factor) if counts_things else None


def _scale_of(word: str) -> float:
    """Return the factor of a scale, also in the plural ("millions") or abbreviated ("m")."""
    word = word.lower().rstrip(".")
    return 1e6 if word == "m" else SCALES.get(word) or SCALES[word.removesuffix("s")]


def table_rows(text: str, context: str = "") -> Iterator[TableRow]:
    """Yield the rows below the headers of a text's tables; a line with two bars is a row.

    Rows above the rule (``| --- |``) are the header. So is the first row below it if it has no number and a row with
    numbers follows. A header cell without text has that of the cell before it. A unit that neither headers nor the
    line above the table name may be named in the `context`, the title and headings of the text.

    Example:
        >>> row = next(table_rows("| Model | Price (EUR) |\\n| --- | --- |\\n| P-12 | 900 |"))
        >>> row.cells[1].header, row.cells[1].values[0].normal
        ('Price (EUR)', '900 EUR')
    """
    block: list[re.Match[str]] = []
    caption = ""  # the line before the table
    headings = context.splitlines()[::-1]
    for line in _LINE.finditer(text):
        if line[0].count("|") > 1:
            block.append(line)
        elif line[0].strip():
            yield from _rows_of_table(block, [caption, *headings])
            block, caption = [], line[0]
    yield from _rows_of_table(block, [caption, *headings])


def _rows_of_table(block: list[re.Match[str]], captions: Sequence[str]) -> Iterator[TableRow]:
    """Yield the rows of one table, given its lines with the rule, and the lines above it, the nearest first."""
    lines = [line for line in block if not DELIMITER.fullmatch(line[0])]
    rows = [[cell.strip() for cell in line[0].strip().strip("|").split("|")[:_MAX_CELLS]] for line in lines]
    if len(rows) < 2:
        return
    if _is_form(rows):
        yield from _form_rows(lines, rows)
        return
    rows_above_rule = next((number for number, line in enumerate(block) if DELIMITER.fullmatch(line[0])), 1)
    header_rows = max(1, rows_above_rule)
    if header_rows < min(_MAX_HEADER_ROWS, len(rows) - 1):
        below_rule, next_row = rows[header_rows : header_rows + 2]
        has_data = _has_numbers(below_rule) or any(map(_ANSWER.fullmatch, below_rule[1:]))
        header_rows += not has_data and _has_numbers(next_row)
    columns = _Columns(_headers(rows[:header_rows], max(map(len, rows))), captions)
    _fill_merged(rows[header_rows:])
    for line, row in zip(lines[header_rows:], rows[header_rows:], strict=True):
        yield TableRow(line.start(), line.end(), columns.read_row(row))


def _fill_merged(rows: list[list[str]]) -> None:
    """Give empty cells at the beginning of a row the text above them: one cell was merged over several rows."""
    for above, row in pairwise(rows):
        for column in range(min(len(above), len(row) - 1)):
            if row[column]:
                break
            row[column] = above[column]


class _Columns:
    """The headers of a table with the units that these and the captions name."""

    def __init__(self, headers: list[str], captions: Sequence[str]) -> None:
        self._headers = headers
        self._measures = [_header_measure(header) for header in headers]
        unit_columns = (column for column, header in enumerate(headers) if _UNIT_NAME.fullmatch(header))
        self._unit_column = next(unit_columns, None)  # the column headed "Unit", with a unit for each row
        self._of_caption = next(filter(None, map(_caption_measure, captions)), None)

    def read_row(self, row: list[str]) -> tuple[TableCell, ...]:
        """Read the cells of a row; a number has the unit of its column, else of its row, else of the caption."""
        if self._unit_column is not None and self._unit_column < len(row):
            row_measure = read_measure(row[self._unit_column])
        else:
            row_measure = _header_measure(row[0])
        cells = []
        for column, cell in enumerate(row):
            header, measure = self._headers[column], self._measures[column]
            if measure is None and column:
                # brackets in a header, such as "(new)", may name a unit that is not known
                measure = row_measure or (None if _IN_BRACKETS.search(header) else self._of_caption)
            elif self._unit_column is not None and row_measure and _is_price(measure):
                measure = measure._replace(per=measure.per or row_measure.unit)  # by the unit of the row
            values = tuple(_in_measure(value, measure) for value in find_values(cell))
            if len(values) == 1 and _is_price(measure) and _NEGATIVE.fullmatch(cell):
                # (120) may be a loss of 120 or a balance of -120: the cell states both
                values = (values[0], values[0]._replace(amount=-values[0].amount))
            if column == 0 and cell.isdecimal() and _COUNTS_ROWS.fullmatch(header):
                values = tuple(value._replace(dimension="ordinal") for value in values)
            cells.append(TableCell(cell, header, values))
        return tuple(cells)


def _is_price(measure: Measure | None) -> TypeGuard[Measure]:
    return measure is not None and measure.unit is not None and is_money(measure.unit.dimension)


def _is_form(rows: list[list[str]]) -> bool:
    """Tell whether a table is a form, whose cells are label, text, label, text: 甲方 | 海源公司 | 金额 | 300元.

    Its first row, which is no header, has a value or the name of a company, and no label has a value.
    """
    labels = [cell for row in rows for cell in row[::2]]
    texts = rows[0][1::2]
    if len(rows[0]) % 2 or any(map(find_values, labels)):
        return False
    values = chain.from_iterable(map(find_values, texts))
    return any(map(_ENTITY.fullmatch, texts)) or any(value.dimension not in _IN_HEADERS for value in values)


def _form_rows(lines: list[re.Match[str]], rows: list[list[str]]) -> Iterator[TableRow]:
    """Yield the rows of a form, with the label of each text as its header.

    To each row the cells without values of all other rows are added: they name its subject, such as a company.
    """
    pairs = [zip(row[::2], row[1::2], strict=False) for row in rows]
    cells = [[TableCell(text, label, tuple(find_values(text))) for label, text in row] for row in pairs]
    names = [cell for row in cells for cell in row if not cell.values]
    for line, row in zip(lines, cells, strict=True):
        yield TableRow(line.start(), line.end(), (*row, *(cell for cell in names if cell not in row)))


def _has_numbers(row: list[str]) -> bool:
    """Tell whether a cell behind the first of a row begins with a number and is no year."""
    return any(_NUMBER.match(cell) and not _YEAR.fullmatch(cell) for cell in row[1:])


def _headers(rows: list[list[str]], width: int) -> list[str]:
    """Return the header of each column: the texts of its header rows, each once."""
    filled = [row + [""] * (width - len(row)) for row in rows]
    for cells in filled[:-1]:  # above the last row, the cell before an empty one spans both
        for column in range(1, width):
            cells[column] = cells[column] or cells[column - 1]
    return [" ".join(dict.fromkeys(filter(None, texts))) for texts in zip(*filled, strict=True)]


def _caption_measure(caption: str) -> Measure | None:
    """Return the scale and unit that a line above a table names, as in 单位：万元; None if there is none."""
    measures = (read_measure(match["unit"]) for match in _CAPTION.finditer(caption))
    return next(filter(None, measures), None) or _header_measure(caption)


def _header_measure(header: str) -> Measure | None:
    """Return the scale and unit in the brackets of a header, or at its end ("in kg"); None if there is none."""
    for pattern in (_IN_BRACKETS, _AFTER_WORD, _NAMED):
        for match in pattern.finditer(header):
            unit_name = _UNIT_FIRST.split(match[match.lastindex or 0])[0]
            if measure := read_measure(unit_name):
                return measure
    return None


def _in_measure(value: Value, measure: Measure | None) -> Value:
    """Return a plain number with the scale and unit of its column; other values as they are."""
    if measure is None:
        return value
    takes_unit = not value.dimension or (value.dimension == "date" and value.key.isdecimal())  # 2000
    if measure.unit and is_money(value.dimension):  # ¥ beside JPY
        takes_unit = dimensions_agree(value.dimension, measure.unit.dimension)
    if not takes_unit:
        return value
    amount = value.amount * measure.scale
    if measure.unit is None:
        return value._replace(amount=amount, dimension="", key="")
    unit, per = rate_of(measure.unit) or (measure.unit, measure.per)  # mph: miles, by the hour
    symbol, dimension, factor = unit
    value = value._replace(amount=amount, dimension=dimension, unit=symbol, factor=factor, per="", key="")
    return counted_by(value, per) if per else value
