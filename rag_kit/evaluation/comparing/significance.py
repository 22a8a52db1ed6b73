"""Is a difference between two pipelines more than luck? Tests for paired scores, and the correction for many of them.

The numbers are paired: the same question, asked of both. Nothing is assumed of their distribution.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

from rag_kit.errors import InvalidInputError, MissingExtraError
from rag_kit.evaluation.comparing.tails import sign_flip_tail

if TYPE_CHECKING:
    import numpy as np

#: How p-values are corrected for their number: Holm (1979) bounds the chance of one false alarm in all; ``bh`` is
#: Benjamini and Hochberg's bound on the share of false alarms; ``none`` leaves them as they are.
Correction = Literal["holm", "bh", "none"]

EXACT_LIMIT = 30
"""Non-zero differences up to which every pattern of signs is counted. See docs/decisions/0223."""

_RESAMPLES = 9_999
_TAIL = 0.01
"""Below it a p-value rests on fewer than 100 random patterns, and none can be below 2 / 10,000."""
_COLUMNS = 512
"""Pairs tested with one draw of signs: their null distributions take 40 MB."""
_CLOSE = 9
"""Decimals, relative to the greatest difference, within which two sums are the same sum."""


@dataclass(frozen=True)
class SignFlip:
    """What the sign-flip test says.

    Args:
        p: Two-sided p-value.
        method: ``exact`` (every pattern of signs), ``permutation`` (random patterns), ``saddlepoint`` (the tail
            beyond what random patterns resolve), or ``none`` (all differences are zero, so p is 1).
        nonzero: Differences that are not zero.
    """

    p: float
    method: Literal["exact", "permutation", "saddlepoint", "none"]
    nonzero: int


def sign_flip_test(differences: Sequence[float] | np.ndarray, *, seed: int = 0) -> SignFlip:
    """Two-sided test of a mean difference of zero, by flipping the signs of the differences (Fisher, 1935).

    If both systems are equally good, each difference could as well have had the other sign. The p-value is the
    share of sign patterns whose sum is as far from zero as the one that was seen. Up to 30 non-zero differences,
    and for any number of them when all have the same size, every pattern counts; above that, 9,999 random ones, and
    below p = 0.01, where few of these are left to count, the tail is reckoned: `sign_flip_tail`.

    Args:
        differences: One for each question.
        seed: Of the random patterns.

    Raises:
        InvalidInputError: If there is no difference, or one is not finite.
        MissingExtraError: If SciPy is not installed and it is needed.

    Example:
        >>> a = [.9, .8, .7, .6, .9, .8, .75, .85]
        >>> b = [.7, .8, .6, .5, .7, .8, .70, .65]
        >>> sign_flip_test([x - y for x, y in zip(a, b)])
        SignFlip(p=0.03125, method='exact', nonzero=6)
    """
    import numpy as np

    column = np.asarray(differences, dtype=np.float64)
    if column.ndim != 1 or not len(column):
        raise InvalidInputError("differences is empty or no flat list; give one number for each question")
    return sign_flip_tests(column[:, None], seed=seed)[0]


def sign_flip_tests(table: np.ndarray, *, seed: int = 0) -> list[SignFlip]:
    """The test for every column of a table of differences; the random patterns are shared by the columns.

    Args:
        table: Questions by columns; 0 where a question is in no pair, which changes no sum.
        seed: Of the random patterns.

    Raises:
        InvalidInputError: If a difference is not finite.
    """
    import numpy as np

    if not np.isfinite(table).all():
        raise InvalidInputError(
            "a difference is not finite; leave out questions that one of both has no score for"
        )
    largest = np.abs(table).max(axis=0, initial=0.0)
    # scaled, so that what counts as the same sum does not depend on the metric's unit; sums of binary fractions
    # such as 0.9 - 0.7 differ from zero by rounding alone
    scaled = np.round(table / np.where(largest > 0, largest, 1.0), _CLOSE + 3)
    counts = np.count_nonzero(scaled, axis=0)
    found: dict[int, SignFlip] = {}
    large = []
    for number, nonzero in enumerate(counts.tolist()):
        column = scaled[:, number]
        column = column[column != 0]
        if not nonzero:
            found[number] = SignFlip(1.0, "none", 0)
        elif np.ptp(np.abs(column)) == 0:
            found[number] = SignFlip(_equal_sizes(int((column > 0).sum()), nonzero), "exact", nonzero)
        elif nonzero <= EXACT_LIMIT:
            found[number] = SignFlip(_every_pattern(column), "exact", nonzero)
        else:
            large.append(number)
    for start in range(0, len(large), _COLUMNS):
        block = large[start : start + _COLUMNS]
        for number, p in zip(block, _random_patterns(scaled[:, block], seed), strict=True):
            column = scaled[:, number]
            found[number] = (
                SignFlip(p, "permutation", int(counts[number]))
                if p >= _TAIL
                else SignFlip(sign_flip_tail(column[column != 0]), "saddlepoint", int(counts[number]))
            )
    return [found[number] for number in range(table.shape[1])]


def _every_pattern(column: np.ndarray) -> float:
    """Count the patterns in two halves: 2**15 sums each instead of 2**30."""
    import numpy as np

    def sums(part: np.ndarray) -> np.ndarray:
        found = np.zeros(1)
        for value in part:
            found = np.concatenate([found + value, found - value])
        return found

    half = len(column) // 2
    left, right = sums(column[:half]), np.sort(sums(column[half:]))
    seen = abs(float(column.sum())) - len(column) * 10.0**-_CLOSE
    if seen <= 0:
        return 1.0
    as_far = int((len(right) - np.searchsorted(right, seen - left, side="left")).sum())
    return min(1.0, 2 * as_far / 2.0 ** len(column))  # as many patterns lie on the other side


def _equal_sizes(positive: int, nonzero: int) -> float:
    """All differences have one size: then their number on one side is binomial."""
    import math

    smaller = min(positive, nonzero - positive)
    tail: int = sum(math.comb(nonzero, k) for k in range(smaller + 1))
    return min(1.0, float(2 * tail / 2**nonzero))


def _random_patterns(table: np.ndarray, seed: int) -> list[float]:
    """SciPy flips the signs of a vector of ones; its product with the table is the table with flipped signs."""
    import numpy as np

    stats = _scipy_stats()
    count = len(table)

    def sums(signs: np.ndarray, axis: int = -1) -> np.ndarray:
        return np.asarray(np.round(signs @ table, _CLOSE))

    tested = stats.permutation_test(
        (np.ones(count),), sums, permutation_type="samples", vectorized=True, n_resamples=_RESAMPLES,
        batch=max(1, 1_000_000 // count), axis=-1, random_state=np.random.default_rng(seed),
    )  # fmt: skip
    return [float(p) for p in np.minimum(tested.pvalue, 1.0)]


@dataclass(frozen=True)
class McNemar:
    """What McNemar's test says of hits.

    Args:
        p: Two-sided exact p-value.
        only_first: Questions that only the first gets.
        only_second: Questions that only the second gets.
    """

    p: float
    only_first: int
    only_second: int


def mcnemar_test(first: Sequence[bool | int], second: Sequence[bool | int]) -> McNemar:
    """McNemar's test in its exact form: do both get equally many questions (McNemar, 1947)?

    Only the questions that one of them gets and the other does not say anything; under the null each is equally
    likely to be the first one's.

    Args:
        first: For each question, whether the first gets it.
        second: Likewise, in the same order.

    Raises:
        InvalidInputError: If the lengths differ, there is no question, or something else than hits is given.
        MissingExtraError: If SciPy is not installed.

    Example:
        >>> test = mcnemar_test([1, 1, 1, 0, 0, 1, 0, 1, 1, 0], [1, 0, 1, 1, 0, 1, 1, 1, 0, 0])
        >>> test
        McNemar(p=1.0, only_first=2, only_second=2)
    """
    if len(first) != len(second) or not len(first):
        raise InvalidInputError(
            f"{len(first)} and {len(second)} hits were given; give as many of both, for the same questions"
        )
    for value in (*first, *second):
        if value not in (0, 1):
            raise InvalidInputError(f"{value!r} is no hit; give True or False (1 or 0)")
    only_first = sum(1 for x, y in zip(first, second, strict=True) if x and not y)
    only_second = sum(1 for x, y in zip(first, second, strict=True) if y and not x)
    return McNemar(mcnemar_p(only_first, only_second), only_first, only_second)


def mcnemar_p(only_first: int, only_second: int) -> float:
    """The exact p-value from the two counts of questions that only one of both gets."""
    if only_first + only_second == 0:
        return 1.0
    tested = _scipy_stats().binomtest(only_first, only_first + only_second, 0.5)
    return float(tested.pvalue)


def adjust(p_values: Sequence[float], correction: Correction = "holm") -> list[float]:
    """Correct p-values for their number; the order stays.

    Args:
        p_values: Of all tests that are looked at together.
        correction: ``holm``, ``bh`` or ``none``.

    Raises:
        InvalidInputError: If a value is no probability, or the correction is unknown.
        MissingExtraError: If SciPy is not installed and ``bh`` is wanted.

    Example:
        >>> [round(p, 4) for p in adjust([0.01, 0.04, 0.03, 0.005])]
        [0.03, 0.06, 0.06, 0.02]
    """
    check_correction(correction)
    values = [float(p) for p in p_values]
    for p in values:
        if not 0 <= p <= 1:  # nan is neither
            raise InvalidInputError(f"{p!r} is no p-value; give numbers from 0 to 1")
    if correction == "none" or not values:
        return values
    if correction == "bh":
        return [float(p) for p in _scipy_stats().false_discovery_control(values, method="bh")]
    order = sorted(range(len(values)), key=values.__getitem__)
    adjusted = [0.0] * len(values)
    largest = 0.0
    for step, index in enumerate(order):  # SciPy has no Holm
        largest = max(largest, min(1.0, (len(values) - step) * values[index]))
        adjusted[index] = largest
    return adjusted


def check_correction(correction: Any) -> None:
    """Refuse an unknown correction."""
    if correction not in get_args(Correction):
        raise InvalidInputError(
            f"correction is {correction!r:.80}; allowed are {', '.join(get_args(Correction))}"
        )


def _scipy_stats() -> Any:
    try:
        from scipy import stats
    except ImportError:
        raise MissingExtraError("eval", "testing the difference between pipelines") from None
    return stats
