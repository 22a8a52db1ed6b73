"""Word documents, through mammoth (docx to HTML) and the kit's own HTML writer."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from typing import Any

from rag_kit.concurrency.notes import write_note
from rag_kit.indexing.readers.figures import Figures
from rag_kit.indexing.readers.markup import parse_html, to_markdown
from rag_kit.indexing.readers.numbers import OMML, equation_text
from rag_kit.indexing.readers.package import A, Package, R, parse_xml, xml_bytes
from rag_kit.indexing.readers.parts import LEFT_OUT, Context, Part, leave_out
from rag_kit.indexing.readers.word_lists import Lists, Styles, W, value_of

_MC = "{http://schemas.openxmlformats.org/markup-compatibility/2006}"
_VML = "{urn:schemas-microsoft-com:vml}"
_CAPTION = re.compile("caption|题注|題注|图注", re.I)
_DOCUMENT = "word/document.xml"
_HEADING_NAME = re.compile(r"(?:heading|标题|見出し|제목)\s*([1-6])", re.I)
_LIST_LABEL = re.compile(r"-|\(?[0-9A-Za-z]{1,4}[.)]")  # others, such as 1.1 and 第一条, begin paragraphs
_PAGE_NUMBER = re.compile(r"(?:page|of|第|共|总?页[码数]?|\d{1,4}|[\s/|,，:：—–-])+", re.I)
_BOOKMARK = "numbered paragraph "


def read_docx(data: bytes, context: Context) -> Iterator[Part]:
    """Yield one part: the document as markdown, with headings, tables, equations and the numbers that Word shows."""
    package = Package(data, context.limits)
    main = package.related("officeDocument") or _DOCUMENT
    document = parse_xml(package.read(main), main, recover=False)
    styles, lists = Styles(None), None
    with leave_out("styles"):
        styles = Styles(package.xml(name) if (name := package.related("styles", main)) else None)
    with leave_out("numbers of lists"):
        numbering = package.related("numbering", main)
        lists = Lists(package.xml(numbering), styles) if numbering else None
    # write into the document what mammoth would leave out
    _drop_hidden(document)
    _unwrap(document)
    _add_running_lines(document, package, main)
    pictures = list(_pictures(document, package, main)) if context.pictures else []
    _write_equations(document)
    _mark_raised_styles(document, styles)
    _fill_late_rows(document)
    labels = [] if lists is None else _mark_numbers(document, lists)
    changes = {main: xml_bytes(document)}
    if lists is not None:
        changes[numbering] = f"<numbering xmlns='{W[1:-1]}'/>".encode()  # mammoth would count otherwise
    html = _to_html(package, changes, styles)
    text = to_markdown(_with_numbers(parse_html(f"<body>{html}</body>"), labels)) if html else ""
    heading = re.search(r"^#+ (.+)$", text, re.M)
    title = package.title() or (heading[1][:300] if heading else "")
    yield Part(text, {"title": title})
    figures = Figures(context)
    for number, (target, caption) in enumerate(pictures, 1):
        load = partial(package.read, target)
        yield from figures.parts(f"picture {number} ({target})", load, caption, title=title)
    figures.finish()


def _to_html(package: Package, changes: dict[str, bytes], styles: Styles) -> str:
    """Convert a package with changed parts by mammoth, without pictures."""
    import mammoth

    convert = partial(
        mammoth.convert_to_html,
        style_map="\n".join(_style_map(styles)),
        convert_image=mammoth.images.img_element(lambda image: {"src": ""}),
        ignore_empty_paragraphs=True,
    )
    result: Any = package.open(convert, changes)
    return str(result.value)


def _pictures(document: Any, package: Package, main: str) -> Iterator[tuple[str, str]]:
    """Yield the part and the caption of each picture: a caption paragraph beside it, else its description."""
    targets = package.targets(main)
    for node in document.iter(f"{A}blip", f"{_VML}imagedata"):
        target = targets.get(node.get(f"{R}embed") or node.get(f"{R}id") or "")
        if next(node.iterancestors(f"{_MC}Fallback"), None) is not None or not target:
            continue  # written a second time for older programs, or on another machine
        yield target, _caption(node)


def _caption(picture: Any) -> str:
    """Return the caption paragraph at a picture, else its description, else nothing."""
    paragraph = next(picture.iterancestors(f"{W}p"), None)
    near = () if paragraph is None else (paragraph, paragraph.getnext(), paragraph.getprevious())
    for candidate in near:
        style = None if candidate is None else candidate.find(f"{W}pPr/{W}pStyle")
        if _CAPTION.search(value_of(style) or ""):
            return "".join(candidate.itertext(f"{W}t"))
    for ancestor in picture.iterancestors():
        for properties in ancestor.iter("{*}docPr"):
            return properties.get("descr") or ""
    return ""


def _drop_hidden(document: Any) -> None:
    """Empty the runs of hidden text; a note says how many."""
    hidden = [mark for mark in document.iter(f"{W}vanish") if value_of(mark) not in ("0", "false", "off")]
    runs = {run for mark in hidden for run in mark.iterancestors(f"{W}r")}
    for run in runs:
        run.clear()
    if runs:
        write_note(f"hidden text{LEFT_OUT}{len(runs)} runs")


def _unwrap(document: Any) -> None:
    """Replace elements that mammoth leaves out by their content: fields, directed text, annotated letters, ovals."""
    for node in list(document.iter(f"{W}fldSimple", f"{W}dir", f"{W}bdo", f"{W}rubyBase")):
        # letters with a reading are in a run, which they replace
        outer = next(node.iterancestors(f"{W}r"), node) if node.tag == f"{W}rubyBase" else node
        for child in list(node):
            outer.addprevious(child)
        outer.getparent().remove(outer)
    for oval in document.iter(f"{_VML}oval"):
        oval.tag = f"{_VML}rect"


def _add_running_lines(document: Any, package: Package, main: str) -> None:
    """Put the lines of page headers above a document and those of footers below it, each once, without page numbers."""
    body = document.find(f"{W}body")
    shown = {_text_of(paragraph) for paragraph in document.iter(f"{W}p")} | {""}
    for kind in ("header", "footer"):
        position = 0 if kind == "header" else len(body)
        for name in package.all_related(kind, main):
            with leave_out(name):
                for paragraph in package.xml(name).iter(f"{W}p"):
                    text = "" if paragraph.find(f".//{W}p") is not None else _text_of(paragraph)
                    if text in shown or (_PAGE_NUMBER.fullmatch(text) and re.search(r"\d|页", text)):
                        continue
                    shown.add(text)
                    body.insert(position, document.makeelement(f"{W}p"))
                    body[position].append(_run(document, text))
                    position += 1


def _text_of(paragraph: Any) -> str:
    parts = paragraph.iter(f"{W}t", f"{W}tab", f"{W}br")
    texts = [part.text or "" if part.tag == f"{W}t" else " " for part in parts]
    return " ".join("".join(texts).split())


def _write_equations(document: Any) -> None:
    """Replace the equations of a document by runs of text."""
    # those on a line of their own first, with all that is in them
    for equation in [*document.iter(f"{OMML}oMathPara"), *document.iter(f"{OMML}oMath")]:
        run = _run(equation, f" {equation_text(equation)} ")
        run.tail = equation.tail
        equation.getparent().replace(equation, run)


def _run(near: Any, text: str) -> Any:
    run = near.makeelement(f"{W}r")
    run.append(near.makeelement(f"{W}t"))
    run[0].text = text
    return run


def _mark_raised_styles(document: Any, styles: Styles) -> None:
    """Write into the runs of a document whether their styles raise or lower the letters."""
    for style in list(document.iter(f"{W}rStyle")):
        run = style.getparent()
        nodes = [each.find(f"{W}rPr/{W}vertAlign") for each in styles.chain(value_of(style))]
        found = [node for node in nodes if node is not None]
        if found and run.find(f"{W}vertAlign") is None:
            run.append(run.makeelement(f"{W}vertAlign", {f"{W}val": value_of(found[0]) or ""}))


def _fill_late_rows(document: Any) -> None:
    """Insert empty cells at the beginning of rows that begin further to the right than their table."""
    for skipped in list(document.iter(f"{W}gridBefore")):
        properties, count = skipped.getparent(), value_of(skipped) or ""
        if properties.tag == f"{W}trPr" and re.fullmatch(r"\d{1,2}", count):
            for _ in range(int(count)):
                cell = properties.makeelement(f"{W}tc")
                cell.append(cell.makeelement(f"{W}p"))
                properties.addnext(cell)


def _mark_numbers(document: Any, lists: Lists) -> list[tuple[int, str]]:
    """Put a bookmark into each numbered paragraph; the n-th one is for the n-th level and label that is returned."""
    labels: list[tuple[int, str]] = []
    for paragraph in document.iter(f"{W}p"):
        deleted = paragraph.find(f"{W}pPr/{W}rPr/{W}del") is not None
        if deleted or next(paragraph.iterancestors(f"{_MC}Choice"), None) is not None:
            continue  # not shown, or written a second time for older programs
        label = lists.count(paragraph)
        if label is None:
            continue
        if any(text.text for text in paragraph.iter(f"{W}t")):
            name = {f"{W}id": f"9{len(labels)}", f"{W}name": f"{_BOOKMARK}{len(labels)}"}
            position = int(paragraph[0].tag == f"{W}pPr")
            paragraph.insert(position, paragraph.makeelement(f"{W}bookmarkStart", name))
            labels.append(label)
        elif paragraph.getparent().tag == f"{W}tc":  # a column of numbers
            paragraph.append(_run(paragraph, label[1]))
    return labels


def _with_numbers(tree: Any, labels: list[tuple[int, str]]) -> Any:
    """Write the labels at the marked paragraphs of a document's HTML: list items, headings, paragraphs."""
    for mark in tree.xpath(f"//a[starts-with(@id, '{_BOOKMARK}')]"):
        number = mark.get("id").removeprefix(_BOOKMARK)
        if not number.isdecimal() or int(number) >= len(labels):
            continue  # a bookmark of the document
        level, label = labels[int(number)]
        paragraph = mark.getparent()
        if paragraph.tag == "p" and _LIST_LABEL.fullmatch(label.strip()):
            paragraph.set("rag-kit-label", label.strip())
            paragraph.set("level", str(level))
            _move_into_list(paragraph, level)
        else:
            mark.text = label
    return tree


