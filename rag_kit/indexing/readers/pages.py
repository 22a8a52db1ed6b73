"""HTML pages without what surrounds their content (menus, link lists, cookie banners, footers), and EPUB books."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from typing import Any
from urllib.parse import unquote

from rag_kit.indexing.readers.encodings import decode
from rag_kit.indexing.readers.figures import Figures, file_beside, html_figures
from rag_kit.indexing.readers.markup import apply_style_sheet, html_title, parse_html, to_markdown
from rag_kit.indexing.readers.package import Package, beside
from rag_kit.indexing.readers.parts import Context, Part, Scalar, Unreadable, leave_out

_CONTENT = ("main", "article")
_QUOTING = ("article", "blockquote", "figure", "main", "section")  # a footer in these is a part of them
_MENU = re.compile(
    r"(?:^|[\s_-])(?:nav|navbar|navigation|navbox|menu|sidebar|breadcrumbs?|toc|pagination|pager|footer|catlinks)"
    r"(?:$|[\s_-])"
)
_BANNER = re.compile(  # cookie-banner, cookieConsent, cookies-notice and the like
    r"cookie[_-]?(?:ban|bar|con|dia|law|mes|mod|not|over|pop|set)|\b(?:consent(?!-form)|gdpr|onetrust)\b"
)
_MAX_PROSE = 2_000  # characters that are not links; what has more is content
_REST = 200  # characters; where menus leave fewer of a page, they are its content


def read_html(data: bytes, context: Context) -> Iterator[Part]:
    """Yield one part: the page's visible text as markdown, without its menus; and one for each picture."""
    tree = parse_html(decode(data, markup=True))
    _drop_menus(tree)
    title = html_title(tree)
    yield Part(to_markdown(tree), {"title": title})
    load = partial(file_beside, context.folder, max_bytes=context.limits.max_bytes)
    figures = Figures(context)
    yield from html_figures(tree, figures, load, {"title": title})
    figures.finish()


def read_epub(data: bytes, context: Context) -> Iterator[Part]:
    """Yield each chapter of a book, in the order of its spine, as markdown; a repeated one is read once."""
    package = Package(data, context.limits)
    container = package.xml("META-INF/container.xml").iter("{*}rootfile")
    opf_path = next(filter(None, (node.get("full-path") for node in container)), "")
    if not opf_path:
        raise Unreadable("its container names no book", "Check it with an EPUB validator, or convert it")
    opf = package.xml(opf_path)
    items = opf.iterfind(".//{*}manifest/{*}item")
    paths = {item.get("id"): beside(opf_path, unquote(item.get("href") or "")) for item in items}
    spine = [reference.get("idref") for reference in opf.iterfind(".//{*}spine/{*}itemref")]
    context.check(len(spine), "chapters", "max_pages")
    title = " ".join(next((node.text for node in opf.iter("{*}title") if node.text), "").split())
    names_read, figures = set[str](), Figures(context)
    for number, reference in enumerate(spine, 1):
        name = paths.get(reference, "")
        # The format allows each part once. A book that repeats a long one could keep the reader busy for minutes.
        if name and name in names_read:
            continue
        with leave_out(f"chapter {number}"):
            names_read.add(name)
            tree = parse_html(decode(package.read(name), markup=True))
            css = ""
            for path in dict.fromkeys(tree.xpath("//link[@rel='stylesheet']/@href")):
                with leave_out(f"style sheet {path}"):
                    css += decode(package.read(beside(name, unquote(path)))) + "\n"
            apply_style_sheet(tree, css)
            metadata: dict[str, Scalar] = {"title": title, "chapter": number}
            metadata["chapter_title"] = html_title(tree)
            yield Part(to_markdown(tree), dict(metadata))
            load = partial(lambda chapter, path: package.read(beside(chapter, path)), name)
            yield from html_figures(tree, figures, load, metadata, f"chapter {number}, ")
    figures.finish()


def _drop_menus(tree: Any) -> None:
    """Remove menus, banners and footers from a page; a page that would be left almost empty stays whole."""
    has_main = next(tree.iter(*_CONTENT), None) is not None
    menus: list[Any] = []
    unvisited = [tree]  # elements whose children are still to be looked at; those of menus are not
    while unvisited:
        for child in unvisited.pop():
            is_menu = isinstance(child.tag, str) and _is_menu(child, has_main)
            (menus if is_menu else unvisited).append(child)
    menu_length = sum(map(_text_length, menus))
    if _text_length(tree) - menu_length >= min(_REST, menu_length):
        for menu in menus:
            menu.drop_tree()


def _is_menu(node: Any, has_main: bool) -> bool:
    """Tell whether an element is a menu, banner or footer: by its tag, role or names, and since it has little prose."""
    if next(node.iter("h1", *_CONTENT), None) is not None:  # the content itself is inside it
        return False
    tag, role = node.tag, str(node.get("role") or "").lower()
    name = f"{node.get('id') or ''} {node.get('class') or ''}".lower()
    is_outside = has_main and next(node.iterancestors(*_CONTENT), None) is None  # of the page's main content
    is_in_quotation = next(node.iterancestors(*_QUOTING), None) is not None
    is_footer = (tag == "footer" or role == "contentinfo") and not is_in_quotation
    is_banner = tag not in ("html", "body") and bool(_BANNER.search(name))
    is_navigation = tag in ("nav", "aside") or role in ("navigation", "search")
    is_named_menu = tag in ("div", "ol", "p", "section", "table", "ul") and bool(_MENU.search(name))
    is_list = is_named_menu or (is_outside and tag in ("ol", "ul"))
    if not (is_footer or is_banner or is_navigation or is_list):
        return False
    links = sum(_text_length(link) for link in node.iter("a"))
    prose = _text_length(node) - links
    if is_footer or is_banner:
        return prose < _MAX_PROSE
    if is_navigation:
        return prose < (_MAX_PROSE if is_outside else links)
    return 10 * prose <= links and len(node.findall(".//a")) > 2  # a list that is hardly more than links


def _text_length(node: Any) -> int:
    return sum(len(piece.strip()) for piece in node.itertext())
