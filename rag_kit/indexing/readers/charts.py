"""Charts and diagrams (SmartArt) of Office documents."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rag_kit.indexing.readers.cell_formats import shown
from rag_kit.indexing.readers.package import A
from rag_kit.indexing.readers.tables import markdown_table

C = "{http://schemas.openxmlformats.org/drawingml/2006/chart}"
DGM = "{http://schemas.openxmlformats.org/drawingml/2006/diagram}"


def chart_texts(space: Any) -> Iterator[str]:
    """Yield the title of a chart, and the figures of each of its plots as a table; takes the root of its part."""
    root = space.find(f"{C}chart")
    title = root.find(f"{C}title")
    if title is not None and (text := " ".join("".join(title.itertext(f"{A}t")).split())):
        yield text
    for plot in root.iterfind(f"{C}plotArea/*"):
        all_series = list(plot.iter(f"{C}ser"))
        if not all_series:
            continue
        names = [" ".join(_cached(series, "tx").values()) for series in all_series]
        labels = max((_cached(series, "cat", "xVal") for series in all_series), key=len)
        values = [_cached(series, "val", "yVal") for series in all_series]
        points = sorted(set(labels).union(*values))
        rows = [[labels.get(n, ""), *(each.get(n, "") for each in values)] for n in points]
        yield markdown_table([["", *names], *rows])


def _cached(series: Any, *names: str) -> dict[int, str]:
    """Return the cached texts of a part of a series, by index; of several levels the lowest."""
    part = next(series.iterchildren(*(f"{C}{name}" for name in names)), None)
    if part is None:
        return {}
    code = part.findtext(f".//{C}formatCode") or "General"
    points = reversed(list(part.iter(f"{C}pt")))
    return {int(point.get("idx")): _formatted(point.findtext(f"{C}v") or "", code) for point in points}


def _formatted(text: str, code: str) -> str:
    """Write a cached number by its number format; other texts stay."""
    try:
        return shown(float(text), code)
    except ValueError:
        return text


def diagram_text(root: Any) -> str:
    """Return the texts of a diagram as items of a list; takes the root of the part with its data."""
    texts = (
        " ".join("".join(node.text or "" for node in point.iter(f"{A}t")).split())
        for point in root.iter(f"{DGM}pt")
    )
    return "\n".join(f"- {text}" for text in texts if text)
