"""The results of a run: its rows, summarised, as a table, in a folder, and checked against thresholds."""

from __future__ import annotations

import logging
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from rag_kit._redact import redact
from rag_kit.documents.display import Table, cut, one_line
from rag_kit.errors import InvalidInputError
from rag_kit.evaluation._files import import_extra
from rag_kit.evaluation.cells import Cell, Labelled, Scale, Summary
from rag_kit.evaluation.runs.labels import Labels
from rag_kit.evaluation.runs.rows import PIPELINE, Row, RunFolder, read_manifest, read_rows
from rag_kit.evaluation.wording import SpokenResult, main_language
from rag_kit.indexing.files import as_path

if TYPE_CHECKING:
    import pandas as pd

_log = logging.getLogger(__name__)
_MAX_NAMED = 100  # missing ids and spans that a message names
_WITHOUT_HISTORY = (
    "questions with a history were asked without it: a function or retriever gets the question alone. "
    "Give make_input=, or a graph (--graph), which is asked after the earlier turns."
)
MissingGold = dict[str, list[str]]  # id or span -> ids of its examples


@dataclass(repr=False)
class Results(SpokenResult):
    """The rows of a run, one for each example that the pipeline was asked, with their scores.

    Args:
        name: The pipeline's name in tables.
        rows: One for each example that the pipeline was asked, in the order of the set.
        metrics: Names of the metrics, in the order of the tables.
        manifest: Versions, settings, fingerprints and counts of the run, as plain JSON; no key.
        total: Examples of the set; default: as many as there are rows.
        labels: Verdicts of people on some of the cells.

    Raises:
        InvalidInputError: If an example comes twice.

    Example:
        >>> from rag_kit.evaluation import Example
        >>> from rag_kit.evaluation.outputs import Output
        >>> row = Row(Example("q1", "Who?"), Output(answer="Ada."), {"exact_match": Cell.ok(1.0)})
        >>> Results("mine", [row], ("exact_match",)).summary()["exact_match"].mean
        1.0
    """

    name: str
    rows: list[Row]
    metrics: tuple[str, ...] = ()
    manifest: dict[str, Any] = field(default_factory=dict)
    total: int | None = None
    labels: Labels = field(default_factory=Labels)

    def __post_init__(self) -> None:
        names_in_rows = dict.fromkeys(name for row in self.rows for name in row.cells)  # each once, in order
        self.metrics = tuple(self.metrics or names_in_rows)
        self._by_id = {row.example.id: row for row in self.rows}
        if len(self._by_id) < len(self.rows):
            repeated = Counter(row.example.id for row in self.rows).most_common(1)[0][0]
            raise InvalidInputError(f"the example {repeated!r:.80} has two rows; give one for each")

    def __repr__(self) -> str:
        return f"<Results of {self.name!r:.80}: {len(self.rows)} rows, metrics {self.metrics!r:.200}>"

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    def __getitem__(self, example_id: str) -> Row:
        """Return the row of an example."""
        try:
            return self._by_id[example_id]
        except KeyError:
            raise InvalidInputError(f"there is no row of the example {example_id!r:.80}") from None

    @property
    def examples(self) -> int:
        """Examples of the set, those that the run has not come to included."""
        return max(len(self.rows), self.total or 0)

    @property
    def complete(self) -> bool:
        """Whether every example has a cell of every metric."""
        has_all_rows = len(self.rows) == self.examples
        return has_all_rows and all(metric in row.cells for row in self.rows for metric in self.metrics)

    @property
    def notes(self) -> list[str]:
        """Notes on gold that is not in the documents, or was never retrieved, and on turns that were left out."""
        notes = [
            describe_missing(self.manifest.get("missing_gold") or {}),
            describe_unmatched(self),
            describe_ambiguous(self.manifest.get("ambiguous_gold") or {}),
        ]
        if count := self.manifest.get("without_history"):
            notes.append(f"{count} {_WITHOUT_HISTORY}")
        if self.manifest.get("status") == "complete" and len(self) < self.examples:
            notes.append(
                f"Only {len(self)} of {self.examples} rows of a complete run are there: rows.jsonl was cut."
            )
        return [note for note in notes if note]

    def summary(self) -> dict[str, Summary]:
        """Summarize every metric: mean, 95% bootstrap interval and coverage, corrected by people's labels."""
        from rag_kit.evaluation.statistics import bootstrap_intervals  # loads numpy

        intervals = bootstrap_intervals([list(self.values(name).values()) for name in self.metrics])
        return {
            name: Summary.of(self.cells(name).values(), self.examples, ends, self.labelled(name))
            for name, ends in zip(self.metrics, intervals, strict=True)
        }

    def labelled(self, metric: str, other: Results | None = None, *, level: float = 0.95) -> Labelled | None:
        """Estimate a metric's mean from people's labels and the judge's values; ``None`` below ten labels.

        With ``other``, estimate the mean difference to that run, from the questions that are labelled in both.
        """
        if metric not in self.labels.verdicts:
            return None
        from rag_kit.evaluation.statistics import difference, labelled_mean  # loads numpy

        values: dict[str, float | None] = {**self.values(metric)}
        verdicts = self.labels.verdicts[metric]
        if other is not None:
            values = difference(values, other.values(metric))
            verdicts = difference(verdicts, other.labels.verdicts.get(metric, {}))
        is_difference = other is not None
        return labelled_mean(values, verdicts, self.scale(metric), level=level, of_differences=is_difference)

    def scale(self, metric: str) -> Scale:
        """Return the least and the greatest value of a metric, by default 0 and 1; ``None``: it has no such bound."""
        record = self.describe(metric)
        return record.get("low", 0.0), record.get("high", 1.0)

    def describe(self, metric: str) -> Mapping[str, Any]:
        """Return a metric's entry in the manifest, which `Metric.describe` made; empty if there is none."""
        entries = self.manifest.get("metrics") or ()
        return next((entry for entry in entries if entry.get("name") == metric), {})

    def source(self, metric: str) -> Literal["judge", "measured"]:
        """Return where a metric's values come from; ``judge`` if the manifest does not describe the metric."""
        return "judge" if self.describe(metric).get("asks_judge", True) else "measured"

    def values(self, metric: str) -> dict[str, float]:
        """Return example id -> value, of the cells that have one."""
        return {key: cell.value for key, cell in self.cells(metric).items() if cell.value is not None}

    def cells(self, metric: str) -> dict[str, Cell]:
        """Return example id -> cell, whatever its status.

        Raises:
            InvalidInputError: If there is no such metric.
        """
        if metric not in self.metrics:
            names = ", ".join(self.metrics)
            raise InvalidInputError(f"there is no metric {metric!r:.80} in these results; there are {names}")
        return {row.example.id: row.cells[metric] for row in self.rows if metric in row.cells}

    def money(self, *, prices: Any = None) -> list[float | None]:
        """Return for each row the price of the pipeline's requests; ``None`` if unknown.

        ``prices`` are as for ``evaluate``; default: those the run was given.
        """
        from rag_kit.evaluation.runs.metering import cost, read_prices

        table = read_prices(self.manifest.get("prices") if prices is None else prices)
        return [cost(table, row.usage.get(PIPELINE, {}), row.output) for row in self.rows]

    def to_pandas(self) -> pd.DataFrame:
        """Make a frame with a line for each row: example, output, and value, status and reason of each metric.

        Raises:
            MissingExtraError: If pandas is not installed.
        """
        pandas = import_extra("pandas", "Results.to_pandas")
        frame: pd.DataFrame = pandas.DataFrame(list(map(self._frame_record, self.rows, self.money())))
        if any(row.example.history for row in self.rows):
            frame["turn"] = [row.example.turn for row in self.rows]
        return frame.astype({metric: "float64" for metric in self.metrics if metric in frame})

    def save(self, folder: Path | str) -> Path:
        """Write ``rows.jsonl`` and ``manifest.json``; what is there is replaced as a whole.

        Raises:
            InvalidInputError: If the folder holds something else.
            LockedError: If a run is writing to it.
        """
        path = as_path(folder, "folder")
        metrics = [self.describe(name) or {"name": name} for name in self.metrics]
        header = {"name": self.name, "examples": self.examples, "metrics": metrics}
        with closing(RunFolder(path)) as run_folder:
            run_folder.save(self.rows, self.manifest | header)
        self.labels.save(path, self.rows)
        return path

    @classmethod
    def load(cls, folder: Path | str) -> Results:
        """Read what ``save`` or the last complete run wrote.

        Raises:
            InvalidInputError: If there are no results in the folder, or a line is damaged.
        """
        path = as_path(folder, "folder")
        manifest = read_manifest(path)
        metrics = tuple(entry["name"] for entry in manifest.get("metrics") or ())
        rows, total = read_rows(path), manifest.get("examples")
        return cls(manifest.get("name") or path.name, rows, metrics, manifest, total).load_labels(path)

    def load_labels(self, folder: Path) -> Results:
        """Read people's verdicts on these rows from the folder of a run, and return these results with them."""
        self.labels = Labels.load(folder, self.rows, {name: self.scale(name) for name in self.metrics})
        return self

    @cached_property
    def language(self) -> str:
        """The language of most questions, in which the results are printed."""
        questions = (row.example.question for row in self.rows)
        return self.manifest.get("language") or main_language(questions)

    def _english(self) -> tuple[str, list[Table], list[str]]:
        """Return the title, the table with a line for each metric, and the notes below it."""
        kinds = ("undefined", "errors", "not_applicable", "missing")
        header = ["metric", "mean", "95% interval", "n / total", *(kind.replace("_", " ") for kind in kinds)]
        table = [
            [name, summary.mean, interval_text(summary.low, summary.high), f"{summary.n} / {summary.total}"]
            + [getattr(summary, kind) for kind in kinds]
            for name, summary in self.summary().items()
        ]
        failed = sum(row.output.error is not None for row in self.rows)
        title = f"{self.name}: {len(self)} questions" + (f", {failed} of them failed" if failed else "")
        return title, [Table(header, table, right=[1, *range(3, len(header))])], self._table_notes()

    def _table_notes(self) -> list[str]:
        """Return the notes below the table: why metrics have no value, labels, what the run took, why it ended."""
        from rag_kit.evaluation.statistics import latency_percentiles  # loads numpy

        outputs = [row.output for row in self.rows]
        cells = [cell for row in self.rows for cell in row.cells.values()]
        p50, p95 = latency_percentiles([output.seconds for output in outputs if output.error is None])
        scores = {name: (self.source(name), self.values(name), self.labelled(name)) for name in self.metrics}
        notes = [*self._notes_on_empty(), *self.labels.notes(scores)]
        notes += [
            f"Pipeline: p50 {p50 or 0:.2f} s, p95 {p95 or 0:.2f} s; {_usage(outputs)}. Scoring: {_usage(cells)}.",
            "Means and intervals stand on the n questions that have a value; a failed cell is never a number.",
        ]
        if missing := self.examples - len(self):
            notes.append(f"{missing} of {self.examples} questions were not asked yet.")
        notes += self.notes
        if stopped := self.manifest.get("stopped_by"):
            notes.append(f"The run was stopped: {stopped}")
        return notes

    def _notes_on_empty(self) -> list[str]:
        """Return a note for each reason why metrics have no value at all, with the names of these metrics."""
        names_by_reason: dict[str, list[str]] = {}
        for name in self.metrics:
            if reason := why_empty(self, name):
                names_by_reason.setdefault(redact(cut(one_line(reason), 200)), []).append(name)
        return [f"{', '.join(names)} without a value: {reason}" for reason, names in names_by_reason.items()]

    def _frame_record(self, row: Row, money: float | None) -> dict[str, Any]:
        """Return a row's line of the frame as column -> value."""
        example, output = row.example, row.output
        record: dict[str, Any] = {name: getattr(example, name) for name in ("id", "question", "reference")}
        for name in ("answer", "status", "error", "seconds", "calls", "tokens"):
            record[name] = getattr(output, name)
        record["money"] = money
        record["passages"] = [passage.id for passage in output.passages or ()]
        record |= {f"tag.{name}": value for name, value in example.tags.items()}
        not_reached = Cell.not_applicable("")
        for metric in self.metrics:
            cell = row.cells.get(metric, not_reached)
            record[metric], record[f"{metric}.reason"] = cell.value, cell.reason
            record[f"{metric}.status"] = "missing" if cell is not_reached else cell.status
        return record


