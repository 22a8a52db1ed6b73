"""Runs over the same questions side by side: how each of them did, on all and on some, and each against others."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import compress
from pathlib import Path
from typing import Any

import numpy as np

from rag_kit.errors import InvalidInputError
from rag_kit.evaluation.cells import Labelled, Summary
from rag_kit.evaluation.examples import Example
from rag_kit.evaluation.runs.results import Results, higher_is_better
from rag_kit.evaluation.statistics import (
    Interval,
    bootstrap_intervals,
    holm,
    latency_percentiles,
    mcnemar_p,
    sign_flip_tests,
)
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
        owners = {metric: run for run in reversed(self.runs.values()) for metric in run.metrics}
        return frozenset(metric for metric in self.values if not higher_is_better(owners[metric], metric))

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
        values[metric] = np.array([[found.get(key, np.nan) for found in by_run] for key in examples])
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
        "money": mean(run.money("pipeline", prices=prices)),
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
    allowed = dict.fromkeys([*defaults, *sorted(tags)])
    names: Iterable[Any] = defaults
    if slices is not SLICES:  # the user named some
        names = [slices] if isinstance(slices, str) or not isinstance(slices, Iterable) else list(slices)
    for name in names:
        if not isinstance(name, str) or name not in allowed:
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
        results = [results] if least == 1 else ()
    if not isinstance(results, Iterable):
        results = ()  # too few, which is refused below
    runs: dict[str, Results] = {}
    named = results.items() if isinstance(results, Mapping) else ((None, item) for item in results)
    for name, item in named:
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
    sets = _sets_of(runs)
    for name, run in runs.items():
        shared = sum(row.example.id in earlier for row in run.rows)
        most = min(len(run.rows), len(earlier))  # that could be shared
        if earlier and (not shared or (len(sets) > 1 and shared < _MIN_SHARED * most)):
            raise InvalidInputError(
                f"the results of {name!r:.80} and {next(iter(runs))!r:.80} have {shared or 'no'} question"
                f"{'s' if shared > 1 else ''} in common, of {most}; only runs over the same set of questions can be "
                "compared. Give the questions ids of their own if they are the same"
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
    chosen: list[Any] = [metric for metric, count in run_counts.items() if count > 1]
    if metrics is not None:
        chosen = [metrics] if isinstance(metrics, str) or not isinstance(metrics, Iterable) else list(metrics)
    present = list(run_counts)  # a list, because the user may have given something that cannot be hashed
    if absent := [metric for metric in chosen if metric not in present]:
        raise InvalidInputError(f"no result has the metric {absent[0]!r:.80}; there are {', '.join(present)}")
    if not chosen:
        reason = "the results have no metric in common" if metrics is None else "no metric is given"
        raise InvalidInputError(f"{reason}; give at least one of {', '.join(present)}")
    return list(dict.fromkeys(chosen))


def _label_examples(examples: Iterable[Example], by: str) -> list[str]:
    """Return each example's value of a tag; without that tag, its language or turn where ``by`` is one of these."""
    if by == "language":
        return [example.tags.get("language") or detect_language(example.question) for example in examples]
    if by == "turn":
        return [example.tags.get("turn") or str(example.turn) for example in examples]
    return [example.tags.get(by) or _UNTAGGED for example in examples]


Latencies = Sequence[float | None]  # seconds of each pipeline


@dataclass(frozen=True)
class Pair:
    """One pipeline against another on a metric, over the ``n`` questions with a value for both.

    ``difference`` is the mean of first minus second, ``low`` and ``high`` its paired bootstrap interval (``None`` below
    two questions), ``wins`` and ``losses`` count questions. ``p`` is of the sign-flip test, ``mcnemar_p`` of McNemar's
    exact test on ``hits`` (questions that each gets, where the metric is one of hits or a threshold was given), each
    also corrected for all tests of the comparison. ``better`` names one where that is below ``1 - level``.
    ``labelled`` is the difference by the labels of people, where at least ten questions are labelled in both.
    """

    metric: str
    pipeline: str
    other: str
    n: int
    difference: float | None
    low: float | None
    high: float | None
    wins: int
    losses: int
    p: float | None = None
    p_adjusted: float | None = None
    hits: dict[str, int] | None = None
    mcnemar_p: float | None = None
    mcnemar_p_adjusted: float | None = None
    better: str | None = None
    labelled: Labelled | None = None


