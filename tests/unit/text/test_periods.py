"""Periods of time are read in one way for questions, passages and filters."""

from __future__ import annotations

import pytest

from rag_kit.text.evidence.questions import analyse
from rag_kit.text.evidence.sentences import PassageText, collect
from rag_kit.text.evidence.times import time_spans
from rag_kit.text.values.periods import find_periods


def days(text: str) -> list[tuple[str, str]]:
    return [(found.period.start.isoformat(), found.period.end.isoformat()) for found in find_periods(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("order 20240601, 第5/2020号, the sign '30 km/h'", []),
        ("Q2/2024, 第三季度(2024), around 1990", [
            ("2024-04-01", "2024-07-01"), ("2024-07-01", "2024-10-01"), ("1990-01-01", "1991-01-01"),
        ]),
        ("In 1914-17 and 1939/40", [("1914-01-01", "1918-01-01"), ("1939-01-01", "1941-01-01")]),
        ("1990年代, 一九九〇年代", [("1990-01-01", "2000-01-01")] * 2),
        ("the class of '98, March '24", [("1998-01-01", "1999-01-01"), ("2024-03-01", "2024-04-01")]),
        ("In 2024, Q3 was weak; 2023, Q1 2024", [
            ("2024-07-01", "2024-10-01"), ("2023-01-01", "2024-01-01"), ("2024-01-01", "2024-04-01"),
        ]),
        ("6月、2024年7月", [("2000-06-01", "2000-07-01"), ("2024-07-01", "2024-08-01")]),
        ("last year, yesterday, 近三年, 20240631, 5000年", []),
    ],
)  # fmt: skip
def test_periods_that_a_text_names(text: str, expected: list[tuple[str, str]]) -> None:
    """Without a day to count from, there are none that are relative to it."""
    assert days(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("In the first half of 2024 sales fell.", [(2024, 2024.5)]),
        ("2024年前三季度营收为10亿元。", [(2024, 2024.75)]),
        ("It is closed from June to August 2024.", [(2024 + 5 / 12, 2024 + 8 / 12)]),
        ("In the late 1980s the mine was open.", [(1987, 1990)]),
        ("since the second half of 2023", [(2023.5, 10_000)]),
        ("results from Q3 2020, from 2021", [(2020.5, 2020.75), (2021, 10_000)]),
        ("1990年代", [(1990, 2000)]),
        ("1990年——1994年", [(1990, 1995)]),
        ("by the end of 2023", [(2023, 2024)]),
        ("before the end of the 1990s", [(0, 2000)]),
        ("5000年", []),
        ("Ann Lee ( ; 19 July 1864 – 14 January 1939 ) was envoy from 1911 to 1916.", [(1911, 1917)]),
        ("鲁迅（1881年9月25日—1936年10月19日），原名周樟寿。", []),
        ("Took (1977–1979), Hoggart (3 May 1981 – 4 June 1986)", [(1977, 1980), (1981 + 4 / 12, 1986.5)]),
    ],
)
def test_times_of_passages_are_as_fine_as_they_are_named(
    text: str, expected: list[tuple[float, ...]]
) -> None:
    """Halves, lists and parts of decades were read as whole years and decades, or as their last month."""
    assert [*sum(time_spans(text), ())] == pytest.approx([*sum(expected, ())])


def test_a_half_of_a_year_is_no_evidence_for_the_other() -> None:
    """The words of a period count by its time, not as words."""
    question = analyse("How many pumps were sold in the second half of 2023?")
    halves = [PassageText(1, "In the first half of 2023 Acme sold 40 pumps. It moved to Bath.")]

    assert [candidate.features.overlap for candidate in collect(question, halves)] == [0.0, 0.0]
    assert not {"second", "half", "2023"} & {key for key, weight in question.weights.items() if weight}


@pytest.mark.parametrize(
    ("text", "weighs"),
    [
        ("What is new in release 2024.1?", "2024.1"),  # a version, though it is read as a month, too
        ("Where was she in 2001?", "2001"),  # nothing else in it has weight
    ],
)
def test_what_looks_like_a_time_may_have_weight(text: str, weighs: str) -> None:
    """Passages that hold it are ahead of others."""
    assert analyse(text).weights[weighs] > 0
