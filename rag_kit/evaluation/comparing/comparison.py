"""Several pipelines on the same questions: which is better, by how much, how sure is that, and what it costs."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_args

from rag_kit.errors import InvalidInputError, MissingExtraError
from rag_kit.evaluation.comparing.pairs import Complementarity, Pair, compare_pairs, complementarity
from rag_kit.evaluation.comparing.scores import (
    Matched,
    Score,
    Slice,
    check_slices,
    match_results,
    scores,
    slice_scores,
)
from rag_kit.evaluation.statistics import Correction, check_correction, check_level

if TYPE_CHECKING:
    import pandas as pd

    from rag_kit.evaluation.runs.results import Results

#: Names of the tables of `Comparison.to_pandas`.
Table = Literal["table", "pairs", "slices", "complementarity"]

_THRESHOLD = 0.5
_Row = TypeVar("_Row")


class Comparison:
    """What `compare` found. ``print`` it, leave it as the last expression of a Jupyter cell, or read its tables.

    Attributes:
        pipelines: Names, in the order given.
        metrics: What was compared.
        baseline: The one that all others are tested against; ``None`` where every two were.
        level: Share of the intervals; ``1 - level`` is what a corrected p-value must be below.
        correction: How p-values were corrected for their number.
        sliced_by: What `slices` goes by.
        thresholds: Metric -> value from which on a question counts as got.
        questions: Questions in all.
        tests: Number of tests that p-values were corrected for.
        notes: What a reader should know before believing a difference.
    """

    def __init__(
        self,
        matched: Matched,
        *,
        baseline: str | None,
        level: float,
        correction: Correction,
        slices: Iterable[str] | str,
        thresholds: Mapping[str, float] | float | None,
        prices: Any,
    ) -> None:
        given = _thresholds(thresholds, matched)
        self._matched = matched
        self.sliced_by = check_slices(matched.examples.values(), slices)
        self.pipelines = matched.names
        self.metrics = matched.metrics
        self.baseline = baseline
        self.level = level
        self.correction = correction
        self.thresholds = {metric: given.get(metric, _THRESHOLD) for metric in matched.metrics}
        self.questions = matched.questions
        self.notes = list(matched.notes)
        self.table: list[Score] = scores(matched, level=level, prices=prices)
        self.pairs: list[Pair] = compare_pairs(
            matched, baseline=baseline, level=level, correction=correction, thresholds=given
        )
        self.tests = sum(
            (pair.p is not None) + (pair.mcnemar_p is not None and not pair.one_test) for pair in self.pairs
        )

    @property
    def results(self) -> tuple[Results, ...]:
        """The results compared, in the order of `pipelines`."""
        return self._matched.runs

    @property
    def lower_is_better(self) -> frozenset[str]:
        """Metrics of which less is better."""
        return self._matched.lower

    @cached_property
    def complementarity(self) -> dict[str, Complementarity]:
        """Metric -> which questions each alone gets, the union, the best set to combine."""
        seconds = [self.score(name, self.metrics[0]).p50_seconds for name in self.pipelines]
        return {
            metric: complementarity(self._matched, metric, self.thresholds[metric], seconds)
            for metric in self.metrics
        }

    @cached_property
    def slices(self) -> list[Slice]:
        """Every score on every part of the questions."""
        return slice_scores(self._matched, self.sliced_by, level=self.level)

    def score(self, pipeline: str, metric: str) -> Score:
        """A row of the table.

        Raises:
            InvalidInputError: If there is no such pipeline or metric.
        """
        rows = {(row.pipeline, row.metric): row for row in self.table}
        return _row("score", rows, pipeline, metric)

    def pair(self, pipeline: str, other: str, metric: str) -> Pair:
        """The test of one pipeline against another, in the order in which they were compared.

        Raises:
            InvalidInputError: If they were not compared in this order.
        """
        rows = {(row.pipeline, row.other, row.metric): row for row in self.pairs}
        return _row("pair", rows, pipeline, other, metric)

    def to_pandas(self, table: Table = "table") -> pd.DataFrame:
        """One of the tables as a frame.

        Args:
            table: ``table``, ``pairs``, ``slices``, or ``complementarity`` (a line for each metric and pipeline).

        Raises:
            InvalidInputError: If there is no table of that name.
            MissingExtraError: If pandas is not installed.
        """
        try:
            import pandas as pd
        except ImportError:
            raise MissingExtraError("eval", "Comparison.to_pandas") from None
        if table == "complementarity":
            return pd.DataFrame([line for item in self.complementarity.values() for line in item.records()])
        if table not in get_args(Table):
            raise InvalidInputError(
                f"there is no table {table!r:.80}; allowed are {', '.join(get_args(Table))}"
            )
        return pd.DataFrame(self.to_json()[table])

    def to_json(self) -> dict[str, Any]:
        """Everything as plain JSON."""
        return {
            "pipelines": list(self.pipelines), "metrics": list(self.metrics), "baseline": self.baseline,
            "level": self.level, "correction": self.correction, "tests": self.tests,
            "questions": self.questions, "thresholds": self.thresholds, "notes": self.notes,
            "table": [row.to_json() for row in self.table],
            "pairs": [asdict(row) for row in self.pairs],
            "complementarity": {name: asdict(item) for name, item in self.complementarity.items()},
            "slices": [asdict(row) for row in self.slices],
        }  # fmt: skip

    def __str__(self) -> str:
        from rag_kit.evaluation.comparing.showing import comparison_text

        return comparison_text(self)

    def __repr__(self) -> str:
        counts = f"{len(self.pipelines)} pipelines, {len(self.metrics)} metrics, {self.questions} questions"
        return f"<Comparison of {counts}>"

    def _repr_html_(self) -> str:
        from rag_kit.evaluation.comparing.showing import comparison_html

        return comparison_html(self)


def compare(
    results: Iterable[Results | Path | str] | Mapping[str, Results | Path | str],
    *,
    metrics: Iterable[str] | str | None = None,
    baseline: str | None = None,
    level: float = 0.95,
    correction: Correction = "holm",
    slices: Iterable[str] | str = ("type", "language", "length"),
    thresholds: Mapping[str, float] | float | None = None,
    prices: Any = None,
) -> Comparison:
    """Compare pipelines that were run over the same questions.

    Two pipelines are compared on the questions that both have an ok cell for, and how many those are stands beside
    each difference: with paired bootstrap intervals, the sign-flip test, McNemar's exact test for hits, all
    p-values corrected together. A cell that failed, or has no value, is never a number.

    Args:
        results: At least two; or name -> results. A folder that a run wrote is loaded.
        metrics: Which; default: all that at least two of them have.
        baseline: Name of the one that all others are tested against; default: every two are. With a baseline there
            are fewer tests, so that less has to be corrected for.
        level: Share of the intervals.
        correction: ``holm``, ``bh`` or ``none``.
        slices: ``type``, ``language``, ``length``, or any tag of the examples.
        thresholds: Metric -> value from which on a question counts as got (one number: for all); default: 0.5.
            A metric that is no metric of hits gets McNemar's test only where a threshold is given.
        prices: As for ``evaluate``; default: those that each run was given.

    Raises:
        InvalidInputError: If the runs are of different sets of questions, two have one name, there are fewer than
            two, or a setting is out of range.
        MissingExtraError: If SciPy is not installed.

    Example:
        >>> from rag_kit.evaluation.cells import Cell
        >>> from rag_kit.evaluation.examples import Example
        >>> from rag_kit.evaluation.outputs import Output
        >>> from rag_kit.evaluation.runs.results import Results
        >>> from rag_kit.evaluation.runs.rows import Row
        >>> def run(name, values):
        ...     return Results(name, [Row(Example(f"q{i}", "What?"), Output("It."), {"faithfulness": Cell.ok(v)})
        ...                           for i, v in enumerate(values)])
        >>> found = compare([run("a", [.9, .8, .7, .6, .9, .8, .75, .85]), run("b", [.7, .8, .6, .5, .7, .8, .7, .65])])
        >>> pair = found.pairs[0]
        >>> round(pair.difference, 5), pair.p, round(pair.low, 4), round(pair.high, 4), pair.better
        (0.10625, 0.03125, 0.05, 0.1625, 'a')
    """
    check_level(level)
    check_correction(correction)
    matched = match_results(results, metrics)
    if baseline is not None and baseline not in matched.names:
        raise InvalidInputError(
            f"the baseline {baseline!r:.80} is none of the pipelines; there are {', '.join(matched.names)}"
        )
    return Comparison(
        matched, baseline=baseline, level=level, correction=correction, slices=slices, thresholds=thresholds,
        prices=prices,
    )  # fmt: skip


def _row(kind: str, rows: Mapping[Any, _Row], *key: str) -> _Row:
    if key not in rows:
        raise InvalidInputError(
            f"there is no {kind} {key!r:.200}; there are {', '.join(map(str, rows)):.1000}"
        )
    return rows[key]


def _thresholds(thresholds: Any, matched: Matched) -> dict[str, float]:
    if thresholds is None:
        return {}
    if _is_number(thresholds):
        thresholds = dict.fromkeys(matched.metrics, thresholds)
    if not isinstance(thresholds, Mapping) or not all(map(_is_number, thresholds.values())):
        raise InvalidInputError(f"thresholds is {thresholds!r:.120}; give a number, or numbers by metric")
    if unknown := [metric for metric in thresholds if metric not in matched.metrics]:
        raise InvalidInputError(
            f"thresholds has {unknown!r:.120}, not compared; there are {', '.join(matched.metrics)}"
        )
    return {metric: float(value) for metric, value in thresholds.items()}


def _is_number(value: Any) -> bool:
    return (
        isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) <= sys.float_info.max
    )
