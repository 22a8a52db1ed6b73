"""What a plot shows, and how pipelines with long names are told apart in it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rag_kit.errors import InvalidInputError
from rag_kit.evaluation.plots import style

if TYPE_CHECKING:
    from rag_kit.evaluation.comparing.comparison import Comparison


def chosen_metrics(comparison: Comparison, metrics: Sequence[str] | None) -> list[str]:
    """Metrics to plot; ``None``: all.

    Raises:
        InvalidInputError: If one was not compared, or there is none.
    """
    if not hasattr(comparison, "metrics") or not hasattr(comparison, "pipelines"):
        raise InvalidInputError(f"comparison is a {type(comparison).__name__}; give what compare returned")
    if metrics is not None and (isinstance(metrics, (str, bytes)) or not isinstance(metrics, Sequence)):
        raise InvalidInputError(f"metrics is {metrics!r:.80}; give a list of names, or None")
    chosen = list(comparison.metrics if metrics is None else metrics)
    for metric in chosen:
        if metric not in comparison.metrics:
            raise InvalidInputError(
                f"the metric {metric!r:.80} was not compared; there are {', '.join(comparison.metrics)}"
            )
    if not chosen:
        raise InvalidInputError("there is no metric to plot; give at least one")
    return chosen


def chosen_metric(comparison: Comparison, metric: str | None) -> str:
    """The metric to plot; ``None``: the first one.

    Raises:
        InvalidInputError: If it was not compared.
    """
    return chosen_metrics(comparison, comparison.metrics[:1] if metric is None else [metric])[0]


def numbered(
    names: Sequence[str], *, most: int, length: int = 32, widest: float | None = None, behind: bool = False
) -> tuple[list[str], list[str]]:
    """Names as the plot lists them, and the numbers that stand for them inside; no numbers where names have room.

    Args:
        names: Of the pipelines.
        most: Up to so many have room.
        length: Columns to which a name is cut.
        widest: Inches up to which a name has room; ``None``: any.
        behind: Numbers stand behind the names instead of before them.

    Returns:
        Names, with their numbers where there are some; and the numbers, or an empty list.

    Example:
        >>> numbered(["bm25", "dense"], most=1)
        (['1. bm25', '2. dense'], ['1', '2'])
    """
    labels = [style.safe(name, length) for name in names]
    fits = widest is None or all(style.inches(label) <= widest for label in labels)
    if len(labels) <= most and fits:
        return labels, []
    numbers = [str(number) for number in range(1, len(labels) + 1)]
    pairs = zip(labels, numbers, strict=True)
    return [f"{label}  {mark}" if behind else f"{mark}. {label}" for label, mark in pairs], numbers
