"""Settings compared on the questions that both have answered: giving one up, and judging the winner."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rag_kit.evaluation.statistics import bootstrap_interval, sign_flip_test

_LEVEL = 0.05  # one-sided chance at which a setting is called worse


@dataclass(frozen=True)
class Judged:
    """A setting on the questions held aside.

    Args:
        mean: Mean of its values.
        low: Lower end of the bootstrap interval.
        high: Upper end.
        n: Questions with a value.
        total: Questions held aside.
    """

    mean: float
    low: float
    high: float
    n: int
    total: int


@dataclass(frozen=True)
class HeldAside:
    """The winner against the default setting, on questions that no setting was chosen by.

    Args:
        best: The winner.
        default: The default setting.
        difference: Mean of winner minus default over the questions that both have a value for.
        low: Lower end of its paired bootstrap interval.
        high: Upper end.
        p: p-value of the sign-flip test.
        pairs: Questions that both have a value for.
        total: Questions held aside.
        level: Share of the intervals.
        better: Whether the gain is significant: the interval leaves out 0 on the good side, and ``p`` is at most
            ``1 - level``.
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
    differences = [best[key] - default[key] for key in best if key in default]
    if len(differences) < 2:
        return None
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
        pairs=len(differences),
        total=total,
        level=level,
        better=good_side and p <= 1 - level + 1e-12,
        looks=looks,
    )


def surely_worse(own: Mapping[str, float], best: Mapping[str, float], higher_is_better: bool) -> str | None:
    """Say why a setting is significantly worse than the best one; ``None`` if it is not.

    Compared are the questions that both have a value for, by the sign-flip test (one-sided 5%).

    Example:
        >>> best = {str(n): 1.0 for n in range(10)}
        >>> surely_worse({str(n): 0.5 for n in range(8)}, best, True)
        'worse than the best setting on the 8 questions so far: 0.5 against 1, p = 0.0039'
    """
    shared = [key for key in own if key in best]
    sign = 1.0 if higher_is_better else -1.0
    differences = [sign * (own[key] - best[key]) for key in shared]
    if not differences or sum(differences) >= 0:
        return None
    p = sign_flip_test(differences).p / 2  # the test is two-sided and symmetric
    if p > _LEVEL:
        return None
    mean = statistics.fmean(own[key] for key in shared)
    best_mean = statistics.fmean(best[key] for key in shared)
    return (
        f"worse than the best setting on the {len(shared)} questions so far: {mean:.3g} against {best_mean:.3g}, "
        f"p = {p:.2g}"
    )


def _judged(values: Sequence[float], total: int, level: float) -> Judged:
    return Judged(statistics.fmean(values), *bootstrap_interval(values, level=level), len(values), total)
