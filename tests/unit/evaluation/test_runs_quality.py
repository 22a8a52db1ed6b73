"""`assert_quality`: thresholds in a user's own tests."""

from __future__ import annotations

from typing import Any

import pytest

from rag_kit.errors import InvalidInputError
from rag_kit.evaluation import Example, Results, assert_quality
from rag_kit.evaluation.cells import Cell
from rag_kit.evaluation.outputs import Output
from rag_kit.evaluation.runs.results import QualityError
from rag_kit.evaluation.runs.rows import Row


def results(*cells: Cell, **more: Any) -> Results:
    rows = [Row(Example(f"q{i}", "?"), Output(answer="!"), {"m": cell}) for i, cell in enumerate(cells)]
    return Results("mine", rows, ("m",), **more)


GOOD = [Cell.ok(value) for value in (0.9, 0.8, 1.0, 0.7, 0.9, 0.8)]


def test_the_mean_is_what_counts_by_default() -> None:
    """Reached or above is right, below is not."""
    assert_quality(results(*GOOD), {"m": 0.85})
    with pytest.raises(QualityError, match=r"below 0\.86") as raised:
        assert_quality(results(*GOOD), {"m": 0.86})
    assert list(raised.value.failures) == ["m"]
    assert isinstance(raised.value, AssertionError)


def test_the_lower_end_of_the_interval_is_stricter() -> None:
    """`rule="low"` fails where the mean alone would do, and one example proves nothing."""
    with pytest.raises(QualityError, match="lower end"):
        assert_quality(results(*GOOD), {"m": 0.85}, rule="low")
    assert_quality(results(*GOOD), {"m": 0.7}, rule="low")
    with pytest.raises(QualityError, match="no interval"):
        assert_quality(results(Cell.ok(1.0)), {"m": 0.1}, rule="low")


def test_less_is_better_for_rates_of_errors() -> None:
    """The manifest says which way a metric goes."""
    manifest = {"metrics": [{"name": "m", "higher_is_better": False}]}
    assert_quality(results(*GOOD, manifest=manifest), {"m": 0.9})
    with pytest.raises(QualityError, match=r"above 0\.8"):
        assert_quality(results(*GOOD, manifest=manifest), {"m": 0.8})


def test_failed_cells_do_not_make_a_good_mean() -> None:
    """Too many errors or missing rows fail; what is undefined or not applicable is left out."""
    with pytest.raises(QualityError, match="1 failed, 2 not done"):
        assert_quality(results(*GOOD, Cell.error("x"), total=9), {"m": 0.5})
    assert_quality(results(*GOOD, Cell.error("x"), total=9), {"m": 0.5}, min_coverage=0.6)
    assert_quality(results(*GOOD, Cell.undefined("x"), Cell.not_applicable("y")), {"m": 0.5})
    with pytest.raises(QualityError, match="no example has a value"):
        assert_quality(results(Cell.undefined("x")), {"m": 0.0})


def test_wrong_arguments() -> None:
    """A metric that was not computed, or thresholds that are none, are told apart from bad quality."""
    for wrong in ({"n": 0.5}, {}, {"m": "high"}, {"m": float("nan")}, 0.5):
        with pytest.raises(InvalidInputError):
            assert_quality(results(*GOOD), wrong)  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="rule"):
        assert_quality(results(*GOOD), {"m": 0.5}, rule="best")  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="min_coverage"):
        assert_quality(results(*GOOD), {"m": 0.5}, min_coverage=2)
