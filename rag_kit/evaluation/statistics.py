"""Is a difference more than chance? Intervals by the bootstrap and from people's labels, paired tests, corrections."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import NormalDist
from typing import Any, TypeAlias

import numpy as np

from rag_kit.errors import InvalidInputError
from rag_kit.evaluation._files import import_extra
from rag_kit.evaluation.cells import Labelled, Scale

Numbers: TypeAlias = Sequence[float] | np.ndarray
Interval: TypeAlias = tuple[float | None, float | None]

_MAX_DRAWN = 4_000_000  # drawn positions or signs in memory at once: 32 MB, whatever the number of questions
_PATTERNS = 9_999  # of signs; as many p-values are possible
_FEW_TESTS = 50
_MORE_PATTERNS = 99_999  # above so many tests, so that corrected p-values can still be small
_TOLERANCE = 1e-9  # sums that differ by less, relative to the greatest difference, are equal
Values = Mapping[str, float | None]  # by question
#: Fewer labels give no interval. With that many and more, the intervals cover (benchmarks/quality/quality_labels.py).
FEWEST = 10
#: Labels added at each end of the scale, of answers on which the judge said its mean: where all labels agree their
#: variance is 0, and an interval without these covers nothing (Agresti and Coull, 1998). The scale of differences is
#: twice as wide.
_ADDED_TO_MEANS, _ADDED_TO_DIFFERENCES = 2.0, 1.0


def bootstrap_interval(
    values: Numbers, *, level: float = 0.95, n: int = 10_000, seed: int = 0
) -> tuple[float, float]:
    """Return the percentile bootstrap interval of a mean (Efron, 1979): its lower and its upper end.

    For two systems on the same questions give the differences: the interval is then the paired one.

    Args:
        values: One value a question.
        level: Share of the interval, between 0 and 1.
        n: Resamples.
        seed: Seed of the draws; the same seed gives the same interval.

    Raises:
        InvalidInputError: If there is no value, a value is not finite, or a setting is out of range.

    Example:
        >>> low, high = bootstrap_interval([0.2, 0.0, 0.1, 0.1, 0.2, 0.0, 0.05, 0.2])
        >>> round(low, 4), round(high, 4)
        (0.05, 0.1625)
    """
    check_level(level)
    return _resample(_finite_array(values)[:, None], level, n, seed)[0]


def bootstrap_intervals(
    columns: Sequence[Sequence[float]], *, level: float = 0.95, n: int = 10_000
) -> list[Interval]:
    """Return the `bootstrap_interval` of each of several lists of values; ``(None, None)`` below two values.

    Lists of one length share their resamples, so that many take little longer than one.

    Example:
        >>> bootstrap_intervals([[1.0, 1.0, 1.0], [0.5]])
        [(1.0, 1.0), (None, None)]
    """
    intervals: list[Interval] = [(None, None)] * len(columns)
    for length in {len(column) for column in columns if len(column) > 1}:
        numbers = [number for number, column in enumerate(columns) if len(column) == length]
        table = np.array([columns[number] for number in numbers]).T
        for number, interval in zip(numbers, _resample(table, level, n, seed=0), strict=True):
            intervals[number] = interval
    return intervals


def sign_flip_tests(table: np.ndarray, *, seed: int = 0) -> list[float]:
    """Return each column's two-sided p-value of a mean difference of zero, by flipping signs (Fisher, 1935).

    If both systems are equally good, each difference could as well have had the other sign. The p-value is the
    share of sign patterns whose sum is as far from zero as the one that was seen. Every pattern counts where there are
    at most 9,999 of them (13 differences that are not zero), or where all differences have one size; else so many
    random ones do, and then p is at least 0.0002. More than 50 columns get ten times the patterns.
    """
    largest = np.abs(table).max(axis=0, initial=0.0)
    # scaled, since _TOLERANCE is relative to the largest difference; rounded, since 0.9 - 0.7 is not quite 0.2
    scaled = np.round(table / np.where(largest > 0, largest, 1.0), 12)
    p_values = [1.0] * table.shape[1]
    sampled = []  # numbers of the columns for which random patterns are drawn
    for number in np.flatnonzero(largest):
        column = scaled[scaled[:, number] != 0, number]
        if np.ptp(np.abs(column)) == 0:  # all of one size: then the number of one sign is binomial
            positive = int((column > 0).sum())
            p_values[number] = mcnemar_p(positive, len(column) - positive)
        elif 2 ** len(column) <= _PATTERNS:  # every pattern: the bits of the numbers from 0
            flips = np.arange(2 ** len(column))[:, None] >> np.arange(len(column)) & 1
            p_values[number] = float(2 * _count_extreme(column[:, None], [flips])[0] / len(flips))
        else:
            sampled.append(number)
    if sampled:
        patterns = _PATTERNS if table.shape[1] <= _FEW_TESTS else _MORE_PATTERNS
        generator, questions = np.random.default_rng(seed), len(table)
        shapes = ((size, questions) for _, size in _draw_batches(patterns, questions))
        drawn = (generator.integers(0, 2, size=shape, dtype=np.int8) for shape in shapes)
        counts = _count_extreme(scaled[:, sampled], drawn)
        for number, count in zip(sampled, counts.tolist(), strict=True):
            p_values[number] = 2 * (count + 1) / (patterns + 1)  # 1: the pattern that was seen
    return [min(1.0, p) for p in p_values]


def mcnemar_p(only_first: int, only_second: int) -> float:
    """Return the two-sided exact p-value of McNemar's test (1947), from the numbers of questions that only one gets."""
    stats = import_extra("scipy.stats", "testing the difference between pipelines")
    count = only_first + only_second
    return float(stats.binomtest(only_first, count, 0.5).pvalue) if count else 1.0


