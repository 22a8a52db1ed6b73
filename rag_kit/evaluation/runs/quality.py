"""A bar that results must reach, for a user's own CI."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any, Literal

from rag_kit.documents import clean_text
from rag_kit.errors import InvalidInputError, RagKitError
from rag_kit.evaluation.runs.results import Results, Summary

Rule = Literal["mean", "low"]


class QualityError(RagKitError, AssertionError):
    """Results do not reach the bar.

    Args:
        message: A table of what was asked and what is there.
        failures: Metric -> why it does not reach it.
    """

    def __init__(self, message: str, failures: Mapping[str, str]) -> None:
        super().__init__(message)
        self.failures = dict(failures)


def assert_quality(
    results: Results,
    thresholds: Mapping[str, float],
    *,
    level: float = 0.95,
    rule: Rule = "mean",
    min_coverage: float = 0.9,
) -> None:
    """See that metrics reach thresholds, in a test of your own.

    Metrics of which less is better (rates of errors) must not be above theirs. A mean that stands on few examples
    proves little: ``rule="low"`` asks that the whole interval reaches the threshold.

    Args:
        results: What ``evaluate`` gave, or ``Results.load``.
        thresholds: Metric -> what it must reach.
        level: Share of the bootstrap interval.
        rule: ``"mean"``, or ``"low"`` for the end of the interval that is nearer to failing.
        min_coverage: Share of the examples that must have a value, those left out of it to which the metric does not
            apply or for which it is undefined: a mean over what did not fail says nothing of the rest.

    Raises:
        QualityError: If one does not; the message is a table of all of them.
        InvalidInputError: If a metric is not in the results, or an argument is not allowed.

    Example:
        >>> from rag_kit.evaluation import Cell, Example, Output, Row
        >>> rows = [Row(Example(f"q{i}", "?"), Output("!"), {"m": Cell.ok(i / 4)}) for i in range(5)]
        >>> assert_quality(Results("mine", rows), {"m": 0.5})
        >>> assert_quality(Results("mine", rows), {"m": 0.6})
        Traceback (most recent call last):
        ...
        rag_kit.evaluation.runs.quality.QualityError: mine does not reach what is asked of it:
        metric  asked   mean   95% interval    n of all  result
        m       >= 0.6  0.500  0.200 to 0.800  5 of 5    mean 0.500 is below 0.6
    """
    _check(results, thresholds, rule, min_coverage)
    summaries = results.summary(level=level)
    failures: dict[str, str] = {}
    rows = []
    for metric, threshold in thresholds.items():
        better = higher_is_better(results, metric)
        why = _failure(summaries[metric], threshold, rule, better, min_coverage)
        if why:
            failures[metric] = why
        rows.append(_row(metric, summaries[metric], threshold, better, why))
    if failures:
        head = ("metric", "asked", "mean", f"{level:.0%} interval", "n of all", "result")
        table = [head, *rows]
        widths = [max(len(row[i]) for row in table) for i in range(len(head))]
        lines = [f"{results.name} does not reach what is asked of it:"]
        lines += [
            "  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip() for row in table
        ]
        raise QualityError("\n".join(map(clean_text, lines)), failures)


def _check(results: Results, thresholds: Any, rule: str, min_coverage: Any) -> None:
    if not isinstance(results, Results):
        raise InvalidInputError(
            f"results is a {type(results).__name__}; give what evaluate gave, or Results.load(folder)"
        )
    if not isinstance(thresholds, Mapping) or not thresholds:
        raise InvalidInputError(
            f"thresholds is {thresholds!r:.80}; give metrics with numbers, as {{'mrr': 0.8}}"
        )
    for metric, threshold in thresholds.items():
        if metric not in results.metrics:
            raise InvalidInputError(
                f"there is no metric {metric!r:.80} in {results.name!r:.80}; there are {', '.join(results.metrics)}"
            )
        if (
            isinstance(threshold, bool)
            or not isinstance(threshold, (int, float))
            or not abs(threshold) <= sys.float_info.max
        ):
            raise InvalidInputError(f"the threshold of {metric} is {threshold!r:.80}; give a number")
    if rule not in ("mean", "low"):
        raise InvalidInputError(f"rule is {rule!r:.80}; allowed are 'mean', 'low'")
    if (
        isinstance(min_coverage, bool)
        or not isinstance(min_coverage, (int, float))
        or not 0 <= min_coverage <= 1
    ):
        raise InvalidInputError(f"min_coverage is {min_coverage!r:.80}; give a number from 0 to 1")


def _failure(summary: Summary, threshold: float, rule: str, better: bool, min_coverage: float) -> str:
    if summary.mean is None:
        return "no example has a value"
    wanted = summary.n + summary.errors + summary.missing
    if summary.n < min_coverage * wanted - 1e-9:
        lacks = {"failed": summary.errors, "not done": summary.missing}
        told = ", ".join(f"{count} {what}" for what, count in lacks.items() if count)
        return f"only {summary.n} of {wanted} have a value ({told}); asked are {min_coverage:.0%}"
    value, what = summary.mean, "mean"
    if rule == "low":
        end = summary.low if better else summary.high
        if end is None:
            return "one example gives no interval"
        value, what = end, "lower end" if better else "upper end"
    slack = 1e-9  # of floating-point sums
    if better and value < threshold - slack:
        return f"{what} {value:.3f} is below {threshold:g}"
    if not better and value > threshold + slack:
        return f"{what} {value:.3f} is above {threshold:g}"
    return ""


def _row(metric: str, summary: Summary, threshold: float, better: bool, why: str) -> tuple[str, ...]:
    mean = "-" if summary.mean is None else f"{summary.mean:.3f}"
    interval = "-" if summary.low is None else f"{summary.low:.3f} to {summary.high:.3f}"
    return (
        metric, f"{'>=' if better else '<='} {threshold:g}", mean, interval, f"{summary.n} of {summary.total}",
        why or "ok",
    )  # fmt: skip


def higher_is_better(results: Results, metric: str) -> bool:
    """As the manifest of the run says it, else the metric itself; one that is not known is better with more.

    Args:
        results: What ``evaluate`` gave.
        metric: Its name.

    Example:
        >>> from rag_kit.evaluation.runs.results import Results
        >>> of_run = [{"name": "ours_mistakes", "higher_is_better": False}]
        >>> higher_is_better(Results("mine", [], ("ours_mistakes",), {"metrics": of_run}), "ours_mistakes")
        False
    """
    entries = results.manifest.get("metrics")
    for entry in entries if isinstance(entries, list) else ():
        if isinstance(entry, Mapping) and entry.get("name") == metric and "higher_is_better" in entry:
            return bool(entry["higher_is_better"])
    from rag_kit.evaluation.scorers import get_metric

    try:
        return get_metric(metric).higher_is_better
    except RagKitError:  # of the user's own, or of an extra that is not installed
        return True
