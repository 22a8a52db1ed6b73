"""How sure was the pipeline where it was right, and where it was wrong?"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from rag_kit.errors import InvalidInputError
from rag_kit.evaluation.plots import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from rag_kit.evaluation.comparing.comparison import Comparison
    from rag_kit.evaluation.runs import Results, Row

Confidence = Callable[["Row"], float | None]

_WIDTH, _HEIGHT = 3.6, 2.1
_COLUMNS = 3
_FIRST = "score of the first passage"


def confidence_histogram(
    results: Results | Comparison | Iterable[Results],
    *,
    metric: str | None = None,
    confidence: str | Confidence = "auto",
    threshold: float = 0.5,
    bins: int = 10,
) -> Figure:
    """Questions by confidence, those that were got and those that were not stacked; one panel for each pipeline.

    Where both kinds stand side by side at the right, a threshold on the confidence cannot tell them apart.

    Args:
        results: Of one or several runs, or what `compare` gave.
        metric: Says whether a question was got; default: the first one.
        confidence: Where the confidence comes from: ``score`` (the first passage's score), ``extra:NAME`` (a number
            that the pipeline gave under that name), the name of a metric, or a function of a row; ``auto``:
            ``extra:confidence`` where there is one, else ``score``, else the metric itself.
        threshold: A question was got from this value of the metric on.
        bins: Bars of a panel, 2 to 100.

    Raises:
        InvalidInputError: If the metric is not there, or a setting is out of range.
        MissingExtraError: If matplotlib is not installed.
    """
    named = _runs(results)
    chosen = _metric([run for _, run in named], metric)
    if isinstance(bins, bool) or not isinstance(bins, int) or not 2 <= bins <= 100:
        raise InvalidInputError(f"bins is {bins!r:.80}; give a whole number from 2 to 100")
    if isinstance(threshold, bool) or not isinstance(threshold, (int, float)) or not abs(threshold) < 1e300:
        raise InvalidInputError(f"threshold is {threshold!r:.80}; give a number")
    what, read = _source([run for _, run in named], chosen, confidence)
    panels = [(name, [(read(row), row.cells.get(chosen)) for row in run.rows]) for name, run in named]
    scales = _scales(
        [[value for value, _ in pairs if value is not None] for _, pairs in panels], ranked=what == _FIRST
    )
    columns = min(_COLUMNS, len(panels))
    rows = -(-len(panels) // columns)
    width, height = 0.4 + _WIDTH * columns, 0.55 + _HEIGHT * rows
    label = f"{what} of questions that were got and were not, by {chosen}: {', '.join(name for name, _ in panels)}"
    figure, first = style.new_figure(width, height, label)
    figure.delaxes(first)
    for number, (name, pairs) in enumerate(panels):
        axes = style.add_axes(
            figure,
            (
                (0.4 + _WIDTH * (number % columns) + 0.1) / width,
                (height - _HEIGHT * (number // columns + 1) + 0.35) / height,
                (_WIDTH - 0.35) / width,
                (_HEIGHT - 0.75) / height,
            ),
        )
        _panel(axes, name, pairs, scales[number], bins, threshold)
    style.key(
        figure, 0.4 / width, 0.18 / height,
        [(f"{style.safe(chosen, 30)} from {threshold:g}", style.SERIES[0], 1.0), ("below", style.SERIES[1], 1.0),
         ("no value", style.MUTED, 0.5), (f"across: {style.safe(what, 40)}", None, 1.0)],
    )  # fmt: skip
    return figure


def _runs(results: Any) -> list[tuple[str, Results]]:
    from rag_kit.evaluation.comparing.comparison import Comparison
    from rag_kit.evaluation.runs import Results

    if isinstance(results, Comparison):
        return list(zip(results.pipelines, results.results, strict=True))
    runs = (
        [results] if isinstance(results, Results) else list(results) if isinstance(results, Iterable) else []
    )
    if not runs or not all(isinstance(run, Results) for run in runs):
        raise InvalidInputError(
            f"results is a {type(results).__name__}; give Results, several, or a Comparison"
        )
    return [(run.name, run) for run in runs]


def _metric(runs: Sequence[Results], metric: str | None) -> str:
    present = list(dict.fromkeys(name for run in runs for name in run.metrics))
    if not present or (metric is not None and metric not in present):
        raise InvalidInputError(
            f"the results have no metric {metric!r:.80}; there are {', '.join(present) or 'none'}"
        )
    return present[0] if metric is None else metric


def _source(runs: Sequence[Results], metric: str, confidence: str | Confidence) -> tuple[str, Confidence]:
    if callable(confidence):
        function = confidence
        return "confidence", lambda row: _number(function(row))
    present = {name for run in runs for name in run.metrics}
    if confidence == "auto":
        for name in ("extra:confidence", "score"):
            what, read = _source(runs, metric, name)
            if any(read(row) is not None for run in runs for row in run.rows):
                return what, read
        confidence = metric
    if not isinstance(confidence, str):
        raise InvalidInputError(f"confidence is {confidence!r:.80}; give a name, or a function of a row")
    if confidence == "score":
        return _FIRST, _first_score
    if confidence.startswith("extra:"):
        key = confidence.removeprefix("extra:")
        return key, lambda row: _number(row.output.extra.get(key))
    if confidence not in present:
        raise InvalidInputError(
            f"confidence is {confidence!r:.80}; give 'auto', 'score', 'extra:NAME', a function of a row, or one of "
            f"the metrics {', '.join(sorted(present))}"
        )
    name = confidence
    return name, lambda row: _number(getattr(row.cells.get(name), "value", None))


def _first_score(row: Row) -> float | None:
    first = (row.output.passages or (None,))[0]
    return None if first is None else _number(first.provenance.get("score"))


def _number(value: Any) -> float | None:
    right = isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
    return float(value) if right else None


def _scales(panels: Sequence[Sequence[float]], *, ranked: bool) -> list[list[float]]:
    """Ticks of each panel: one scale for all where they speak of the same thing.

    Scores of rankings (``ranked``) may not: BM25 gives 30 where reciprocal rank fusion gives 0.03. Where the largest
    of one panel is below a tenth of another's, each gets its own scale. What else lies within 0 to 1 is shown there.
    """
    together = [value for values in panels for value in values]
    largest = [max(map(abs, values)) for values in panels if values]
    if not ranked and _in_unit(together):
        return [style.nice_ticks(0.0, 1.0, 5)] * len(panels)
    if not ranked or not largest or min(largest) > 0.1 * max(largest):
        return [_ticks(together)] * len(panels)
    return [_ticks(values) for values in panels]


def _ticks(values: Sequence[float]) -> list[float]:
    return style.nice_ticks(min([0.0, *values]), max([0.0, *values]) or 1.0, 5)


def _in_unit(values: Sequence[float]) -> bool:
    return all(0 <= value <= 1 for value in values)


def _panel(
    axes: Axes, name: str, pairs: Sequence[tuple[float | None, Any]], ticks: Sequence[float], bins: int,
    threshold: float,
) -> None:  # fmt: skip
    low, high = ticks[0], ticks[-1]
    counts = [[0] * bins for _ in range(3)]
    for value, cell in pairs:
        if value is None:
            continue
        place = min(bins - 1, max(0, int((value - low) / (high - low) * bins)))
        known = cell is not None and cell.value is not None
        counts[2 if not known else 0 if cell.value >= threshold else 1][place] += 1
    width = (high - low) / bins
    bottoms = [0] * bins
    for row, colour, alpha in zip(
        counts, (style.SERIES[0], style.SERIES[1], style.MUTED), (1, 1, 0.5), strict=True
    ):
        for place, count in enumerate(row):
            if count:
                axes.bar(
                    low + width * (place + 0.5), count, width * 0.9, bottoms[place], color=colour, alpha=alpha,
                    linewidth=0,
                )  # fmt: skip
                bottoms[place] += count
    top = max([*bottoms, 1])
    without = sum(value is None for value, _ in pairs)
    y = [tick for tick in style.nice_ticks(0, top, 4) if tick == int(tick)]
    axes.set_xlim(low, high)
    axes.set_ylim(0, max(top, y[-1]) * 1.02)
    style.numbers(axes, x=ticks, y=y)
    note = f", {without} without" if without else ""
    style.label_axes(axes, title=f"{style.safe(name, 26)} ({len(pairs) - without}{note})")
