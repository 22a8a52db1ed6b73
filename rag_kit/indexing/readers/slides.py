"""PowerPoint slides, through python-pptx: one part a slide, with its notes, tables, charts and diagrams."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

from rag_kit.concurrency.notes import write_note
from rag_kit.indexing.readers.charts import DGM, chart_texts, diagram_text
from rag_kit.indexing.readers.figures import NOT_INSIDE, Figures
from rag_kit.indexing.readers.numbers import OMML, equation_text, join_runs, list_number, whole_number
from rag_kit.indexing.readers.package import MC, A, Package, R, parse_xml
from rag_kit.indexing.readers.parts import LEFT_OUT, Context, Part, Unreadable, leave_out, read_table
from rag_kit.indexing.readers.tables import fill_spans, join_header, markdown_table

_TYPES = "[Content_Types].xml"
_PRESENTATION = b"application/vnd.openxmlformats-officedocument.presentationml.presentation.main+xml"
_MAIN_TYPE = re.compile(  # slide shows and templates, with programs or without, are presentations
    rb"application/vnd\.[\w.-]+\.(?:presentation|slideshow|template)(?:\.macroEnabled)?\.main\+xml", re.I
)
_BULLETS = tuple(A + name for name in ("buNone", "buChar", "buBlip", "buAutoNum"))
_EQUATION = "{http://schemas.microsoft.com/office/drawing/2010/main}m"
_CONTENT = (f"{A}r", f"{A}br", f"{A}fld", f"{MC}AlternateContent", _EQUATION)  # of a paragraph
_SCHEME = re.compile(r"(\w+?)(?:[12](?=Minus))?(ParenBoth|ParenR|Period|Plain|Minus)")  # arabicPeriod
_NUMBER_SIGNS = {"ParenBoth": "({})", "ParenR": "{})", "Period": "{}.", "Plain": "{}", "Minus": "{}-"}
_NUMBER_STYLES = read_table("slide_numbers.txt")  # PowerPoint's name of a style -> Word's


def read_pptx(data: bytes, context: Context) -> Iterator[Part]:
    """Yield a part for each slide: title as heading, then the shapes from top to bottom."""
    import pptx
    from pptx.exc import PythonPptxError

    package = Package(data, context.limits)
    title = package.title()
    types = _MAIN_TYPE.sub(_PRESENTATION, package.read(_TYPES))
    try:
        deck: Any = package.open(pptx.Presentation, {_TYPES: types})
        slide_ids = list(deck.element.get_or_add_sldIdLst())  # deck.slides would fail over one damaged slide
    except (PythonPptxError, KeyError, ValueError, AttributeError) as error:
        raise Unreadable(f"its slides cannot be found ({error})") from error
    context.check(len(slide_ids), "slides", "max_pages")
    names_read, figures = set[str](), Figures(context)
    for number, slide_id in enumerate(slide_ids, 1):
        with leave_out(f"slide {number}"):
            slide = deck.part.related_slide(slide_id.rId)
            name = str(slide.part.partname)
            if slide.element.get("show") in ("0", "false"):
                write_note(f"slide {number}{LEFT_OUT}it is hidden")
            elif name not in names_read:  # a list of PowerPoint never repeats a slide, one that is forged may
                blocks, heading = _read_slide(slide, f"slide {number}")
                if any(relation.reltype.endswith("/comments") for relation in slide.part.rels.values()):
                    write_note(f"comments on slide {number}{LEFT_OUT}only the slide is read")
                title = title or heading
                yield Part("\n\n".join(blocks), {"page": number, "title": title})
                metadata = {"page": number, "title": title, "heading": heading}
                yield from _slide_figures(slide, package, figures, metadata)
            names_read.add(name)
    figures.finish()


def _slide_figures(slide: Any, package: Package, figures: Figures, fields: dict[str, Any]) -> Iterator[Part]:
    """Yield the pictures on a slide with their descriptions, without the decoration of its layout."""
    for number, node in enumerate(slide.element.iter(f"{A}blip"), 1):
        relation = slide.part.rels.get(node.get(f"{R}embed") or "")
        shape = next(node.iterancestors("{*}pic"), None)
        properties = None if shape is None else shape.find(".//{*}cNvPr")
        if properties is not None and properties.get("hidden") in ("1", "true"):
            continue
        if relation is None or relation.is_external:
            figures.pass_over(NOT_INSIDE)
            continue
        name = str(relation.target_part.partname).lstrip("/")
        caption = "" if properties is None else properties.get("descr") or ""
        where = f"slide {fields['page']}, picture {number} ({name})"
        yield from figures.parts(where, partial(package.read, name), caption, **fields)


def _read_slide(slide: Any, where: str) -> tuple[list[str], str]:
    """Return the texts of a slide, its title first, and the title; ``where`` names the slide in reports."""
    # shapes that PowerPoint wrote twice, such as those with equations: once as a picture for older programs
    for shape in slide.element.findall(f".//{MC}AlternateContent/{MC}Choice/{{*}}sp"):
        shape.getparent().getparent().addprevious(shape)
    heading = slide.shapes.title
    heading_text = _line_text(heading.text_frame) if heading is not None else ""
    blocks = [f"# {heading_text}"] if heading_text else []
    others = (shape for shape in slide.shapes if heading is None or shape.shape_id != heading.shape_id)
    blocks += _read_shapes(others, where)
    with leave_out(f"{where}, notes"):
        notes = slide.notes_slide.notes_text_frame if slide.has_notes_slide else None
        if notes is not None and (text := _list_text(notes)):
            blocks.append("Notes: " + text)
    return blocks, heading_text


def _read_shapes(shapes: Iterable[Any], where: str) -> Iterator[str]:
    """Yield the texts of shapes from top to bottom, with those inside groups."""
    ordered = sorted(shapes, key=lambda shape: (shape.top or 0, shape.left or 0))
    for shape in ordered:
        with leave_out(f"{where}, {shape.name}"):
            if shape.element.find(".//{*}cNvPr").get("hidden") in ("1", "true"):
                write_note(f"{where}, {shape.name}{LEFT_OUT}it is hidden")
            elif getattr(shape, "shapes", None) is not None:
                yield from _read_shapes(shape.shapes, where)
            else:
                yield from _read_shape(shape)


def _read_shape(shape: Any) -> Iterator[str]:
    """Yield the text of a shape: a table, a chart, a text, a diagram, or the description of a picture."""
    if getattr(shape, "has_table", False):
        rows = ((cell for cell in row.cells if not cell.is_spanned) for row in shape.table.rows)
        spans = ([(_line_text(c.text_frame), c.span_width, c.span_height) for c in row] for row in rows)
        yield markdown_table(join_header(fill_spans(spans)))
    elif getattr(shape, "has_chart", False):
        yield from chart_texts(shape.chart._chartSpace)
    elif shape.has_text_frame:
        if text := _list_text(shape.text_frame, shape):
            yield text
    elif (ids := shape.element.find(f".//{DGM}relIds")) is not None:
        yield diagram_text(parse_xml(shape.part.related_part(ids.get(f"{R}dm")).blob, "diagram"))
    elif words := shape.element.find(".//{*}cNvPr").get("descr", "").split():
        yield " ".join(words)


def _line_text(frame: Any) -> str:
    """Return the text of a frame as one line."""
    return " ".join(" ".join(map(_paragraph_text, frame.paragraphs)).split())


def _list_text(frame: Any, shape: Any = None) -> str:
    """Write the paragraphs of a frame as lines; bullets and numbers become list items."""
    lines: list[str] = []
    counted: dict[int, tuple[str, str, int]] = {}  # level -> scheme, start and last number of its list
    for paragraph in frame.paragraphs:
        text = " ".join(_paragraph_text(paragraph).split())
        if not text:
            continue
        level = int(paragraph.level or 0)
        bullet = _bullet(paragraph, frame, shape, level)
        sign = "" if bullet is None else bullet.tag.removeprefix(A)
        last_scheme, last_start, last_number = counted.get(level, ("", "", None))
        # a number counts on over deeper paragraphs, and begins anew after one of its level or above without one
        counted = {upper: last for upper, last in counted.items() if upper < level}
        mark = "- " if level or sign == "buChar" else ""
        if sign == "buAutoNum":
            scheme, start = bullet.get("type") or "", bullet.get("startAt") or ""
            if last_number is not None and scheme == last_scheme and start in ("", last_start):
                start, number = last_start, last_number + 1
            else:
                number = whole_number(start, 1)
            counted[level] = (scheme, start, number)
            mark = f"{_number_label(number, scheme)} "
        lines.append("  " * level + mark + text)
    return "\n".join(lines)


def _number_label(number: int, scheme: str) -> str:
    """Write a number in one of PowerPoint's schemes, as in ``(a)`` for ``alphaLcParenBoth``."""
    match = _SCHEME.fullmatch(scheme)
    style, signs = match.groups() if match else ("", "Period")
    return _NUMBER_SIGNS[signs].format(list_number(number, _NUMBER_STYLES.get(style, "decimal")))