@dataclass(frozen=True)
class CombinationStep:
    """A further pipeline in a combination: it gains ``gain`` questions that none before gets."""

    pipeline: str
    gain: int
    share: float


@dataclass(frozen=True)
class Complementarity:
    """Gains of pipelines over each other on a metric, over the ``n`` questions with a value for all.

    No combination helps with the questions that ``nobody`` gets: the cause lies before retrieval or in the gold.
    ``union`` is the share that at least one gets: what an oracle that always picks the right one reaches.
    """

    metric: str
    threshold: float  # a question counts as answered from this value on (up to it, where less is better)
    pipelines: tuple[str, ...]
    n: int
    total: int
    got: Mapping[str, tuple[str, ...]]  # pipeline -> ids of the questions it gets
    only: Mapping[str, tuple[str, ...]]  # pipeline -> ids of the questions that it alone gets
    nobody: tuple[str, ...]
    union: float | None
    best_single: float | None  # share that the best one gets alone
    # first the best pipeline, then whichever adds most; a tie goes to the quicker one
    greedy: tuple[CombinationStep, ...]

    def combine(self, gain: float = 0.0) -> list[str]:
        """Return the pipelines to combine, as long as each adds more than this share of the questions."""
        return [step.pipeline for step in self.greedy if self.n and step.gain / self.n > gain]

    def records(self) -> list[dict[str, Any]]:
        """Return a table row for each pipeline: how many questions it gets, and gets alone, its place and its gain."""
        steps = {step.pipeline: (place, step.gain, step.share) for place, step in enumerate(self.greedy, 1)}
        records = []
        for name in self.pipelines:
            place, gain, share = steps.get(name, (None, 0, None))
            records.append({
                "metric": self.metric, "pipeline": name, "got": len(self.got[name]), "only": len(self.only[name]),
                "place": place, "gain": gain, "share_with_it": share,
                "union": self.union, "n": self.n, "total": self.total,
            })  # fmt: skip
        return records


def check_thresholds(thresholds: Any, names: Iterable[str]) -> dict[str, float]:
    """Return the thresholds by metric or role; one number counts for all ``names``, and with ``None`` there is none."""
    by_name = thresholds if isinstance(thresholds, Mapping) else dict.fromkeys(names, thresholds)
    if unknown := [name for name in by_name if name not in names]:
        raise InvalidInputError(f"thresholds has {unknown[0]!r:.80}; there are {', '.join(names)}")
    numbers = {name: value for name, value in by_name.items() if value is not None}
    for value in numbers.values():
        if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 1e300:
            raise InvalidInputError(
                f"a threshold is {value!r:.80}; give a number, or one for each of {', '.join(names)}"
            )
    return numbers


def compare_pairs(
    matched: MatchedRuns,
    couples: Sequence[tuple[int, int]],
    intervals: Iterable[Interval],
    *,
    level: float,
    thresholds: Mapping[str, float],
) -> tuple[list[Pair], int]:
    """Test all couples of pipelines (two positions), metric by metric; return the pairs and the number of tests."""
    names, table = list(matched.runs), differences(matched, couples)
    columns = [(metric, *couple) for metric in matched.values for couple in couples]  # of the table
    p_values = sign_flip_tests(np.nan_to_num(table, nan=0.0))  # a difference of 0 changes none
    rows: list[dict[str, Any]] = []  # fields of pairs
    tests: list[tuple[dict[str, Any], str]] = []  # row and field of each p-value to correct
    for (metric, i, j), column, (low, high), p in zip(columns, table.T, intervals, p_values, strict=True):
        present = present_values(column)
        gains = [-number for number in present] if metric in matched.lower_is_better else present
        row: dict[str, Any] = {
            "metric": metric, "pipeline": names[i], "other": names[j], "n": len(present), "difference": mean(present),
            "low": low, "high": high, "wins": sum(g > 0 for g in gains), "losses": sum(g < 0 for g in gains),
        }  # fmt: skip
        rows.append(row)
        if not present:
            continue
        row["labelled"] = matched.runs[names[i]].labelled(metric, matched.runs[names[j]], level=level)
        row["p"] = p
        tests.append((row, "p"))
        values, threshold = matched.values[metric], thresholds.get(metric, 0.5)
        is_hit_metric = np.isin(values[~np.isnan(values)], (0, 1)).all() and 0 < threshold <= 1
        if is_hit_metric or metric in thresholds:
            row["hits"] = hits = _count_hits(matched, metric, threshold, i, j)
            if not is_hit_metric:  # else McNemar's test is the sign-flip test
                row["mcnemar_p"] = mcnemar_p(hits["only_pipeline"], hits["only_other"])
                tests.append((row, "mcnemar_p"))
    for (row, field), p in zip(tests, holm([row[field] for row, field in tests]), strict=True):
        row[f"{field}_adjusted"] = p
    for row in rows:
        if "hits" in row and "mcnemar_p" not in row:  # a metric of hits
            row |= {"mcnemar_p": row["p"], "mcnemar_p_adjusted": row["p_adjusted"]}
        if row["difference"] and row["p_adjusted"] < 1 - level:
            is_first_better = (row["difference"] > 0) != (row["metric"] in matched.lower_is_better)
            row["better"] = row["pipeline"] if is_first_better else row["other"]
    return [Pair(**row) for row in rows], len(tests)


