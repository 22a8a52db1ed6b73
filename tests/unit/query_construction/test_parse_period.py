"""Dates in common forms, English and Chinese."""

from __future__ import annotations

from datetime import date

import pytest

from rag_kit.query_construction.checking import parse_period

TODAY = date(2026, 11, 21)


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        ("2020-05-01", "2020-05-01", "2020-05-02"), ("2020/5/1", "2020-05-01", "2020-05-02"),
        ("2020-05-01T10:00:00Z", "2020-05-01", "2020-05-02"), ("20200501", "2020-05-01", "2020-05-02"),
        ("20200501T100000Z", "2020-05-01", "2020-05-02"),
        ("May 2020", "2020-05-01", "2020-06-01"), ("2020-05", "2020-05-01", "2020-06-01"),
        ("1st of May 2020", "2020-05-01", "2020-05-02"), ("May 1, 2020", "2020-05-01", "2020-05-02"),
        ("FY20", "2020-01-01", "2021-01-01"), ("2020年5月", "2020-05-01", "2020-06-01"),
        ("二〇二〇年五月一日", "2020-05-01", "2020-05-02"), ("Q3 2020", "2020-07-01", "2020-10-01"),
        ("2020年第三季度", "2020-07-01", "2020-10-01"), ("3Q20", "2020-07-01", "2020-10-01"),
        ("the 1990s", "1990-01-01", "2000-01-01"), ("90年代", "1990-01-01", "2000-01-01"),
        ("early 1990s", "1990-01-01", "1994-01-01"), ("the end of 2015", "2015-09-01", "2016-01-01"),
        ("around 2015", "2014-01-01", "2017-01-01"), ("2015年上半年", "2015-01-01", "2015-07-01"),
        ("2010年代", "2010-01-01", "2020-01-01"),
        ("2020", "2020-01-01", "2021-01-01"), ("前年", "2024-01-01", "2025-01-01"),
        ("June to August 2024", "2024-06-01", "2024-09-01"), ("2024年6-8月", "2024-06-01", "2024-09-01"),
        ("H1 2024", "2024-01-01", "2024-07-01"), ("March 3rd-5th, 2024", "2024-03-03", "2024-03-06"),
        ("last quarter", "2026-07-01", "2026-10-01"), ("2020-2022", "2020-01-01", "2023-01-01"),
        ("last month", "2026-10-01", "2026-11-01"), ("上个月", "2026-10-01", "2026-11-01"),
    ],
)  # fmt: skip
def test_dates(text: str, start: str, end: str) -> None:
    """Dates in common forms, English and Chinese."""
    period = parse_period(text, TODAY)
    assert period is not None and period.end is not None
    assert (period.start.isoformat(), period.end.isoformat()) == (start, end)


@pytest.mark.parametrize(
    "text",
    [
        "hello",
        "31/02/2020",
        "2020-02-31",
        "2020-13-01",
        "99",
        "",
        "May",
        "2020 patients 3",
        "June and August 2024",
        "last hundred thousand years",
        "last million days",
        "last 0 years",
        "last ١٢ years",
        "first 0 months of 2020",
        "0000年",
        "大约9999年12月30日",
        "9999-12-29",
        "0001-01-01",
    ],
)
def test_what_is_no_date(text: str) -> None:
    """Text that cannot be read as one date is none."""
    assert parse_period(text, TODAY) is None
