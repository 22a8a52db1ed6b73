"""HTML pages."""

from __future__ import annotations

from collections.abc import Iterator

from rag_kit.indexing.readers.encodings import decode
from rag_kit.indexing.readers.markup import html_title, parse_html, to_markdown
from rag_kit.indexing.readers.menus import without_menus
from rag_kit.indexing.readers.parts import Context, Part


def read_html(data: bytes, context: Context) -> Iterator[Part]:
    """One part: the page's visible text as markdown, without its menus."""
    tree = parse_html(decode(data, markup=True))
    text = to_markdown(without_menus(tree), links=context.links)
    title = html_title(tree)
    yield Part(text, {"title": title} if title else {})
