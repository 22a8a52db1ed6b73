"""Pipelines against each other on one metric: how far apart, more than chance or not, and what each adds."""

from __future__ import annotations

import sys
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from rag_kit.errors import InvalidInputError
from rag_kit.evaluation.comparing.scores import mean, present_values
from rag_kit.evaluation.statistics import Interval, holm, mcnemar_p, sign_flip_tests

if TYPE_CHECKING:
    from rag_kit.evaluation.comparing.scores import MatchedRuns


@dataclass(frozen=True)
class Pair:
    """A pipeline against another one, over the questions that both have an ok cell for.

    Args:
        metric: The metric's name.
        pipeline: The first.
        other: The second: the baseline, where there is one.
        n: Questions that both have a value for; everything here stands on these.
        difference: Mean of first minus second; ``None`` without such questions.
        low: Lower end of its paired bootstrap interval; ``None`` below two questions.
        high: Upper end.
        wins: Questions on which the first does better.
        losses: Questions on which the second does.
        p: p-value of the sign-flip test; ``None`` without questions.
        p_adjusted: The same, corrected for all tests of the comparison.
        hits: ``{"pipeline", "other", "only_pipeline", "only_other"}``: questions that each gets, where the metric
            is one of hits or a threshold was given; else ``None``.
        mcnemar_p: p-value of McNemar's exact test on them; for a metric of hits it is the sign-flip test.
        mcnemar_p_adjusted: The same, corrected.
        better: The name of the better one, where the corrected p-value is below ``1 - level``; else ``None``.
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


@dataclass(frozen=True)
class Step:
    """A pipeline more to combine: it gains so many questions that none before gets; the set then gets this share."""

    pipeline: str
    gain: int
    share: float


@dataclass(frozen=True)
class Complementarity:
    """What pipelines add to each other on one metric, over the questions for which every one has a value.

    Args:
        metric: The metric's name.
        threshold: A question is got from this value on (up to it, where less is better).
        pipelines: Names, in order.
        n: Questions for which every pipeline has a value.
        total: Questions in all.
        got: Pipeline -> ids of the questions it gets.
        only: Pipeline -> ids of the questions that it alone gets.
        nobody: Ids that none gets: no combination helps, the cause lies before retrieval or in the gold.
        union: Share of the questions that at least one gets: what an oracle that always picks the right one reaches.
            ``None`` without questions.
        best_single: Share of the best one alone.
        greedy: Which to combine: first the best one, then whichever adds most, until none adds anything. A tie goes
            to the quicker one.
        matrix: ``matrix[i][j]``: questions that pipeline i gets and j does not; on the diagonal, those that i gets.
    """

    metric: str
    threshold: float
    pipelines: tuple[str, ...]
    n: int
    total: int
    got: Mapping[str, tuple[str, ...]]
    only: Mapping[str, tuple[str, ...]]
    nobody: tuple[str, ...]
    union: float | None
    best_single: float | None
    greedy: tuple[Step, ...]
    matrix: tuple[tuple[int, ...], ...]

    def combine(self, gain: float = 0.0) -> list[str]:
        """Names of the greedy set, as long as each adds more than this share of the questions.

        Args:
            gain: Such as 0.02: one that adds less than two questions in a hundred is not worth its cost.
        """
        return [step.pipeline for step in self.greedy if self.n and step.gain / self.n > gain]

    def records(self) -> list[dict[str, Any]]:
        """A line for each pipeline: what it gets, what it alone gets, its place in the greedy set and its gain."""
        steps = {step.pipeline: (place, step) for place, step in enumerate(self.greedy, start=1)}
        found = []
        for name in self.pipelines:
            place, step = steps.get(name, (None, None))
            found.append({
                "metric": self.metric, "pipeline": name, "got": len(self.got[name]), "only": len(self.only[name]),
                "place": place, "gain": step.gain if step else 0, "share_with_it": step.share if step else None,
                "union": self.union, "n": self.n, "total": self.total,
            })  # fmt: skip
        return found


def check_thresholds(thresholds: Any, metrics: Iterable[str]) -> dict[str, float]:
    """Thresholds by metric; one number is that of all, ``None`` of none."""
    given = thresholds if isinstance(thresholds, Mapping) else dict.fromkeys(metrics, thresholds)
    if unknown := [metric for metric in given if metric not in metrics]:
        raise InvalidInputError(
            f"thresholds has {unknown[0]!r:.80}, not compared; there are {', '.join(metrics)}"
        )
    known = {metric: value for metric, value in given.items() if value is not None}
    for value in known.values():
        if (
            isinstance(value, bool)
            or not isinstance(value, int | float)
            or not abs(value) <= sys.float_info.max
        ):
            raise InvalidInputError(f"a threshold is {value!r:.80}; give a number, or numbers by metric")
    return known


def compare_pairs(
    matched: MatchedRuns,
    couples: Sequence[tuple[int, int]],
    intervals: Iterable[Interval],
    *,
    level: float,
    thresholds: Mapping[str, float],
) -> tuple[list[Pair], int]:
    """A pair for each metric and couple, in the order of the intervals, and the number of tests corrected for."""
    names, table = list(matched.runs), differences(matched, couples)
    keys = [(metric, *couple) for metric in matched.values for couple in couples]
    binary = {  # of 0 and 1, McNemar's test is the sign-flip test
        metric: bool(np.isin(v[v == v], (0, 1)).all()) and 0 < thresholds.get(metric, 0.5) <= 1
        for metric, v in matched.values.items()
    }
    flips = sign_flip_tests(np.nan_to_num(table, nan=0.0))
    pairs: list[Pair] = []
    for (metric, i, j), column, ends, flip in zip(keys, table.T, intervals, flips, strict=True):
        present = present_values(column)
        gains = [-value if metric in matched.lower_is_better else value for value in present]
        pair = Pair(
            metric, names[i], names[j], len(present), mean(present), *ends,
            wins=sum(gain > 0 for gain in gains), losses=sum(gain < 0 for gain in gains),
            p=flip if present else None,
        )  # fmt: skip
        if present and (binary[metric] or metric in thresholds):
            hits = _hits(matched, metric, thresholds.get(metric, 0.5), i, j)
            own = mcnemar_p(hits["only_pipeline"], hits["only_other"])
            pair = replace(pair, hits=hits, mcnemar_p=flip if binary[metric] else own)
        pairs.append(pair)
    return _corrected(pairs, binary, matched.lower_is_better, 1 - level)


def differences(matched: MatchedRuns, couples: Sequence[tuple[int, int]]) -> np.ndarray:
    """Questions by differences of these couples, metric by metric; NaN where one of two has no value."""
    first, second = np.array(couples).T
    return np.concatenate([table[:, first] - table[:, second] for table in matched.values.values()], axis=1)


def complementarity(
    matched: MatchedRuns, metric: str, threshold: float, seconds: Sequence[float | None]
) -> Complementarity:
    """Set the pipelines against each other on one metric; ``seconds`` is the latency of each, for ties."""
    values, names = matched.values[metric], tuple(matched.runs)
    complete = (values == values).all(axis=1)
    got = _is_got(matched, metric, threshold)[complete]
    ids = [key for key, whole in zip(matched.examples, complete.tolist(), strict=True) if whole]
    times = got.sum(axis=1)

    def named(chosen: np.ndarray) -> tuple[str, ...]:
        return tuple(ids[number] for number in np.flatnonzero(chosen))

    both = got.T.astype(int) @ got.astype(int)
    alone = both.diagonal()
    missed = alone[:, None] - both + np.diag(alone)
    return Complementarity(
        metric=metric, threshold=threshold, pipelines=names, n=len(ids), total=matched.questions,
        got={name: named(got[:, i]) for i, name in enumerate(names)},
        only={name: named(got[:, i] & (times == 1)) for i, name in enumerate(names)},
        nobody=named(times == 0),
        union=float((times > 0).mean()) if ids else None,
        best_single=float(alone.max() / len(ids)) if ids else None,
        greedy=_greedy(got, names, seconds),
        matrix=tuple(map(tuple, missed.tolist())),
    )  # fmt: skip


def _greedy(got: np.ndarray, names: Sequence[str], seconds: Sequence[float | None]) -> tuple[Step, ...]:
    steps: list[Step] = []
    left = list(range(len(names)))
    covered = np.zeros(len(got), dtype=bool)
    while left:
        gains = {i: int((got[:, i] & ~covered).sum()) for i in left}
        best = min(left, key=lambda i: (-gains[i], seconds[i] if seconds[i] is not None else float("inf"), i))
        if gains[best] == 0:
            break
        covered |= got[:, best]
        left.remove(best)
        steps.append(Step(names[best], gains[best], float(covered.mean())))
    return tuple(steps)


def _hits(matched: MatchedRuns, metric: str, threshold: float, i: int, j: int) -> dict[str, int]:
    """Questions that each of two gets, and that it alone gets, of those that both have a value for."""
    values, got = matched.values[metric][:, [i, j]], _is_got(matched, metric, threshold)
    one, two = got[(values == values).all(axis=1)][:, [i, j]].T
    return {
        "pipeline": int(one.sum()), "other": int(two.sum()),
        "only_pipeline": int((one & ~two).sum()), "only_other": int((two & ~one).sum()),
    }  # fmt: skip


def _corrected(
    pairs: Sequence[Pair], binary: Mapping[str, bool], lower: Container[str], alpha: float
) -> tuple[list[Pair], int]:
    """Correct the p-values of all tests together; of a metric of hits, McNemar's is the sign-flip test."""
    tested = [pair for pair in pairs if pair.p is not None]
    graded = [pair for pair in tested if pair.hits is not None and not binary[pair.metric]]
    p_values = [*(pair.p or 0.0 for pair in tested), *(pair.mcnemar_p or 0.0 for pair in graded)]
    adjusted = holm(p_values)
    flips = dict(zip(map(id, tested), adjusted, strict=False))
    mcnemar = flips | dict(zip(map(id, graded), adjusted[len(tested) :], strict=True))
    found = []
    for pair in pairs:
        p, better = flips.get(id(pair)), None
        if p is not None and p < alpha and pair.difference:
            better = pair.pipeline if (pair.difference > 0) != (pair.metric in lower) else pair.other
        hits_p = None if pair.hits is None else mcnemar[id(pair)]
        found.append(replace(pair, p_adjusted=p, mcnemar_p_adjusted=hits_p, better=better))
    return found, len(adjusted)


def _is_got(matched: MatchedRuns, metric: str, threshold: float) -> np.ndarray:
    """Whether each pipeline gets each question: questions by pipelines; False where there is no value."""
    values = matched.values[metric]
    return values <= threshold if metric in matched.lower_is_better else values >= threshold
