"""Charts and diagrams (SmartArt) of Office documents."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, TypeAlias

from rag_kit.indexing.readers.cell_formats import shown
from rag_kit.indexing.readers.package import A
from rag_kit.indexing.readers.tables import markdown_table

C = "{http://schemas.openxmlformats.org/drawingml/2006/chart}"
DGM = "{http://schemas.openxmlformats.org/drawingml/2006/diagram}"
#: The labels of points by index, and of each series (its number and name) the values by index.
_Table: TypeAlias = tuple[dict[int, str], dict[tuple[int, str], dict[int, str]]]


def chart_texts(space: Any) -> Iterator[str]:
    """Yield the title of a chart, and the figures of each of its plots as a table; takes the root of its part."""
    root = space.find(f"{C}chart")
    title = root.find(f"{C}title")
    if title is not None and (text := " ".join("".join(title.itertext(f"{A}t")).split())):
        yield text
    for plot in root.iterfind(f"{C}plotArea/*"):
        for labels, columns in _tables(plot.iter(f"{C}ser")):
            points = sorted(set(labels).union(*columns.values()))
            rows = [[labels.get(n, ""), *(each.get(n, "") for each in columns.values())] for n in points]
            yield markdown_table([["", *(name for _, name in columns)], *rows])


def _tables(all_series: Iterable[Any]) -> list[_Table]:
    """Gather the series of a plot that have the same labels: those of a scatter plot may have each their own."""
    tables: list[_Table] = []
    for number, series in enumerate(all_series):
        own = _cached(series, "cat", "xVal")
        fitting = (
            each for each in tables if own.items() <= each[0].items() or each[0].items() <= own.items()
        )
        labels, columns = next(fitting, ({}, {}))
        if not columns:
            tables.append((labels, columns))
        labels.update(own)
        name = " ".join(_cached(series, "tx").values())
        columns[number, name] = _cached(series, "val", "yVal")
        if sizes := _cached(series, "bubbleSize"):
            columns[number, f"{name} (size)"] = sizes
    return tables


def _cached(series: Any, *names: str) -> dict[int, str]:
    """Return the cached texts of a part of a series, by index; those of several levels, the highest first."""
    part = next(series.iterchildren(*(f"{C}{name}" for name in names)), None)
    if part is None:
        return {}
    code = part.findtext(f".//{C}formatCode") or "General"
    lowest, *upper = [
        {int(point.get("idx")): _formatted(point, code) for point in level.iter(f"{C}pt")}
        for level in list(part.iter(f"{C}lvl")) or [part]
    ]
    for level in upper:  # each of its texts is for all points up to the next one
        for n, text in lowest.items():
            first = max((start for start in level if start <= n), default=-1)
            lowest[n] = f"{level.get(first, '')} {text}".strip()
    return lowest


def _formatted(point: Any, code: str) -> str:
    """Write a cached number by its number format; other texts stay."""
    text = point.findtext(f"{C}v") or ""
    try:
        return shown(float(text), point.get("formatCode") or code)
    except ValueError:
        return text


def diagram_text(root: Any) -> str:
    """Return the texts of a diagram as items of a list; takes the root of the part with its data."""
    texts = (
        " ".join("".join(node.text or "" for node in point.iter(f"{A}t")).split())
        for point in root.iter(f"{DGM}pt")
    )
    return "\n".join(f"- {text}" for text in texts if text)
