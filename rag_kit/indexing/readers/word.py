"""Word documents, through mammoth (docx to HTML) and the kit's own HTML writer."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from typing import Any

from rag_kit.concurrency.notes import write_note
from rag_kit.indexing.readers.charts import DGM, C, chart_texts, diagram_text
from rag_kit.indexing.readers.encodings import decode
from rag_kit.indexing.readers.figures import NOT_INSIDE, Figures
from rag_kit.indexing.readers.markup import parse_html, to_markdown
from rag_kit.indexing.readers.package import MC, A, Package, R, parse_xml, xml_bytes
from rag_kit.indexing.readers.parts import LEFT_OUT, Context, Part, Unreadable, leave_out
from rag_kit.indexing.readers.word_lists import Lists, Styles, W, value_of
from rag_kit.indexing.readers.word_shown import VML, drop_broken_references, prepare, run_of

_CAPTION = re.compile("caption|题注|題注|图注", re.I)
_DOCUMENT = "word/document.xml"
_HEADING_NAME = re.compile(r"(?:heading|标题|見出し|제목)\s*([1-6])", re.I)
_LIST_LABEL = re.compile(r"-|\(?[0-9A-Za-z]{1,4}[.)]")  # others, such as 1.1 and 第一条, begin paragraphs
_PAGE_NUMBER = re.compile(  # but no year alone
    r"(?!\s*(?:19|20)\d\d\s*$)(?=.*[\d页])(?:page|seite|of|von|第|共|总?页[码数]?|(?<!\d)\d{1,4}(?!\d)|[\s/|,，:：—–-])+",
    re.I,
)
# where one may begin or end in a line, but not behind a name such as "Rev.:" or 编号
_PIECE = re.compile(r"(?<![:：.号版])(?=\t)|(?=\b(?:page|seite)\b|第)|(?<=页)", re.I)
_BOXES = str.maketrans("🞎🞏🗆🗌🗹🗷🗵", "☐☐☐☐☑☒☒")  # signs of Wingdings, as mammoth writes them
_BOOKMARK = "numbered paragraph "  # begins the name of a bookmark that is put into such a paragraph


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
    for name in (*package.all_related("footnotes", main), *package.all_related("endnotes", main)):
        with leave_out(name):
            roots[name] = package.xml(name)
    notes = (note for root in roots.values() for note in root.iter(f"{W}footnote", f"{W}endnote"))
    footnotes = {(note.tag.removeprefix(W), note.get(f"{W}id")) for note in notes}  # kind and id of each
    for name, root in roots.items():
        prepare(root, styles)
        drop_broken_references(root, package.targets(name), footnotes)
    _add_running_lines(document, package, main, styles)
    with leave_out("the comments"):
        if comments := sum(len(package.xml(name)) for name in package.all_related("comments", main)):
            write_note(f"{comments} comments{LEFT_OUT}only the text is read")
    pictures = list(_pictures(document, package, main)) if context.pictures else []
    objects = _mark_objects(document, package, main)
    labels: list[tuple[int, str]] = []
    changes: dict[str, bytes] = {}
    if lists is not None:
        for root in roots.values():
            _mark_numbers(root, lists, labels)
        changes[numbering] = f"<numbering xmlns='{W[1:-1]}'/>".encode()  # empty: mammoth shall not count
    changes |= {name: xml_bytes(root) for name, root in roots.items()}
    html = _to_html(package, changes, styles)
    text = to_markdown(_with_numbers(parse_html(f"<body>{html}</body>"), labels)) if html else ""
    for mark, inner in objects.items():
        text = text.replace(mark, inner)
    heading = re.search(r"^#+ (.+)$", text, re.M)
    title = package.title() or (heading[1][:300] if heading else "")
    yield Part(text, {"title": title})
    figures = Figures(context)
    for number, (target, caption) in enumerate(pictures, 1):
        if not target:
            figures.pass_over(NOT_INSIDE)
            continue
        load = partial(package.read, target)
        yield from figures.parts(f"picture {number} ({target})", load, caption, title=title)
    figures.finish()


def _to_html(package: Package, changes: dict[str, bytes], styles: Styles) -> str:
    """Convert a document with changed parts to HTML by mammoth, without pictures."""
    import mammoth

    convert = partial(
        mammoth.convert_to_html,
        style_map="\n".join(_style_map(styles)),
        convert_image=mammoth.images.img_element(lambda image: {"src": ""}),
        ignore_empty_paragraphs=True,
    )
    result: Any = package.open(convert, changes)
    for message in result.messages:
        if "w:sym" in message.message:
            write_note(f"a sign{LEFT_OUT}{message.message}")
    return str(result.value).translate(_BOXES)


def _pictures(document: Any, package: Package, main: str) -> Iterator[tuple[str, str]]:
    """Yield for each picture the name of its file in the package, else "", and its caption or description."""
    targets = package.targets(main)
    for node in document.iter(f"{A}blip", f"{VML}imagedata"):
        target = targets.get(node.get(f"{R}embed") or node.get(f"{R}id") or "")
        if next(node.iterancestors(f"{MC}Fallback"), None) is None:  # not a second time for older programs
            yield target or "", _caption(node)


def _caption(picture: Any) -> str:
    """Return the caption of a picture: of its own paragraph, the next or the one before; else its description."""
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
    """Put a paragraph with a mark behind each chart, diagram and inserted file; return the text for each mark."""
    targets, texts = package.targets(main), dict[str, str]()
    for node in list(document.iter(f"{C}chart", f"{DGM}relIds", f"{W}altChunk")):
        target = targets.get(node.get(f"{R}dm") or node.get(f"{R}id") or "", "")
        with leave_out(f"part {target or node.tag.rpartition('}')[2]}"):
            if node.tag == f"{C}chart":
                text = "\n\n".join(chart_texts(package.xml(target)))
            elif node.tag == f"{DGM}relIds":
                text = diagram_text(package.xml(target))
            else:
                text = _inserted_text(package, target)
            is_in_table = next(node.iterancestors(f"{W}tc"), None) is not None
            mark = f"\ue000{len(texts)}\ue000"
            texts[mark] = " ".join(text.replace("|", " ").split()) if is_in_table else text
            paragraph = document.makeelement(f"{W}p")
            paragraph.append(run_of(document, mark))
            [node, *node.iterancestors(f"{W}p")][-1].addnext(paragraph)  # behind the outermost paragraph
    return texts


def _inserted_text(package: Package, name: str) -> str:
    """Return the text of a file that is inserted into a document; raises `Unreadable` for a kind that is not read."""
    ending = name.rpartition(".")[2].lower()
    if ending not in ("htm", "html", "xhtml", "txt"):
        raise Unreadable(f"it is an inserted file of a kind that is not read ({ending})")
    text = decode(package.read(name), markup=ending != "txt")
    return text if ending == "txt" else to_markdown(parse_html(text))


def _add_running_lines(document: Any, package: Package, main: str, styles: Styles) -> None:
    """Put the lines of page headers above a document and those of footers below it, each once, without page numbers."""
    body = document.find(f"{W}body")
    known_lines = {" ".join(_text_of(paragraph).split()) for paragraph in document.iter(f"{W}p")} | {""}
    for kind in ("header", "footer"):
        position = 0 if kind == "header" else len(body)
        for name in package.all_related(kind, main):
            with leave_out(name):
                root = package.xml(name)
                prepare(root, styles)
                for paragraph in root.iter(f"{W}p"):
                    # empty around a text box, whose own paragraphs follow
                    line = "" if paragraph.find(f".//{W}p") is not None else _text_of(paragraph)
                    if (line := _without_page_number(line)) in known_lines:
                        continue
                    known_lines.add(line)
                    body.insert(position, document.makeelement(f"{W}p"))
                    body[position].append(run_of(document, line))
                    position += 1


def _without_page_number(line: str) -> str:
    pieces = [] if _PAGE_NUMBER.fullmatch(line) else _PIECE.split(line)
    return " ".join("".join(piece for piece in pieces if not _PAGE_NUMBER.fullmatch(piece)).split())


def _text_of(paragraph: Any) -> str:
    parts = paragraph.iter(f"{W}t", f"{W}tab", f"{W}br")
    return "".join(part.text or "" if part.tag == f"{W}t" else "\t" for part in parts)


def _mark_numbers(document: Any, lists: Lists, labels: list[tuple[int, str]]) -> None:
    """Add the level and label of each numbered paragraph to ``labels``, and to it a bookmark named by their index."""
    for paragraph in document.iter(f"{W}p"):
        is_deleted = paragraph.find(f"{W}pPr/{W}rPr/{W}del") is not None
        has_text = any(text.text for text in paragraph.iter(f"{W}t"))
        is_hidden = not has_text and paragraph.find(f"{W}pPr/{W}rPr/{W}vanish") is not None
        # what is in a Choice is written a second time for older programs
        if is_deleted or is_hidden or next(paragraph.iterancestors(f"{MC}Choice"), None) is not None:
            continue
        if (label := lists.count(paragraph)) is None:
            continue
        if has_text:
            name = {f"{W}id": f"9{len(labels)}", f"{W}name": f"{_BOOKMARK}{len(labels)}"}
            position = int(paragraph[0].tag == f"{W}pPr")  # behind the properties, if there are any
            paragraph.insert(position, paragraph.makeelement(f"{W}bookmarkStart", name))
            labels.append(label)
        elif paragraph.getparent().tag == f"{W}tc":  # a cell with a number alone
            paragraph.append(run_of(paragraph, label[1]))


def _with_numbers(tree: Any, labels: list[tuple[int, str]]) -> Any:
    """Write the labels (level and text) into the bookmarked paragraphs of a document's HTML; return the tree."""
    for back in tree.xpath("//a[starts-with(@href, '#footnote-ref') or starts-with(@href, '#endnote-ref')]"):
        back.drop_tree()  # an arrow behind a footnote, which Word does not show
    for mark in tree.xpath(f"//a[starts-with(@id, '{_BOOKMARK}')]"):
        number = mark.get("id").removeprefix(_BOOKMARK)
        if not number.isdecimal() or int(number) >= len(labels):
            continue  # a bookmark of the document that has such a name by chance
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
    """Make a paragraph an item of the list right before it, or of a deeper list inside that, else of a new list."""
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
    """Yield mammoth's rule for each style of headings, such as ``p[style-name='Clause'] => h2:fresh``."""
    for style_id, style in styles.by_id.items():
        name = value_of(style.find(f"{W}name")) or ""
        level = next(filter(None, map(_heading_level, styles.chain(style_id))), 0)  # of the nearest style
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
