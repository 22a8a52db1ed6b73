"""Word documents, through mammoth (docx to HTML) and the kit's own HTML writer."""

from __future__ import annotations

import re
from collections.abc import Iterator
from copy import deepcopy
from functools import cache, partial
from typing import Any

from rag_kit.concurrency.notes import write_note
from rag_kit.indexing.readers.charts import DGM, C, chart_texts, diagram_text
from rag_kit.indexing.readers.encodings import decode
from rag_kit.indexing.readers.figures import Figures
from rag_kit.indexing.readers.markup import parse_html, to_markdown
from rag_kit.indexing.readers.numbers import OMML, equation_text, whole_number
from rag_kit.indexing.readers.package import A, Package, R, parse_xml, xml_bytes
from rag_kit.indexing.readers.parts import LEFT_OUT, Context, Part, Unreadable, leave_out
from rag_kit.indexing.readers.word_lists import Lists, Styles, W, value_of

_MC = "{http://schemas.openxmlformats.org/markup-compatibility/2006}"
_VML = "{urn:schemas-microsoft-com:vml}"
_CAPTION = re.compile("caption|题注|題注|图注", re.I)
_DOCUMENT = "word/document.xml"
_HEADING_NAME = re.compile(r"(?:heading|标题|見出し|제목)\s*([1-6])", re.I)
_LIST_LABEL = re.compile(r"-|\(?[0-9A-Za-z]{1,4}[.)]")  # others, such as 1.1 and 第一条, begin paragraphs
_PAGE_NUMBER = re.compile(r"(?:page|of|第|共|总?页[码数]?|\d{1,4}|[\s/|,，:：—–-])+", re.I)
_KNOWN_AS = {  # elements that mammoth does not know, and those that it writes in the same way
    **{f"{W}cr": f"{W}br", f"{W}ptab": f"{W}tab", f"{W}dstrike": f"{W}strike"},
    f"{_VML}oval": f"{_VML}rect",
}
_LETTERS = ("vanish", "strike", "dstrike", "vertAlign", "position")  # what a style may say of letters
_RAISED_BY = 4  # half points; less moves a line, not a power
_FEW_LETTERS = 4
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
    roots = {main: document}
    for kind in ("footnotes", "endnotes"):
        for name in package.all_related(kind, main):
            with leave_out(name):
                roots[name] = package.xml(name)
    # write into the document what mammoth would leave out
    for root in roots.values():
        _prepare(root, styles)
    _add_running_lines(document, package, main, styles)
    pictures = list(_pictures(document, package, main)) if context.pictures else []
    objects = _mark_objects(document, package, main)
    labels: list[tuple[int, str]] = []
    for root in roots.values():
        _write_equations(root)
        _fill_late_rows(root)
        if lists is not None:
            _mark_numbers(root, lists, labels)
    changes = {name: xml_bytes(root) for name, root in roots.items()}
    if lists is not None:
        changes[numbering] = f"<numbering xmlns='{W[1:-1]}'/>".encode()  # mammoth would count otherwise
    html = _to_html(package, changes, styles)
    text = to_markdown(_with_numbers(parse_html(f"<body>{html}</body>"), labels)) if html else ""
    for mark, inner in objects.items():
        text = text.replace(mark, inner)
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


def _mark_objects(document: Any, package: Package, main: str) -> dict[str, str]:
    """Put a paragraph with a mark behind each chart, diagram and inserted file; return their texts by mark."""
    targets, texts = package.targets(main), dict[str, str]()
    for node in list(document.iter(f"{C}chart", f"{DGM}relIds", f"{W}altChunk")):
        target = targets.get(node.get(f"{R}dm") or node.get(f"{R}id") or "", "")
        with leave_out(f"part {target}"):
            if node.tag == f"{W}altChunk":
                text = _inserted_text(package, target)
            elif node.tag == f"{C}chart":
                text = "\n\n".join(chart_texts(package.xml(target)))
            else:
                text = diagram_text(package.xml(target))
            is_in_table = next(node.iterancestors(f"{W}tc"), None) is not None
            mark = f"\ue000{len(texts)}\ue000"
            texts[mark] = " ".join(text.replace("|", " ").split()) if is_in_table else text
            paragraph = document.makeelement(f"{W}p")
            paragraph.append(_run(document, mark))
            [node, *node.iterancestors(f"{W}p")][-1].addnext(paragraph)
    return texts


