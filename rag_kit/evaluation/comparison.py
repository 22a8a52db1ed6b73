"""Several pipelines on the same questions: which is better, by how much, how sure is that, and what it costs."""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import numpy as np

from rag_kit.documents.display import Table, one_line
from rag_kit.errors import InvalidInputError
from rag_kit.evaluation import comparison_pairs as paired
from rag_kit.evaluation import comparison_scores as scoring
from rag_kit.evaluation._files import import_extra
from rag_kit.evaluation.comparison_pairs import Complementarity, Pair
from rag_kit.evaluation.comparison_scores import SLICES, MatchedRuns, Score, Slice
from rag_kit.evaluation.runs.labels import labelled_line
from rag_kit.evaluation.runs.results import Results, interval_text
from rag_kit.evaluation.statistics import bootstrap_intervals, check_level
from rag_kit.evaluation.wording import SpokenResult, main_language, texts

if TYPE_CHECKING:
    import pandas as pd

_Row = TypeVar("_Row")
#: What is printed of each record of a `Complementarity`, beside the number of questions.
_COMPLEMENT_KEYS = ("metric", "pipeline", "got", "only", "place", "gain", "share_with_it", "union")


@dataclass(repr=False, eq=False)
class Comparison(SpokenResult):
    """Result of `compare`. ``print`` it, leave it as the last expression of a Jupyter cell, or read its tables.

    Attributes:
        pipelines: Names, in the order given; ``results`` are in the same order.
        baseline: The one that all others are tested against; ``None`` where every two were.
        level: Share of the intervals; ``1 - level`` is what a corrected p-value must be below.
        thresholds: Metric -> value from which on a question counts as got.
        table: A score for each pipeline and metric.
        pairs: A test for each two of them; ``tests`` p-values were corrected for, by Holm's method.
        notes: What a reader should know before believing a difference.
        language: That of its texts where it is printed; by default that of most questions.
    """

    _matched: MatchedRuns
    baseline: str | None
    level: float
    sliced_by: tuple[str, ...]
    thresholds: dict[str, float]
    table: list[Score]
    pairs: list[Pair]
    tests: int
    language: Literal["en", "zh"]

    def __post_init__(self) -> None:
        matched = self._matched
        self.pipelines, self.results = tuple(matched.runs), tuple(matched.runs.values())
        self.metrics, self.lower_is_better = tuple(matched.values), matched.lower_is_better
        self.questions, self.notes = matched.questions, matched.notes()
        against = f", against {self.baseline}" if self.baseline else ""
        self._title = f"{len(self.pipelines)} pipelines on {self.questions} questions{against}"
        self._interval = f"{100 * self.level:g}% interval"

    @cached_property
    def complementarity(self) -> dict[str, Complementarity]:
        """Metric -> which questions each alone gets, the union, the best set to combine."""
        latencies = [row.p50_seconds for row in self.table[: len(self.pipelines)]]  # the same for all metrics
        limits = self.thresholds.items()
        return {name: paired.complementarity(self._matched, name, limit, latencies) for name, limit in limits}

    @cached_property
    def slices(self) -> list[Slice]:
        """Scores on parts of the questions."""
        return scoring.slice_scores(self._matched, self.sliced_by, level=self.level)

    def score(self, pipeline: str, metric: str) -> Score:
        """Return a row of the table."""
        return _find_row({(row.pipeline, row.metric): row for row in self.table}, pipeline, metric)

    def pair(self, pipeline: str, other: str, metric: str) -> Pair:
        """Return the test of one pipeline against another, in the order in which they were compared."""
        rows = {(row.pipeline, row.other, row.metric): row for row in self.pairs}
        return _find_row(rows, pipeline, other, metric)

    def to_pandas(self, table: str = "table") -> pd.DataFrame:
        """Return ``table``, ``pairs``, ``slices``, or ``complementarity`` (by metric and pipeline) as a frame."""
        tables = {name: rows for name, rows in self.to_json().items() if name in ("table", "pairs", "slices")}
        complements = self.complementarity.values()
        tables["complementarity"] = [line for metric in complements for line in metric.records()]
        if table not in tables:
            raise InvalidInputError(f"there is no table {table!r:.80}; allowed are {', '.join(tables)}")
        frame: pd.DataFrame = import_extra("pandas", "Comparison.to_pandas").DataFrame(tables[table])
        return frame

    def to_json(self) -> dict[str, Any]:
        """Return all tables and notes as plain JSON."""
        return {
            "pipelines": list(self.pipelines), "metrics": list(self.metrics), "baseline": self.baseline,
            "level": self.level, "tests": self.tests, "questions": self.questions, "thresholds": self.thresholds,
            "notes": self.notes, "table": [row.to_json() for row in self.table],
            "pairs": [asdict(row) for row in self.pairs],
            "complementarity": {name: asdict(item) for name, item in self.complementarity.items()},
            "slices": [asdict(row) for row in self.slices],
        }  # fmt: skip

    def slices_table(self) -> Table:
        """Make the table of slices; a tag that has the same value for all questions is left out."""
        tag_values = {by: {part.value for part in self.slices if part.by == by} for by in self.sliced_by}
        rows = [
            [self._word("tag", part.by), self._word("part", part.value), part.metric, part.pipeline, part.mean,
             interval_text(part.low, part.high), f"{part.n} / {part.total}"]
            for part in self.slices if len(tag_values[part.by]) > 1
        ]  # fmt: skip
        header = f"by|part|metric|pipeline|mean|{self._interval}|n / total"
        return self._spoken(_make_table("Slices", header, rows, [4, 6]))

    def _word(self, kind: str, word: str) -> str:
        """Return the name of a tag (``"tag"``) or its value (``"part"``): in Chinese, where the kit has a word."""
        return texts()["zh"].get(f"{kind}_{word}", word) if self.language == "zh" else word

    def _english(self) -> tuple[str, list[Table], list[str]]:
        lines = ["", *self._explanations()]
        if by := ", ".join(self.sliced_by):
            lines.append(f'By {by}: .slices or to_pandas("slices"); rag-kit compare --slice TAG.')
        return self._title, self._tables(), lines

    def __repr__(self) -> str:
        return f"<Comparison of {self._title}>"

    def _repr_html_(self) -> str:
        slices = self.slices_table()
        tags = ", ".join(self._word("tag", by) for by in self.sliced_by)
        heading = html.escape(one_line(self._say(f"By {tags}")))
        folded = f'<details class="mathjax_ignore"><summary>{heading}</summary>{slices.html()}</details>'
        return super()._repr_html_() + (folded if slices.rows else "")

    def _tables(self) -> list[Table]:
        """Make all tables but that of slices; the last two leave out metrics without a value in any pipeline."""
        empty = self._metrics_without_value()
        scores: list[list[Any]] = [
            [row.metric, row.pipeline, row.mean, interval_text(row.low, row.high), f"{row.n} / {row.total}",
             f"{row.coverage:.0%}"]
            for row in self.table
        ]  # fmt: skip
        costs = [
            [row.pipeline, row.p50_seconds, row.p95_seconds,
             *("-" if number is None else f"{number:.4g}" for number in (row.calls, row.tokens, row.money))]
            for row in self.table[: len(self.pipelines)]  # of the first metric; the costs are the same for all
        ]  # fmt: skip
        differences = [
            [row.metric, row.pipeline, row.other, "-" if row.difference is None else f"{row.difference:+.3f}",
             interval_text(row.low, row.high), row.n, *map(_format_p, (row.p, row.p_adjusted, row.mcnemar_p_adjusted)),
             row.better or self._say("not significant" if row.n else "no question scored by both")]
            for row in self.pairs if row.metric not in empty
        ]  # fmt: skip
        complements = [
            [*(row[key] for key in _COMPLEMENT_KEYS), f"{row['n']} / {row['total']}"]
            for metric, item in self.complementarity.items() if metric not in empty for row in item.records()
        ]  # fmt: skip
        return [
            _make_table("Scores", f"metric|pipeline|mean|{self._interval}|n / total|coverage", scores, [2, 4, 5]),
            _make_table("A question takes", "pipeline|p50 s|p95 s|calls|tokens|money", costs, [1, 2, 3, 4, 5]),
            _make_table(
                "Differences", f"metric|pipeline|other|difference|{self._interval}|n|p|corrected|McNemar|better",
                differences, [3, 5, 6, 7, 8]),
            _make_table(
                "Complementary", "metric|pipeline|gets|only it gets|place|adds|set gets|union|n / total",
                complements, [2, 3, 4, 5, 6, 7, 8]),
        ]  # fmt: skip

    def _explanations(self) -> list[str]:
        """Return the lines below the tables: warnings, estimates from people's labels, how to read the columns."""
        thresholds = ", ".join(f"{name} {value:g}" for name, value in self.thresholds.items())
        lines = list(self.notes)
        lines += [self._labelled_line(score) for score in self.table if score.labelled]
        lines += [self._labelled_line(pair) for pair in self.pairs if pair.labelled]
        lines += [
            "Differences stand on the n questions that both have a value for; a failed cell is never a number.",
            f"p: two-sided sign-flip test, Holm's correction ({self.tests} in all); better: < {1 - self.level:.2g}.",
            f"A question counts as answered from this value on: {thresholds}.",
        ]
        if empty := ", ".join(self._metrics_without_value()):
            lines.append(f"No pipeline has a value of {empty}: print one of the results to see why.")
        if self.lower_is_better:
            lines.append(f"Less is better: {', '.join(sorted(self.lower_is_better))}.")
        return lines

    def _labelled_line(self, row: Score | Pair) -> str:
        """Describe a mean of a pipeline, or a difference of two, in one line: by the judge, and by people's labels."""
        if isinstance(row, Pair):
            pipelines = [row.pipeline, row.other]
            subject, value = f"{row.metric}, {row.pipeline} minus {row.other}", f"{row.difference:+.3f}"
        else:
            pipelines = [row.pipeline]
            subject, value = f"{row.metric} of {row.pipeline}", f"{row.mean:.3f}"
        runs = [self._matched.runs[name] for name in pipelines]
        scored = set.intersection(*(set(run.values(row.metric)) for run in runs))  # ids, as in labelled
        verdicts = [run.labels.verdicts.get(row.metric, {}) for run in runs]
        labelled = scored.intersection(*verdicts)
        unclear = sum(any(by_id[key] is None for by_id in verdicts) for key in labelled)
        mean = f"{subject}: {runs[0].source(row.metric)} {value}"
        return labelled_line(mean, row.labelled, labelled, unclear, scored)

    def _metrics_without_value(self) -> list[str]:
        with_value = {score.metric for score in self.table if score.n}
        return [metric for metric in self.metrics if metric not in with_value]


