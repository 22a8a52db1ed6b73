"""When a setting is given up before it has answered every question. Settings are compared on shared questions."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping
from typing import Literal, get_args

from rag_kit.errors import InvalidInputError

#: ``"paired"``: it is surely worse than the best one so far; ``"median"``: its mean is below the median of those
#: finished; ``"halving"``: it is not in the better half of those that came as far; ``"none"``: never.
Pruning = Literal["paired", "median", "halving", "none"]

PRUNINGS: tuple[Pruning, ...] = get_args(Pruning)

LEVEL = 0.05
"""One-sided chance at which ``"paired"`` calls a setting worse."""
_FEWEST_TRIALS = 3
"""Finished settings before ``"median"`` and ``"halving"`` say anything."""

Scores = Mapping[str, float]


def check_pruning(pruning: object) -> None:
    """Refuse a rule that there is not.

    Raises:
        InvalidInputError: If there is none of that name.
    """
    if pruning not in PRUNINGS:
        raise InvalidInputError(f"pruning is {pruning!r:.80}; allowed are {', '.join(PRUNINGS)}")


def reason_to_stop(
    pruning: Pruning,
    own: Scores,
    finished: Mapping[int, Scores],
    begun: Mapping[int, Scores],
    *,
    higher_is_better: bool = True,
) -> str | None:
    """Why a setting should be given up now, or ``None``.

    Args:
        pruning: The rule.
        own: Question -> value of the setting, as far as it has come.
        finished: The same of the settings that answered every question, by their number.
        begun: The same of all earlier settings, those given up included.
        higher_is_better: The direction of the metric.

    Example:
        >>> best = {str(n): 1.0 for n in range(10)}
        >>> reason_to_stop("paired", {str(n): 0.5 for n in range(8)}, {4: best}, {4: best})
        'worse than setting 4 on the 8 questions so far: 0.5 against 1, p = 0.0039'
    """
    if pruning == "none" or not own:
        return None
    sign = 1.0 if higher_is_better else -1.0
    if pruning == "paired":
        return _surely_worse(own, finished, sign)
    others = finished if pruning == "median" else begun
    means = []
    for scores in others.values():
        shared = [scores[key] for key in own if key in scores]
        if len(shared) == len(own):  # it came as far
            means.append(sign * statistics.fmean(shared))
    if len(means) < _FEWEST_TRIALS:
        return None
    mean = sign * statistics.fmean(own.values())
    if pruning == "median":
        middle = statistics.median(means)
        return _said("below the median", mean, middle, len(own), sign) if mean < middle else None
    better = sum(other > mean for other in means)
    if better < math.ceil((len(means) + 1) / 2):
        return None
    return f"{better} of {len(means)} settings are better on the {len(own)} questions so far"


def best_number(finished: Mapping[int, Scores], higher_is_better: bool = True) -> int | None:
    """The setting with the best mean; of equal ones the first.

    Example:
        >>> best_number({0: {"a": 0.5}, 1: {"a": 0.75}, 2: {"a": 0.75}})
        1
    """
    sign = 1.0 if higher_is_better else -1.0
    ranked = [
        (-sign * statistics.fmean(scores.values()), number) for number, scores in finished.items() if scores
    ]
    return min(ranked)[1] if ranked else None


def _surely_worse(own: Scores, finished: Mapping[int, Scores], sign: float) -> str | None:
    from rag_kit.evaluation.statistics import sign_flip_test

    best = best_number(finished, sign > 0)
    if best is None:
        return None
    shared = [key for key in own if key in finished[best]]
    differences = [sign * (own[key] - finished[best][key]) for key in shared]
    if not differences or sum(differences) >= 0:
        return None
    p = sign_flip_test(differences).p / 2  # the signs are symmetric, so half of it lies on this side
    if p > LEVEL:
        return None
    means = [statistics.fmean(scores[key] for key in shared) for scores in (own, finished[best])]
    return (
        f"worse than setting {best} on the {len(shared)} questions so far: {means[0]:.3g} against {means[1]:.3g}, "
        f"p = {p:.2g}"
    )


def _said(what: str, mean: float, other: float, count: int, sign: float) -> str:
    return f"{what} on the {count} questions so far: {sign * mean:.3g} against {sign * other:.3g}"
