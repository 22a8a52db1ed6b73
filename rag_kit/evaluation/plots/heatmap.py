"""Which pipeline gets what another one misses, as a table of shaded cells."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rag_kit.evaluation.plots import style
from rag_kit.evaluation.plots.naming import chosen_metric, numbered

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from rag_kit.evaluation.comparing.comparison import Comparison
    from rag_kit.evaluation.comparing.complementary import Complementarity

_CELL = 0.5
"""Inches of a cell."""
_LABELLED = 6
"""Pipelines whose names stand above their columns; where there are more, numbers do."""
_WIDEST = 1.3
"""Inches of a name up to which it stands above a column; where one is longer, numbers do."""


def complementarity_heatmap(comparison: Comparison, *, metric: str | None = None) -> Figure:
    """Row by column: questions that the row's pipeline gets and the column's does not; outlined, what it gets in all.

    A row that is dark throughout adds to every other one. Beside it: what the best set to combine gains step by step.

    Args:
        comparison: What `compare` gave.
        metric: Which; default: the first one.

    Raises:
        InvalidInputError: If the metric was not compared.
        MissingExtraError: If matplotlib is not installed.
    """
    chosen = chosen_metric(comparison, metric)
    item = comparison.complementarity[chosen]
    count = len(item.pipelines)
    labels, marks = numbered(item.pipelines, most=_LABELLED, length=28, widest=_WIDEST, behind=True)
    heads = marks or labels
    cell = max(_CELL, max(map(style.inches, heads)) + 0.1)
    left = max(style.inches(label) for label in labels) + 0.25
    lines = _steps(item)
    width = max(left + cell * count + 0.2, 5.5)
    below = 0.55 + 0.19 * len(lines)
    height = 0.5 + _CELL * count + below
    description = (
        f"{chosen}: questions that each of {', '.join(item.pipelines)} gets and another one does not"
    )
    figure, axes = style.new_figure(width, height, description)
    _cells(axes, item)
    axes.set_xlim(0, count)
    axes.set_ylim(count, 0)
    middles = [number + 0.5 for number in range(count)]
    axes.set_xticks(middles, heads, **style.text_style())
    axes.set_yticks(middles, labels, **style.text_style())
    axes.xaxis.tick_top()
    axes.tick_params(length=0)
    for spine in axes.spines.values():
        spine.set_visible(False)
    for number, line in enumerate(lines):
        figure.text(
            0.12 / width, (below - 0.25 - 0.19 * number) / height, line, va="top",
            **style.text_style(fontsize=style.SIZE - 1, color=style.MUTED),
        )  # fmt: skip
    figure.subplots_adjust(
        left=left / width, right=(left + cell * count) / width, top=1 - 0.4 / height, bottom=below / height
    )
    return figure


def _cells(axes: Axes, item: Complementarity) -> None:
    from matplotlib.patches import Rectangle

    largest = max((v for i, row in enumerate(item.matrix) for j, v in enumerate(row) if i != j), default=0)
    for i, row in enumerate(item.matrix):
        for j, value in enumerate(row):
            own = i == j
            shade = 0.0 if own or not largest else 0.55 * value / largest  # ink stays readable on it
            axes.add_patch(
                Rectangle(
                    (j + 0.04, i + 0.04), 0.92, 0.92, facecolor=style.SERIES[0], alpha=shade, linewidth=0
                )
            )
            if own:
                axes.add_patch(
                    Rectangle(
                        (j + 0.06, i + 0.06), 0.88, 0.88, fill=False, edgecolor=style.LINE, linewidth=1.2
                    )
                )
            axes.text(
                j + 0.5, i + 0.5, str(value), ha="center", va="center",
                **style.text_style(color=style.MUTED if own else style.INK),
            )  # fmt: skip


def _steps(item: Complementarity) -> list[str]:
    """The questions it stands on, and the best set to combine, in words."""
    word = "question" if item.total == 1 else "questions"
    lines = [
        f"{style.safe(item.metric, 40)}: a question is got from {item.threshold:g} on;",
        f"{item.n} of {item.total} {word} {'has' if item.n == 1 else 'have'} a value from all",
    ]
    if item.union is None:
        return lines
    lines.append(f"at least one gets {item.union:.0%}; the best one alone {item.best_single:.0%}; combine:")
    for place, step in enumerate(item.greedy[:8], start=1):
        lines.append(f"{place}. {style.safe(step.pipeline, 40)}: +{step.gain}, together {step.share:.0%}")
    return lines
