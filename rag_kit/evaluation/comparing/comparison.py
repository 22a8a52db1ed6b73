"""Several pipelines on the same questions: which is better, by how much, how sure is that, and what it costs."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from rag_kit.errors import InvalidInputError, MissingExtraError
from rag_kit.evaluation.comparing.complementarity import Complementarity, complementarity
from rag_kit.evaluation.comparing.matched import Matched, match_results
from rag_kit.evaluation.comparing.pairs import Pair, compare_pairs
from rag_kit.evaluation.comparing.scores import Score, Slice, check_slices, scores, slice_scores
from rag_kit.evaluation.statistics import check_level

if TYPE_CHECKING:
    import pandas as pd

    from rag_kit.evaluation.runs.results import Results

_TABLES = ("table", "pairs", "slices", "complementarity")
_Row = TypeVar("_Row")


@dataclass(repr=False, eq=False)
class Comparison:
    """What `compare` found. ``print`` it, leave it as the last expression of a Jupyter cell, or read its tables.

    Attributes:
        pipelines: Names, in the order given.
        metrics: What was compared.
        baseline: The one that all others are tested against; ``None`` where every two were.
        level: Share of the intervals; ``1 - level`` is what a corrected p-value must be below.
        sliced_by: What `slices` goes by.
        thresholds: Metric -> value from which on a question counts as got.
        questions: Questions in all.
        table: A score for each pipeline and metric.
        pairs: A test for each two of them.
        tests: Number of tests that p-values were corrected for, by Holm's method.
        notes: What a reader should know before believing a difference.
        results: The results compared, in the order of `pipelines`.
        lower_is_better: Metrics of which less is better.
    """

    _matched: Matched
    baseline: str | None
    level: float
    sliced_by: tuple[str, ...]
    thresholds: dict[str, float]
    table: list[Score]
    pairs: list[Pair]
    tests: int
    pipelines: tuple[str, ...] = field(init=False)
    metrics: tuple[str, ...] = field(init=False)
    questions: int = field(init=False)
    notes: list[str] = field(init=False)
    results: tuple[Results, ...] = field(init=False)
    lower_is_better: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        matched = self._matched
        self.pipelines, self.metrics, self.questions = matched.names, matched.metrics, matched.questions
        self.notes, self.results, self.lower_is_better = list(matched.notes), matched.runs, matched.lower

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
        return _row({(row.pipeline, row.metric): row for row in self.table}, pipeline, metric)

    def pair(self, pipeline: str, other: str, metric: str) -> Pair:
        """The test of one pipeline against another, in the order in which they were compared.

        Raises:
            InvalidInputError: If they were not compared in this order.
        """
        return _row(
            {(row.pipeline, row.other, row.metric): row for row in self.pairs}, pipeline, other, metric
        )

    def to_pandas(self, table: str = "table") -> pd.DataFrame:
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
        if table not in _TABLES:
            raise InvalidInputError(f"there is no table {table!r:.80}; allowed are {', '.join(_TABLES)}")
        if table == "complementarity":
            return pd.DataFrame([line for item in self.complementarity.values() for line in item.records()])
        return pd.DataFrame(self.to_json()[table])

    def to_json(self) -> dict[str, Any]:
        """Everything as plain JSON."""
        return {
            "pipelines": list(self.pipelines), "metrics": list(self.metrics), "baseline": self.baseline,
            "level": self.level, "tests": self.tests, "questions": self.questions, "thresholds": self.thresholds,
            "notes": self.notes, "table": [row.to_json() for row in self.table],
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
    slices: Iterable[str] | str = ("type", "language", "length"),
    thresholds: Mapping[str, float] | float | None = None,
    prices: Any = None,
) -> Comparison:
    """Compare pipelines that were run over the same questions.

    Two pipelines are compared on the questions that both have an ok cell for, and how many those are stands beside
    each difference: with paired bootstrap intervals, the sign-flip test, McNemar's exact test for hits, all
    p-values corrected together by Holm's method. A cell that failed, or has no value, is never a number.

    Args:
        results: At least two; or name -> results. A folder that a run wrote is loaded.
        metrics: Which; default: all that at least two of them have.
        baseline: Name of the one that all others are tested against; default: every two are. With a baseline there
            are fewer tests, so that less has to be corrected for.
        level: Share of the intervals.
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
    matched = match_results(results, metrics)
    if baseline is not None and baseline not in matched.names:
        raise InvalidInputError(
            f"the baseline {baseline!r:.80} is none of the pipelines; there are {', '.join(matched.names)}"
        )
    given = _thresholds(thresholds, matched)
    sliced_by = check_slices(matched.examples.values(), slices)
    pairs, tests = compare_pairs(matched, baseline=baseline, level=level, thresholds=given)
    table = scores(matched, level=level, prices=prices)
    known = {metric: given.get(metric, 0.5) for metric in matched.metrics}
    return Comparison(matched, baseline, level, sliced_by, known, table, pairs, tests)


def _row(rows: Mapping[Any, _Row], *key: str) -> _Row:
    if key not in rows:
        raise InvalidInputError(f"there is no {key!r:.200}; there are {', '.join(map(str, rows)):.1000}")
    return rows[key]


def _thresholds(thresholds: Any, matched: Matched) -> dict[str, float]:
    if thresholds is None:
        return {}
    if not isinstance(thresholds, Mapping):
        thresholds = dict.fromkeys(matched.metrics, thresholds)
    for metric, value in thresholds.items():
        if (
            isinstance(value, bool)
            or not isinstance(value, int | float)
            or not abs(value) <= sys.float_info.max
        ):
            raise InvalidInputError(f"a threshold is {value!r:.80}; give a number, or numbers by metric")
        if metric not in matched.metrics:
            raise InvalidInputError(
                f"thresholds has {metric!r:.80}, not compared; there are {', '.join(matched.metrics)}"
            )
    return {metric: float(value) for metric, value in thresholds.items()}
