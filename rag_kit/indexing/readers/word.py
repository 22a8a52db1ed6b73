"""Word documents, through mammoth (docx to HTML) and the kit's own HTML writer."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from typing import Any

from rag_kit.concurrency.notes import write_note
from rag_kit.indexing.readers.markup import parse_html, to_markdown
from rag_kit.indexing.readers.package import Package, parse_xml
from rag_kit.indexing.readers.parts import LEFT_OUT, Context, Part, leave_out

_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_M = "{http://schemas.openxmlformats.org/officeDocument/2006/math}"
# how an element is written, by the names of its parts
_SHAPES = {
    f"{_M}f": "num/den",
    f"{_M}sSup": "e^sup",
    f"{_M}sSub": "e_sub",
    f"{_M}sSubSup": "e_sub^sup",
    f"{_M}rad": "√e",
}
_DOCUMENT = "word/document.xml"
_HEADING_NAME = re.compile(r"(?:heading|标题|見出し|제목)\s*([1-6])", re.I)
_BASED_ON_STEPS = 10  # styles that a style builds on, one on the other


def read_docx(data: bytes, context: Context) -> Iterator[Part]:
    """One part: the document as markdown, headings by outline level, merged cells filled, equations as text."""
    import mammoth

    package = Package(data, context.limits)
    document = package.related("officeDocument") or _DOCUMENT
    names = package.related("styles", document)
    styles: list[str] = []
    with leave_out("styles"):
        styles = _style_map(package.xml(names)) if names else []
    convert = partial(
        mammoth.convert_to_html,
        style_map="\n".join(styles),
        convert_image=mammoth.images.img_element(lambda image: {"src": ""}),
        ignore_empty_paragraphs=True,
    )
    result: Any = package.open(convert, {document: _plain_document(package.read(document))})
    text = to_markdown(parse_html(f"<body>{result.value}</body>")) if result.value else ""
    yield Part(text, {"title": _document_title(package, text)})


def _plain_document(document: bytes) -> bytes:
    """Change a document's XML for mammoth: hidden text goes, equations become runs of text."""
    from lxml import etree

    root = parse_xml(document, _DOCUMENT, recover=False)
    hidden = [
        mark for mark in root.iter(f"{_W}vanish") if _attribute_value(mark) not in ("0", "false", "off")
    ]
    runs = {run for mark in hidden for run in mark.iterancestors(f"{_W}r")}
    for run in runs:
        run.clear()
    if runs:
        write_note(f"hidden text{LEFT_OUT}{len(runs)} runs")
    # those on a line of their own first, with all that is in them
    for equation in [*root.iter(f"{_M}oMathPara"), *root.iter(f"{_M}oMath")]:
        run = etree.Element(f"{_W}r")
        etree.SubElement(run, f"{_W}t").text = f" {_equation_text(equation)} "
        run.tail = equation.tail
        equation.getparent().replace(equation, run)
    return bytes(etree.tostring(root, xml_declaration=True, encoding="UTF-8", standalone=True))


def _equation_text(node: Any) -> str:
    """A node of Word's equation XML (OMML) in one line: ``(a+b)/2``, ``x^2``, ``√(x)``.

    Parts longer than one letter are put in brackets.
    """
    if node.tag == f"{_M}t":
        return node.text or ""
    if node.tag == f"{_M}d":
        signs = (node.find(f"{_M}dPr/{_M}{name}") for name in ("begChr", "endChr"))
        first, last = (sign.get(f"{_M}val", "") if sign is not None else None for sign in signs)
        inside = ", ".join(map(_equation_text, node.findall(f"{_M}e")))
        return f"{'(' if first is None else first}{inside}{')' if last is None else last}"
    shape = _SHAPES.get(node.tag)
    if shape is None:
        return "".join(map(_equation_text, node))
    parts = {child.tag.removeprefix(_M): _equation_text(child) for child in node}
    # put each part in place of its name in the shape, such as "num/den"
    return re.sub(r"(\W?)([a-z]+)", lambda match: _argument_text(match[1], parts.get(match[2], "")), shape)


def _argument_text(sign: str, text: str) -> str:
    """A part of an equation behind its sign, in brackets if it is more than a character or a number."""
    if not text:
        return ""
    return sign + (text if len(text) == 1 or text.isdigit() else f"({text})")


def _style_map(styles: Any) -> list[str]:
    """Mammoth rules for paragraph styles that are headings by outline level, by name or by what they build on."""
    styles_by_id = {style.get(f"{_W}styleId"): style for style in styles.iter(f"{_W}style")}
    rules = []
    for style in styles_by_id.values():
        name, base, level = _attribute_value(style.find(f"{_W}name")) or "", style, 0
        for _ in range(_BASED_ON_STEPS):
            level = level or _heading_level(base)
            base = styles_by_id.get(_attribute_value(base.find(f"{_W}basedOn")), base)
        if level and style.get(f"{_W}type") == "paragraph" and not re.search(r"['\\\n]", name):
            rules.append(f"p[style-name='{name}'] => h{level}:fresh")
    return rules


def _heading_level(style: Any) -> int:
    """The level that a style's own name or outline level says, 0 if it is not a heading."""
    name = (_attribute_value(style.find(f"{_W}name")) or "").strip()
    outline = _attribute_value(style.find(f"{_W}pPr/{_W}outlineLvl")) or ""
    if match := _HEADING_NAME.fullmatch(name):
        return int(match[1])
    if name.lower() == "title":
        return 1
    return int(outline) + 1 if outline in tuple("012345") else 0


def _attribute_value(node: Any) -> str | None:
    return None if node is None else node.get(f"{_W}val")


def _document_title(package: Package, text: str) -> str:
    heading = re.search(r"^#+ (.+)$", text, re.M)
    return package.title() or (heading.group(1)[:300] if heading else "")
