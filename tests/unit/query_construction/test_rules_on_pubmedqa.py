"""The rules over the measured question set, as a regression test."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

from rag_kit.documents import validate_filter

BENCHMARKS = Path(__file__).resolve().parents[3] / "benchmarks" / "quality"


@pytest.fixture(scope="module")
def quality() -> ModuleType:
    """The benchmark's module, loaded from its file."""
    spec = importlib.util.spec_from_file_location("quality_self_query", BENCHMARKS / "quality_self_query.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
@pytest.mark.data
def test_filters_are_exactly_right(quality: ModuleType, data_sets: Path) -> None:
    """At least 97 of 100 questions give exactly the filter that was expected of them."""
    result = quality.measure(quality.QUESTIONS, data_sets)
    assert result["all"]["questions"] >= 300
    assert result["all"]["share"] >= 0.97, result


def test_what_counts_as_the_same_filter(quality: ModuleType) -> None:
    """Order and ways of writing aside, filters are compared strictly."""
    same, parse = quality.canonical, quality.parse
    assert same({"year": {"$gt": 2010}}) == same({"year": {"$gte": 2011}}) != same({"year": {"$gte": 2010}})
    assert same(parse('M"a" & Y=1')) == same({"year": 1, "mesh": {"$contains": "a"}})
    assert same({"$not": {"$or": [{"mesh": {"$contains": "a"}}, {"year": 1}]}}) == same(parse('!M"a" & Y!1'))
    assert same(parse("Y~1,2")) == same({"$or": [{"year": 2}, {"year": 1}]}) != same(parse("Y~1,2,3"))
    assert same(parse('M"a" | M"b"')) != same(parse('M"a" & M"b"')) and same(None) is None
    validate_filter(parse('(M"a, b" | !M"c") & Yx & Y!~1,2'))
