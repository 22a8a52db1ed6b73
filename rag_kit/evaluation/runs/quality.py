"""``assert_quality``: results held against thresholds, for tests of your own."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any, Literal

from rag_kit.documents.tables import Table, tables_text
from rag_kit.errors import InvalidInputError, RagKitError
from rag_kit.evaluation.cells import Summary
from rag_kit.evaluation.runs.results import Results, higher_is_better, interval_text


class QualityError(RagKitError, AssertionError):
    """Results do not reach the bar; ``failures`` says of each metric why."""

    def __init__(self, message: str, failures: Mapping[str, str]) -> None:
        super().__init__(message)
        self.failures = dict(failures)


def assert_quality(
    results: Results,
    thresholds: Mapping[str, float],
    *,
    level: float = 0.95,
    rule: Literal["mean", "low"] = "mean",
    min_coverage: float = 0.9,
) -> None:
    """Raise `QualityError` where a metric misses its threshold, for tests of your own.

    Metrics of which less is better (rates of errors) must not be above theirs.

    Args:
        results: What ``evaluate`` gave, or ``Results.load``.
        thresholds: Metric -> what it must reach.
        level: Share of the bootstrap interval.
        rule: ``"mean"``, or ``"low"`` for the end of the interval that is nearer to failing, since a mean that stands
            on few examples proves little.
        min_coverage: Share of the examples that must have a value, those left out to which the metric does not apply.

    Raises:
        QualityError: If one does not; the message is a table of all of them.
        InvalidInputError: If a metric is not in the results, or an argument is not allowed.

    Example:
        >>> from rag_kit.evaluation import Example
        >>> from rag_kit.evaluation.cells import Cell
        >>> from rag_kit.evaluation.outputs import Output
        >>> from rag_kit.evaluation.runs.rows import Row
        >>> rows = [Row(Example(f"q{i}", "?"), Output("!"), {"m": Cell.ok(i / 4)}) for i in range(5)]
        >>> assert_quality(Results("mine", rows), {"m": 0.5})
        >>> assert_quality(Results("mine", rows), {"m": 0.6})
        Traceback (most recent call last):
        ...
        rag_kit.evaluation.runs.quality.QualityError: mine does not reach what is asked of it:
        metric  asked   mean   95% interval    n of all  result
        m       >= 0.6  0.500  [0.200, 0.800]  5 of 5    mean 0.500 is below 0.6
    """
    given: Mapping[str, Any] = thresholds if thresholds and isinstance(thresholds, Mapping) else {"": None}
    for metric, number in {**given, "min_coverage": min_coverage}.items():
        if type(number) not in (int, float) or not abs(number) <= sys.float_info.max:
            raise InvalidInputError(f"the threshold of {metric!r} is {number!r:.80}; give {{'mrr': 0.8}}")
    if not isinstance(results, Results) or rule not in ("mean", "low") or not 0 <= min_coverage <= 1:
        raise InvalidInputError(
            f"results is a {type(results).__name__}, rule {rule!r:.80} and min_coverage {min_coverage}; give what "
            "evaluate gave, 'mean' or 'low', and a number from 0 to 1"
        )
    summaries, failures, rows = results.summary(level=level), {}, []
    for metric, threshold in thresholds.items():
        results.cells(metric)  # refuses one that is not there
        one, better = summaries[metric], higher_is_better(results, metric)
        if why := _failure(one, threshold, rule, better, min_coverage):
            failures[metric] = why
        asked, interval = f"{'>=' if better else '<='} {threshold:g}", interval_text(one.low, one.high)
        rows.append([metric, asked, one.mean, interval, f"{one.n} of {one.total}", why or "ok"])
    if failures:
        header = ["metric", "asked", "mean", f"{level:.0%} interval", "n of all", "result"]
        title = f"{results.name} does not reach what is asked of it:"
        raise QualityError(tables_text(title, [Table(header, rows, width=90)]), failures)


def _failure(one: Summary, threshold: float, rule: str, better: bool, min_coverage: float) -> str:
    """Why a metric misses its threshold; empty where it does not."""
    wanted = one.n + one.errors + one.missing
    value, what = one.mean, "mean"
    if value is None:
        return "no example has a value"
    if one.n < min_coverage * wanted - 1e-9:
        lacks = f"{one.errors} failed, {one.missing} not done"
        return f"only {one.n} of {wanted} have a value ({lacks}); asked are {min_coverage:.0%}"
    if rule == "low":
        value, what = (one.low, "lower end") if better else (one.high, "upper end")
    if value is None:
        return "one example gives no interval"
    if (threshold - value if better else value - threshold) <= 1e-9:  # of floating-point sums
        return ""
    return f"{what} {value:.3f} is {'below' if better else 'above'} {threshold:g}"
