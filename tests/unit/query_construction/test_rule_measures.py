"""The rules over the questions and collections that are measured, as regression tests."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest

from rag_kit.documents import validate_filter

BENCHMARKS = Path(__file__).resolve().parents[3] / "benchmarks" / "quality"


@pytest.fixture
def benchmark_module(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A benchmark's module, loaded from its file."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    spec = importlib.util.spec_from_file_location(request.param, BENCHMARKS / f"{request.param}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, request.param, module)
    spec.loader.exec_module(module)
    return module


def measured_by(name: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("benchmark_module", [name], indirect=True)


@measured_by("quality_self_query")
@pytest.mark.slow
@pytest.mark.data
def test_filters_are_exactly_right(benchmark_module: Any, data_sets: Path) -> None:
    """At least 97 of 100 questions give exactly the filter that was expected of them."""
    result = benchmark_module.measure(benchmark_module.QUESTIONS, data_sets)
    assert result["all"]["questions"] >= 300
    assert result["all"]["share"] >= 0.97, result


@measured_by("quality_self_query")
def test_what_counts_as_the_same_filter(benchmark_module: Any) -> None:
    """Order and ways of writing aside, filters are compared strictly."""
    same, parse = benchmark_module.canonical, benchmark_module.parse
    assert same({"year": {"$gt": 2010}}) == same({"year": {"$gte": 2011}}) != same({"year": {"$gte": 2010}})
    assert same(parse('M"a" & Y=1')) == same({"year": 1, "mesh": {"$contains": "a"}})
    assert same({"$not": {"$or": [{"mesh": {"$contains": "a"}}, {"year": 1}]}}) == same(parse('!M"a" & Y!1'))
    assert same(parse("Y~1,2")) == same({"$or": [{"year": 2}, {"year": 1}]}) != same(parse("Y~1,2,3"))
    assert same(parse('M"a" | M"b"')) != same(parse('M"a" & M"b"')) and same(None) is None
    validate_filter(parse('(M"a, b" | !M"c") & Yx & Y!~1,2'))


@measured_by("quality_self_query_fields")
def test_filters_over_other_fields_are_right(benchmark_module: Any) -> None:
    """At least 98 of 100 questions over made-up collections give exactly the expected filter."""
    counts = benchmark_module.measure().values()
    asked = sum(count["questions"] for count in counts)
    assert asked >= 140 and sum(count["right"] for count in counts) >= 0.98 * asked


@measured_by("quality_self_query_sets")
@pytest.mark.slow
@pytest.mark.parametrize("name", ["filings_en", "filings_zh"])
def test_useful_fields_help_and_useless_ones_do_no_harm(benchmark_module: Any, name: str) -> None:
    """On made-up filings all fields together double plain search, and no field alone costs more than .01."""
    scores = benchmark_module.measure(name, Path())
    assert scores["all"]["ndcg@10"] > 2 * scores["plain"]
    assert all(row["change"] >= -0.01 for row in scores.values() if isinstance(row, dict))


@measured_by("quality_self_query_sets")
@pytest.mark.slow
@pytest.mark.data
@pytest.mark.parametrize("name", ["scifact", "pubmedqa_l"])
def test_public_sets_lose_nothing(benchmark_module: Any, data_sets: Path, name: str) -> None:
    """Plain abstracts with titles, years and MeSH terms: at most .01 below plain search, whichever fields are used."""
    scores = benchmark_module.measure(name, data_sets)
    assert all(row["change"] >= -0.01 for row in scores.values() if isinstance(row, dict)), scores
