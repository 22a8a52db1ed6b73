"""HTML pages without what surrounds their content: menus, link lists, cookie banners, the page's footer."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from rag_kit.indexing.readers.encodings import decode
from rag_kit.indexing.readers.markup import html_title, parse_html, to_markdown
from rag_kit.indexing.readers.parts import Context, Part

_CONTENT = frozenset({"main", "article"})
_QUOTED = frozenset(
    {"article", "blockquote", "figure", "main", "section"}
)  # a footer in these is a part of them
_LISTS = frozenset({"div", "ol", "p", "section", "table", "ul"})
_NAMED = re.compile(
    r"(?:^|[\s_-])(?:nav|navbar|navigation|navbox|menu|sidebar|breadcrumbs?|toc|pagination|pager|footer|catlinks)"
    r"(?:$|[\s_-])"
)
_BANNER = re.compile(
    r"cookie[_-]?(?:banner|bar|consent|dialog|law|message|modal|notice|overlay|popup|settings)|"
    r"(?:^|[\s_-])(?:consent|gdpr|onetrust)(?:$|[\s_-])"
)
_PROSE = 300  # characters that are no links: a menu has fewer
_FOOTER = 2_000
_REST = 200  # a page of which less would be left is all content


def read_html(data: bytes, context: Context) -> Iterator[Part]:
    """One part: the page's visible text as markdown, without its menus."""
    tree = parse_html(decode(data, markup=True))
    text = to_markdown(without_menus(tree))
    yield Part(text, {"title": html_title(tree)})


def without_menus(tree: Any) -> Any:
    """A copy of a page without what surrounds its content.

    Left out are elements that say that they are navigation, cookie banners, footers of the page, asides that are
    mostly links or beside the page's ``main``, and lists of links that are named as a menu or stand outside of
    ``main``. What holds a top heading, the ``main`` part or an article stays, and so does what is mostly prose. A page
    of which hardly anything would be left stays whole.

    Args:
        tree: An lxml element; it is not changed.

    Example:
        >>> page = parse_html("<nav><a href='/'>Home</a></nav><p>" + "The lake is deep. " * 20 + "</p>")
        >>> to_markdown(without_menus(page))[:17]
        'The lake is deep.'
    """
    from copy import deepcopy

    page = deepcopy(tree)
    has_main = any(True for _ in page.iter(*_CONTENT))
    pending = [page]
    while pending:
        for child in list(pending.pop()):
            if isinstance(child.tag, str) and _is_menu(child, has_main):
                child.drop_tree()
            else:
                pending.append(child)
    left, whole = _length(page), _length(tree)
    return tree if left < _REST and left < whole - left else page


def _is_menu(node: Any, has_main: bool) -> bool:
    """Whether an element surrounds the content, by its tag, role, name and place, and holds little prose."""
    tag, role = node.tag, str(node.get("role") or "").lower()
    name = f"{node.get('id') or ''} {node.get('class') or ''}".lower()
    around = tag in ("nav", "aside", "footer") or role in ("navigation", "search", "contentinfo")
    named = tag in _LISTS and bool(_NAMED.search(name))
    banner = bool(_BANNER.search(name)) and tag not in ("html", "body")
    beside = has_main and not _inside(node, _CONTENT)
    if not (around or named or banner or (beside and tag in ("ol", "ul"))):
        return False
    if any(True for _ in node.iter("h1", "main", "article")):
        return False
    whole = _length(node)
    links = sum(_length(link) for link in node.iter("a"))
    prose = whole - links
    if tag == "footer" or role == "contentinfo":
        return not _inside(node, _QUOTED) and (prose < _FOOTER or prose < links)
    if tag == "aside":
        return prose < links or (beside and prose < _FOOTER)
    if banner:
        return prose < _FOOTER
    if around:
        return prose < _PROSE or prose < links
    return 10 * prose <= links and sum(1 for _ in node.iter("a")) > 2


def _inside(node: Any, tags: frozenset[str]) -> bool:
    return any(True for _ in node.iterancestors(*tags))


def _length(node: Any) -> int:
    return sum(len(piece.strip()) for piece in node.itertext())
