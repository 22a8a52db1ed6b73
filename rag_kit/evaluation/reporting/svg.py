"""Plots made fit for the page: only known elements and attributes are left, nothing in them can act or load.

The page's policy allows no ``style`` attributes, so declarations become presentation attributes, which a browser reads
the same way.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator

from rag_kit.documents import clean_text
from rag_kit.errors import InvalidInputError


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_SVG = "http://www.w3.org/2000/svg"
_XLINK = "{http://www.w3.org/1999/xlink}href"
_ELEMENTS = _names(
    "svg g path rect circle ellipse line polyline polygon text tspan title desc defs use clipPath marker image "
    "linearGradient radialGradient stop symbol"
)
_GEOMETRY = _names(
    "id class d x y x1 x2 y1 y2 cx cy r rx ry width height points transform viewBox preserveAspectRatio offset "
    "gradientUnits gradientTransform clipPathUnits markerWidth markerHeight markerUnits refX refY orient dx dy "
    "role aria-hidden aria-label aria-labelledby"
)
_LOOKS = _names(
    "fill fill-opacity fill-rule stroke stroke-width stroke-opacity stroke-linecap stroke-linejoin stroke-dasharray "
    "stroke-dashoffset stroke-miterlimit opacity font-size font-weight font-style text-anchor dominant-baseline "
    "clip-path clip-rule stop-color stop-opacity visibility paint-order letter-spacing"
)
_FONT_SIZE = re.compile(r"(?<![\w.])(\d+(?:\.\d+)?)px")
_REFERENCE = re.compile(r"url\(\s*['\"]?#([\w.:-]+)['\"]?\s*\)")
_BOX = re.compile(r"[-\d.]+ [-\d.]+ (\d+(?:\.\d+)?) (\d+(?:\.\d+)?)")
_DATA_IMAGE = re.compile(r"data:image/png;base64,[A-Za-z0-9+/=\s]*\Z")
_ENTITY = re.compile(r"<!(?:ENTITY|DOCTYPE\s[^>]*\[)", re.IGNORECASE)


def safe_svg(text: str, *, prefix: str, label: str = "") -> str:
    """Keep what draws; drop scripts, styles, links, handlers and addresses.

    Args:
        text: An SVG file.
        prefix: Put before every id, so that several plots can stand in one page.
        label: What a screen reader says of the plot.

    Raises:
        InvalidInputError: If it is no SVG.

    Example:
        >>> safe_svg('<svg xmlns="http://www.w3.org/2000/svg"><g id="a" onclick="x()" style="fill: red"/></svg>',
        ...          prefix="p1-", label="A plot")
        '<svg role="img" aria-label="A plot"><g id="p1-a" fill="red" /></svg>'
    """
    if _ENTITY.search(text):
        raise InvalidInputError("the SVG declares entities; give one without")
    try:
        root = ET.fromstring(text)
    except ET.ParseError as error:
        raise InvalidInputError(f"the SVG is not well formed: {error}") from error
    if root.tag != f"{{{_SVG}}}svg":
        raise InvalidInputError(f"the root element is {root.tag!r:.80}; give an SVG")
    made = _copy(root, prefix)
    made.attrib.pop("aria-labelledby", None)
    made.attrib.pop("class", None)
    if box := _BOX.fullmatch(made.get("viewBox", "")):  # points; the page shrinks it where it has less room
        made.set("width", f"{float(box[1]) * 4 / 3:.0f}")
        made.set("height", f"{float(box[2]) * 4 / 3:.0f}")
    made.set("role", "img")
    made.set("aria-label", clean_text(label))
    return ET.tostring(made, encoding="unicode")


def _copy(node: ET.Element, prefix: str) -> ET.Element:
    made = ET.Element(node.tag.removeprefix(f"{{{_SVG}}}"))
    for name, value in _attributes(node, prefix):
        made.set(name, value)
    if made.tag in ("text", "tspan", "title", "desc"):
        made.text = clean_text(node.text or "")
    for child in node:
        if isinstance(child.tag, str) and child.tag.removeprefix(f"{{{_SVG}}}") in _ELEMENTS:
            copied = _copy(child, prefix)
            if made.tag in ("text", "tspan"):
                copied.tail = clean_text(child.tail or "")
            made.append(copied)
    return made


def _attributes(node: ET.Element, prefix: str) -> Iterator[tuple[str, str]]:
    for name, value in node.attrib.items():
        if name == "style":
            yield from _declarations(value, prefix)
        elif name in ("href", _XLINK):
            if value.startswith("#"):
                yield "href", f"#{prefix}{value[1:]}"
            elif node.tag == f"{{{_SVG}}}image" and _DATA_IMAGE.match(value):
                yield "href", value
        elif name == "id":
            yield name, prefix + value
        elif name in _LOOKS:
            if shown := _look(value, prefix):
                yield name, shown
        elif name in _GEOMETRY:
            yield name, value


def _declarations(style: str, prefix: str) -> Iterator[tuple[str, str]]:
    for declaration in style.split(";"):
        name, _, value = declaration.partition(":")
        name, value = name.strip(), value.strip()
        if name == "font":  # the shorthand is no presentation attribute; the page sets the family
            if size := _FONT_SIZE.search(value):
                yield "font-size", size[1]
            if re.search(r"\b(?:bold|[6-9]00)\b", value.partition("px")[0]):
                yield "font-weight", "bold"
        elif name in _LOOKS and (shown := _look(value, prefix)):
            yield name, shown.removesuffix("px") if name == "font-size" else shown


def _look(value: str, prefix: str) -> str:
    """A value that names no address; references within the plot get its prefix."""
    shown = _REFERENCE.sub(lambda match: f"url(#{prefix}{match[1]})", value)
    addresses = shown.lower().replace(f"url(#{prefix}".lower(), "")
    return (
        ""
        if any(sign in addresses for sign in ("url(", "\\", "expression", "javascript", "@import", "/*"))
        else shown
    )