def interval_text(low: float | None, high: float | None) -> str:
    """Write ``[0.250, 0.750]``, or ``-`` without an interval."""
    return "-" if low is None or high is None else f"[{low:.3f}, {high:.3f}]"


def why_empty(results: Results, name: str) -> str | None:
    """Return the most frequent reason of a metric that has no value for any example; ``None`` if it has a value."""
    cells = [row.cells[name] for row in results.rows if name in row.cells]
    if any(cell.value is not None for cell in cells):
        return None
    reasons = Counter(cell.reason for cell in cells if cell.reason).most_common(1)
    return reasons[0][0] if reasons else None


def describe_missing(missing: MissingGold, total: int | None = None, count: int | None = None) -> str:
    """Describe missing gold (id or span -> ids of its examples); "" if there is none.

    ``count`` is how many ids and spans are missing, by default the entries; ``total`` is how many the set has.
    """
    if not missing:
        return ""
    items = [_with_first_three(key, ids) for key, ids in missing.items()]
    named = items[:_MAX_NAMED]
    if len(items) > _MAX_NAMED:
        named.append(f"and {len(items) - _MAX_NAMED} more")
    of_total = "" if total is None else f" of {total}"
    return (
        f"{count or len(missing)}{of_total} gold ids and spans are not in the documents that are searched: "
        f"{', '.join(named)}."
    )


