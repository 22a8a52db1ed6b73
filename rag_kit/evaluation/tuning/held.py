"""The winner of a search against the default setting, on questions that the search has not seen."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Judged:
    """One setting on the questions held aside.

    Args:
        mean: Mean of the values.
        low: Lower end of its interval.
        high: Upper end.
        n: Questions with a value.
        total: Questions asked.
    """

    mean: float
    low: float
    high: float
    n: int
    total: int


@dataclass(frozen=True)
class HeldAside:
    """The winner and the default setting on questions that the search has not seen.

    Args:
        best: The winner.
        default: The default setting.
        difference: Mean of winner minus default, over the questions on which both have a value.
        low: Lower end of the paired interval of the difference.
        high: Upper end.
        p: Two-sided p-value of the sign-flip test.
        pairs: Questions on which both have a value.
        total: Questions held aside.
        level: Share of the intervals.
        better: Whether the winner is better beyond noise: the interval leaves out 0 on the good side, and ``p`` is
            at most ``1 - level``.
        looks: Settings that were judged on these questions, in all sittings; each further one makes the verdict
            weaker.
    """

    best: Judged
    default: Judged
    difference: float
    low: float
    high: float
    p: float
    pairs: int
    total: int
    level: float
    better: bool
    looks: int = 1


def judge_held(
    best: Mapping[str, float],
    default: Mapping[str, float],
    *,
    total: int,
    higher_is_better: bool = True,
    level: float = 0.95,
    looks: int = 1,
) -> HeldAside | None:
    """Compare two settings on the questions held aside; ``None`` where fewer than 2 have values of both.

    Args:
        best: Question -> value of the winner.
        default: The same of the default setting.
        total: Questions held aside.
        higher_is_better: The direction of the metric.
        level: Share of the intervals.
        looks: Settings judged on these questions so far.

    Example:
        >>> a = dict(enumerate([.9, .8, .7, .6, .9, .8, .75, .85]))
        >>> b = dict(enumerate([.7, .8, .6, .5, .7, .8, .70, .65]))
        >>> held = judge_held(a, b, total=8)
        >>> round(held.difference, 5), round(held.low, 4), round(held.high, 4), held.p, held.better
        (0.10625, 0.05, 0.1625, 0.03125, True)
    """
    from rag_kit.evaluation.statistics import bootstrap_interval, sign_flip_test

    shared = [key for key in best if key in default]
    if len(shared) < 2:
        return None
    differences = [best[key] - default[key] for key in shared]
    low, high = bootstrap_interval(differences, level=level)
    p = sign_flip_test(differences).p
    good_side = low > 0 if higher_is_better else high < 0
    return HeldAside(
        best=_judged(list(best.values()), total, level),
        default=_judged(list(default.values()), total, level),
        difference=statistics.fmean(differences),
        low=low,
        high=high,
        p=p,
        pairs=len(shared),
        total=total,
        level=level,
        better=good_side and p <= 1 - level + 1e-12,
        looks=looks,
    )


def _judged(values: Sequence[float], total: int, level: float) -> Judged:
    from rag_kit.evaluation.statistics import bootstrap_interval

    low, high = bootstrap_interval(values, level=level)
    return Judged(statistics.fmean(values), low, high, len(values), total)
