"""Confidence intervals by the bootstrap."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rag_kit.errors import InvalidInputError

if TYPE_CHECKING:
    import numpy as np

_BLOCK = 4_000_000
"""Drawn positions held at once: 32 MB of int64, whatever the number of queries."""
_MANY = 24
"""Columns above which one product of matrices is quicker than looking up the drawn values of each."""


def bootstrap_interval(
    values: Sequence[float] | np.ndarray, *, level: float = 0.95, n: int = 10_000, seed: int = 0
) -> tuple[float, float]:
    """Percentile bootstrap interval of a mean (Efron, 1979).

    For two systems on the same queries give the differences: the interval is then the paired one.

    Args:
        values: One value a query.
        level: Share of the interval, between 0 and 1.
        n: Resamples.
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
    return bootstrap_intervals({"value": values}, level=level, n=n, seed=seed)["value"]


def bootstrap_intervals(
    columns: Mapping[str, Sequence[float] | np.ndarray],
    *,
    level: float = 0.95,
    n: int = 10_000,
    seed: int = 0,
) -> dict[str, tuple[float, float]]:
    """Intervals of several columns of one table of queries; each resample draws whole rows.

    Args:
        columns: Name -> one value a query; all of the same length.
        level: As in :func:`bootstrap_interval`.
        n: As in :func:`bootstrap_interval`.
        seed: As in :func:`bootstrap_interval`.

    Returns:
        Name -> lower and upper end.

    Raises:
        InvalidInputError: As :func:`bootstrap_interval`, or if the columns differ in length.
    """
    import numpy as np

    if not _is_number(level) or not 0 < level < 1:
        raise InvalidInputError(f"level is {level!r:.80}; give a number between 0 and 1, such as 0.95")
    if type(n) is not int or not 1 <= n <= 1_000_000:
        raise InvalidInputError(f"n is {n!r:.80}; give from 1 to 1000000 resamples")
    if type(seed) is not int or seed < 0:
        raise InvalidInputError(f"seed is {seed!r:.80}; give a whole number from 0 on")
    if not isinstance(columns, Mapping) or not all(hasattr(each, "__len__") for each in columns.values()):
        raise InvalidInputError(f"the values are {columns!r:.80}; give lists of numbers")
    if not columns:
        return {}
    lengths = {len(column) for column in columns.values()}
    if len(lengths) != 1:
        raise InvalidInputError(
            f"the columns have different lengths {sorted(lengths)}; give one value a query"
        )
    (count,) = lengths
    if count == 0:
        raise InvalidInputError("there are no values; an interval needs at least one")
    try:
        table = np.array([np.asarray(column, dtype=np.float64) for column in columns.values()])
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidInputError(f"a value is no number ({error}); give a list of numbers") from error
    if not np.isfinite(table).all():
        raise InvalidInputError("a value is not finite; leave out what has no score instead of giving nan")

    generator = np.random.default_rng(seed)
    means = np.empty((len(table), n))
    step = max(1, _BLOCK // count)
    for start in range(0, n, step):
        stop = min(n, start + step)
        drawn = generator.integers(0, count, size=(stop - start, count))
        if len(table) > _MANY:
            means[:, start:stop] = table @ _times_drawn(drawn, count).T / count
            continue
        for row, column in enumerate(table):
            means[row, start:stop] = column[drawn].mean(axis=1)
    tail = (1 - level) / 2
    ends = np.quantile(means, [tail, 1 - tail], axis=1)
    return {name: (float(ends[0, i]), float(ends[1, i])) for i, name in enumerate(columns)}


def _times_drawn(drawn: np.ndarray, count: int) -> np.ndarray:
    """How often each resample holds each row: resamples by rows."""
    import numpy as np

    places = drawn + (np.arange(len(drawn)) * count)[:, None]
    return (
        np.bincount(places.ravel(), minlength=len(drawn) * count)
        .reshape(len(drawn), count)
        .astype(np.float64)
    )


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