def holm(p_values: Sequence[float]) -> list[float]:
    """Correct the p-values of all tests looked at together (Holm, 1979), in their order; SciPy has no such function."""
    corrected, largest = [0.0] * len(p_values), 0.0
    ascending = sorted(range(len(p_values)), key=p_values.__getitem__)
    for step, index in enumerate(ascending):
        largest = max(largest, min(1.0, (len(p_values) - step) * p_values[index]))
        corrected[index] = largest
    return corrected


def latency_percentiles(seconds: Sequence[float]) -> tuple[float | None, float | None]:
    """Return the median and the 95th percentile of the seconds above 0, ``(None, None)`` if there are none.

    Example:
        >>> latency_percentiles([0.0, 1.0, 2.0, 3.0]), latency_percentiles([])
        ((2.0, 2.9), (None, None))
    """
    times = [time for time in seconds if time > 0]
    return tuple(np.quantile(times, [0.5, 0.95]).tolist()) if times else (None, None)


def check_level(level: Any) -> None:
    """Refuse a level that is no share."""
    if isinstance(level, bool) or not isinstance(level, int | float) or not 0 < level < 1:
        raise InvalidInputError(f"level is {level!r:.80}; give a number between 0 and 1, such as 0.95")


def _resample(table: np.ndarray, level: float, n: int, seed: int) -> list[tuple[float, float]]:
    """Return the interval of each column's mean over ``n`` resamples of the rows."""
    count, generator = len(table), np.random.default_rng(seed)
    means = np.empty((n, table.shape[1]))
    for start, size in _draw_batches(n, count):
        rows = generator.integers(0, count, size=(size, count))
        # resample i gets the numbers from i * count on, so that one bincount counts each resample by itself
        rows += (np.arange(size) * count)[:, None]
        row_counts = np.bincount(rows.ravel(), minlength=rows.size).reshape(rows.shape)  # of each resample
        means[start : start + size] = row_counts.astype(np.float64) @ table / count
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2], axis=0)
    low, high = low.round(12), high.round(12)  # a product of several columns differs in the last bits
    return list(zip(low.tolist(), high.tolist(), strict=True))