def _paragraph_text(paragraph: Any) -> str:
    """Return the text of a paragraph; superscripts, subscripts and struck text are written as in ``m^2``, ``~~5~~``."""
    pieces = []
    for run in paragraph._p.iterchildren(*_CONTENT):
        is_equation = run.tag in _CONTENT[-2:]
        text = f" {' '.join(map(equation_text, run.iter(f'{OMML}oMath')))} " if is_equation else str(run.text)
        pieces.append((text, *_shift_and_strike(run)))
    return join_runs(pieces)


def _shift_and_strike(run: Any) -> tuple[int, bool]:
    """Return 1 for a superscript, -1 for a subscript, else 0; and whether the letters are struck."""
    properties = run.find(f"{A}rPr")
    attributes = {} if properties is None else properties.attrib
    baseline = attributes.get("baseline", "0").rstrip("%")  # "30000" or "30%" is raised, "-25000" lowered
    shift = -1 if baseline.startswith("-") else int(baseline.strip("0.") != "")  # "0" and "0.0" are neither
    return shift, attributes.get("strike", "noStrike") != "noStrike"


def _bullet(paragraph: Any, frame: Any, shape: Any, level: int) -> Any:
    """Return the element of the bullet or number before a paragraph: its own, or an inherited number; else None."""
    own = paragraph._p.pPr
    if own is not None and (bullet := next(own.iterchildren(*_BULLETS), None)) is not None:
        return bullet
    for styles in _inherited_styles(frame, shape):
        for properties in styles.iterchildren(f"{A}lvl{level + 1}pPr"):
            if (bullet := next(properties.iterchildren(*_BULLETS), None)) is not None:
                return bullet if bullet.tag == f"{A}buAutoNum" else None
    return None


def _inherited_styles(frame: Any, shape: Any) -> Iterator[Any]:
    """Yield the list styles of a frame, then those of the placeholders in layout and master that its shape follows."""
    yield from frame._txBody.iterchildren(f"{A}lstStyle")
    while getattr(shape, "is_placeholder", False):
        shape = getattr(shape, "_base_placeholder", None)
        if shape is not None:
            yield from shape.element.iter(f"{A}lstStyle")
