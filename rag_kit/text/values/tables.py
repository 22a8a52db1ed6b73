"""The rows of Markdown tables, with the values of their cells in the unit of the column."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from rag_kit.text.values.numbers import SCALES
from rag_kit.text.values.reading import Value, find_values, level
from rag_kit.text.values.units import Unit, dimensions_agree, is_money, unit_at

DELIMITER = re.compile(r"\s*\|?(?:\s*:?-{2,}:?\s*\|)+(?:\s*:?-{2,}:?\s*)?")
_LINE = re.compile(r"[^\n]+")
_UNIT_NAME = re.compile(r"\s*(?:units?|currency|单位|币种|货币|einheit|währung)\s*", re.IGNORECASE)
_COUNTS_ROWS = re.compile(r"(?:第.*|.*[期序批次轮号]|阶段|no\.?|#)\s*", re.IGNORECASE)
_ENTITY = re.compile(r".{2,40}(?:公司|集团|银行|大学|学院|医院|中心|研究所|厂|局|委员会)(?:[（(].*)?")
_IN_HEADERS = ("date", "quarter", "ordinal", "weekday", "decade", "century")
_CAPTION = re.compile(r"(?:单位|金额单位|unit|in)\s?[:：]?\s*(?P<unit>[^\n|，。,;)）]{1,24})", re.IGNORECASE)
_IN_BRACKETS = re.compile(r"[(（\[]([^()（）\[\]]{1,24})[)）\]]")
_AFTER_WORD = re.compile(r"(?:\bin|,|，|/)\s*([^\s,，/]{1,12}(?: \w+)?)\s*$")
_SCALE = re.compile(
    r"(?:in )?(thousands?|millions?|billions?|mn|bn|mio\.?|k|m|千|十万|百万|千万|万|十亿|亿)\s?(?:of )?",
    re.IGNORECASE,
)
_COUNTED = "台套件辆个只支条张人户次份"  # what 万 counts without a unit, as in 万台
_MAX_CELLS = 100


class TableCell(NamedTuple):
    """A cell: its text, that of its column's header, and its values, whose places are those of the cell's text."""

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
    unit: Unit | None
    per: Unit | None = None


def read_measure(text: str) -> Measure | None:
    """The scale and unit that a text is, or None.

    Example:
        >>> read_measure("万元").scale, read_measure("m EUR").unit.symbol, read_measure("kg").unit.symbol
        (10000.0, 'EUR', 'kg')
    """
    text = level(text).strip()
    if whole := unit_at(text, 0):
        rest = text[whole[1] :].strip()
        by = (
            unit_at(rest.lstrip("/").removeprefix("per ").strip(), 0)
            if rest.startswith(("/", "per "))
            else None
        )
        if not rest or by or rest.startswith("/"):
            return Measure(1.0, whole[0], by[0] if by else None)
        if is_money(whole[0].dimension) and (scale := _SCALE.fullmatch(rest)):
            return Measure(_scale_of(scale[1]), whole[0])
    if scale := _SCALE.match(text):
        unit = unit_at(text, scale.end())
        if unit and is_money(unit[0].dimension) and not text[unit[1] :].strip("/ 件人月年"):
            return Measure(_scale_of(scale[1]), unit[0])
        if not text[scale.end() :].strip(_COUNTED) and len(text) > 1:
            return Measure(_scale_of(scale[1]), None)
    return None


def _scale_of(word: str) -> float:
    word = word.lower().rstrip(".")
    return {"m": 1e6}.get(word) or SCALES.get(word) or SCALES[word.removesuffix("s")]


def table_rows(text: str) -> Iterator[TableRow]:
    """The rows of the tables of a text that have a header; lines with bars are rows, and a rule ends the header.

    Rows above the rule are the header, and below it those without a number that rows with numbers follow. A header
    cell without text has that of the cell before it.

    Example:
        >>> row = next(table_rows("| Model | Price (EUR) |\\n| --- | --- |\\n| P-12 | 900 |"))
        >>> row.cells[1].header, row.cells[1].values[0].normal
        ('Price (EUR)', '900 EUR')
    """
    block: list[re.Match[str]] = []
    caption = ""
    for line in _LINE.finditer(text):
        if line[0].count("|") > 1:
            block.append(line)
            continue
        yield from _rows_of(block, caption)
        block, caption = [], line[0]
    yield from _rows_of(block, caption)


def _rows_of(block: list[re.Match[str]], caption: str) -> Iterator[TableRow]:
    """Yield the rows of one table."""
    lines = [line for line in block if not DELIMITER.fullmatch(line[0])]
    rows = [[cell.strip() for cell in line[0].strip().strip("|").split("|")[:_MAX_CELLS]] for line in lines]
    if len(rows) < 2:
        return
    if _is_form(rows[0]):
        yield from _form_rows(lines, rows)
        return
    rule = next((place for place, line in enumerate(block) if DELIMITER.fullmatch(line[0])), 1)
    count = max(1, rule)
    while count < min(3, len(rows) - 1) and not _has_numbers(rows[count]) and _has_numbers(rows[count + 1]):
        count += 1
    headers = _headers(rows[:count], max(map(len, rows)))
    measures = [_header_measure(header) for header in headers]
    default = next(
        (found for match in _CAPTION.finditer(caption) if (found := read_measure(match["unit"]))), None
    )
    units = next((place for place, header in enumerate(headers) if _UNIT_NAME.fullmatch(header)), None)
    for line, row in zip(lines[count:], rows[count:], strict=True):
        own = read_measure(row[units]) if units is not None and units < len(row) else _header_measure(row[0])
        cells = []
        for place, cell in enumerate(row):
            measure = measures[place] or (None if _IN_BRACKETS.search(headers[place]) else own or default)
            values = tuple(
                _measured(value, measure if place or measures[0] else None) for value in find_values(cell)
            )
            if not place and cell.isdecimal() and _COUNTS_ROWS.fullmatch(headers[0]):
                values = tuple(value._replace(dimension="ordinal") for value in values)
            cells.append(TableCell(cell, headers[place], values))
        yield TableRow(line.start(), line.end(), tuple(cells))


def _is_form(row: list[str]) -> bool:
    """Tell whether the first row of a table has values or names beside labels, and so is no header."""
    labels, texts = row[::2], row[1::2]
    said = [
        _ENTITY.fullmatch(cell) or any(value.dimension not in _IN_HEADERS for value in find_values(cell))
        for cell in texts
    ]
    return len(labels) == len(texts) and any(said) and not any(map(find_values, labels))


def _form_rows(lines: list[re.Match[str]], rows: list[list[str]]) -> Iterator[TableRow]:
    """The rows of a form, of labels with their texts: each with its own and the texts without values of the others."""
    cells = [
        [
            TableCell(text, label, tuple(find_values(text)))
            for label, text in zip(row[::2], row[1::2], strict=False)
        ]
        for row in rows
    ]
    names = [cell for row in cells for cell in row if not cell.values]
    for line, row in zip(lines, cells, strict=True):
        yield TableRow(line.start(), line.end(), (*row, *(cell for cell in names if cell not in row)))


def _has_numbers(row: list[str]) -> bool:
    """Tell whether a cell beside the first is a number."""
    return any(
        re.match(r"[-+$€£¥]?\s?[\d０-９]", cell) and not re.fullmatch(r"(?:19|20)\d\d年?", cell)
        for cell in row[1:]
    )


def _headers(rows: list[list[str]], width: int) -> list[str]:
    """The header of each column: the texts of its header rows."""
    filled = []
    for depth, row in enumerate(rows):
        last, line = "", []
        for place in range(width):
            cell = row[place] if place < len(row) else ""
            last = cell or (last if depth < len(rows) - 1 and place else "")
            line.append(last)
        filled.append(line)
    return [" ".join(dict.fromkeys(filter(None, column))) for column in zip(*filled, strict=True)]


def _header_measure(header: str) -> Measure | None:
    """The scale and unit in the brackets of a header, or at its end."""
    for match in (*_IN_BRACKETS.finditer(header), *_AFTER_WORD.finditer(header)):
        if measure := read_measure(match[1]):
            return measure
    return None


def _measured(value: Value, measure: Measure | None) -> Value:
    """A plain number in the unit of its column; other values as they are."""
    plain = not value.dimension or (value.dimension == "date" and value.key.isdecimal())
    if measure and measure.unit and is_money(value.dimension):  # ¥ beside JPY
        plain = dimensions_agree(value.dimension, measure.unit.dimension)
    if measure is None or not plain:
        return value
    amount = value.amount * measure.scale
    if measure.unit is None:
        return value._replace(amount=amount, dimension="", key="")
    symbol, dimension, factor = measure.unit
    if measure.per:
        dimension, factor = f"{dimension}/{measure.per.dimension}", factor / measure.per.factor
    per = measure.per.symbol if measure.per else ""
    return value._replace(amount=amount, dimension=dimension, unit=symbol, factor=factor, per=per, key="")