def differences(matched: MatchedRuns, couples: Sequence[tuple[int, int]]) -> np.ndarray:
    """Return a table with a row for each question and a column for each metric and couple; NaN without a value."""
    first, second = np.array(couples).T  # the positions of their pipelines
    return np.concatenate([table[:, first] - table[:, second] for table in matched.values.values()], axis=1)


def complementarity(matched: MatchedRuns, metric: str, limit: float, latencies: Latencies) -> Complementarity:
    """Measure what pipelines gain over each other on one metric, from this limit on; their latencies break ties."""
    values, names = matched.values[metric], tuple(matched.runs)
    complete = ~np.isnan(values).any(axis=1)  # questions with a value for all pipelines
    got = _reaches_threshold(matched, metric, limit)[complete]  # questions by pipelines
    ids = list(compress(matched.examples, complete))
    got_by = got.sum(axis=1)  # number of pipelines that get a question

    def ids_of(mask: np.ndarray) -> tuple[str, ...]:
        return tuple(compress(ids, mask))

    return Complementarity(
        metric=metric, threshold=limit, pipelines=names, n=len(ids), total=matched.questions,
        got={name: ids_of(got[:, i]) for i, name in enumerate(names)},
        only={name: ids_of(got[:, i] & (got_by == 1)) for i, name in enumerate(names)},
        nobody=ids_of(got_by == 0),
        union=float((got_by > 0).mean()) if ids else None,
        best_single=float(got.mean(axis=0).max()) if ids else None,
        greedy=_pick_steps(got, names, latencies),
    )  # fmt: skip


def _pick_steps(got: np.ndarray, names: Sequence[str], latencies: Latencies) -> tuple[CombinationStep, ...]:
    """Put first the pipeline that gets most questions, then always the one that adds most; of equals the quicker."""
    steps: list[CombinationStep] = []
    seconds = [math.inf if latency is None else latency for latency in latencies]
    covered = np.zeros(len(got), dtype=bool)  # questions got by the steps so far; got: questions by pipelines
    while len(steps) < len(names):
        gains = (got & ~covered[:, None]).sum(axis=0).tolist()  # what each pipeline would add to these
        best = min(range(len(names)), key=lambda i: (-gains[i], seconds[i]))
        if gains[best] == 0:
            break
        covered |= got[:, best]
        steps.append(CombinationStep(names[best], gains[best], float(covered.mean())))
    return tuple(steps)


def _count_hits(matched: MatchedRuns, metric: str, threshold: float, i: int, j: int) -> dict[str, int]:
    """Count the questions that reach the threshold with pipelines ``i`` and ``j``, and with one of them alone."""
    has_values = ~np.isnan(matched.values[metric][:, [i, j]]).any(axis=1)  # others do not count
    pipeline, other = _reaches_threshold(matched, metric, threshold)[has_values][:, [i, j]].T
    return {
        "pipeline": int(pipeline.sum()), "other": int(other.sum()),
        "only_pipeline": int((pipeline & ~other).sum()), "only_other": int((other & ~pipeline).sum()),
    }  # fmt: skip


def _reaches_threshold(matched: MatchedRuns, metric: str, threshold: float) -> np.ndarray:
    """Return a table of questions by pipelines: True where the value reaches the threshold, False without a value."""
    values = matched.values[metric]
    return values <= threshold if metric in matched.lower_is_better else values >= threshold
