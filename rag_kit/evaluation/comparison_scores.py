"""Runs over the same questions side by side, and how each of them did: on all questions, and on parts of them."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from rag_kit.errors import InvalidInputError
from rag_kit.evaluation.cells import Summary
from rag_kit.evaluation.examples import Example
from rag_kit.evaluation.runs.results import Results, higher_is_better
from rag_kit.evaluation.statistics import Interval, bootstrap_intervals, latency_percentiles
from rag_kit.text import detect_language

#: What must be the same of an example in all runs: with other gold the scores mean something else.
_GOLD = (
    "question", "reference", "answers", "reference_contexts", "relevant", "spans", "answerable", "history",
)  # fmt: skip
_MIN_FOR_INTERVAL = 5  # questions of a slice; the bootstrap of three values only looks sure
_MIN_SHARED = 0.5  # of the questions of the smaller run that the other one must have
#: How questions are parted by default; by the turn where some belong to a conversation, by 类型 where some have it.
SLICES = ("type", "类型", "language", "turn")
_UNTAGGED = "(not said)"


@dataclass
class MatchedRuns:
    """Runs by name over the same examples; ``values``: metric -> questions by runs, NaN without an ok cell."""

    runs: dict[str, Results]
    examples: dict[str, Example]
    values: dict[str, np.ndarray]

    @property
    def questions(self) -> int:
        """Questions in all; those that no run has come to yet included."""
        return max(len(self.examples), *(run.examples for run in self.runs.values()))

    @cached_property
    def lower_is_better(self) -> frozenset[str]:
        """Metrics of which less is better."""
        first_runs = {metric: run for run in reversed(self.runs.values()) for metric in run.metrics}
        return frozenset(metric for metric in self.values if not higher_is_better(first_runs[metric], metric))

    def notes(self) -> list[str]:
        """Return warnings: of runs over different sets, questions not asked, each run's own, and different judges."""
        count = len(self.examples)
        shared = set.intersection(*({row.example.id for row in run.rows} for run in self.runs.values()))
        notes = []
        if len(shared) < count and len(_sets_of(self.runs)) > 1:
            notes.append(
                f"Only {len(shared)} of {count} questions are in all runs, which are over different sets: compare the "
                "differences, not the means."
            )
        for name, run in self.runs.items():
            if missing := count - len(run.rows):
                notes.append(f"{name}: {missing} of {count} questions have not been asked.")
        notes += [f"{name}: {note}" for name, run in self.runs.items() for note in run.notes]
        judges = [run.manifest.get("judge") for run in self.runs.values()]
        if len({json.dumps(judge, sort_keys=True, default=str) for judge in judges if judge is not None}) > 1:
            notes.append(
                "Judged by different judges: score them again with one, to see what the pipelines differ in."
            )
        return notes


@dataclass(frozen=True, kw_only=True)
class Score(Summary):
    """A metric of a pipeline over the questions compared, and what a question costs.

    Half of the answers took at most ``p50_seconds``, 95 of 100 at most ``p95_seconds``; ``calls``, ``tokens`` and
    ``money`` are the pipeline's, on average. What is not known, such as a price, is ``None``.
    """

    pipeline: str
    metric: str
    p50_seconds: float | None = None
    p95_seconds: float | None = None
    calls: float | None = None
    tokens: float | None = None
    money: float | None = None

    def to_json(self) -> dict[str, Any]:
        """As plain JSON, names first, with the coverage."""
        return {"pipeline": self.pipeline, "metric": self.metric, **asdict(self), "coverage": self.coverage}


@dataclass(frozen=True)
class Slice:
    """A metric of a pipeline on the questions where ``by`` (``language``, a tag) is ``value``.

    ``n`` of its ``total`` questions have a value; without any there is no mean, below five no interval.
    """

    by: str
    value: str
    metric: str
    pipeline: str
    mean: float | None
    low: float | None
    high: float | None
    n: int
    total: int


