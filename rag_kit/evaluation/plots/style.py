"""Colours, fonts and text of the plots: no global state, no formula is ever read out of a name."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from rag_kit.documents import clean_text
from rag_kit.errors import MissingExtraError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Colour -> CSS variable that stands for it in an SVG. Each colour is used for nothing else, so that it can be found
#: again; as they are they make a light plot.
VARIABLES = {
    "#1b1f23": "--ink",
    "#57606b": "--muted",
    "#d0d5db": "--line",
    "#fefefe": "--surface",
    "#1f6fb2": "--series-1",
    "#c2561b": "--series-2",
    "#2e8443": "--series-3",
    "#8a4fae": "--series-4",
    "#b3294e": "--series-5",
    "#13818a": "--series-6",
    "#8a6b12": "--series-7",
    "#5b5fc7": "--series-8",
}
INK, MUTED, LINE, SURFACE, *SERIES = VARIABLES

SIZE = 10.0
"""Size of the text, in points."""

_CJK = (
    "Noto Sans CJK SC", "Source Han Sans SC", "Microsoft YaHei", "PingFang SC", "Hiragino Sans GB", "SimHei",
    "WenQuanYi Micro Hei", "WenQuanYi Zen Hei", "Noto Sans CJK JP", "Noto Sans SC", "Arial Unicode MS",
)  # fmt: skip
_CJK_FILE = re.compile(
    r"(NotoSansCJK|SourceHanSans)[^/\\]*(Regular|Bold)[^/\\]*$|(msyh|simhei|wqy-microhei|wqy-zenhei)\.tt[cf]$"
)


def new_figure(width: float, height: float, label: str) -> tuple[Figure, Axes]:
    """A figure of its own, with one pair of axes; it belongs to no window and no global list.

    Args:
        width: Inches.
        height: Inches.
        label: What it shows, for people who do not see it.

    Raises:
        MissingExtraError: If matplotlib is not installed.
    """
    try:
        from rag_kit.evaluation.plots.shown import ShownFigure
    except ImportError:
        raise MissingExtraError("eval", "plotting") from None
    figure = ShownFigure(figsize=(width, height), facecolor=SURFACE, edgecolor=SURFACE, dpi=100)
    figure.set_label(label)
    return figure, add_axes(figure)


def add_axes(figure: Figure, place: tuple[float, float, float, float] | None = None) -> Axes:
    """One more pair of axes; ``place`` is left, bottom, width and height as shares of the figure."""
    axes = figure.add_subplot() if place is None else figure.add_axes(place)
    axes.set_facecolor(SURFACE)
    for side, spine in axes.spines.items():
        spine.set_visible(side in ("left", "bottom"))
        spine.set_edgecolor(LINE)
        spine.set_linewidth(1.0)
    axes.tick_params(colors=LINE, labelcolor=MUTED, labelsize=SIZE - 1, width=1.0, which="both")
    return axes


def key(figure: Figure, x: float, y: float, entries: Sequence[tuple[str, str | None, float]]) -> None:
    """What the colours mean, in one line: ``(text, colour or None, opacity)`` each."""
    from matplotlib.patches import Rectangle

    width, height = figure.get_size_inches()
    for text, colour, alpha in entries:
        if colour is not None:
            figure.add_artist(
                Rectangle((x, y - 0.05 / height), 0.12 / width, 0.12 / height, facecolor=colour, alpha=alpha,
                          linewidth=0, transform=figure.transFigure)
            )  # fmt: skip
            x += 0.18 / width
        figure.text(x, y, text, va="center", **text_style(fontsize=SIZE - 1, color=MUTED))
        x += (inches(text) + 0.15) / width


def text_style(**changes: Any) -> dict[str, Any]:
    """How every text is set: as it stands (no formula between dollar signs), in fonts that know Chinese."""
    style: dict[str, Any] = {
        "parse_math": False, "usetex": False, "fontfamily": list(font_families()), "fontsize": SIZE, "color": INK,
    }  # fmt: skip
    return {**style, **changes}


@cache
def font_families() -> tuple[str, ...]:
    """DejaVu Sans, which comes with matplotlib, and the first Chinese font that is installed."""
    from matplotlib import font_manager

    def first() -> list[str]:
        installed = {font.name for font in font_manager.fontManager.ttflist}
        return [name for name in _CJK if name in installed][:1]

    if not first():  # matplotlib keeps its list of fonts in a file, which may be older than the fonts
        for path in sorted(font_manager.findSystemFonts()):
            if _CJK_FILE.search(path):
                font_manager.fontManager.addfont(path)
    return ("DejaVu Sans", *first())


def label_axes(axes: Axes, *, x: str = "", y: str = "", title: str = "") -> None:
    """Names of the axes and the title."""
    axes.set_xlabel(safe(x, 80), **text_style(color=MUTED))
    axes.set_ylabel(safe(y, 80), **text_style(color=MUTED))
    if title:
        axes.set_title(safe(title, 100), loc="left", **text_style(fontsize=SIZE + 1))


def numbers(axes: Axes, *, x: Sequence[float] | None = None, y: Sequence[float] | None = None) -> None:
    """Set the ticks of an axis by hand: matplotlib's own labels may be formulas."""
    if x is not None:
        axes.set_xticks(list(x), [plain(value) for value in x], **text_style(color=MUTED, fontsize=SIZE - 1))
    if y is not None:
        axes.set_yticks(list(y), [plain(value) for value in y], **text_style(color=MUTED, fontsize=SIZE - 1))


def nice_ticks(low: float, high: float, count: int = 6) -> list[float]:
    """Round numbers from below ``low`` to above ``high``, about ``count`` of them.

    Example:
        >>> nice_ticks(0.0, 0.93)
        [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
    """
    import math

    if not high > low:
        low, high = low - 0.5, high + 0.5
    rough = (high - low) / max(1, count - 1)
    unit = 10.0 ** math.floor(math.log10(rough))
    step = next((m * unit for m in (1, 2, 2.5, 5) if m * unit >= rough * 0.999), 10 * unit)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [round(number * step, 12) for number in range(first, last + 1)]


def plain(value: float) -> str:
    """A number with a hyphen for minus and no formula."""
    return f"{value:.6g}"


def safe(text: object, width: int = 32) -> str:
    """A name as one line, what could steer or hide shown as escapes, cut to a width in columns."""
    line = clean_text(" ".join(str(text).split()))
    if columns(line) <= width:
        return line
    line = line[:width]  # each character is a column at least, and a name may be very long
    while line and columns(line) > width - 1:
        line = line[:-1]
    return f"{line}…"


def columns(text: str) -> int:
    """How wide a text is; a Chinese character counts two."""
    return sum(1 + (unicodedata.east_asian_width(character) in "WF") for character in text)


def inches(text: str) -> float:
    """About how wide a text is on paper; from its columns, as the reader may have other fonts than this machine."""
    return columns(text) * SIZE * 0.62 / 72


def series(number: int) -> str:
    """Colour of the n-th pipeline; from the ninth on they come again."""
    return SERIES[number % len(SERIES)]


MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "p", "h", "*")
"""Beside colour, so that nobody needs to tell colours apart."""
