"""PowerPoint slides, through python-pptx: one part a slide, with its notes, tables, charts and diagrams."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

from rag_kit.concurrency.notes import write_note
from rag_kit.indexing.readers.cell_formats import shown
from rag_kit.indexing.readers.figures import Figures
from rag_kit.indexing.readers.package import Package, parse_xml
from rag_kit.indexing.readers.parts import LEFT_OUT, Context, Part, Unreadable, leave_out
from rag_kit.indexing.readers.slide_text import A, line_text, list_text
from rag_kit.indexing.readers.tables import fill_spans, markdown_table

_DGM = "{http://schemas.openxmlformats.org/drawingml/2006/diagram}"
_C = "{http://schemas.openxmlformats.org/drawingml/2006/chart}"
_SERIES = {"name": "tx", "labels": "cat xVal", "values": "val yVal"}
_TYPES = "[Content_Types].xml"
_PRESENTATION = b"application/vnd.openxmlformats-officedocument.presentationml.presentation.main+xml"
# slide shows and templates, with programs or without, are presentations
_MAIN_TYPE = re.compile(
    rb"application/vnd\.[\w.-]+\.(?:presentation|slideshow|template)(?:\.macroEnabled)?\.main\+xml", re.I
)
_R = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"
_GROUP_DEPTH = 20  # groups of shapes within each other


def read_pptx(data: bytes, context: Context) -> Iterator[Part]:
    """One part a slide: title as heading, then the shapes from top to bottom."""
    import pptx
    from pptx.exc import PythonPptxError

    package = Package(data, context.limits)
    title = package.title()
    types = _MAIN_TYPE.sub(_PRESENTATION, package.read(_TYPES))
    try:
        deck: Any = package.open(pptx.Presentation, {_TYPES: types})
        entries = list(deck.element.get_or_add_sldIdLst())  # deck.slides wants all of them whole
    except (PythonPptxError, KeyError, ValueError, AttributeError) as error:
        raise Unreadable(f"its slides cannot be found ({error})") from error
    context.check(len(entries), "slides", "max_pages")
    read, figures = set[str](), Figures(context)
    for number, entry in enumerate(entries, 1):
        with leave_out(f"slide {number}"):
            slide = deck.part.related_slide(entry.rId)
            name = str(slide.part.partname)
            if slide.element.get("show") in ("0", "false"):
                write_note(f"slide {number}{LEFT_OUT}it is hidden")
            elif name not in read:  # a list that repeats a slide, which PowerPoint never writes
                blocks, heading = _read_slide(slide, f"slide {number}")
                title = title or heading
                yield Part("\n\n".join(blocks), {"page": number, "title": title})
                place = {"page": number, "title": title, "heading": heading}
                yield from _slide_figures(slide, package, figures, place)
            read.add(name)


def _slide_figures(slide: Any, package: Package, figures: Figures, place: dict[str, Any]) -> Iterator[Part]:
    """The pictures on a slide with their descriptions; those of its layout are decoration."""
    for number, node in enumerate(slide.element.iter(f"{A}blip"), 1):
        relation = slide.part.rels.get(node.get(f"{_R}embed") or "")
        if relation is None or relation.is_external:
            continue
        shape = next(node.iterancestors("{*}pic"), None)
        properties = None if shape is None else shape.find(".//{*}cNvPr")
        if properties is not None and properties.get("hidden") in ("1", "true"):
            continue
        name = str(relation.target_part.partname).lstrip("/")
        caption = "" if properties is None else properties.get("descr") or ""
        where = f"slide {place['page']}, picture {number} ({name})"
        yield from figures.parts(where, partial(package.read, name), caption, **place)


def _read_slide(slide: Any, place: str) -> tuple[list[str], str]:
    """The texts of a slide, and its title."""
    heading = slide.shapes.title
    heading_text = line_text(heading.text_frame) if heading is not None else ""
    blocks = [f"# {heading_text}"] if heading_text else []
    others = (shape for shape in slide.shapes if heading is None or shape.shape_id != heading.shape_id)
    blocks += _read_shapes(others, place, 0)
    with leave_out(f"{place}, notes"):
        notes = slide.notes_slide.notes_text_frame if slide.has_notes_slide else None
        if notes is not None and (text := list_text(notes)):
            blocks.append("Notes: " + text)
    return blocks, heading_text


def _read_shapes(shapes: Iterable[Any], place: str, depth: int) -> Iterator[str]:
    """The texts of shapes, from top to bottom, those of groups within."""
    ordered = sorted(shapes, key=lambda shape: (shape.top or 0, shape.left or 0))
    for shape in ordered:
        with leave_out(f"{place}, {shape.name}"):
            if shape.element.find(".//{*}cNvPr").get("hidden") in ("1", "true"):
                write_note(f"{place}, {shape.name}{LEFT_OUT}it is hidden")
            elif getattr(shape, "shapes", None) is not None and depth < _GROUP_DEPTH:
                yield from _read_shapes(shape.shapes, place, depth + 1)
            else:
                yield from _read_shape(shape)


def _read_shape(shape: Any) -> Iterator[str]:
    if getattr(shape, "has_table", False):
        yield _read_table(shape.table)
    elif getattr(shape, "has_chart", False):
        yield from _read_chart(shape.chart)
    elif shape.has_text_frame:
        if text := list_text(shape.text_frame, shape):
            yield text
    elif shape.element.find(f".//{_DGM}relIds") is not None:
        yield from _read_diagram(shape)
    else:
        text = shape.element.find(".//{*}cNvPr").get("descr") or ""
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
    """The title of a chart, and the figures that each of its plots keeps, of whatever kind it is."""
    plan = chart._chartSpace.find(f"{_C}chart")
    title = plan.find(f"{_C}title")
    if text := " ".join("".join(title.itertext(f"{A}t")).split() if title is not None else ()):
        yield text
    for plot in plan.find(f"{_C}plotArea"):
        series = [
            {part: _cached(one, names) for part, names in _SERIES.items()} for one in plot.iter(f"{_C}ser")
        ]
        if series:
            labels = max((one["labels"] for one in series), key=len)
            names = (" ".join(one["name"].values()) for one in series)
            points = sorted({*labels, *(point for one in series for point in one["values"])})
            rows = [[labels.get(at, ""), *(one["values"].get(at, "") for one in series)] for at in points]
            yield markdown_table([["", *names], *rows])


def _cached(series: Any, names: str) -> dict[int, str]:
    """The cached texts of a part of a series by their index, of several levels the lowest, which comes first."""
    for part in series.iterchildren(*(f"{_C}{name}" for name in names.split())):
        code = part.findtext(f".//{_C}formatCode") or "General"
        points = reversed(list(part.iter(f"{_C}pt")))
        return {int(point.get("idx")): _formatted(point.findtext(f"{_C}v") or "", code) for point in points}
    return {}


def _formatted(text: str, code: str) -> str:
    """A cached number in its number format; other texts as they are."""
    try:
        return shown(float(text), code)
    except ValueError:
        return text


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
