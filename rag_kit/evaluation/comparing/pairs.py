"""Two pipelines on one metric: how far apart, more than chance or not; and what several add to each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING, Any

from rag_kit.evaluation.comparing.scores import mean, present_values
from rag_kit.evaluation.statistics import Correction, adjust, column_intervals, mcnemar_p, sign_flip_tests

if TYPE_CHECKING:
    import numpy as np

    from rag_kit.evaluation.comparing.scores import Matched


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
        method: ``exact``, ``permutation``, or ``none`` where every difference is zero.
        p_adjusted: The same, corrected for all tests of the comparison.
        hits: ``{"pipeline", "other", "only_pipeline", "only_other"}``: questions that each gets, where the metric
            is one of hits or a threshold was given; else ``None``.
        mcnemar_p: p-value of McNemar's exact test on them.
        mcnemar_p_adjusted: The same, corrected.
        one_test: Whether both tests are the same one, as for a metric of hits; then they count once.
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
    p: float | None
    method: str
    p_adjusted: float | None = None
    hits: dict[str, int] | None = None
    mcnemar_p: float | None = None
    mcnemar_p_adjusted: float | None = None
    one_test: bool = False
    better: str | None = None


def compare_pairs(
    matched: Matched,
    *,
    baseline: str | None,
    level: float,
    correction: Correction,
    thresholds: Mapping[str, float],
) -> list[Pair]:
    """Test every pipeline against the baseline, or every two against each other; metric by metric."""
    import numpy as np

    names = matched.names
    couples = list(combinations(range(len(names)), 2))
    if baseline is not None:
        base = names.index(baseline)
        couples = [(number, base) for number in range(len(names)) if number != base]
    first, second = np.array(couples).T
    table = np.concatenate(
        [matched.values[metric][:, first] - matched.values[metric][:, second] for metric in matched.metrics],
        axis=1,
    )
    intervals = column_intervals(table, level=level)
    tests = sign_flip_tests(np.nan_to_num(table, nan=0.0))
    found = []
    for number, (metric, (i, j)) in enumerate((m, c) for m in matched.metrics for c in couples):
        column = present_values(table[:, number])
        gains = -column if metric in matched.lower else column
        pair = Pair(
            metric, names[i], names[j], len(column), mean(column.tolist()), *intervals[number],
            wins=int((gains > 0).sum()), losses=int((gains < 0).sum()),
            p=tests[number].p if len(column) else None, method=tests[number].method,
        )  # fmt: skip
        found.append(_with_hits(pair, matched, i, j, thresholds))
    return [replace(pair, better=_better(pair, matched, 1 - level)) for pair in _corrected(found, correction)]


def got_it(matched: Matched, metric: str, threshold: float) -> np.ndarray:
    """Whether each pipeline gets each question: questions by pipelines; False where there is no value."""
    values = matched.values[metric]
    return values <= threshold if metric in matched.lower else values >= threshold


def _with_hits(pair: Pair, matched: Matched, i: int, j: int, thresholds: Mapping[str, float]) -> Pair:
    """Add McNemar's test where the metric is one of hits, or a threshold makes it one."""
    values = matched.values[pair.metric]
    is_hits = bool((values == values).any()) and bool(
        ((values == 0) | (values == 1) | (values != values)).all()
    )
    if pair.metric not in thresholds and not is_hits:
        return pair
    got = got_it(matched, pair.metric, thresholds.get(pair.metric, 0.5))
    both = (values[:, i] == values[:, i]) & (values[:, j] == values[:, j])
    one, two = got[both, i], got[both, j]
    only_one, only_two = int((one & ~two).sum()), int((two & ~one).sum())
    hits = {
        "pipeline": int(one.sum()),
        "other": int(two.sum()),
        "only_pipeline": only_one,
        "only_other": only_two,
    }
    p = mcnemar_p(only_one, only_two) if pair.n else None
    same = p is not None and pair.p is not None and abs(p - pair.p) < 1e-9
    same = same and (only_one, only_two) == (pair.wins, pair.losses)
    return replace(pair, hits=hits, mcnemar_p=p, one_test=same)


def _corrected(pairs: list[Pair], correction: Correction) -> list[Pair]:
    """Adjust the p-values of all tests together: sign-flip tests, and McNemar's where it is not the same test."""
    p_values = {(number, "sign flip"): pair.p for number, pair in enumerate(pairs)}
    p_values |= {(n, "McNemar"): pair.mcnemar_p for n, pair in enumerate(pairs) if not pair.one_test}
    known = {test: p for test, p in p_values.items() if p is not None}
    adjusted = dict(zip(known, adjust(list(known.values()), correction), strict=True))
    found = []
    for number, pair in enumerate(pairs):
        hits = adjusted.get((number, "sign flip" if pair.one_test else "McNemar"))
        found.append(replace(pair, p_adjusted=adjusted.get((number, "sign flip")), mcnemar_p_adjusted=hits))
    return found


def _better(pair: Pair, matched: Matched, alpha: float) -> str | None:
    """The pipeline that is significantly better; ``None`` if neither is."""
    if pair.p_adjusted is None or pair.p_adjusted >= alpha or not pair.difference:
        return None
    return pair.pipeline if (pair.difference > 0) != (pair.metric in matched.lower) else pair.other


@dataclass(frozen=True)
class Step:
    """A pipeline more to combine: it gains so many questions that none before gets; the set then gets this share."""

    pipeline: str
    gain: int
    share: float


@dataclass(frozen=True)
class Complementarity:
    """What pipelines add to each other on one metric.

    Everything stands on the questions for which every pipeline has a value.

    Args:
        metric: The metric's name.
        threshold: A question is got from this value on (up to it, where less is better).
        pipelines: Names, in order.
        n: Questions for which every pipeline has a value.
        total: Questions in all.
        got: Pipeline -> ids of the questions it gets.
        only: Pipeline -> ids of the questions that it alone gets.
        everyone: Ids that all get.
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
    everyone: tuple[str, ...]
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


def complementarity(
    matched: Matched, metric: str, threshold: float, seconds: Sequence[float | None]
) -> Complementarity:
    """Set the pipelines against each other on one metric; ``seconds`` is the latency of each, for ties."""
    import numpy as np

    values = matched.values[metric]
    complete = (values == values).all(axis=1)
    got = got_it(matched, metric, threshold)[complete]
    ids = [key for key, there in zip(matched.examples, complete.tolist(), strict=True) if there]
    times = got.sum(axis=1)
    names = matched.names

    def named(chosen: np.ndarray) -> tuple[str, ...]:
        return tuple(ids[number] for number in np.flatnonzero(chosen))

    count = len(ids)
    both = got.T.astype(int) @ got.astype(int)
    alone = both.diagonal()
    missed = alone[:, None] - both + np.diag(alone)
    return Complementarity(
        metric=metric, threshold=threshold, pipelines=names, n=count, total=matched.questions,
        got={name: named(got[:, i]) for i, name in enumerate(names)},
        only={name: named(got[:, i] & (times == 1)) for i, name in enumerate(names)},
        everyone=named(times == len(names)), nobody=named(times == 0),
        union=float((times > 0).mean()) if count else None,
        best_single=float(alone.max() / count) if count else None,
        greedy=_greedy(got, names, seconds),
        matrix=tuple(map(tuple, missed.tolist())),
    )  # fmt: skip


def _greedy(got: np.ndarray, names: Sequence[str], seconds: Sequence[float | None]) -> tuple[Step, ...]:
    import numpy as np

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
