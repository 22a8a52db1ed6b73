"""The rules over the questions and collections that are measured, as regression tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.scripts import load_script


@pytest.fixture(scope="module")
def measures() -> Any:
    """benchmarks/quality/quality_self_query.py as a module."""
    return load_script("benchmarks/quality/quality_self_query.py")


@pytest.mark.slow
@pytest.mark.data
def test_filters_are_exactly_right(measures: Any, data_sets: Path) -> None:
    """At least 97 of 100 questions give exactly the filter that was expected of them."""
    counts = measures.terms(data_sets).values()
    asked = sum(count["questions"] for count in counts)
    assert asked >= 300 and sum(count["right"] for count in counts) >= 0.97 * asked, counts


def test_what_counts_as_the_same_filter(measures: Any) -> None:
    """Order and ways of writing aside, filters are compared strictly."""
    same = measures.canonical
    a, b = ({"mesh": {"$contains": word}} for word in "ab")
    assert same({"year": {"$gt": 2010}}) == same({"year": {"$gte": 2011}}) != same({"year": {"$gte": 2010}})
    assert same({"day": {"$lt": "2010-03-01"}}) == same({"day": {"$lte": "2010-02-28"}})
    assert same({**a, "year": 1}) == same({"$and": [{"year": {"$eq": 1}}, a]})
    assert same({"$not": {"$or": [a, {"year": 1}]}}) == same({"$and": [{"$not": a}, {"year": {"$ne": 1}}]})
    assert same({"year": {"$in": [1, 2]}}) == same({"$or": [{"year": 2}, {"year": 1}]})
    assert same({"year": {"$in": [1, 2]}}) != same({"year": {"$in": [1, 2, 3]}})
    assert same({"$or": [a, b]}) != same({"$and": [a, b]}) and same(None) is None


def test_filters_over_other_fields_are_right(measures: Any) -> None:
    """At least 98 of 100 questions over made-up collections give exactly the expected filter."""
    counts = measures.fields().values()
    asked = sum(count["questions"] for count in counts)
    assert asked >= 140 and sum(count["right"] for count in counts) >= 0.98 * asked


@pytest.mark.slow
@pytest.mark.parametrize("name", ["filings_en", "filings_zh"])
def test_useful_fields_help_and_useless_ones_do_no_harm(measures: Any, name: str) -> None:
    """On made-up filings all fields together double plain search, and no field alone costs more than .01."""
    scores = measures.score(name, Path())
    assert scores["all"]["ndcg@10"] > 2 * scores["plain"]
    assert all(row["change"] >= -0.01 for row in scores.values() if isinstance(row, dict))


@pytest.mark.slow
@pytest.mark.data
@pytest.mark.parametrize("name", ["scifact", "pubmedqa_l"])
def test_public_sets_lose_nothing(measures: Any, data_sets: Path, name: str) -> None:
    """Plain abstracts with titles, years and MeSH terms: at most .01 below plain search, whichever fields are used."""
    scores = measures.score(name, data_sets)
    assert all(row["change"] >= -0.01 for row in scores.values() if isinstance(row, dict)), scores
