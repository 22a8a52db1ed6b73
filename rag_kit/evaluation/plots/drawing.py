"""A small canvas that becomes SVG: text stays text, and every colour is a class that a page may recolour."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any

from rag_kit.documents.tables import columns, cut, one_line
from rag_kit.errors import InvalidInputError
from rag_kit.evaluation._files import as_path, check_target, write_file
from rag_kit.evaluation.reporting.words import say

#: Class of an element -> its colour where no style sheet of a page gives another one.
COLOURS = {
    "ink": "#191c20", "muted": "#595f69", "line": "#d5d5cf", "surface": "#ffffff", "s1": "#0b67a8", "s2": "#c14e00",
    "s3": "#00785a", "s4": "#a4407f", "s5": "#7a6a00", "s6": "#4d4fb3", "s7": "#2c7d8c", "s8": "#6b6f76",
}  # fmt: skip
WIDTH = 360
"""Units of every drawing: it is readable on a phone as it is, and twice as large elsewhere."""
SIZE = 11.0
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
        """Write it as an SVG file; one that is there is replaced.

        Raises:
            InvalidInputError: If the name does not end in ``.svg``, or nothing can be written there.
        """
        target = as_path(path, "path")
        if target.suffix.lower() != ".svg":
            raise InvalidInputError(
                f"{str(target)!r:.80} does not end in .svg; a plot is written as SVG alone"
            )
        check_target(target)
        write_file(target, lambda file: file.write(self.svg.encode("utf-8")))
        return target

    def _repr_svg_(self) -> str:
        return self.svg


class Drawing:
    """Collects elements. Coordinates are units from the left and from the top.

    Args:
        height: Units.
        language: ``en``, ``zh``, or ``both`` for a page that shows one of them at a time.

    Raises:
        InvalidInputError: If the language is another one.
    """

    def __init__(self, height: float, language: str) -> None:
        if language not in ("en", "zh", "both"):
            raise InvalidInputError(f"language is {language!r:.80}; allowed are 'en', 'zh' and 'both'")
        self.height = height
        self._languages = ("en", "zh") if language == "both" else (language,)
        self._parts: list[str] = []

    def rect(self, x: float, y: float, width: float, height: float, colour: str, **looks: Any) -> None:
        """A filled rectangle; with ``outline=True`` the outline of one."""
        place = {"x": x, "y": y, "width": width, "height": height, "rx": 2}
        stroke = looks.pop("outline", False)
        self._add("rect", colour, place | looks, stroke=stroke)

    def line(
        self, x1: float, y1: float, x2: float, y2: float, colour: str, width: float = 1, **looks: Any
    ) -> None:
        """A straight line."""
        place = {"x1": x1, "y1": y1, "x2": x2, "y2": y2, "stroke-width": width}
        self._add("line", colour, place | looks, stroke=True)

    def marker(self, x: float, y: float, number: int, *, hollow: bool = False) -> None:
        """The sign of the n-th pipeline: shape and colour, so that nobody needs to tell colours apart."""
        shape = {"d": _MARKERS[number % len(_MARKERS)], "transform": f"translate({x:.1f} {y:.1f})"}
        if hollow:
            self._add("path", "surface", shape)
            shape["stroke-width"] = "1.8"
        self._add("path", series(number), shape, stroke=hollow)

    def text(self, x: float, y: float, text: str, colour: str = "ink", **looks: Any) -> None:
        """A text that begins at a place; with ``text_anchor`` its ``middle`` or its ``end`` is there."""
        place = {"x": x, "y": y, "font_size": SIZE}
        self._add("text", colour, place | looks, escape(one_line(text)))

    def say(
        self, x: float, y: float, key: str, values: Any = None, colour: str = "muted", **looks: Any
    ) -> None:
        """A text of the kit, in the language of the drawing or in both."""
        for language in self._languages:
            if len(self._languages) > 1:
                looks["lang"] = "zh-Hans" if language == "zh" else "en"
            self.text(x, y, say(key, language, **(values or {})), colour, **looks)

    def plot(self, title: str) -> Plot:
        """What was drawn, on a ground of its own: Jupyter may be dark and the page that shows it light."""
        shown = escape(one_line(title))
        return Plot(
            f'<svg xmlns="http://www.w3.org/2000/svg" class="plot" role="img" viewBox="0 0 {WIDTH} {self.height:.0f}" '
            f'width="{1.5 * WIDTH:.0f}" font-family="system-ui, sans-serif"><title>{shown}</title>'
            f'<rect class="surface" color="{COLOURS["surface"]}" fill="currentColor" width="{WIDTH}" '
            f'height="{self.height:.0f}"/>{"".join(self._parts)}</svg>',
            one_line(title),
        )

    def _add(
        self, tag: str, colour: str, attributes: Mapping[str, Any], inner: str = "", *, stroke: bool = False
    ) -> None:
        paint = 'fill="none" stroke="currentColor"' if stroke else 'fill="currentColor"'
        rest = " ".join(
            f'{name.replace("_", "-")}="{round(value, 2) if isinstance(value, float) else value}"'
            for name, value in attributes.items()
        )
        end = f">{inner}</{tag}>" if inner else "/>"
        self._parts.append(f'<{tag} class="{colour}" color="{COLOURS[colour]}" {paint} {rest}{end}')


def series(number: int) -> str:
    """Colour of the n-th pipeline; from the ninth on they come again."""
    return f"s{number % 8 + 1}"


def width_of(text: str, size: float = SIZE) -> float:
    """About how wide a text is, from its columns: the reader may have other fonts than this machine."""
    return columns(text) * size * 0.58


def fit(name: str, width: float) -> str:
    """A name as one line that fits into a width."""
    return cut(one_line(name), max(4, int(width / (SIZE * 0.58))), "…")


def nice_ticks(low: float, high: float, count: int = 6) -> list[float]:
    """Round numbers from below ``low`` to above ``high``, about ``count`` of them.

    Example:
        >>> nice_ticks(0.0, 0.93)
        [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
    """
    if not high > low:
        low, high = low - 0.5, high + 0.5
    rough = (high - low) / max(1, count - 1)
    unit = 10.0 ** math.floor(math.log10(rough))
    step = next((m * unit for m in (1, 2, 2.5, 5) if m * unit >= rough * 0.999), 10 * unit)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [round(number * step, 12) for number in range(first, last + 1)]


@dataclass(frozen=True)
class Scale:
    """From values to places on the drawing, with round numbers as ticks."""

    ticks: list[float]
    start: float
    end: float

    def __call__(self, value: float) -> float:
        """The place of a value."""
        low, high = self.ticks[0], self.ticks[-1]
        return self.start + (self.end - self.start) * (value - low) / (high - low)

    def draw_across(self, drawing: Drawing, top: float, bottom: float, *, grid: bool = True) -> None:
        """The ticks below, each with a line up to the top."""
        for tick in self.ticks:
            drawing.line(self(tick), top if grid else bottom - 3, self(tick), bottom, "line")
            drawing.text(
                self(tick), bottom + 13, f"{tick:.6g}", "muted", text_anchor="middle", font_size=SIZE - 1
            )

    def draw_upright(self, drawing: Drawing, left: float, right: float) -> None:
        """The ticks at the left, each with a line to the right."""
        for tick in self.ticks:
            drawing.line(left, self(tick), right, self(tick), "line")
            drawing.text(
                left - 5, self(tick) + 4, f"{tick:.6g}", "muted", text_anchor="end", font_size=SIZE - 1
            )
