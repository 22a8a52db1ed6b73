"""Means with their intervals, and quality against latency."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rag_kit.evaluation.plots import style
from rag_kit.evaluation.plots.naming import chosen_metric, chosen_metrics, numbered

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from rag_kit.evaluation.comparing.comparison import Comparison
    from rag_kit.evaluation.comparing.scores import Score

_LABELLED = 8
"""Pipelines whose names stand beside their points; more are numbered, with the names below each other."""


def scores_with_intervals(comparison: Comparison, *, metrics: Sequence[str] | None = None) -> Figure:
    """A point and its interval for each pipeline, metric by metric; an open point speaks of some questions only.

    Args:
        comparison: What `compare` gave.
        metrics: Which; default: all.

    Raises:
        InvalidInputError: If a metric was not compared.
        MissingExtraError: If matplotlib is not installed.
    """
    chosen = chosen_metrics(comparison, metrics)
    names = comparison.pipelines
    rows = len(chosen) * (len(names) + 1)
    labels = [style.safe(name) for name in names]
    left = max(1.2, *(style.inches(label) + 0.3 for label in labels))
    width, height = left + 5.2, 0.9 + 0.26 * rows
    figure, axes = style.new_figure(
        width, height, f"{', '.join(chosen)} of {', '.join(names)}, with intervals"
    )
    plotted = [row for metric in chosen for row in (comparison.score(name, metric) for name in names)]
    low, high = _range(plotted)
    y = 0.0
    ticks: list[tuple[float, str]] = []
    for metric in chosen:
        axes.text(
            low, y, style.safe(metric, 60), va="center", ha="left", **style.text_style(fontweight="bold")
        )
        for number, (name, label) in enumerate(zip(names, labels, strict=True)):
            y += 1
            ticks.append((y, label))
            _interval(axes, comparison.score(name, metric), y, number, low)
        y += 1
    axes.set_ylim(y - 0.4, -0.6)
    numbers = style.nice_ticks(low, high)
    axes.set_xlim(numbers[0], numbers[-1] + (numbers[-1] - numbers[0]) * 0.14)
    style.numbers(axes, x=numbers)
    axes.set_yticks([place for place, _ in ticks], [label for _, label in ticks], **style.text_style())
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="x", color=style.LINE, linewidth=0.6)
    axes.set_axisbelow(True)
    style.label_axes(
        axes, x=f"mean, {100 * comparison.level:g}% interval; at the right: questions with a value"
    )
    figure.subplots_adjust(left=left / width, right=0.98, top=1 - 0.1 / height, bottom=0.6 / height)
    return figure


def latency_against_quality(comparison: Comparison, *, metric: str | None = None) -> Figure:
    """Each pipeline by its typical latency and its mean; the line joins those that none beats in both.

    The bar to the right reaches to the 95th percentile of the latency, the upright one is the interval of the mean.

    Args:
        comparison: What `compare` gave.
        metric: Which; default: the first one.

    Raises:
        InvalidInputError: If the metric was not compared.
        MissingExtraError: If matplotlib is not installed.
    """
    chosen = chosen_metric(comparison, metric)
    rows = [comparison.score(name, chosen) for name in comparison.pipelines]
    known = [
        (number, row)
        for number, row in enumerate(rows)
        if row.mean is not None and row.p50_seconds is not None
    ]
    labels, marks = numbered(comparison.pipelines, most=_LABELLED)
    legend = max((style.inches(label) + 0.4 for label in labels), default=0.0)
    width, height = 5.6 + legend, max(3.6, 0.7 + 0.2 * len(rows))
    figure, axes = style.new_figure(
        width, height, f"{chosen} against latency of {', '.join(comparison.pipelines)}"
    )
    for number, row in known:
        _point(axes, row, number, marks[number] if marks else "")
    _frontier(axes, [row for _, row in known], chosen in comparison.lower_is_better)
    _axes_of_latency(axes, [row for _, row in known])
    _names(axes, labels, [row.mean is None or row.p50_seconds is None for row in rows])
    style.label_axes(axes, x="seconds a question: median, to the 95th percentile", y=chosen)
    figure.subplots_adjust(left=0.8 / width, right=5.3 / width, top=1 - 0.15 / height, bottom=0.55 / height)
    return figure


def _range(rows: Sequence[Score]) -> tuple[float, float]:
    """From 0 to 1, and as far beyond as the values reach."""
    ends = [value for row in rows for value in (row.mean, row.low, row.high) if value is not None]
    return min([0.0, *ends]), max([1.0, *ends])


def _interval(axes: Axes, row: Score, y: float, number: int, low: float) -> None:
    colour = style.series(number)
    coverage = f"{row.n}/{row.total}"
    axes.annotate(
        coverage, (1, y), xycoords=("axes fraction", "data"), xytext=(-4, 0), textcoords="offset points",
        va="center", ha="right", **style.text_style(color=style.MUTED, fontsize=style.SIZE - 2),
    )  # fmt: skip
    if row.mean is None:
        axes.text(low, y, "no value", va="center", **style.text_style(color=style.MUTED, fontstyle="italic"))
        return
    if row.low is not None and row.high is not None:
        axes.plot([row.low, row.high], [y, y], color=colour, linewidth=2.0, solid_capstyle="round")
    axes.plot(
        [row.mean], [y], marker=style.MARKERS[number % len(style.MARKERS)], markersize=6.5, color=colour,
        markeredgewidth=1.5, markerfacecolor=colour if row.n == row.total else style.SURFACE, linestyle="none",
    )  # fmt: skip


def _point(axes: Axes, row: Score, number: int, label: str) -> None:
    assert row.mean is not None and row.p50_seconds is not None
    colour = style.series(number)
    if row.p95_seconds is not None:
        axes.plot(
            [row.p50_seconds, row.p95_seconds], [row.mean, row.mean], color=colour, linewidth=1.0, alpha=0.5
        )
    if row.low is not None and row.high is not None:
        axes.plot([row.p50_seconds] * 2, [row.low, row.high], color=colour, linewidth=1.0, alpha=0.5)
    axes.plot(
        [row.p50_seconds], [row.mean], marker=style.MARKERS[number % len(style.MARKERS)], markersize=8,
        color=colour, linestyle="none", zorder=3,
    )  # fmt: skip
    if label:
        axes.annotate(
            label, (row.p50_seconds, row.mean), xytext=(6, 5), textcoords="offset points",
            **style.text_style(fontsize=style.SIZE - 2),
        )  # fmt: skip


def _frontier(axes: Axes, rows: Sequence[Score], lower: bool) -> None:
    """Those for which none is both quicker and better."""
    best: list[tuple[float, float]] = []
    sign = -1 if lower else 1
    for row in sorted(rows, key=lambda r: (r.p50_seconds or 0.0, -sign * (r.mean or 0.0))):
        if not best or sign * (row.mean or 0.0) > sign * best[-1][1]:
            best.append((row.p50_seconds or 0.0, row.mean or 0.0))
    if len(best) > 1:
        axes.plot(
            [x for x, _ in best], [y for _, y in best], color=style.MUTED, linewidth=1.0, linestyle=(0, (4, 3)),
            zorder=1,
        )  # fmt: skip


def _axes_of_latency(axes: Axes, rows: Sequence[Score]) -> None:
    seconds = [value for row in rows for value in (row.p50_seconds, row.p95_seconds) if value is not None]
    x = style.nice_ticks(0.0, max([*seconds, 1e-6]) * 1.05)
    y = style.nice_ticks(*_range(rows))
    axes.set_xlim(x[0], x[-1])
    axes.set_ylim(y[0] - 0.02 * (y[-1] - y[0]), y[-1] + 0.02 * (y[-1] - y[0]))
    style.numbers(axes, x=x, y=y)
    axes.grid(color=style.LINE, linewidth=0.6)
    axes.set_axisbelow(True)
    if not rows:
        axes.text(0.5, 0.5, "no pipeline has both a value and a time", transform=axes.transAxes, ha="center",
                  **style.text_style(color=style.MUTED))  # fmt: skip


def _names(axes: Axes, labels: Sequence[str], absent: Sequence[bool]) -> None:
    """Names beside the plot; not a legend of matplotlib's, whose texts would read formulas."""
    step = min(0.075, 0.98 / max(1, len(labels)))
    for number, (label, missing) in enumerate(zip(labels, absent, strict=True)):
        y = 0.97 - step * number
        axes.plot(
            [1.04], [y], marker=style.MARKERS[number % len(style.MARKERS)], color=style.series(number), markersize=6,
            transform=axes.transAxes, clip_on=False, linestyle="none", alpha=0.4 if missing else 1.0,
        )  # fmt: skip
        text = f"{label} (no value)" if missing else label
        axes.text(
            1.07, y, text, transform=axes.transAxes, va="center", **style.text_style(fontsize=style.SIZE - 1)
        )
