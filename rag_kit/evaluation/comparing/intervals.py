"""Bootstrap intervals of many columns at once, each over the questions that it has a value for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rag_kit.evaluation.statistics import bootstrap_intervals

if TYPE_CHECKING:
    import numpy as np

Interval = tuple[float | None, float | None]


def column_intervals(
    table: np.ndarray, *, level: float = 0.95, n: int = 10_000, seed: int = 0
) -> list[Interval]:
    """Interval of the mean of each column; ``(None, None)`` below two values.

    Equal to `bootstrap_interval` of the column's values alone. Columns with equally many values share their draws,
    so twenty pipelines take little longer than one.

    Args:
        table: Questions by columns; NaN where there is no value.
        level: Share of the interval.
        n: Resamples.
        seed: Seed of the draws.

    Example:
        >>> import numpy as np
        >>> column_intervals(np.array([[1.0, np.nan], [1.0, 0.5], [1.0, np.nan]]))
        [(1.0, 1.0), (None, None)]
    """
    import numpy as np

    there = ~np.isnan(table)
    columns: dict[int, list[int]] = {}
    for column, count in enumerate(there.sum(axis=0).tolist()):
        columns.setdefault(count, []).append(column)
    found: list[Interval] = [(None, None)] * table.shape[1]
    for count, members in columns.items():
        if count < 2:
            continue
        values = {str(column): table[there[:, column], column] for column in members}
        for name, interval in bootstrap_intervals(values, level=level, n=n, seed=seed).items():
            found[int(name)] = interval
    return found