def describe_ambiguous(files: Mapping[str, Sequence[str]]) -> str:
    """Describe gold names that several files have (name -> files); "" if there are none."""
    if not files:
        return ""
    names = ", ".join([_with_first_three(name, paths) for name, paths in files.items()][:_MAX_NAMED])
    return f"Gold names that several files have: {names}; each of them counts as found. Name the folder too."


def _with_first_three(name: str, texts: Sequence[str]) -> str:
    """Write ``name (a, b, c, ...)``."""
    return f"{name} ({', '.join(texts[:3])}{', ...' if len(texts) > 3 else ''})"


def describe_unmatched(results: Results) -> str:
    """Return a warning if no retrieved id is a gold id, maybe because the set names passages otherwise; else ""."""
    gold = {key for row in results for key, grade in row.example.relevant.items() if grade > 0}
    ids_by_passage = [passage.ids for row in results for passage in row.output.passages or ()]
    retrieved = {key for ids in ids_by_passage for key in ids}
    if not gold or not ids_by_passage or gold & retrieved:
        return ""
    return (
        f"None of the gold ids ({len(gold)}, such as {min(gold)!r:.80}) was retrieved for any question; what was has "
        f"ids such as {', '.join(ids_by_passage[0]):.160}. Does the set name passages as the index does?"
    )


