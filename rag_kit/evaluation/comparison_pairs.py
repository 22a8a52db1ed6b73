"""Pipelines against each other on one metric: how far apart, more than chance or not, and what each adds."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import Any

import numpy as np

from rag_kit.errors import InvalidInputError
from rag_kit.evaluation.cells import Labelled
from rag_kit.evaluation.comparison_scores import MatchedRuns, mean, present_values
from rag_kit.evaluation.statistics import Interval, holm, mcnemar_p, sign_flip_tests

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

    def combine(self) -> list[str]:
        """Return the pipelines to combine: those of which each adds questions."""
        return [step.pipeline for step in self.greedy]

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
    numbers = {name: value for name, value in by_name.items() if value is not None}
    for name, value in numbers.items():
        if name not in names or not abs(value) < math.inf:
            raise InvalidInputError(
                f"thresholds has {name!r:.80}: {value!r:.80}; give a number, or one for each of {', '.join(names)}"
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
    corrected = holm([row[field] for row, field in tests])
    for (row, field), p in zip(tests, corrected, strict=True):
        row[f"{field}_adjusted"] = p
    for row in rows:
        if "hits" in row and "mcnemar_p" not in row:  # a metric of hits
            row |= {"mcnemar_p": row["p"], "mcnemar_p_adjusted": row["p_adjusted"]}
        if row["difference"] and row["p_adjusted"] < 1 - level:
            is_higher, less_is_better = row["difference"] > 0, row["metric"] in matched.lower_is_better
            row["better"] = row["other"] if is_higher == less_is_better else row["pipeline"]
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
