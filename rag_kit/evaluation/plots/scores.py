"""Means with their intervals, quality against latency, and who gets what another one misses."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from rag_kit.errors import InvalidInputError
from rag_kit.evaluation.plots.drawing import WIDTH, Drawing, Plot, Scale, fit, nice_ticks, series, width_of

if TYPE_CHECKING:
    from rag_kit.evaluation.comparing.comparison import Comparison
    from rag_kit.evaluation.comparing.scores import Score

_ROW = 19.0


def scores_with_intervals(
    comparison: Comparison, *, metrics: Sequence[str] | None = None, language: str = "en"
) -> Plot:
    """A point and its interval for each pipeline, metric by metric; an open point speaks of some questions only.

    Args:
        comparison: What `compare` gave.
        metrics: Which; default: all.
        language: ``en``, ``zh`` or ``both``.

    Raises:
        InvalidInputError: If a metric was not compared, or the language is another one.
    """
    chosen = _chosen(comparison, metrics)
    names = comparison.pipelines
    left = min(165.0, max(width_of(name) for name in names) + 10)
    height = len(chosen) * (_ROW * (len(names) + 1) + 6) + 42
    drawing = Drawing(height, language)
    rows = [comparison.score(name, metric) for metric in chosen for name in names]
    right = WIDTH - max(width_of(f"{row.n}/{row.total}", 9) for row in rows) - 14
    across = Scale(_ticks(rows), left + 6, right)
    across.draw_across(drawing, 6, height - 34)
    y = 0.0
    for row in rows:
        number = names.index(row.pipeline)
        if not number:
            y += _ROW if y == 0 else _ROW + 6
            drawing.text(4, y, fit(row.metric, WIDTH - 8), font_weight="bold")
        y += _ROW
        drawing.text(left, y, fit(row.pipeline, left - 6), text_anchor="end")
        drawing.text(WIDTH - 4, y, f"{row.n}/{row.total}", "muted", text_anchor="end", font_size=9)
        if row.mean is None:
            drawing.say(left + 8, y, "svg_none")
            continue
        if row.low is not None and row.high is not None:
            drawing.line(across(row.low), y - 4, across(row.high), y - 4, series(number), 2.2)
        drawing.marker(across(row.mean), y - 4, number, hollow=row.n < row.total)
    level = {"level": f"{100 * comparison.level:g}"}
    drawing.say(4, height - 4, "svg_scores", level, font_size=9.5)
    return drawing.plot(f"{', '.join(chosen)}: {', '.join(names)}")


def latency_against_quality(
    comparison: Comparison, *, metric: str | None = None, language: str = "en"
) -> Plot:
    """Each pipeline by its typical latency and its mean; the line joins those that none beats in both.

    The line to the right reaches to the 95th percentile of the latency, the upright one is the interval of the mean.

    Args:
        comparison: What `compare` gave.
        metric: Which; default: the first one.
        language: ``en``, ``zh`` or ``both``.

    Raises:
        InvalidInputError: If the metric was not compared, or the language is another one.
    """
    chosen = _chosen(comparison, None if metric is None else [metric])[0]
    rows = [comparison.score(name, chosen) for name in comparison.pipelines]
    known = [row for row in rows if row.mean is not None and row.p50_seconds is not None]
    bottom = 220.0
    drawing = Drawing(bottom + 44 + 17 * len(rows), language)
    seconds = [value for row in known for value in (row.p50_seconds, row.p95_seconds) if value is not None]
    across = Scale(nice_ticks(0.0, max([*seconds, 1e-6]) * 1.05), 40, WIDTH - 12)
    upright = Scale(_ticks(known), bottom, 24)
    across.draw_across(drawing, 24, bottom)
    upright.draw_upright(drawing, 40, WIDTH - 12)
    drawing.text(4, 13, fit(chosen, WIDTH - 8), font_weight="bold")
    drawing.say(WIDTH - 12, bottom + 28, "svg_seconds", text_anchor="end", font_size=9.5)
    if not known:
        drawing.say(200, 120, "svg_no_point", text_anchor="middle")
    best = _unbeaten(known, chosen in comparison.lower_is_better)
    places = [(across(row.p50_seconds or 0), upright(row.mean or 0)) for row in best]
    for (x1, y1), (x2, y2) in pairwise(places):
        drawing.line(x1, y1, x2, y2, "muted", stroke_dasharray="4 3")
    for number, row in enumerate(rows):
        y = bottom + 48 + 17 * number
        drawing.marker(46, y - 4, number, hollow=row not in known)
        if row in known:
            x, mean = across(row.p50_seconds or 0), upright(row.mean or 0)
            drawing.line(x, mean, across(row.p95_seconds or row.p50_seconds or 0), mean, series(number))
            if row.low is not None and row.high is not None:
                drawing.line(x, upright(row.low), x, upright(row.high), series(number))
            drawing.marker(x, mean, number)
            drawing.text(58, y, fit(row.pipeline, WIDTH - 64))
        else:
            drawing.say(58, y, "svg_none_of", {"name": fit(row.pipeline, 200)})
    return drawing.plot(f"{chosen}: {', '.join(comparison.pipelines)}")


def complementarity_heatmap(
    comparison: Comparison, *, metric: str | None = None, language: str = "en"
) -> Plot:
    """Row by column: questions that the row's pipeline gets and the column's does not; outlined, what it gets in all.

    A row that is dark throughout adds to every other one. Below: what the best set to combine gains step by step.

    Args:
        comparison: What `compare` gave.
        metric: Which; default: the first one.
        language: ``en``, ``zh`` or ``both``.

    Raises:
        InvalidInputError: If the metric was not compared, or the language is another one.
    """
    chosen = _chosen(comparison, None if metric is None else [metric])[0]
    item = comparison.complementarity[chosen]
    count = len(item.pipelines)
    left = min(max(110.0, WIDTH - 44.0 * count), max(width_of(name) for name in item.pipelines) + 34)
    wide = min(64.0, (WIDTH - left - 4) / count)
    steps = item.greedy[:8]
    bottom = 24 + 26.0 * count
    drawing = Drawing(bottom + 42 + 16 * len(steps), language)
    largest = max((v for i, row in enumerate(item.matrix) for j, v in enumerate(row) if i != j), default=0)
    for i, row in enumerate(item.matrix):
        y = 24 + 26.0 * i
        drawing.text(4, y + 17, fit(f"{i + 1}. {item.pipelines[i]}", left - 6))
        drawing.text(left + wide * (i + 0.5), 16, str(i + 1), "muted", text_anchor="middle")
        for j, value in enumerate(row):
            shade = 0.0 if i == j or not largest else 0.55 * value / largest  # ink stays readable on it
            looks = {"outline": True} if i == j else {"opacity": shade}
            drawing.rect(left + wide * j + 1, y + 1, wide - 2, 24, "line" if i == j else "s1", **looks)
            colour = "muted" if i == j else "ink"
            drawing.text(
                left + wide * (j + 0.5),
                y + 17,
                str(value),
                colour,
                text_anchor="middle",
                font_size=min(11, wide / 2),
            )
    values = {"metric": fit(chosen, 140), "bound": f"{item.threshold:g}", "n": item.n, "total": item.total}
    drawing.say(4, bottom + 18, "svg_got", values, font_size=9.5)
    if item.union is not None:
        shares = {"union": f"{item.union:.0%}", "single": f"{item.best_single or 0:.0%}"}
        drawing.say(4, bottom + 34, "svg_union", shares, font_size=9.5)
    for place, step in enumerate(steps, start=1):
        parts = {
            "place": place,
            "name": fit(step.pipeline, 170),
            "n": step.gain,
            "share": f"{step.share:.0%}",
        }
        drawing.say(10, bottom + 35 + 16 * place, "svg_step", parts, "ink")
    return drawing.plot(f"{chosen}: {', '.join(item.pipelines)}")


def _chosen(comparison: Comparison, metrics: Sequence[str] | None) -> list[str]:
    """Metrics to plot; ``None``: all."""
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


def _ticks(rows: Sequence[Score]) -> list[float]:
    """From 0 to 1, and as far beyond as the values reach."""
    ends = [value for row in rows for value in (row.mean, row.low, row.high) if value is not None]
    return nice_ticks(min([0.0, *ends]), max([1.0, *ends]))


def _unbeaten(rows: Sequence[Score], lower: bool) -> list[Score]:
    """Those for which none is both quicker and better."""
    best: list[Score] = []
    sign = -1 if lower else 1
    for row in sorted(rows, key=lambda r: (r.p50_seconds or 0.0, -sign * (r.mean or 0.0))):
        if not best or sign * (row.mean or 0.0) > sign * (best[-1].mean or 0.0):
            best.append(row)
    return best
