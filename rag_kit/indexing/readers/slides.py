"""PowerPoint slides, through python-pptx: one part a slide, with its notes, tables, charts and diagrams."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from rag_kit.indexing.readers.package import Package, parse_xml
from rag_kit.indexing.readers.parts import Context, Part, Unreadable
from rag_kit.indexing.readers.tables import Grid, markdown_table

_A = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
_DGM = "{http://schemas.openxmlformats.org/drawingml/2006/diagram}"
_R = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"
_GROUP_DEPTH = 20


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
        heading_text = " ".join(heading.text_frame.text.split()) if heading is not None else ""
        title = title or heading_text
        blocks = [f"# {heading_text}"] if heading_text else []
        blocks += _shapes(
            (shape for shape in slide.shapes if heading is None or shape.shape_id != heading.shape_id), 0
        )
        if slide.has_notes_slide and slide.notes_slide.notes_text_frame is not None:
            notes = slide.notes_slide.notes_text_frame.text.strip()
            if notes:
                blocks.append("Notes: " + notes.replace("\x0b", "\n"))
        text = "\n\n".join(blocks)
        if text.strip():
            yield Part(text, {"page": number, "title": title})


def _shapes(shapes: Iterable[Any], depth: int) -> Iterator[str]:
    ordered = sorted(shapes, key=lambda shape: (shape.top or 0, shape.left or 0))
    for shape in ordered:
        if getattr(shape, "shapes", None) is not None and depth < _GROUP_DEPTH:
            yield from _shapes(shape.shapes, depth + 1)
        elif getattr(shape, "has_table", False):
            yield _table(shape.table)
        elif getattr(shape, "has_chart", False):
            yield from _chart(shape.chart)
        elif shape.has_text_frame:
            text = _paragraphs(shape.text_frame)
            if text:
                yield text
        elif shape.element.find(f".//{_DGM}relIds") is not None:
            yield from _diagram(shape)
        else:
            description = shape.element.find(".//{*}cNvPr")
            text = (description.get("descr") or "") if description is not None else ""
            if text.strip():
                yield " ".join(text.split())


def _paragraphs(frame: Any) -> str:
    """The paragraphs of a text box; bullets and numbers written as list items."""
    lines: list[str] = []
    numbers: dict[int, int] = {}
    for paragraph in frame.paragraphs:
        text = " ".join(paragraph.text.replace("\x0b", " ").split())
        if not text:
            continue
        level = int(paragraph.level or 0)
        properties = paragraph._p.pPr
        bullet = properties is not None and properties.find(f"{_A}buChar") is not None
        numbered = properties is not None and properties.find(f"{_A}buAutoNum") is not None
        if numbered:
            numbers[level] = numbers.get(level, 0) + 1
            lines.append("  " * level + f"{numbers[level]}. {text}")
        else:
            numbers.pop(level, None)
            lines.append("  " * level + "- " + text if bullet or level else text)
    return "\n".join(lines)


def _table(table: Any) -> str:
    grid = Grid()
    for row in table.rows:
        grid.new_row()
        for cell in row.cells:
            if not cell.is_spanned:
                width = cell.span_width if cell.is_merge_origin else 1
                height = cell.span_height if cell.is_merge_origin else 1
                grid.add(" ".join(cell.text_frame.text.split()), width, height)
    return markdown_table(grid.lists())


def _chart(chart: Any) -> Iterator[str]:
    if chart.has_title and chart.chart_title.has_text_frame:
        title = " ".join(chart.chart_title.text_frame.text.split())
        if title:
            yield title
    for plot in chart.plots:
        series = list(plot.series)
        if not series:
            continue
        rows = [["", *(str(one.name or "") for one in series)]]
        categories = [str(category) for category in plot.categories]
        values = [list(one.values) for one in series]
        for index in range(max([len(categories), *map(len, values)])):
            label = categories[index] if index < len(categories) else str(index + 1)
            cells = [value[index] if index < len(value) else None for value in values]
            rows.append([label, *("" if cell is None else f"{cell:g}" for cell in cells)])
        yield markdown_table(rows)


def _diagram(shape: Any) -> Iterator[str]:
    """The words of a SmartArt diagram, which python-pptx does not read itself."""
    reference = shape.element.find(f".//{_DGM}relIds")
    identifier = reference.get(f"{_R}dm")
    try:
        blob = shape.part.related_part(identifier).blob
    except KeyError:
        return
    for point in parse_xml(blob, "diagram").iter(f"{_DGM}pt"):
        text = " ".join("".join(node.text or "" for node in point.iter(f"{_A}t")).split())
        if text:
            yield f"- {text}"