def _move_into_list(item: Any, level: int) -> None:
    """Make a paragraph an item of the list right before it, or of a list inside that, else of a new list."""
    inside = item.getprevious()
    if inside is None or inside.tag != "ul":
        inside = item.makeelement("ul")
        item.addprevious(inside)
    while len(inside) and level > int(inside[-1].get("level")):
        last = inside[-1]
        if not len(last) or last[-1].tag != "ul":
            last.append(item.makeelement("ul"))
        inside = last[-1]
    item.tag = "li"
    inside.append(item)


def _style_map(styles: Styles) -> Iterator[str]:
    """Make mammoth's rules for styles that are headings by outline level, by name, or by their base style."""
    for style_id, style in styles.by_id.items():
        name = value_of(style.find(f"{W}name")) or ""
        levels = map(_heading_level, styles.chain(style_id))
        level = next((level for level in levels if level), 0)
        if level and style.get(f"{W}type") == "paragraph" and not re.search(r"['\\\n]", name):
            yield f"p[style-name='{name}'] => h{level}:fresh"


def _heading_level(style: Any) -> int:
    """Return the heading level by a style's own name or outline level, 0 if it is no heading."""
    name = (value_of(style.find(f"{W}name")) or "").strip()
    outline = value_of(style.find(f"{W}pPr/{W}outlineLvl")) or ""
    if match := _HEADING_NAME.fullmatch(name):
        return int(match[1])
    if name.lower() == "title":
        return 1
    return int(outline) + 1 if outline in tuple("012345") else 0
