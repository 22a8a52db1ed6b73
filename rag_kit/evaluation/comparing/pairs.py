"""Two pipelines on one metric: how far apart, more than chance or not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING

from rag_kit.evaluation.comparing.scores import mean, present_values
from rag_kit.evaluation.statistics import column_intervals, holm, mcnemar_p, sign_flip_tests

if TYPE_CHECKING:
    import numpy as np

    from rag_kit.evaluation.comparing.matched import Matched


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
    p: float | None
    p_adjusted: float | None = None
    hits: dict[str, int] | None = None
    mcnemar_p: float | None = None
    mcnemar_p_adjusted: float | None = None
    better: str | None = None


def compare_pairs(
    matched: Matched, *, baseline: str | None, level: float, thresholds: Mapping[str, float]
) -> tuple[list[Pair], int]:
    """Test every pipeline against the baseline, or every two against each other; metric by metric.

    Returns:
        The pairs, and for how many tests their p-values were corrected.
    """
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
    intervals, tests = column_intervals(table, level=level), sign_flip_tests(np.nan_to_num(table, nan=0.0))
    found = []
    for number, (metric, (i, j)) in enumerate((m, c) for m in matched.metrics for c in couples):
        column = present_values(table[:, number])
        gains = -column if metric in matched.lower else column
        pair = Pair(
            metric, names[i], names[j], len(column), mean(column.tolist()), *intervals[number],
            wins=int((gains > 0).sum()), losses=int((gains < 0).sum()), p=tests[number] if len(column) else None,
        )  # fmt: skip
        found.append(_with_hits(pair, matched, i, j, thresholds))
    return _corrected(found, matched, 1 - level)


def got_it(matched: Matched, metric: str, threshold: float) -> np.ndarray:
    """Whether each pipeline gets each question: questions by pipelines; False where there is no value."""
    values = matched.values[metric]
    return values <= threshold if metric in matched.lower else values >= threshold


def _is_hits(values: np.ndarray) -> bool:
    """Whether a metric has no values but 0 and 1: then the sign-flip test is McNemar's."""
    known = present_values(values)
    return bool(len(known)) and bool(((known == 0) | (known == 1)).all())


def _with_hits(pair: Pair, matched: Matched, i: int, j: int, thresholds: Mapping[str, float]) -> Pair:
    """Count hits where the metric is one of hits, or a threshold makes it one, and test them."""
    values = matched.values[pair.metric]
    own = _is_hits(values)
    if pair.metric not in thresholds and not own:
        return pair
    threshold = thresholds.get(pair.metric, 0.5)
    got = got_it(matched, pair.metric, threshold)
    both = (values[:, i] == values[:, i]) & (values[:, j] == values[:, j])
    one, two = got[both, i], got[both, j]
    only_one, only_two = int((one & ~two).sum()), int((two & ~one).sum())
    hits = {
        "pipeline": int(one.sum()),
        "other": int(two.sum()),
        "only_pipeline": only_one,
        "only_other": only_two,
    }
    if not pair.n:
        return replace(pair, hits=hits)
    same = own and 0 < threshold <= 1
    return replace(pair, hits=hits, mcnemar_p=pair.p if same else mcnemar_p(only_one, only_two))


def _corrected(pairs: list[Pair], matched: Matched, alpha: float) -> tuple[list[Pair], int]:
    """Adjust the p-values of all tests together; McNemar's where it is not the sign-flip test counts by itself."""
    flips = [number for number, pair in enumerate(pairs) if pair.p is not None]
    others = [
        n for n, pair in enumerate(pairs) if pair.mcnemar_p is not None and pair.mcnemar_p is not pair.p
    ]
    p_values = [pairs[n].p for n in flips] + [pairs[n].mcnemar_p for n in others]
    adjusted = holm([p for p in p_values if p is not None])
    flip, mcnemar = (
        dict(zip(flips, adjusted, strict=False)),
        dict(zip(others, adjusted[len(flips) :], strict=True)),
    )
    found = []
    for number, pair in enumerate(pairs):
        p, better = flip.get(number), None
        if p is not None and p < alpha and pair.difference:
            better = pair.pipeline if (pair.difference > 0) != (pair.metric in matched.lower) else pair.other
        hits_p = mcnemar.get(number, p if pair.mcnemar_p is not None else None)
        found.append(replace(pair, p_adjusted=p, mcnemar_p_adjusted=hits_p, better=better))
    return found, len(adjusted)
