"""Filters from questions by rule, English and Chinese."""

from __future__ import annotations

import time
from datetime import date
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_kit.documents import validate_filter
from rag_kit.query_construction.dates import parse_period
from rag_kit.query_construction.fields import Schema
from rag_kit.query_construction.rules.constructor import RuleConstructor

TODAY = date(2026, 11, 21)
SCHEMA = Schema.of(
    [
        {"name": "year", "type": "int", "minimum": 1989, "maximum": 2017},
        {"name": "mesh", "type": "list[str]", "allowed": [
            "Stroke", "Stroke Volume", "Obesity", "Humans", "Aged", "Aged, 80 and over", "Breast Neoplasms",
            "Neoplasms", "Tomography, X-Ray Computed", "Crohn Disease", "Child", "Research", "HIV",
        ]},
        {"name": "lang", "type": "str", "allowed": ["en", "zh", "德语", "AIDS"]},
        {"name": "pages", "type": "int"},
        {"name": "rating", "type": "float"},
        {"name": "peer_reviewed", "type": "bool"},
    ]
)  # fmt: skip
RULES = RuleConstructor(today=TODAY)


def made(question: str) -> Any:
    return RULES.construct(question, SCHEMA).filter


def m(term: str) -> dict[str, Any]:
    return {"mesh": {"$contains": term}}


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("Stroke Volume", m("Stroke Volume")),
        ("papers on x-ray computed tomography", m("Tomography, X-Ray Computed")),
        ("Aged, 80 and over", m("Aged, 80 and over")),
        ("Crohn's disease in children", {"$and": [m("Crohn Disease"), m("Child")]}),
        ("research on sleep", None),
        ("papers tagged Research", m("Research")),
        ("does this aid the aids?", None),
        ("papers with more than 100 pages", {"pages": {"$gt": 100}}),
        ("rating of at least 4.5", {"rating": {"$gte": 4.5}}),
        ("between 100 and 200 pages", {"$and": [{"pages": {"$gte": 100}}, {"pages": {"$lte": 200}}]}),
        ("pages: 300", {"pages": {"$eq": 300}}),
        ("peer reviewed stroke papers", {"$and": [{"peer_reviewed": {"$eq": True}}, m("Stroke")]}),
        (
            "stroke papers that are not peer reviewed",
            {"$and": [m("Stroke"), {"peer_reviewed": {"$eq": False}}]},
        ),
        ("德语文章", {"lang": {"$eq": "德语"}}),
        ("不是德语的文章", {"lang": {"$ne": "德语"}}),
        ("not stroke volume", {"$not": m("Stroke Volume")}),
        ("in 1500 participants after 2000", {"year": {"$gt": 2000}}),
        ("the last five years", {"year": {"$gte": 2021}}),
        ("last year", {"year": {"$eq": 2025}}),
        ("近五年", {"year": {"$gte": 2021}}),
        ("去年的Stroke论文", {"$and": [{"year": {"$eq": 2025}}, m("Stroke")]}),
        ("tagged Stroke or published before 2000", {"$or": [m("Stroke"), {"year": {"$lt": 2000}}]}),
        ("nothing", None),
    ],
)
def test_questions(question: str, expected: Any) -> None:
    """Values, numbers, dates, negations and lists that a question names."""
    assert made(question) == expected


def test_text_order_and_limit() -> None:
    """What is left to search for, and the order asked for."""
    found = RULES.construct("How long do patients sleep? Only papers on stroke since 2010", SCHEMA)
    assert "sleep" in found.query and "2010" not in found.query and found.sort is None
    found = RULES.construct("the three latest stroke papers", SCHEMA)
    assert found.sort is not None and (found.sort.field, found.limit, found.query) == ("year", 3, "")
    found = RULES.construct("最早的两篇Stroke文章", SCHEMA)
    assert found.sort is not None and not found.sort.descending and found.limit == 2


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        ("2020-05-01", "2020-05-01", "2020-05-02"), ("2020/5/1", "2020-05-01", "2020-05-02"),
        ("2020-05-01T10:00:00Z", "2020-05-01", "2020-05-02"), ("20200501", "2020-05-01", "2020-05-02"),
        ("May 2020", "2020-05-01", "2020-06-01"), ("2020-05", "2020-05-01", "2020-06-01"),
        ("1st of May 2020", "2020-05-01", "2020-05-02"), ("May 1, 2020", "2020-05-01", "2020-05-02"),
        ("FY20", "2020-01-01", "2021-01-01"), ("2020年5月", "2020-05-01", "2020-06-01"),
        ("二〇二〇年五月一日", "2020-05-01", "2020-05-02"), ("Q3 2020", "2020-07-01", "2020-10-01"),
        ("2020年第三季度", "2020-07-01", "2020-10-01"), ("3Q20", "2020-07-01", "2020-10-01"),
        ("the 1990s", "1990-01-01", "2000-01-01"), ("90年代", "1990-01-01", "2000-01-01"),
        ("early 1990s", "1990-01-01", "1994-01-01"), ("2010年代", "2010-01-01", "2020-01-01"),
        ("2020", "2020-01-01", "2021-01-01"), ("前年", "2024-01-01", "2025-01-01"),
        ("last month", "2026-10-01", "2026-11-01"), ("上个月", "2026-10-01", "2026-11-01"),
    ],
)  # fmt: skip
def test_dates(text: str, start: str, end: str) -> None:
    """Dates in common forms, English and Chinese."""
    period = parse_period(text, TODAY)
    assert period is not None and period.end is not None
    assert (period.start.isoformat(), period.end.isoformat()) == (start, end)


@pytest.mark.parametrize(
    "text", ["hello", "31/02/2020", "2020-02-31", "2020-13-01", "99", "", "May", "2020 patients 3"]
)
def test_what_is_no_date(text: str) -> None:
    """What cannot be read as one date is none."""
    assert parse_period(text, TODAY) is None


_PIECES = [
    *"ab 1209-/,.()年月日不除非或和",
    " not ",
    " or ",
    " Stroke ",
    " 2010 ",
    " after ",
    " latest 3 papers ",
]


@settings(deadline=None)
@given(st.lists(st.sampled_from(_PIECES), max_size=40).map("".join))
def test_any_question_gives_a_valid_filter(question: str) -> None:
    """Nothing raises, and only fields of the schema are used."""
    validate_filter(made(question))


def test_long_questions_are_read_quickly() -> None:
    """Runs of filler words, blanks and brackets cost no more than a fraction of a second."""
    hostile = ["not" + " " * 1900 + "x Stroke", "not" + " the" * 480 + " Stroke", "without " * 240 + "Stroke"]
    hostile += [
        "2010 " * 390,
        "Stroke or " * 190,
        "(" * 900 + "Stroke" + ")" * 900,
        "不" * 1900,
        "the " * 100_000,
    ]
    begun = time.process_time()
    for question in hostile:
        RULES.construct(question, SCHEMA)
    assert time.process_time() - begun < 5
