"""One metric over all examples: its mean with an interval, and of how many examples it speaks."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from rag_kit.evaluation.cells import Cell
from rag_kit.evaluation.statistics import bootstrap_interval


@dataclass(frozen=True)
class Summary:
    """What one metric says of a whole run.

    ``n + undefined + errors + not_applicable + missing == total``.

    Args:
        mean: Mean of the cells that have a value; ``None`` without any.
        low: Lower end of its bootstrap interval; ``None`` below two values.
        high: Upper end.
        n: Cells that have a value.
        total: Examples of the set.
        undefined: Cells for which the metric has no value.
        errors: Cells that could not be computed.
        not_applicable: Cells whose example or output lacks what the metric reads.
        missing: Examples that the run has not come to yet.
    """

    mean: float | None
    low: float | None
    high: float | None
    n: int
    total: int
    undefined: int = 0
    errors: int = 0
    not_applicable: int = 0
    missing: int = 0

    @property
    def coverage(self) -> float:
        """Share of the examples that the mean speaks of."""
        return self.n / self.total if self.total else 0.0

    def to_json(self) -> dict[str, Any]:
        """As plain JSON."""
        return asdict(self)


def count_statuses(cells: Iterable[Cell | None]) -> dict[str, int]:
    """Status -> how many cells have it; missing ones have none.

    Example:
        >>> count_statuses([Cell.ok(1.0), None, Cell.error("time-out")])
        {'ok': 1, 'undefined': 0, 'error': 1, 'not_applicable': 0}
    """
    counts = {"ok": 0, "undefined": 0, "error": 0, "not_applicable": 0}
    for cell in cells:
        if cell is not None:
            counts[cell.status] += 1
    return counts


def summarize(
    cells: Iterable[Cell | None], total: int, *, level: float = 0.95, n: int = 10_000, seed: int = 0
) -> Summary:
    """Count the cells, take the mean of those that have a value.

    Args:
        cells: One for each example; ``None`` where it is missing.
        total: Examples of the set.
        level: Share of the interval.
        n: Resamples of the bootstrap.
        seed: Its seed.

    Example:
        >>> summarize([Cell.ok(1.0), Cell.ok(0.5), Cell.error("time-out")], 4).to_json()["mean"]
        0.75
    """
    known = [cell for cell in cells if cell is not None]
    counts = count_statuses(known)
    values = [float(cell.value) for cell in known if cell.value is not None]
    low, high = bootstrap_interval(values, level=level, n=n, seed=seed) if len(values) > 1 else (None, None)
    return Summary(
        mean=sum(values) / len(values) if values else None,
        low=low,
        high=high,
        n=len(values),
        total=total,
        undefined=counts["undefined"],
        errors=counts["error"],
        not_applicable=counts["not_applicable"],
        missing=total - sum(counts.values()),
    )
