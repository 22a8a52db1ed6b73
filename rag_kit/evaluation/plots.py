"""Plots of a comparison as SVG, for Jupyter, files and pages: means with intervals, latency against quality."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any

from rag_kit.documents.display import columns, cut, one_line
from rag_kit.errors import InvalidInputError
from rag_kit.evaluation._files import write_file
from rag_kit.evaluation.comparison import Comparison
from rag_kit.evaluation.comparison_scores import Score
from rag_kit.evaluation.wording import say
from rag_kit.indexing.files import as_path

#: Class of an element -> its colour where no style sheet of a page gives another one.
COLOURS = {
    "ink": "#191c20", "muted": "#595f69", "line": "#d5d5cf", "surface": "#ffffff", "s1": "#0b67a8", "s2": "#c14e00",
    "s3": "#00785a", "s4": "#a4407f", "s5": "#7a6a00", "s6": "#4d4fb3", "s7": "#2c7d8c", "s8": "#6b6f76",
}  # fmt: skip
WIDTH = 360  # units of every drawing: it is readable on a phone as it is, and twice as large elsewhere
_SIZE = 11.0  # of letters; one is on average 0.58 times as wide
_SMALL = 9.5
_ROW = 19.0  # height of a line of text
_LEGEND_ROW = 17
_MIDDLE = 4  # units from the baseline of a text up to the middle of its letters
_MARKERS = (
    "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0 -8 0Z", "M-3.6 -3.6H3.6V3.6H-3.6Z", "M0 -4.6L4.4 3.4H-4.4Z",
    "M0 -5L4.4 0L0 5L-4.4 0Z", "M0 4.6L4.4 -3.4H-4.4Z", "M-4.4 -1.5H-1.5V-4.4H1.5V-1.5H4.4V1.5H1.5V4.4H-1.5V1.5H-4.4Z",
    "M3.4 0L-4.6 4.4V-4.4Z", "M-3.4 0L4.6 4.4V-4.4Z",
)  # fmt: skip


@dataclass(frozen=True)
class Plot:
    """A drawing as SVG. It is an image as the last expression of a Jupyter cell.

    Each colour stands in the file, and as a class (``ink``, ``muted``, ``line``, ``surface``, ``s1`` to ``s8``) whose
    ``color`` the style sheet of a page may set, such as ``.plot .ink { color: white }``.

    Attributes:
        svg: An ``<svg>`` element, for a file or for a page: no script, no link, no style sheet.
        title: What it shows.
    """

    svg: str = field(repr=False)
    title: str

    def save(self, path: Path | str) -> Path:
        """Write an ``.svg`` file, also over an existing one.

        Raises:
            InvalidInputError: If the name does not end so, or nothing can be written there.
        """
        target = as_path(path, "path")
        if target.suffix.lower() != ".svg":
            raise InvalidInputError(f"{str(target)!r:.80} does not end in .svg, as the file of a plot does")
        write_file(target, lambda file: file.write(self.svg.encode("utf-8")))
        return target

    def _repr_svg_(self) -> str:
        return self.svg


def scores_with_intervals(
    comparison: Comparison, *, metrics: Sequence[str] | None = None, language: str = "en"
) -> Plot:
    """Plot each pipeline's mean and interval, metric by metric; an open point covers some questions only.

    Args:
        comparison: What `compare` gave.
        metrics: Which; default: all.
        language: ``en``, ``zh`` or ``both``.

    Raises:
        InvalidInputError: If a metric was not compared, or the language is another one.
    """
    chosen = _check_metrics(comparison, metrics)
    names = comparison.pipelines
    rows = [comparison.score(name, metric) for metric in chosen for name in names]
    left = min(165.0, max(map(_text_width, names)) + 10)  # end of the names
    gap, legend_height = 6, 42  # between metrics; ticks and explanation below
    drawing = _Drawing(len(chosen) * (_ROW * (len(names) + 1) + gap) + legend_height, language)
    right = WIDTH - max(_text_width(f"{row.n}/{row.total}") for row in rows) - 12
    across = _value_scale(rows, left + 6, right)
    across.draw_across(drawing, 6, drawing.height - 34)
    y = -float(gap)
    for position, row in enumerate(rows):
        number = position % len(names)  # of the pipeline
        if number == 0:  # the rows of a metric begin
            y += _ROW + gap
            drawing.text(4, y, _fit_text(row.metric, WIDTH - 8), font_weight="bold")
        y += _ROW
        drawing.text(left, y, _fit_text(row.pipeline, left - 6), text_anchor="end")
        drawing.text(WIDTH - 4, y, f"{row.n}/{row.total}", "muted", text_anchor="end", font_size=_SMALL)
        if row.mean is None:
            drawing.say(left + 8, y, "svg_none")
            continue
        middle = y - _MIDDLE
        if row.low is not None and row.high is not None:
            drawing.line(across(row.low), middle, across(row.high), middle, _series(number), stroke_width=2.2)
        drawing.marker(across(row.mean), middle, number, hollow=row.n < row.total)
    drawing.say(4, drawing.height - 4, "svg_scores", font_size=_SMALL, level=f"{100 * comparison.level:g}")
    return drawing.plot(f"{', '.join(chosen)}: {', '.join(names)}")


def latency_against_quality(
    comparison: Comparison, *, metric: str | None = None, language: str = "en"
) -> Plot:
    """Plot each pipeline by its typical latency and its mean.

    The line to the right reaches to the 95th percentile of the latency, the upright one is the interval of the mean.
    ``metric`` is the first one by default; else as `scores_with_intervals`.
    """
    (chosen,) = _check_metrics(comparison, [comparison.metrics[0] if metric is None else metric])
    rows = [comparison.score(name, chosen) for name in comparison.pipelines]
    complete = [row for row in rows if row.mean is not None and row.p50_seconds is not None]
    left, right, top, bottom = 40, WIDTH - 12, 24, 220.0  # of the field with the points; the legend is below
    marker_x, name_x = 46, 58  # in the legend
    drawing = _Drawing(bottom + 44 + _LEGEND_ROW * len(rows), language)
    slowest = max((row.p95_seconds or 0.0 for row in complete), default=0.0)
    across = _Scale(_round_ticks(0.0, 1.05 * slowest or 1.0), left, right)  # ticks need a range above 0
    upright = _value_scale(complete, bottom, top)
    across.draw_across(drawing, top, bottom)
    upright.draw_upright(drawing, left, right)
    drawing.text(4, 13, _fit_text(chosen, WIDTH - 8), font_weight="bold")
    drawing.say(right, bottom + 28, "svg_seconds", text_anchor="end", font_size=_SMALL)
    if not complete:
        drawing.say(200, 120, "svg_no_point", text_anchor="middle")
    for number, row in enumerate(rows):  # its line of the legend, and its point
        legend_y = bottom + 48 + _LEGEND_ROW * number
        drawing.marker(marker_x, legend_y - _MIDDLE, number, hollow=row not in complete)
        if row not in complete:
            drawing.say(name_x, legend_y, "svg_none_of", name=_fit_text(row.pipeline, 200))
            continue
        x, y = across(row.p50_seconds or 0), upright(row.mean or 0)
        drawing.line(x, y, across(row.p95_seconds or 0), y, _series(number))
        if row.low is not None and row.high is not None:
            drawing.line(x, upright(row.low), x, upright(row.high), _series(number))
        drawing.marker(x, y, number)
        drawing.text(name_x, legend_y, _fit_text(row.pipeline, WIDTH - name_x - 6))
    return drawing.plot(f"{chosen}: {', '.join(comparison.pipelines)}")


class _Drawing:
    """Collects the elements of a drawing. Coordinates are units from the left and from the top."""

    def __init__(self, height: float, language: str) -> None:
        if language not in ("en", "zh", "both"):
            raise InvalidInputError(f"language is {language!r:.80}; allowed are 'en', 'zh' and 'both'")
        self.height = height
        self._languages = ("en", "zh") if language == "both" else (language,)
        self._parts: list[str] = []

    def line(self, x1: float, y1: float, x2: float, y2: float, colour: str, **looks: Any) -> None:
        """Draw a straight line."""
        self._append("line", colour, {"x1": x1, "y1": y1, "x2": x2, "y2": y2} | looks, stroke=True)

    def marker(self, x: float, y: float, number: int, *, hollow: bool = False) -> None:
        """Draw the sign of the n-th pipeline, with a shape and colour of its own."""
        shape = {"d": _MARKERS[number % len(_MARKERS)], "transform": f"translate({x:.1f} {y:.1f})"}
        if hollow:
            self._append("path", "surface", shape)  # covers the lines within the outline
            shape["stroke-width"] = "1.8"
        self._append("path", _series(number), shape, stroke=hollow)

    def text(self, x: float, y: float, text: str, colour: str = "ink", **looks: Any) -> None:
        """Draw a text that begins at a point, or with ``text_anchor`` has its ``middle`` or its ``end`` there."""
        self._append("text", colour, {"x": x, "y": y, "font_size": _SIZE} | looks, escape(one_line(text)))

    def say(self, x: float, y: float, key: str, colour: str = "muted", **values: Any) -> None:
        """Draw a text of the kit; ``values`` fill it in, but ``text_anchor`` and ``font_size`` are attributes."""
        attributes: dict[str, Any] = {k: values.pop(k) for k in ("text_anchor", "font_size") if k in values}
        for language in self._languages:
            if len(self._languages) > 1:
                attributes["lang"] = "zh-Hans" if language == "zh" else "en"
            self.text(x, y, say(key, language, **values), colour, **attributes)

    def plot(self, title: str) -> Plot:
        """Return the drawing as SVG, on a light background because that of Jupyter may be dark."""
        return Plot(
            f'<svg xmlns="http://www.w3.org/2000/svg" class="plot" role="img" viewBox="0 0 {WIDTH} {self.height:.0f}" '
            f'width="{1.5 * WIDTH:.0f}" font-family="system-ui, sans-serif"><title>{escape(one_line(title))}</title>'
            f'<rect class="surface" color="{COLOURS["surface"]}" fill="currentColor" width="{WIDTH}" '
            f'height="{self.height:.0f}"/>{"".join(self._parts)}</svg>',
            one_line(title),
        )

    def _append(
        self, tag: str, colour: str, attributes: dict[str, Any], text: str = "", *, stroke: bool = False
    ) -> None:
        """Add an element with its class and colour; with ``stroke`` draw only its outline."""
        paint = 'fill="none" stroke="currentColor"' if stroke else 'fill="currentColor"'
        opening = f'<{tag} class="{colour}" color="{COLOURS[colour]}" {paint}'
        for name, value in attributes.items():
            rounded = round(value, 2) if isinstance(value, float) else value
            opening += f' {name.replace("_", "-")}="{rounded}"'
        self._parts.append(f"{opening}>{text}</{tag}>")


@dataclass(frozen=True)
class _Scale:
    """Maps values to coordinates, with round numbers as ticks."""

    ticks: list[float]
    start: float
    end: float

    def __call__(self, value: float) -> float:
        low, high = self.ticks[0], self.ticks[-1]
        return self.start + (self.end - self.start) * (value - low) / (high - low)

    def draw_across(self, drawing: _Drawing, top: float, bottom: float) -> None:
        """Draw this as the horizontal axis: its numbers below, and a grid line up from each."""
        for tick in self.ticks:
            x = self(tick)
            drawing.line(x, top, x, bottom, "line")
            drawing.text(x, bottom + 13, f"{tick:.6g}", "muted", text_anchor="middle", font_size=10)

    def draw_upright(self, drawing: _Drawing, left: float, right: float) -> None:
        """Draw this as the vertical axis: its numbers at the left, and a grid line to the right of each."""
        for tick in self.ticks:
            y = self(tick)
            drawing.line(left, y, right, y, "line")
            drawing.text(left - 5, y + 4, f"{tick:.6g}", "muted", text_anchor="end", font_size=10)


def _value_scale(rows: Sequence[Score], start: float, end: float) -> _Scale:
    """Make a scale from 0 to 1, or longer if the values and intervals of the rows reach beyond that."""
    values = [value for row in rows for value in (row.mean, row.low, row.high) if value is not None]
    return _Scale(_round_ticks(min([0.0, *values]), max([1.0, *values])), start, end)


def _round_ticks(low: float, high: float) -> list[float]:
    """Return about six round numbers at equal distances, from ``low`` or below to ``high`` or above."""
    rough_step = (high - low) / 5
    unit = 10.0 ** math.floor(math.log10(rough_step))  # the power of ten below
    # the small tolerances are for rounding errors of floats
    step = next((n * unit for n in (1, 2, 2.5, 5) if n * unit >= rough_step * 0.999), 10 * unit)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [round(number * step, 12) for number in range(first, last + 1)]


def _series(number: int) -> str:
    return f"s{number % 8 + 1}"


def _text_width(text: str) -> float:
    """Estimate the width of a text from its columns: the reader may have other fonts."""
    return columns(text) * _SIZE * 0.58


def _fit_text(name: str, width: float) -> str:
    return cut(one_line(name), max(4, int(width / (_SIZE * 0.58))), "…")


def _check_metrics(comparison: Comparison, metrics: Sequence[str] | None) -> list[str]:
    """Return the metrics to plot, all for ``None``; refuse those that were not compared."""
    compared = comparison.metrics
    chosen = list(compared if metrics is None else metrics)
    if not chosen or not set(chosen) <= set(compared):
        raise InvalidInputError(f"{metrics!r:.120} was not compared; give names out of {', '.join(compared)}")
    return chosen