def match_runs(results: Any, metrics: Iterable[str] | str | None = None) -> MatchedRuns:
    """Put the values of runs (or their folders) side by side: metric -> a table of questions by runs."""
    runs = name_runs(results)
    examples = _merge_examples(runs)
    values = {}
    for metric in _choose_metrics(runs.values(), metrics):
        by_run = [run.values(metric) if metric in run.metrics else {} for run in runs.values()]
        values[metric] = np.array([[scored.get(key, np.nan) for scored in by_run] for key in examples])
    return MatchedRuns(runs, examples, values)


def scores(matched: MatchedRuns, intervals: Iterable[Interval], prices: Any, *, level: float) -> list[Score]:
    """Summarize each metric of each pipeline, with its costs; ``intervals`` has one for each, in this order."""
    ends = iter(intervals)
    costs_by_run = {name: costs(run, prices) for name, run in matched.runs.items()}
    rows = []
    for metric in matched.values:
        for name, run in matched.runs.items():
            cells = [row.cells[metric] for row in run.rows if metric in row.cells]
            labelled = run.labelled(metric, level=level) if cells else None
            summary = Summary.of(cells, matched.questions, next(ends), labelled)
            rows.append(Score(**vars(summary), pipeline=name, metric=metric, **costs_by_run[name]))
    return rows


def costs(run: Results, prices: Any = None) -> dict[str, Any]:
    """Return the mean cost of a question: seconds of the answered ones; calls, tokens and money of all."""
    p50, p95 = latency_percentiles([row.output.seconds for row in run.rows if row.output.error is None])
    return {
        "p50_seconds": p50,
        "p95_seconds": p95,
        "calls": mean([row.output.calls for row in run.rows]),
        "tokens": mean([row.output.tokens for row in run.rows]),
        "money": mean(run.money(prices=prices)),
    }


def slice_scores(matched: MatchedRuns, slices: Sequence[str], *, level: float) -> list[Slice]:
    """Return each pipeline's mean of each metric on every slice; ``slices`` are ways to slice, such as ``language``."""
    rows = []
    columns = [(metric, name) for metric in matched.values for name in matched.runs]
    table = np.concatenate(list(matched.values.values()), axis=1)  # questions by (metric, run), as in columns
    for by in slices:
        labels = _label_examples(matched.examples.values(), by)
        counts = Counter(labels)
        # the largest slice first, that of untagged questions last
        for value in sorted(counts, key=lambda label: (label == _UNTAGGED, -counts[label], label)):
            part = table[[label == value for label in labels]]  # the rows of these questions
            scored = [present_values(column) for column in part.T]
            intervals = bootstrap_intervals(scored, level=level, n=2_000)
            for (metric, name), present, ends in zip(columns, scored, intervals, strict=True):
                low, high = ends if len(present) >= _MIN_FOR_INTERVAL else (None, None)
                rows.append(Slice(by, value, metric, name, mean(present), low, high, len(present), len(part)))
    return rows


def check_slices(examples: Collection[Example], slices: Iterable[str] | str) -> tuple[str, ...]:
    """Return the ways to slice; raise `InvalidInputError` for one that is neither built in nor a tag of an example."""
    tags = {tag for example in examples for tag in example.tags}
    if any(example.history for example in examples):
        tags.add("turn")
    defaults = [name for name in SLICES if name in ("type", "language") or name in tags]
    if slices is SLICES:  # the user named none
        return tuple(defaults)
    allowed = dict.fromkeys([*defaults, *sorted(tags)])
    names = [slices] if isinstance(slices, str) else list(slices)
    for name in names:
        if name not in allowed:
            raise InvalidInputError(
                f"slices has {name!r:.80}: no example has the tag {name!r:.80}; allowed are {', '.join(allowed)}"
            )
    return tuple(dict.fromkeys(names))


def present_values(column: np.ndarray) -> list[float]:
    """Return the values of a column without gaps."""
    return list(column[~np.isnan(column)].tolist())


def mean(values: Sequence[float | None]) -> float | None:
    """Return the mean; ``None`` if there is no value, or one of them is unknown (an unknown price is not zero)."""
    numbers = [value for value in values if value is not None]
    return math.fsum(numbers) / len(numbers) if numbers and len(numbers) == len(values) else None


