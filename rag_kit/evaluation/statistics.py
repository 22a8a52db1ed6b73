"""Is a difference more than chance? Bootstrap intervals, the sign-flip test, McNemar's test, Holm's correction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from rag_kit.errors import InvalidInputError, MissingExtraError

if TYPE_CHECKING:
    import numpy as np

    Numbers: TypeAlias = Sequence[float] | np.ndarray

Interval: TypeAlias = tuple[float | None, float | None]

_DRAWN = 4_000_000  # drawn positions in memory at once: 32 MB, whatever the number of questions
_PATTERNS = 9_999
_FEW_TESTS = 50
_MORE_PATTERNS = 99_999  # so that corrected p-values of many tests can still be small
_COLUMNS = 200  # tested with one draw of signs: at most 160 MB
_DECIMALS = 9  # sums that agree so far, relative to the greatest difference, are equal


def bootstrap_interval(
    values: Numbers, *, level: float = 0.95, n: int = 10_000, seed: int = 0
) -> tuple[float, float]:
    """Percentile bootstrap interval of a mean (Efron, 1979).

    For two systems on the same questions give the differences: the interval is then the paired one.

    Args:
        values: One value a question.
        level: Share of the interval, between 0 and 1.
        n: Resamples, at most a million.
        seed: Seed of the draws; the same seed gives the same interval.

    Returns:
        The lower and the upper end.

    Raises:
        InvalidInputError: If there is no value, a value is not finite, or a setting is out of range.

    Example:
        >>> low, high = bootstrap_interval([0.2, 0.0, 0.1, 0.1, 0.2, 0.0, 0.05, 0.2])
        >>> round(low, 4), round(high, 4)
        (0.05, 0.1625)
    """
    check_level(level)
    if type(n) is not int or not 1 <= n <= 1_000_000:
        raise InvalidInputError(f"n is {n!r:.80}; give from 1 to 1000000 resamples")
    if type(seed) is not int or seed < 0:
        raise InvalidInputError(f"seed is {seed!r:.80}; give a whole number from 0 on")
    return _resample(_finite(values)[:, None], level, n, seed)[0]


def column_intervals(
    table: np.ndarray, *, level: float = 0.95, n: int = 10_000, seed: int = 0
) -> list[Interval]:
    """Interval of the mean of each column, over the questions that it has a value for.

    All columns share their resamples, which draw from all questions: in a column with gaps the number of values
    varies from one resample to the next, as it would in another set of questions.

    Args:
        table: Questions by columns; NaN where there is no value.
        level: As for `bootstrap_interval`.
        n: Resamples.
        seed: Seed of the draws.

    Returns:
        One for each column; ``(None, None)`` below two values.

    Example:
        >>> import numpy as np
        >>> column_intervals(np.array([[1.0, np.nan], [1.0, 0.5], [1.0, np.nan]]))
        [(1.0, 1.0), (None, None)]
    """
    import numpy as np

    enough = (~np.isnan(table)).sum(axis=0) > 1
    if not enough.any():
        return [(None, None)] * table.shape[1]
    found = iter(_resample(table[:, enough], level, n, seed))
    return [next(found) if each else (None, None) for each in enough]


def _resample(table: np.ndarray, level: float, n: int, seed: int) -> list[tuple[float, float]]:
    """Percentiles of the means of resampled rows; NaN is a gap."""
    import numpy as np

    count, generator = len(table), np.random.default_rng(seed)
    present = (~np.isnan(table)).astype(np.float64)
    values, means = np.nan_to_num(table), np.empty((n, table.shape[1]))
    step = max(1, _DRAWN // count)
    for start in range(0, n, step):
        drawn = generator.integers(0, count, size=(min(n, start + step) - start, count))
        # how often each resample has each row, so that one product gives the sums of all columns
        places = drawn + (np.arange(len(drawn)) * count)[:, None]
        times = np.bincount(places.ravel(), minlength=places.size).reshape(places.shape).astype(np.float64)
        with np.errstate(invalid="ignore"):  # a resample may have no value of a column with few
            means[start : start + step] = (times @ values) / (count if present.all() else times @ present)
    quantile = np.nanquantile if np.isnan(means).any() else np.quantile
    low, high = quantile(means, [(1 - level) / 2, (1 + level) / 2], axis=0)
    return list(zip(low.tolist(), high.tolist(), strict=True))


def sign_flip_test(differences: Numbers, *, seed: int = 0) -> float:
    """Two-sided p-value of a mean difference of zero, by flipping the signs of the differences (Fisher, 1935).

    If both systems are equally good, each difference could as well have had the other sign. The p-value is the
    share of sign patterns whose sum is as far from zero as the one that was seen. Every pattern counts where there are
    at most 9,999 of them (13 differences that are not zero), or where all differences have one size; else so many
    random ones do, and then p is at least 0.0002.

    Args:
        differences: One for each question.
        seed: Of the random patterns.

    Raises:
        InvalidInputError: If there is no difference, or one is not finite.
        MissingExtraError: If SciPy is not installed.

    Example:
        >>> a = [.9, .8, .7, .6, .9, .8, .75, .85]
        >>> b = [.7, .8, .6, .5, .7, .8, .70, .65]
        >>> sign_flip_test([x - y for x, y in zip(a, b)])
        0.03125
    """
    return sign_flip_tests(_finite(differences)[:, None], seed=seed)[0]


def sign_flip_tests(table: np.ndarray, *, seed: int = 0) -> list[float]:
    """The p-value of every column of a table; above 50 columns with ten times as many random patterns.

    A question that is in no pair has a difference of 0, which changes no sum.
    """
    import numpy as np

    largest = np.abs(table).max(axis=0, initial=0.0)
    # scaled, so that what counts as the same sum does not depend on the metric's unit; 0.9 - 0.7 is not quite 0.2
    scaled = np.round(table / np.where(largest > 0, largest, 1.0), _DECIMALS + 3)
    found = [1.0] * table.shape[1]
    large = []
    for number in range(table.shape[1]):
        column = scaled[scaled[:, number] != 0, number]
        if not len(column):
            continue
        if np.ptp(np.abs(column)) == 0:  # then the number of one sign is binomial
            positive = int((column > 0).sum())
            found[number] = mcnemar_p(positive, len(column) - positive)
        elif 2 ** len(column) <= _PATTERNS:
            found[number] = _p_values(column[:, None], _PATTERNS, seed)[0]
        else:
            large.append(number)
    patterns = _PATTERNS if table.shape[1] <= _FEW_TESTS else _MORE_PATTERNS
    for start in range(0, len(large), _COLUMNS):
        block = large[start : start + _COLUMNS]
        for number, p in zip(block, _p_values(scaled[:, block], patterns, seed), strict=True):
            found[number] = p
    return found


def _p_values(table: np.ndarray, patterns: int, seed: int) -> list[float]:
    """SciPy flips the signs of a vector of ones; its product with the table is the table with flipped signs."""
    import numpy as np

    def sums(signs: np.ndarray, axis: int = -1) -> np.ndarray:
        return np.asarray(np.round(signs @ table, _DECIMALS))

    tested = _scipy_stats().permutation_test(
        (np.ones(len(table)),), sums, permutation_type="samples", vectorized=True, n_resamples=patterns, axis=-1,
        batch=max(1, 1_000_000 // len(table)), random_state=np.random.default_rng(seed),
    )  # fmt: skip
    return [float(p) for p in np.minimum(tested.pvalue, 1.0)]


def mcnemar_p(only_first: int, only_second: int) -> float:
    """Two-sided exact p-value of McNemar's test (1947), from the counts of questions that only one of two gets right.

    Example:
        >>> mcnemar_p(2, 2), mcnemar_p(6, 0)
        (1.0, 0.03125)
    """
    if only_first + only_second == 0:
        return 1.0
    return float(_scipy_stats().binomtest(only_first, only_first + only_second, 0.5).pvalue)


def holm(p_values: Sequence[float]) -> list[float]:
    """Correct the p-values of all tests that are looked at together (Holm, 1979); the order stays.

    Below .05 the chance of one false alarm in all is below .05. SciPy has no such function.

    Example:
        >>> [round(p, 4) for p in holm([0.01, 0.04, 0.03, 0.005])]
        [0.03, 0.06, 0.06, 0.02]
    """
    corrected, largest = [0.0] * len(p_values), 0.0
    for step, index in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        largest = max(largest, min(1.0, (len(p_values) - step) * p_values[index]))
        corrected[index] = largest
    return corrected


def check_level(level: Any) -> None:
    """Refuse what is no share of an interval."""
    if isinstance(level, bool) or not isinstance(level, int | float) or not 0 < level < 1:
        raise InvalidInputError(f"level is {level!r:.80}; give a number between 0 and 1, such as 0.95")


def _finite(values: Any) -> np.ndarray:
    """A flat array of one or more finite numbers."""
    import numpy as np

    try:
        array = np.asarray(values, dtype=np.float64)
    except (AttributeError, TypeError, ValueError, OverflowError) as error:
        raise InvalidInputError(f"a value is no number ({error}); give a list of numbers") from error
    if array.ndim != 1 or not len(array):
        raise InvalidInputError(
            "there are no values, or they are no flat list; give one number for each question"
        )
    if not np.isfinite(array).all():
        raise InvalidInputError("a value is not finite; leave out questions without a score")
    return array


def _scipy_stats() -> Any:
    try:
        from scipy import stats
    except ImportError:
        raise MissingExtraError("eval", "testing the difference between pipelines") from None
    return stats
