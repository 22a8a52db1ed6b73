"""The span of a chunk in its source, and the part of it that other chunks of that source do not repeat."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from langchain_core.documents import Document


class Span(NamedTuple):
    """A stretch of a source, in characters."""

    source: str
    start: int
    end: int


def span_of(document: Document) -> Span | None:
    """Where a chunk stands, by its metadata ``source``, ``start`` and ``end``; ``None`` where they do not say.

    Example:
        >>> from langchain_core.documents import Document
        >>> span_of(Document("deep", metadata={"source": "lake.md", "start": 6, "end": 10}))
        Span(source='lake.md', start=6, end=10)
    """
    start, end = document.metadata.get("start"), document.metadata.get("end")
    source = document.metadata.get("source")
    if type(start) is int and type(end) is int and isinstance(source, str):
        return Span(source, start, end) if start >= 0 and end - start == len(document.page_content) else None
    return None


def new_part(document: Document, others: Iterable[Document]) -> Document | None:
    """A chunk without what stands in other chunks of its source.

    Only text that is the same at the same place counts as repeated, so that equal offsets of two pages, or of two
    versions of a file, take nothing away.

    Args:
        document: The chunk.
        others: Chunks of any sources.

    Returns:
        The chunk itself where nothing is repeated; else a copy of its longest stretch that is new, with its place in
        ``start`` and ``end``; ``None`` where nothing visible is new.

    Example:
        >>> from langchain_core.documents import Document
        >>> def chunk(text, start):
        ...     return Document(text, metadata={"source": "a", "start": start, "end": start + len(text)})
        >>> new_part(chunk("one two three", 0), [chunk("one two", 0)]).page_content
        'three'
    """
    span = span_of(document)
    if span is None:
        return document
    text, pieces = document.page_content, [(span.start, span.end)]
    for other in others:
        there = span_of(other)
        if there is None or there.source != span.source:
            continue
        low, high = max(span.start, there.start), min(span.end, there.end)
        repeated = other.page_content[low - there.start : high - there.start]
        if low < high and repeated == text[low - span.start : high - span.start]:
            pieces = [
                piece
                for start, end in pieces
                for piece in ((start, min(end, low)), (max(start, high), end))
                if piece[0] < piece[1]
            ]
    if pieces == [(span.start, span.end)]:
        return document
    start, end = max(pieces, key=lambda piece: piece[1] - piece[0], default=(0, 0))
    new = text[start - span.start : end - span.start] if pieces else ""
    start += len(new) - len(new.lstrip())
    new = new.strip()
    if not new:
        return None
    place = {"start": start, "end": start + len(new)}
    return document.model_copy(update={"page_content": new, "metadata": {**document.metadata, **place}})
