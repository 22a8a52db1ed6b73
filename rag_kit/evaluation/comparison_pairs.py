"""Pipelines against each other on one metric: how far apart, more than chance or not, and what each adds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
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

    def combine(self, gain: float = 0.0) -> list[str]:
        """Return the pipelines to combine, as long as each adds more than this share of the questions."""
        return [step.pipeline for step in self.greedy if self.n and step.gain / self.n > gain]

    def records(self) -> list[dict[str, Any]]:
        """Make a line for each pipeline: what it gets, gets alone, its position in the combination, its gain."""
        positions = {step.pipeline: position for position, step in enumerate(self.greedy, start=1)}
        return [
            {
                "metric": self.metric, "pipeline": name, "got": len(self.got[name]), "only": len(self.only[name]),
                "place": positions.get(name), "gain": self.greedy[positions[name] - 1].gain if name in positions else 0,
                "share_with_it": self.greedy[positions[name] - 1].share if name in positions else None,
                "union": self.union, "n": self.n, "total": self.total,
            }
            for name in self.pipelines
        ]  # fmt: skip


def check_thresholds(thresholds: Any, metrics: Iterable[str]) -> dict[str, float]:
    """Return thresholds by metric; one number is that of all, ``None`` of none."""
    by_metric = thresholds if isinstance(thresholds, Mapping) else dict.fromkeys(metrics, thresholds)
    if unknown := [metric for metric in by_metric if metric not in metrics]:
        raise InvalidInputError(
            f"thresholds has {unknown[0]!r:.80}, not compared; there are {', '.join(metrics)}"
        )
    numbers = {metric: value for metric, value in by_metric.items() if value is not None}
    for value in numbers.values():
        if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 1e300:
            raise InvalidInputError(f"a threshold is {value!r:.80}; give a number, or numbers by metric")
    return numbers


def compare_pairs(
    matched: MatchedRuns,
    couples: Sequence[tuple[int, int]],
    intervals: Iterable[Interval],
    *,
    level: float,
    thresholds: Mapping[str, float],
) -> tuple[list[Pair], int]:
    """Test all pairs metric by metric; also return the number of tests that were corrected for."""
    names, table = list(matched.runs), differences(matched, couples)
    keys = [(metric, *couple) for metric in matched.values for couple in couples]
    binary = {name: bool(np.isin(v[~np.isnan(v)], (0, 1)).all()) for name, v in matched.values.items()}
    flips = sign_flip_tests(np.nan_to_num(table, nan=0.0))
    pairs: list[Pair] = []
    p_values: dict[tuple[int, str], float] = {}  # by number of the pair and by field
    for (metric, i, j), column, (low, high), flip in zip(keys, table.T, intervals, flips, strict=True):
        present = present_values(column)
        signs = np.sign(present) * (-1 if metric in matched.lower_is_better else 1)
        wins, losses = int((signs > 0).sum()), int((signs < 0).sum())
        runs = [matched.runs[names[number]] for number in (i, j)]
        labelled = runs[0].labelled(metric, runs[1], level=level) if present else None
        ends = (low, high, wins, losses)
        pair = Pair(metric, names[i], names[j], len(present), mean(present), *ends, labelled=labelled)
        threshold = thresholds.get(metric, 0.5)
        of_hits = binary[metric] and 0 < threshold <= 1  # then McNemar's test is the sign-flip test
        if present:
            p_values[len(pairs), "p"] = flip
        if present and (of_hits or metric in thresholds):
            pair = replace(pair, hits=_count_hits(matched, metric, threshold, i, j))
        if pair.hits and not of_hits:
            p_values[len(pairs), "mcnemar_p"] = mcnemar_p(pair.hits["only_pipeline"], pair.hits["only_other"])
        pairs.append(pair)
    adjusted = dict(zip(p_values, holm(list(p_values.values())), strict=True))
    for number, pair in enumerate(pairs):
        for field in ("p", "mcnemar_p") if pair.hits else ("p",):
            key = (number, field) if (number, field) in adjusted else (number, "p")
            values = {field: p_values.get(key), f"{field}_adjusted": adjusted.get(key)}
            pairs[number] = pair = replace(pair, **values)  # type: ignore[arg-type]
        if pair.difference and (pair.p_adjusted or 0.0) < 1 - level:
            first = (pair.difference > 0) != (pair.metric in matched.lower_is_better)
            pairs[number] = replace(pair, better=pair.pipeline if first else pair.other)
    return pairs, len(adjusted)


def differences(matched: MatchedRuns, couples: Sequence[tuple[int, int]]) -> np.ndarray:
    """Return questions by differences of the couples, metric by metric; NaN where one has no value."""
    first, second = np.array(couples).T
    return np.concatenate([table[:, first] - table[:, second] for table in matched.values.values()], axis=1)


def complementarity(
    matched: MatchedRuns, metric: str, threshold: float, seconds: Latencies
) -> Complementarity:
    """Measure what pipelines gain over each other on one metric; ``seconds``, their latencies, break ties."""
    values, names = matched.values[metric], tuple(matched.runs)
    complete = (values == values).all(axis=1)
    answered = _reaches_threshold(matched, metric, threshold)[complete]
    ids = [key for key, is_complete in zip(matched.examples, complete.tolist(), strict=True) if is_complete]
    times = answered.sum(axis=1)

    def ids_of(chosen: np.ndarray) -> tuple[str, ...]:
        return tuple(ids[number] for number in np.flatnonzero(chosen))

    return Complementarity(
        metric=metric, threshold=threshold, pipelines=names, n=len(ids), total=matched.questions,
        got={name: ids_of(answered[:, i]) for i, name in enumerate(names)},
        only={name: ids_of(answered[:, i] & (times == 1)) for i, name in enumerate(names)},
        nobody=ids_of(times == 0),
        union=float((times > 0).mean()) if ids else None,
        best_single=float(answered.mean(axis=0).max()) if ids else None,
        greedy=_pick_steps(answered, names, seconds),
    )  # fmt: skip


def _pick_steps(
    answered: np.ndarray, names: Sequence[str], seconds: Latencies
) -> tuple[CombinationStep, ...]:
    """Order pipelines so that each adds most of the questions not got yet; of equals the quicker first."""
    steps: list[CombinationStep] = []
    left = list(range(len(names)))
    covered = np.zeros(len(answered), dtype=bool)
    while left:
        gains = {i: int((answered[:, i] & ~covered).sum()) for i in left}
        best = min(left, key=lambda i: (-gains[i], seconds[i] if seconds[i] is not None else float("inf"), i))
        if gains[best] == 0:
            break
        covered |= answered[:, best]
        left.remove(best)
        steps.append(CombinationStep(names[best], gains[best], float(covered.mean())))
    return tuple(steps)


def _count_hits(matched: MatchedRuns, metric: str, threshold: float, i: int, j: int) -> dict[str, int]:
    """Count the questions that each of two gets, and that it alone gets, of those with a value for both."""
    values, got = matched.values[metric][:, [i, j]], _reaches_threshold(matched, metric, threshold)[:, [i, j]]
    first, second = got[~np.isnan(values).any(axis=1)].T
    return {
        "pipeline": int(first.sum()), "other": int(second.sum()),
        "only_pipeline": int((first & ~second).sum()), "only_other": int((second & ~first).sum()),
    }  # fmt: skip


def _reaches_threshold(matched: MatchedRuns, metric: str, threshold: float) -> np.ndarray:
    """Tell which pipeline gets which question: questions by pipelines; False without a value."""
    values = matched.values[metric]
    return values <= threshold if metric in matched.lower_is_better else values >= threshold
