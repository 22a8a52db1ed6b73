"""A figure as SVG for a page: text stays text, colours are CSS variables, names can do no harm."""

from __future__ import annotations

import io
import re
import threading
import warnings
from typing import TYPE_CHECKING, Any

from rag_kit.errors import InvalidInputError
from rag_kit.evaluation.plots.style import VARIABLES

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

    from matplotlib.figure import Figure

_SVG = "{http://www.w3.org/2000/svg}"
_XLINK = "{http://www.w3.org/1999/xlink}"
_LOCK = threading.Lock()
"""The settings of the SVG backend are matplotlib's globals; they are changed for the time of drawing only."""

_COLOUR = re.compile(r"#[0-9a-fA-F]{6}\b")
_URL = re.compile(r"url\(#([^)]+)\)")
_FONT = re.compile(r"font:\s*(?P<how>(?:[\w-]+ )*)(?P<size>[\d.]+)px [^;]*")
_FAMILY = re.compile(r"font-family:[^;]*")
_PAGE = "var(--font, system-ui, sans-serif)"
_PAINT = ("style", "fill", "stroke")
_NUMBER = re.compile(r"-?\d+\.\d{3,}")


def to_svg(figure: Figure, *, title: str | None = None, prefix: str = "plot") -> str:
    """Draw a figure as an ``<svg>`` element to put into an HTML page.

    Colours of this package become CSS variables with the light colour as fallback, such as
    ``var(--ink, #1b1f23)``, so a page may be light or dark; fonts are those of the page (``var(--font)``). There is
    no style sheet, no script, no link and no XML declaration in it.

    Args:
        figure: A figure of this package, or any other; other colours stay.
        title: What screen readers say; default: the figure's label.
        prefix: Begins every id in it, so that several plots can stand in one page.

    Raises:
        InvalidInputError: If the figure is none, or ``prefix`` is no word of letters, digits, ``-`` and ``_``.

    Example:
        >>> from rag_kit.evaluation.plots.style import new_figure
        >>> figure, axes = new_figure(3, 2, "<nothing>")
        >>> svg = to_svg(figure)
        >>> svg[:4], "var(--line, #d0d5db)" in svg, "&lt;nothing&gt;" in svg
        ('<svg', True, True)
    """
    if not hasattr(figure, "savefig"):
        raise InvalidInputError(f"figure is a {type(figure).__name__}; give a figure of Matplotlib")
    if not isinstance(prefix, str) or not re.fullmatch(r"[A-Za-z][\w-]{0,60}", prefix, re.ASCII):
        raise InvalidInputError(f"prefix is {prefix!r:.80}; give a word of letters, digits, - and _")
    from xml.etree import ElementTree

    root = ElementTree.fromstring(_draw(figure))
    for element in list(root):
        if element.tag == f"{_SVG}metadata":
            root.remove(element)
    _drop_styles(root)
    for element in root.iter():
        _rewrite(element, prefix)
    said = title if title is not None else str(figure.get_label() or "")
    _describe(root, said, prefix)
    ElementTree.register_namespace("", _SVG[1:-1])
    ElementTree.register_namespace("xlink", _XLINK[1:-1])
    return ElementTree.tostring(root, encoding="unicode")


def _draw(figure: Figure) -> bytes:
    import matplotlib as mpl
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    target = io.BytesIO()
    settings: Any = {
        "svg.fonttype": "none",
        "svg.hashsalt": "rag_kit",
        "svg.image_inline": True,
        "text.usetex": False,
    }
    canvas = figure.canvas
    with _LOCK, mpl.rc_context(settings), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from", category=UserWarning)
        try:
            figure_canvas: Any = FigureCanvasSVG(figure)
            figure_canvas.print_svg(target, metadata={"Date": None, "Creator": None})
        finally:
            figure.set_canvas(canvas)
    return target.getvalue()


def _drop_styles(root: Element) -> None:
    """matplotlib's style sheet is for every element of the page; here it is an attribute of the root."""
    for parent in root.iter():
        for child in list(parent):
            if child.tag == f"{_SVG}style":
                parent.remove(child)
    root.set("stroke-linejoin", "round")
    root.set("stroke-linecap", "butt")


def _rewrite(element: Element, prefix: str) -> None:
    for name, value in list(element.attrib.items()):
        if name in _PAINT:
            value = _COLOUR.sub(_variable, value)
            value = _FONT.sub(rf"font: \g<how>\g<size>px {_PAGE}", value)  # matplotlib before 3.11
            value = _FAMILY.sub(f"font-family: {_PAGE}", value)
        if name == "id":
            value = f"{prefix}-{value}"
        elif name in ("href", f"{_XLINK}href") and value.startswith("#"):
            value = f"#{prefix}-{value[1:]}"
        element.set(name, _URL.sub(rf"url(#{prefix}-\1)", value) if "url(#" in value else value)
    if "d" in element.attrib:
        element.set("d", _NUMBER.sub(lambda match: f"{float(match.group()):.2f}", element.attrib["d"]))


def _variable(match: re.Match[str]) -> str:
    colour = match.group().lower()
    return f"var({VARIABLES[colour]}, {colour})" if colour in VARIABLES else match.group()


def _describe(root: Element, said: str, prefix: str) -> None:
    from xml.etree import ElementTree

    from rag_kit.documents import clean_text

    for name in ("width", "height"):
        root.attrib.pop(name, None)
    root.set("role", "img")
    root.set("class", "plot")
    root.set("width", "100%")
    root.set("style", f"max-width: {float(root.get('viewBox', '0 0 400 0').split()[2]) * 4 / 3:.0f}px")
    root.set("aria-labelledby", f"{prefix}-title")
    title = ElementTree.Element(f"{_SVG}title", {"id": f"{prefix}-title"})
    title.text = clean_text(" ".join(said.split())) or "plot"
    root.insert(0, title)