def compare(
    results: Iterable[Results | Path | str] | Mapping[str, Results | Path | str] | Results,
    *others: Results | Path | str,
    metrics: Iterable[str] | str | None = None,
    baseline: str | None = None,
    level: float = 0.95,
    slices: Iterable[str] | str = SLICES,
    thresholds: Mapping[str, float] | float | None = None,
    prices: Any = None,
) -> Comparison:
    """Compare pipelines that were run over the same questions.

    Two pipelines are compared on the questions that both have an ok cell for (their number stands beside each
    difference): with paired bootstrap intervals, the sign-flip test, McNemar's exact test for hits, all p-values
    corrected together by Holm's method. A cell that failed, or has no value, is never a number.

    Args:
        results: At least two; or name -> results. A folder that a run wrote is loaded.
        others: ``compare(first, second)`` is ``compare([first, second])``.
        metrics: Which; default: all that at least two of them have.
        baseline: The one that all others are tested against (fewer tests to correct for); default: every two are.
        level: Share of the intervals.
        slices: ``type``, ``language``, ``turn`` (of a conversation, from 1), or any tag of the examples.
        thresholds: Metric -> value from which on a question counts as got (one number: for all); default: 0.5.
            Metrics that are not of hits get McNemar's test only where one is given.
        prices: As for ``evaluate``; default: those that each run was given.

    Raises:
        InvalidInputError: If runs are of different sets of questions, two have one name, or an argument is not allowed.
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
    matched = scoring.match_runs([results, *others] if others else results, metrics)
    names = list(matched.runs)
    if baseline is not None and baseline not in names:
        raise InvalidInputError(f"the baseline {baseline!r:.80} is no pipeline; there are {', '.join(names)}")
    limits = paired.check_thresholds(thresholds, matched.values)
    sliced_by = scoring.check_slices(matched.examples.values(), slices)
    if baseline is None:
        couples = list(combinations(range(len(names)), 2))
    else:
        couples = [(i, names.index(baseline)) for i, name in enumerate(names) if name != baseline]
    # scores and differences in one call: columns of one length share their resamples
    columns = np.concatenate([*matched.values.values(), paired.differences(matched, couples)], axis=1)
    intervals = bootstrap_intervals([scoring.present_values(column) for column in columns.T], level=level)
    table = scoring.scores(matched, intervals, prices, level=level)
    pair_intervals = intervals[len(table) :]
    pairs, tests = paired.compare_pairs(matched, couples, pair_intervals, level=level, thresholds=limits)
    language = main_language(example.question for example in matched.examples.values())
    all_thresholds = {metric: limits.get(metric, 0.5) for metric in matched.values}
    return Comparison(matched, baseline, level, sliced_by, all_thresholds, table, pairs, tests, language)


def _find_row(rows: Mapping[Any, _Row], *key: str) -> _Row:
    if key not in rows:
        raise InvalidInputError(f"there is no {key!r:.200}; there are {', '.join(map(str, rows)):.1000}")
    return rows[key]


def _make_table(heading: str, header: str, rows: list[list[Any]], right: list[int]) -> Table:
    """Make a table; ``header`` joins the names of its columns (``"n|mean"``), ``right`` are those set flush right."""
    return Table(header.split("|"), rows, heading, right, limit=60)


def _format_p(p: float | None) -> str:
    if p is None:
        return "-"
    return "< 0.001" if p < 0.001 else f"{p:.3f}"
