"""Two pipelines on one metric: how far apart they are, and whether that is more than chance."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING, Any

from rag_kit.evaluation.statistics import Correction, adjust, column_intervals, mcnemar_p, sign_flip_tests

if TYPE_CHECKING:
    import numpy as np

    from rag_kit.evaluation.comparing.matching import Matched

_RESAMPLES = 10_000
_LARGE = 500  # questions above which fewer resamples are drawn: with twenty pipelines they would take minutes
_RESAMPLES_OF_LARGE = 2_500


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

    def to_json(self) -> dict[str, Any]:
        """As plain JSON."""
        return asdict(self)


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
    resamples = _RESAMPLES if matched.questions <= _LARGE else _RESAMPLES_OF_LARGE
    intervals = column_intervals(table, level=level, n=resamples)
    tests = sign_flip_tests(np.nan_to_num(table, nan=0.0))
    found = []
    for number, (metric, (i, j)) in enumerate((m, c) for m in matched.metrics for c in couples):
        column = table[:, number]
        column = column[column == column]
        gains = -column if metric in matched.lower else column
        pair = Pair(
            metric=metric,
            pipeline=names[i],
            other=names[j],
            n=len(column),
            difference=float(column.mean()) if len(column) else None,
            low=intervals[number][0],
            high=intervals[number][1],
            wins=int((gains > 0).sum()),
            losses=int((gains < 0).sum()),
            p=tests[number].p if len(column) else None,
            method=tests[number].method,
        )
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
    return replace(
        pair,
        hits=hits,
        mcnemar_p=p,
        one_test=same and (only_one, only_two) == (pair.wins, pair.losses),
    )


def _corrected(pairs: list[Pair], correction: Correction) -> list[Pair]:
    """Adjust the p-values of all tests together: sign-flip tests, and McNemar's where it is not the same test."""
    p_values = {(number, "sign flip"): pair.p for number, pair in enumerate(pairs)}
    p_values |= {(n, "McNemar"): pair.mcnemar_p for n, pair in enumerate(pairs) if not pair.one_test}
    known = {test: p for test, p in p_values.items() if p is not None}
    adjusted = dict(zip(known, adjust(list(known.values()), correction), strict=True))
    return [
        replace(
            pair,
            p_adjusted=adjusted.get((number, "sign flip")),
            mcnemar_p_adjusted=adjusted.get((number, "sign flip" if pair.one_test else "McNemar")),
        )
        for number, pair in enumerate(pairs)
    ]


def _better(pair: Pair, matched: Matched, alpha: float) -> str | None:
    """The pipeline that is significantly better; ``None`` if neither is."""
    if pair.p_adjusted is None or pair.p_adjusted >= alpha or not pair.difference:
        return None
    return pair.pipeline if (pair.difference > 0) != (pair.metric in matched.lower) else pair.other