def name_runs(results: Any, least: int = 2) -> dict[str, Results]:
    """Map names to runs, and load those given as folders; refuse fewer than ``least``, and two of one name."""
    if isinstance(results, (str, Path, Results)):
        results = [results]
    runs: dict[str, Results] = {}
    pairs = results.items() if isinstance(results, Mapping) else ((None, item) for item in results)
    for name, item in pairs:
        run = Results.load(item) if isinstance(item, (str, Path)) else item
        if not isinstance(run, Results) or not run.rows:
            raise InvalidInputError(
                f"{run!r:.80} was given among the results; give Results that have rows, or their folders"
            )
        run_name = run.name if name is None else name
        if not isinstance(run_name, str) or not run_name.strip() or run_name in runs:
            raise InvalidInputError(
                f"a run has the name {run_name!r:.80}; give each one of its own that is not blank: "
                "compare({'before': first, 'after': second}), or on the command line NAME=FOLDER"
            )
        runs[run_name] = run
    if len(runs) < least:
        raise InvalidInputError(
            f"{len(runs)} runs given; give a list of at least {'one' if least == 1 else 'two'} Results or folders, or "
            "name -> results"
        )
    return runs


def _sets_of(runs: Mapping[str, Results]) -> set[str]:
    """Return the fingerprints of the sets that runs are over; a run that has none is over its own."""
    return {str(run.manifest.get("dataset") or name) for name, run in runs.items()}


def _merge_examples(runs: Mapping[str, Results]) -> dict[str, Example]:
    """Map ids to the examples of all runs; raise `InvalidInputError` if two runs differ in a question or its gold."""
    earlier: dict[str, tuple[str, Example]] = {}  # id -> the first run that has it, and the example
    has_several_sets = len(_sets_of(runs)) > 1
    for name, run in runs.items():
        shared = sum(row.example.id in earlier for row in run.rows)
        possible = min(len(run.rows), len(earlier))
        shares_too_few = not shared or (has_several_sets and shared < _MIN_SHARED * possible)
        if earlier and shares_too_few:
            raise InvalidInputError(
                f"the results of {name!r:.80} and {next(iter(runs))!r:.80} have {shared or 'no'} question"
                f"{'s' if shared > 1 else ''} in common, of {possible}; only runs over the same set of questions can "
                "be compared. Give the questions ids of their own if they are the same"
            )
        for row in run.rows:
            first_name, first = earlier.setdefault(row.example.id, (name, row.example))
            for field in _GOLD:
                old, new = getattr(first, field), getattr(row.example, field)
                if old != new:
                    raise InvalidInputError(
                        f"the example {first.id!r:.80} has the {field} {old!r:.120} in the results of "
                        f"{first_name!r:.80} and {new!r:.120} in those of {name!r:.80}: these are "
                        "different sets of questions; run both pipelines over the same set"
                    )
    return {key: example for key, (_, example) in earlier.items()}


def _choose_metrics(runs: Iterable[Results], metrics: Iterable[str] | str | None) -> list[str]:
    """Return the metrics to compare: those given (each must be in a run), else all that at least two runs have."""
    run_counts = Counter(metric for run in runs for metric in run.metrics)
    chosen = [metric for metric, count in run_counts.items() if count > 1]
    if metrics is not None:
        chosen = [metrics] if isinstance(metrics, str) else list(dict.fromkeys(metrics))
    present = ", ".join(run_counts)
    if absent := [metric for metric in chosen if metric not in run_counts]:
        raise InvalidInputError(f"no result has the metric {absent[0]!r:.80}; there are {present}")
    if not chosen:
        reason = "the results have no metric in common" if metrics is None else "no metric is given"
        raise InvalidInputError(f"{reason}; give at least one of {present}")
    return chosen


def _label_examples(examples: Iterable[Example], by: str) -> list[str]:
    """Return each example's value of a tag; without that tag, its language or turn where ``by`` is one of these."""
    if by == "language":
        return [example.tags.get("language") or detect_language(example.question) for example in examples]
    if by == "turn":
        return [example.tags.get("turn") or str(example.turn) for example in examples]
    return [example.tags.get(by) or _UNTAGGED for example in examples]
