"""A document as spans, large ones to return and small ones in them to search; or as its sentences."""

from __future__ import annotations

from collections.abc import Sequence

from langchain_core.documents import Document

from rag_kit.errors import InvalidInputError
from rag_kit.indexing.document_index.rows import Child, Family, ParentSpan
from rag_kit.indexing.splitting.api import SplitPart, Splitter, spans_of
from rag_kit.indexing.splitting.packing import check_sizes, split_spans
from rag_kit.indexing.splitting.structure import heading_lookup, is_markdown
from rag_kit.text import sentences


def check_family_sizes(parent_size: int | None, child_size: int, overlap: int = 0) -> None:
    """Raise InvalidInputError for sizes that are too small, or children as large as parents (``None``: documents)."""
    check_sizes(child_size, overlap)
    if parent_size is not None:
        check_sizes(parent_size, 0)
        if parent_size <= child_size:
            raise InvalidInputError(
                f"Parents of {parent_size} characters and children of {child_size} were given; children are smaller."
            )


def split_family(
    document: Document, child: Splitter | int, parent: Splitter | int | None = None, *, overlap: int = 0
) -> Family:
    """Cut a document into parents, if ``parent`` is given, and these into the children that are searched.

    ``child`` and ``parent`` are the most characters of one, or a splitter. A parent that is not found in the document's
    text is left out with its children; InvalidInputError if all are. ``overlap`` is the most characters that a child
    repeats of the one before, in whole sentences. A blank text has no children.

    Example:
        >>> from langchain_core.documents import Document
        >>> text = "The lake is deep. It is cold. " * 4
        >>> family = split_family(Document(text.strip()), 30, 60)
        >>> [(child.start, child.end, child.span.end) for child in family.children]
        [(0, 29, 59), (30, 59, 59), (60, 89, 119), (90, 119, 119)]
    """
    heading_at, size = heading_lookup(document), len(document.page_content)
    parents: list[ParentSpan | None] = [None]  # without parents the whole document is cut once
    if parent is not None:
        parts = _split_span(document, parent, 0, size)
        parents = [
            ParentSpan(part.start, part.end, leaves=0, **heading_at(part.start))
            for part in parts
            if part.start is not None and part.end is not None  # else a splitter has rewritten the text
        ]
        if parts and not parents:
            raise InvalidInputError("The parent splitter rewrites the text, so no parent is found in it.")
    children = []
    for span in parents:
        start, end = (span.start, span.end) if span else (0, size)
        for part in _split_span(document, child, start, end, overlap):
            if part.text.strip():
                metadata = {**heading_at(part.start), **part.metadata}
                children.append(Child(part.text, part.start, part.end, span, metadata))
    return Family(document, children)


def _split_span(
    document: Document, cut: Splitter | int, start: int, end: int, overlap: int = 0
) -> Sequence[SplitPart]:
    """Cut the span of a document from ``start`` to ``end`` by a splitter, or into pieces of a size."""
    if not isinstance(cut, int):
        return spans_of(document, cut, start, end)
    text = document.page_content[start:end]
    spans = split_spans(text, chunk_size=cut, chunk_overlap=overlap, markdown=is_markdown(document))
    return [SplitPart(text[low:high], start + low, start + high, {}) for low, high, *_ in spans]


def sentence_family(document: Document, *, max_chars: int = 1000) -> Family:
    """Cut a document into sentences as children without parents; one over ``max_chars`` characters becomes several."""
    heading_at = heading_lookup(document)
    children = [
        Child(sentence.text, sentence.start, sentence.end, metadata=heading_at(sentence.start))
        for sentence in sentences(document.page_content, max_chars=max_chars)
    ]
    return Family(document, children)
