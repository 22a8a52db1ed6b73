"""Fields that hold quarters: Q2, 2, 第二季度."""

from __future__ import annotations

import re
from typing import Any

from langchain_core.structured_query import Comparator, Comparison

from rag_kit.query_construction.dates import Period
from rag_kit.query_construction.fields import Schema

_QUARTER = re.compile(
    r"(?:Q([1-4])|([1-4])Q|第?([1-4一二三四])季度?|([1-4])(?:st|nd|rd|th)\s+quarter)", re.IGNORECASE
)
_NAME = re.compile(r"quarter|季度|^qtr$", re.IGNORECASE)
_HAN = {"一": 1, "二": 2, "三": 3, "四": 4}


def quarter_of(period: Any, schema: Schema) -> Comparison | None:
    """The condition on the field of quarters that a quarter of a year is, besides its year; ``None`` without one.

    Example:
        >>> from datetime import date
        >>> from rag_kit.query_construction.dates import parse_period
        >>> second = parse_period("Q2 2023", date(2026, 1, 1))
        >>> quarter_of(second, Schema.of([{"name": "quarter", "type": "str", "allowed": ["Q1", "Q2"]}])).value
        'Q2'
    """
    if not isinstance(period, Period) or period.grain != "quarter":
        return None
    wanted = (period.start.month + 2) // 3
    for field in schema:
        if field.many:
            continue
        if field.type == "int" and _NAME.search(field.name):
            return Comparison(Comparator.EQ, field.name, wanted)
        quarters = {_number(value): value for value in field.values}
        if field.type == "str" and wanted in quarters and None not in quarters:
            return Comparison(Comparator.EQ, field.name, quarters[wanted])
    return None


def _number(value: Any) -> int | None:
    match = _QUARTER.fullmatch(str(value).strip())
    if match is None:
        return None
    written = next(group for group in match.groups() if group)
    return _HAN.get(written) or int(written)
