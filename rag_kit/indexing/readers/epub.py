"""EPUB books: one part a chapter, in reading order."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from urllib.parse import unquote

from rag_kit.indexing.readers.encodings import decode
from rag_kit.indexing.readers.markup import html_title, parse_html, to_markdown
from rag_kit.indexing.readers.package import Package
from rag_kit.indexing.readers.parts import Context, Part, Scalar, Unreadable


def read_epub(data: bytes, context: Context) -> Iterator[Part]:
    """Each document of the spine as markdown, with its number and heading; one that is repeated counts once."""
    package = Package(data, context.limits)
    root = package.xml("META-INF/container.xml")
    paths = root.xpath("//*[local-name()='rootfile']/@full-path")
    if not paths:
        raise Unreadable(
            "its container names no book", "Check it with an EPUB validator, or convert it again"
        )
    opf_path = str(paths[0])
    opf = package.xml(opf_path)
    folder = posixpath.dirname(opf_path)
    items = {
        item.get("id"): posixpath.normpath(posixpath.join(folder, unquote(item.get("href") or "")))
        for item in opf.xpath("//*[local-name()='manifest']/*[local-name()='item']")
    }
    spine = [ref.get("idref") for ref in opf.xpath("//*[local-name()='spine']/*[local-name()='itemref']")]
    context.check(len(spine), "chapters", "max_pages")
    titles = [" ".join(text.split()) for text in opf.xpath("//*[local-name()='title']/text()")]
    title = titles[0] if titles else ""
    names_read: set[str] = set()
    for number, reference in enumerate(spine, 1):
        name = items.get(reference)
        # The format allows each part once. A book that repeats a long one would hold the reader for its time cap.
        if name is None or name not in package or name in names_read:
            continue
        names_read.add(name)
        tree = parse_html(decode(package.read(name), markup=True))
        metadata: dict[str, Scalar] = {"title": title, "chapter": number, "chapter_title": html_title(tree)}
        yield Part(to_markdown(tree), metadata)
