"""What the report reads of results: the names alone, so that anything with these fields can be shown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from rag_kit.evaluation.cells import Cell
from rag_kit.evaluation.examples import Example
from rag_kit.evaluation.outputs import Output


class SummaryLike(Protocol):
    """One metric over all questions: mean, interval, and how many questions it stands on."""

    @property
    def mean(self) -> float | None:
        """Mean of the cells that have a value."""

    @property
    def low(self) -> float | None:
        """Lower end of the interval."""

    @property
    def high(self) -> float | None:
        """Upper end of the interval."""

    @property
    def n(self) -> int:
        """Cells with a value."""

    @property
    def total(self) -> int:
        """All cells."""

    @property
    def undefined(self) -> int:
        """Cells for which the metric has no value."""

    @property
    def errors(self) -> int:
        """Cells that could not be computed."""

    @property
    def not_applicable(self) -> int:
        """Cells whose question or pipeline lacks what the metric reads."""


class RowLike(Protocol):
    """One question, what the pipeline gave, and what each metric says."""

    @property
    def example(self) -> Example:
        """The question."""

    @property
    def output(self) -> Output:
        """What the pipeline gave."""

    @property
    def cells(self) -> Mapping[str, Cell]:
        """Metric name -> cell."""


class ResultsLike(Protocol):
    """One pipeline on one set."""

    @property
    def name(self) -> str:
        """The pipeline's name."""

    @property
    def rows(self) -> Sequence[RowLike]:
        """One a question."""

    @property
    def metrics(self) -> Iterable[Any]:
        """Names of the metrics, or objects with a ``name``."""

    @property
    def manifest(self) -> Mapping[str, Any]:
        """Settings, versions, hashes; plain JSON without a key."""

    def summary(self) -> Mapping[str, SummaryLike]:
        """Metric name -> summary."""


def metric_names(results: ResultsLike) -> list[str]:
    """Names of the metrics, in the order of the results."""
    return [str(getattr(metric, "name", metric)) for metric in results.metrics]


def why_empty(results: ResultsLike, name: str) -> str | None:
    """The most frequent reason of a metric that was asked for and has no value at all; ``None`` where it has one."""
    cells = [cell for row in results.rows if (cell := row.cells.get(name)) is not None]
    if not cells or any(cell.value is not None for cell in cells):
        return None
    reasons = Counter(cell.reason for cell in cells if cell.reason)
    return reasons.most_common(1)[0][0] if reasons else None


def quantile(values: Sequence[float], share: float) -> float | None:
    """The value below which a share of the values lies, between neighbours by straight line; None of nothing.

    Example:
        >>> quantile([1.0, 2.0, 3.0], 0.5), quantile([], 0.5)
        (2.0, None)
    """
    ordered = sorted(values)
    if not ordered:
        return None
    place = share * (len(ordered) - 1)
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)
