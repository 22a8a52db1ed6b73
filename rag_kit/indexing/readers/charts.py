"""Charts and diagrams (SmartArt) of Office documents."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from operator import itemgetter
from typing import Any, NamedTuple

from rag_kit.indexing.readers.cell_formats import shown
from rag_kit.indexing.readers.numbers import whole_number
from rag_kit.indexing.readers.package import A
from rag_kit.indexing.readers.tables import markdown_table

C = "{http://schemas.openxmlformats.org/drawingml/2006/chart}"
DGM = "{http://schemas.openxmlformats.org/drawingml/2006/diagram}"


class _Table(NamedTuple):
    """Series of a plot that have the same labels."""

    labels: dict[int, str]  # of the points, by index
    columns: dict[tuple[int, str], dict[int, str]]  # series (its number and name) -> its values by index


def chart_texts(space: Any) -> Iterator[str]:
    """Yield the title of a chart, and the figures of each of its plots as tables; ``space`` is the root of its XML."""
    root = space.find(f"{C}chart")
    title = root.find(f"{C}title")
    if title is not None and (text := " ".join("".join(title.itertext(f"{A}t")).split())):
        yield text
    for plot in root.iterfind(f"{C}plotArea/*"):
        for labels, columns in _tables(plot.iter(f"{C}ser")):
            indices = sorted(set(labels).union(*columns.values()))  # of points that have a label or a value
            rows = [[labels.get(n, ""), *(each.get(n, "") for each in columns.values())] for n in indices]
            yield markdown_table([["", *(name for _, name in columns)], *rows])


def _tables(all_series: Iterable[Any]) -> list[_Table]:
    """Gather the series of a plot into tables of those with the same labels; in a scatter plot, they may differ."""
    tables: list[_Table] = []
    for number, series in enumerate(all_series):
        labels = _texts_by_index(series, "cat", "xVal")
        own = labels.items()  # some of those of its table, or these and more
        fitting = (t for t in tables if own <= t.labels.items() or t.labels.items() <= own)
        if (table := next(fitting, None)) is None:
            table = _Table({}, {})
            tables.append(table)
        table.labels.update(labels)
        name = " ".join(node.text or "" for node in series.iterfind(f"{C}tx//{C}v"))
        table.columns[number, name] = _texts_by_index(series, "val", "yVal")
        if sizes := _texts_by_index(series, "bubbleSize"):
            table.columns[number, f"{name} (size)"] = sizes
    return tables


def _texts_by_index(series: Any, *names: str) -> dict[int, str]:
    """Return the texts by index that the file keeps for a series under the first of some names, "cat" or "val".

    Labels may have several levels, such as year and month: the text is that of all, the highest first.
    """
    part = next(series.iterchildren(*(f"{C}{name}" for name in names)), None)
    if part is None:
        return {}
    code = part.findtext(f".//{C}formatCode") or "General"
    lowest, *higher_levels = [
        {int(point.get("idx")): _formatted(point, code) for point in level.iter(f"{C}pt")}
        for level in list(part.iter(f"{C}lvl")) or [part]
    ]
    for level in higher_levels:  # whose texts, such as a year, are for all points up to the next one
        for index, text in lowest.items():
            start = max((start for start in level if start <= index), default=-1)
            lowest[index] = f"{level.get(start, '')} {text}".strip()
    return lowest


def _formatted(point: Any, code: str) -> str:
    """Write a cached number by its number format; texts stay, also those that look like one."""
    text = point.findtext(f"{C}v") or ""
    if point.getparent().tag not in (f"{C}numCache", f"{C}numLit"):
        return text
    try:
        return shown(float(text), point.get("formatCode") or code)
    except ValueError:
        return text


def diagram_text(root: Any) -> str:
    """Return the texts of a diagram as a list, in the order of its connections; ``root`` is that of its data."""
    links = (link for link in root.iter(f"{DGM}cxn") if link.get("type", "parOf") == "parOf")
    above = {link.get("destId"): (link.get("srcId"), whole_number(link.get("srcOrd"), 0)) for link in links}

    def place(name: str) -> list[int]:
        parent, number = above.get(name, ("", 0))
        return [*place(parent), number] if parent else []

    # texts with the numbers of the points above each, and its own among those beside it
    points = [(place(node.get("modelId")), "".join(node.itertext(f"{A}t"))) for node in root.iter(f"{DGM}pt")]
    points.sort(key=itemgetter(0))
    texts = (
        f"{'  ' * (len(numbers) - 1)}- {' '.join(text.split())}" for numbers, text in points if text.strip()
    )
    return "\n".join(texts)