def _inserted_text(package: Package, name: str) -> str:
    """Return the text of a file that Word would insert when it opens the document."""
    ending = name.rpartition(".")[2].lower()
    if ending not in ("htm", "html", "xhtml", "txt"):
        raise Unreadable(f"it is an inserted file of a kind that is not read ({ending})")
    text = decode(package.read(name), markup=ending != "txt")
    return text if ending == "txt" else to_markdown(parse_html(text))


def _prepare(root: Any, styles: Styles) -> None:
    """Write what is shown of a part as mammoth knows it, and nothing else."""
    _apply_styles(root, styles)
    _drop_hidden(root)
    _unwrap(root)


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
    for name, known in _KNOWN_AS.items():
        for node in document.iter(name):
            node.tag = known
    for position in document.iter(f"{W}position"):
        height = whole_number(value_of(position), 0)
        run = next(position.iterancestors(f"{W}r"), None)
        if run is not None and abs(height) >= _RAISED_BY and len("".join(run.itertext())) <= _FEW_LETTERS:
            position.tag = f"{W}vertAlign"
            position.set(f"{W}val", "superscript" if height > 0 else "subscript")


def _add_running_lines(document: Any, package: Package, main: str, styles: Styles) -> None:
    """Put the lines of page headers above a document and those of footers below it, each once, without page numbers."""
    body = document.find(f"{W}body")
    shown = {_text_of(paragraph) for paragraph in document.iter(f"{W}p")} | {""}
    for kind in ("header", "footer"):
        position = 0 if kind == "header" else len(body)
        for name in package.all_related(kind, main):
            with leave_out(name):
                root = package.xml(name)
                _prepare(root, styles)
                for paragraph in root.iter(f"{W}p"):
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


def _apply_styles(root: Any, styles: Styles) -> None:
    """Write into the runs of a part what their styles say of letters that are hidden, struck, raised or lowered."""

    @cache
    def letters(of_run: str | None, of_paragraph: str | None) -> list[Any]:
        chain = [*(styles.chain(of_run) if of_run else ()), *styles.chain(of_paragraph)]
        found = ([style.find(f"{W}rPr/{W}{name}") for style in chain] for name in _LETTERS)
        return [nodes[0] for each in found if (nodes := [node for node in each if node is not None])]

    for run in root.iter(f"{W}r"):
        paragraph = next(run.iterancestors(f"{W}p"), None)
        of_paragraph = None if paragraph is None else paragraph.find(f"{W}pPr/{W}pStyle")
        properties = run.find(f"{W}rPr")
        of_run = None if properties is None else properties.find(f"{W}rStyle")
        for node in letters(value_of(of_run), value_of(of_paragraph)):
            if properties is None:
                properties = run.makeelement(f"{W}rPr")
                run.insert(0, properties)
            if properties.find(node.tag) is None:
                properties.append(deepcopy(node))


def _fill_late_rows(document: Any) -> None:
    """Insert empty cells at the beginning of rows that begin further to the right than their table."""
    for skipped in list(document.iter(f"{W}gridBefore")):
        properties, count = skipped.getparent(), value_of(skipped) or ""
        if properties.tag == f"{W}trPr" and re.fullmatch(r"\d{1,2}", count):
            for _ in range(int(count)):
                cell = properties.makeelement(f"{W}tc")
                cell.append(cell.makeelement(f"{W}p"))
                properties.addnext(cell)


def _mark_numbers(document: Any, lists: Lists, labels: list[tuple[int, str]]) -> None:
    """Put a bookmark into each numbered paragraph, and its level and label into the list: the n-th has the name n."""
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
