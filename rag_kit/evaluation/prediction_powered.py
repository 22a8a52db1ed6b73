"""Mean of a metric with its interval, from a judge's values and a random sample of verdicts by people (PPI++).

Angelopoulos, Duchi and Zrnic, "PPI++: Efficient Prediction-Powered Inference", 2023, https://arxiv.org/abs/2311.01453.
"""

from __future__ import annotations

from collections.abc import Mapping
from statistics import NormalDist

import numpy as np

from rag_kit.evaluation.cells import Labelled

Values = Mapping[str, float | None]  # by question
Scale = tuple[float | None, float | None]  # least and greatest value; None: no bound
#: Fewer labels give no interval. With that many and more, the intervals cover (benchmarks/quality/quality_labels.py).
FEWEST = 10
#: Labels added at each end of the scale, of answers on which the judge said its mean: where all labels agree their
#: variance is 0, and an interval without these covers nothing (Agresti and Coull, 1998). The scale of differences is
#: twice as wide.
_ADDED_TO_MEANS, _ADDED_TO_DIFFERENCES = 2.0, 1.0


def labelled_mean(
    values: Values,
    labels: Values,
    scale: Scale = (0.0, 1.0),
    *,
    level: float = 0.95,
    of_differences: bool = False,
) -> Labelled | None:
    """Estimate the mean that people would give to all questions; ``None`` below ten labels.

    The judge's values count as much as they help: not at all where they say nothing, fully where they are right. The
    interval speaks of questions of this kind, as a bootstrap interval does, and holds if the labelled questions are a
    random sample of those with a value.

    Args:
        values: Question -> the judge's value, or the difference of two pipelines.
        labels: Question -> the verdict of a person on the same; ``None`` and what has no value is left out.
        scale: Least and greatest value of the metric; where there is none, what occurs.
        level: Share of the interval.
        of_differences: Whether values and labels are differences of two pipelines.

    Example:
        >>> values = {str(n): 0.0 for n in range(300)}
        >>> found = labelled_mean(values, {str(n): float(n % 3 == 0) for n in range(60)})
        >>> found.n, round(found.mean, 3), round(found.low, 3), round(found.high, 3)
        (60, 0.333, 0.224, 0.463)
    """
    judged = {key: value for key, value in values.items() if value is not None}
    labelled = {key: label for key, label in labels.items() if label is not None and key in judged}
    n, unlabelled = len(labelled), len(judged) - len(labelled)
    if n < FEWEST:
        return None
    # the judge's values of all questions; people's and the judge's values of the labelled ones
    all_values = np.array(list(judged.values()))
    truth = np.array(list(labelled.values()), dtype=float)
    guesses = np.array([judged[key] for key in labelled])
    judge_variance = float(all_values.var(ddof=1))
    trust, shift, variance = 0.0, 0.0, 0.0  # trust is lambda in the paper
    if unlabelled and judge_variance > 0:
        covariance = np.cov(truth, guesses)[0, 1]
        trust = float(np.clip(covariance / ((1 + n / unlabelled) * judge_variance), 0, 1))
        shift = trust * float(all_values.sum() - guesses.sum()) / unlabelled
        variance = trust**2 * judge_variance / unlabelled
    low, high = _bounds_of_mean(scale, np.concatenate([truth, all_values]), of_differences)
    added = _ADDED_TO_DIFFERENCES if of_differences else _ADDED_TO_MEANS
    errors = np.concatenate([truth - trust * guesses, np.array([low, high]) - trust * all_values.mean()])
    weights = np.array([1.0] * n + [added, added])
    centre = shift + float(np.average(errors, weights=weights))
    variance += float(np.cov(errors, aweights=weights, ddof=0) / (weights.sum() - 1))
    half_width = _t_quantile((1 + level) / 2, n - 1) * variance**0.5
    lower, upper = max(low, centre - half_width), min(high, centre + half_width)
    mean = float((truth - trust * guesses).mean()) + shift
    return Labelled(n, min(max(mean, lower), upper), lower, upper)


def _bounds_of_mean(scale: Scale, observed: np.ndarray, of_differences: bool) -> tuple[float, float]:
    """Return the least and the greatest value that a mean can have: by the scale, or by the observed values."""
    least, greatest = scale
    low = float(observed.min()) if least is None else least
    high = float(observed.max()) if greatest is None else greatest
    if not of_differences:
        return low, high
    width = float(np.abs(observed).max()) if None in scale else high - low
    return -width, width


def difference(first: Values, second: Values) -> dict[str, float | None]:
    """Subtract the values of the questions that both have; the difference is ``None`` if a value is."""
    differences: dict[str, float | None] = {}
    for key, minuend in first.items():
        if key in second:
            subtrahend = second[key]
            differences[key] = None if minuend is None or subtrahend is None else minuend - subtrahend
    return differences


def _t_quantile(share: float, freedom: int) -> float:
    """Return a quantile of Student's t, without SciPy: a series around the normal quantile, right to .002."""
    z = NormalDist().inv_cdf(share)
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
    )
    return float(z + sum(term / freedom**power for power, term in enumerate(terms, start=1)))