def _usage(parts: Sequence[Any]) -> str:
    return f"{sum(part.calls for part in parts):,} calls, {sum(part.tokens for part in parts):,} tokens"


def higher_is_better(results: Results, metric: str) -> bool:
    """Tell whether more of a metric is better, by the manifest; true if that has no entry for it."""
    return bool(results.describe(metric).get("higher_is_better", True))


class QualityError(AssertionError):
    """Results below a threshold; ``failures`` says why, by metric."""

    def __init__(self, message: str, failures: Mapping[str, str]) -> None:
        super().__init__(message)
        self.failures = dict(failures)


def assert_quality(
    results: Results,
    thresholds: Mapping[str, float],
    *,
    rule: Literal["mean", "low"] = "mean",
    min_coverage: float = 0.9,
) -> None:
    """Raise `QualityError` where a metric misses its threshold, for tests of your own.

    Metrics of which less is better (rates of errors) must not be above theirs. A threshold that is reached on few
    questions, because the metric is undefined for the others, gives a warning.

    Args:
        results: What ``evaluate`` gave, or ``Results.load``.
        thresholds: Metric -> what it must reach.
        rule: ``"mean"``, or ``"low"``: the end of the 95% interval nearer to failing (few examples prove little).
        min_coverage: Share of the examples that must have a value, those left out to which the metric does not apply.

    Raises:
        QualityError: If one does not; the message has a line for each.
        InvalidInputError: If a metric is not in the results, or an argument is not allowed.
    """
    are_finite = all(abs(number) < math.inf for number in thresholds.values())  # no mean is below nan
    if not thresholds or not are_finite or not 0 <= min_coverage <= 1 or rule not in ("mean", "low"):
        raise InvalidInputError(
            f"thresholds is {thresholds!r:.80}, rule {rule!r:.80} and min_coverage {min_coverage!r:.80}; give "
            "{'mrr': 0.8}, 'mean' or 'low', and a number from 0 to 1"
        )
    summaries, failures = results.summary(), dict[str, str]()
    lines = [f"{results.name} does not reach what is asked of it:"]
    for metric, threshold in thresholds.items():
        results.cells(metric)  # refuses one that is not there
        summary = summaries[metric]
        more_is_better = higher_is_better(results, metric)
        if reason := _failure_reason(summary, threshold, rule, more_is_better, min_coverage):
            failures[metric] = reason
            lines.append(f"{metric}: {reason} (95% interval {interval_text(summary.low, summary.high)})")
        elif summary.n < min_coverage * summary.total:
            _log.warning(
                "%s reaches it on the %d of %d questions that have a value", metric, summary.n, summary.total
            )
    if failures:
        raise QualityError("\n".join(lines), failures)


def _failure_reason(
    summary: Summary, threshold: float, rule: str, more_is_better: bool, min_coverage: float
) -> str:
    """Return why a metric misses its threshold, or has too few values to tell; "" if it reaches the threshold."""
    expected = summary.n + summary.errors + summary.missing  # undefined cells have no value to expect
    if summary.mean is None:
        return "no example has a value"
    if summary.n < min_coverage * expected - 1e-9:
        lost = f"{summary.errors} failed, {summary.missing} not done"
        return f"only {summary.n} of {expected} have a value ({lost}); asked are {min_coverage:.0%}"
    value: float | None = summary.mean
    measure = "mean"
    if rule == "low":
        value, measure = (summary.low, "lower end") if more_is_better else (summary.high, "upper end")
    if value is None:
        return "one example gives no interval"
    shortfall = threshold - value if more_is_better else value - threshold
    if shortfall <= 1e-9:  # rounding of floating-point sums
        return ""
    return f"{measure} {value:.3f} is {'below' if more_is_better else 'above'} {threshold:g}"
