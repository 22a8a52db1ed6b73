"""PowerPoint slides, through python-pptx: one part a slide, with its notes, tables, charts and diagrams."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import zip_longest
from typing import Any

from rag_kit.indexing.readers.cell_formats import shown
from rag_kit.indexing.readers.package import Package, parse_xml
from rag_kit.indexing.readers.parts import Context, Part, Unreadable
from rag_kit.indexing.readers.slide_text import A, line_text, list_text
from rag_kit.indexing.readers.tables import fill_spans, markdown_table

_C = "{http://schemas.openxmlformats.org/drawingml/2006/chart}"
_DGM = "{http://schemas.openxmlformats.org/drawingml/2006/diagram}"
_R = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"
_GROUP_DEPTH = 20  # groups of shapes within each other


def read_pptx(data: bytes, context: Context) -> Iterator[Part]:
    """One part a slide: title as heading, then the shapes from top to bottom."""
    import pptx
    from pptx.exc import PythonPptxError

    package = Package(data, context.limits)
    title = package.title()
    try:
        deck = pptx.Presentation(package.repacked())
        count = len(deck.slides)
    except (PythonPptxError, KeyError, ValueError, AttributeError) as error:
        raise Unreadable(f"its slides cannot be found ({error})") from error
    context.check(count, "slides", "max_pages")
    read: set[str] = set()
    for number, slide in enumerate(deck.slides, 1):
        if str(slide.part.partname) in read:  # a list that repeats a slide, which PowerPoint never writes
            continue
        read.add(str(slide.part.partname))
        heading = slide.shapes.title
        heading_text = line_text(heading.text_frame) if heading is not None else ""
        title = title or heading_text
        blocks = [f"# {heading_text}"] if heading_text else []
        blocks += _read_shapes(
            (shape for shape in slide.shapes if heading is None or shape.shape_id != heading.shape_id), 0
        )
        notes = slide.notes_slide.notes_text_frame if slide.has_notes_slide else None
        if notes is not None and (notes_text := list_text(notes)):
            blocks.append("Notes: " + notes_text)
        yield Part("\n\n".join(blocks), {"page": number, "title": title})


def _read_shapes(shapes: Iterable[Any], depth: int) -> Iterator[str]:
    """The texts of shapes, from top to bottom, those of groups within."""
    ordered = sorted(shapes, key=lambda shape: (shape.top or 0, shape.left or 0))
    for shape in ordered:
        if getattr(shape, "shapes", None) is not None and depth < _GROUP_DEPTH:
            yield from _read_shapes(shape.shapes, depth + 1)
        elif getattr(shape, "has_table", False):
            yield _read_table(shape.table)
        elif getattr(shape, "has_chart", False):
            yield from _read_chart(shape.chart)
        elif shape.has_text_frame:
            if text := list_text(shape.text_frame, shape):
                yield text
        elif shape.element.find(f".//{_DGM}relIds") is not None:
            yield from _read_diagram(shape)
        else:
            description = shape.element.find(".//{*}cNvPr")
            text = (description.get("descr") or "") if description is not None else ""
            if text.strip():
                yield " ".join(text.split())


def _read_table(table: Any) -> str:
    rows = (
        [
            (line_text(cell.text_frame), int(cell.span_width), int(cell.span_height))
            for cell in row.cells
            if not cell.is_spanned
        ]
        for row in table.rows
    )
    return markdown_table(fill_spans(rows))


def _read_chart(chart: Any) -> Iterator[str]:
    if chart.has_title and chart.chart_title.has_text_frame:
        yield line_text(chart.chart_title.text_frame)
    for plot in chart.plots:
        names = [str(series.name or "") for series in plot.series]
        columns = (_series_texts(series) for series in plot.series)
        rows = zip_longest(map(str, plot.categories), *columns, fillvalue="")
        yield markdown_table([["", *names], *rows])


def _series_texts(series: Any) -> list[str]:
    """The values of a chart's series in its number format."""
    code = series._element.findtext(f"{_C}val//{_C}formatCode") or "General"
    return ["" if value is None else shown(value, code) for value in series.values]


def _read_diagram(shape: Any) -> Iterator[str]:
    """The words of a SmartArt diagram, which python-pptx does not read itself."""
    reference = shape.element.find(f".//{_DGM}relIds")
    identifier = reference.get(f"{_R}dm")
    try:
        blob = shape.part.related_part(identifier).blob
    except KeyError:
        return
    for point in parse_xml(blob, "diagram").iter(f"{_DGM}pt"):
        text = " ".join("".join(node.text or "" for node in point.iter(f"{A}t")).split())
        if text:
            yield f"- {text}"