def _count_extreme(table: np.ndarray, flips: Any) -> np.ndarray:
    """Count for each column the sign patterns whose sum is at least as far from zero, and on the same side, as seen.

    ``flips`` are batches of patterns, a row each: 1 where the sign of a value is changed, else 0.
    """
    observed = table.sum(axis=0)
    side, counts = np.where(observed < 0, -1.0, 1.0), np.zeros(table.shape[1], dtype=np.int64)
    for batch in flips:
        sums = observed - 2 * (batch.astype(np.float64) @ table)  # a flipped value is subtracted, not added
        counts += (side * sums >= side * observed - _TOLERANCE).sum(axis=0)
    return counts


def _draw_batches(rows: int, columns: int) -> Iterator[tuple[int, int]]:
    """Yield start and size of the batches in which so many rows are drawn, each small enough for the memory."""
    step = max(1, _MAX_DRAWN // columns)
    for start in range(0, rows, step):
        yield start, min(step, rows - start)


def _finite_array(values: Any) -> np.ndarray:
    """Return values as a flat array; refuse an empty one, and values that are no finite numbers."""
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1 or not len(array) or not np.isfinite(array).all():
        raise InvalidInputError(
            "the values are no flat list of finite numbers; give one for each question that has a score"
        )
    return array


def labelled_mean(
    values: Values,
    labels: Values,
    scale: Scale = (0.0, 1.0),
    *,
    level: float = 0.95,
    of_differences: bool = False,
) -> Labelled | None:
    """Estimate the mean that people would give to all questions; ``None`` below ten labels.

    The estimate is that of PPI++ (Angelopoulos, Duchi and Zrnic, 2023, https://arxiv.org/abs/2311.01453).
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
    all_values = np.array(list(judged.values()))
    # of the labelled questions: people's values, and the judge's
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
    residuals = truth - trust * guesses  # people's values less the trusted part of the judge's
    # for the interval, one label or two more at each end of the scale
    added = _ADDED_TO_DIFFERENCES if of_differences else _ADDED_TO_MEANS
    extended = np.concatenate([residuals, np.array([low, high]) - trust * all_values.mean()])
    weights = np.array([1.0] * n + [added, added])
    centre = shift + float(np.average(extended, weights=weights))
    variance += float(np.cov(extended, aweights=weights, ddof=0) / (weights.sum() - 1))
    half_width = _t_quantile(level, n - 1) * variance**0.5
    lower, upper = max(low, centre - half_width), min(high, centre + half_width)
    mean = float(residuals.mean()) + shift
    return Labelled(n, min(max(mean, lower), upper), lower, upper)


def _t_quantile(level: float, freedom: int) -> float:
    """Return the two-sided quantile of Student's t, right to .002, without SciPy, which reports do not need."""
    z = NormalDist().inv_cdf((1 + level) / 2)
    terms = (z, (z**3 + z) / 4, (5 * z**5 + 16 * z**3 + 3 * z) / 96,
             (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384)  # fmt: skip
    return sum(term / float(freedom**power) for power, term in enumerate(terms))


def _bounds_of_mean(scale: Scale, observed: np.ndarray, of_differences: bool) -> tuple[float, float]:
    """Return the least and the greatest value that a mean can have: the ends of the scale, or what was observed."""
    least, greatest = scale
    low = float(observed.min()) if least is None else least
    high = float(observed.max()) if greatest is None else greatest
    if not of_differences:
        return low, high
    width = float(np.abs(observed).max()) if None in scale else high - low
    return -width, width


def difference(first: Values, second: Values) -> dict[str, float | None]:
    """Subtract the values of the questions that both have; the difference is ``None`` if a value is."""
    pairs = {key: (value, second[key]) for key, value in first.items() if key in second}
    return {key: None if one is None or other is None else one - other for key, (one, other) in pairs.items()}
