"""A document as a tree of spans, large ones to return and small ones to search; or as its sentences."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from langchain_core.documents import Document

from rag_kit.errors import InvalidInputError
from rag_kit.indexing.document_index.rows import Ancestor, Child, Family
from rag_kit.indexing.splitting.api import SplitPart, Splitter, spans_of
from rag_kit.indexing.splitting.packing import check_sizes, split_spans
from rag_kit.indexing.splitting.structure import heading_lookup, is_markdown
from rag_kit.text import sentences


def check_levels(sizes: Sequence[int], overlap: int = 0) -> None:
    """Raise InvalidInputError for sizes of levels, parents first, that are too small or do not become smaller."""
    check_sizes(sizes[-1], overlap)
    for size in sizes[:-1]:
        check_sizes(size, 0)
    if any(large <= small for large, small in pairwise(sizes)):
        raise InvalidInputError(
            f"Sizes {list(sizes)} were given (parents, then the child); each must be smaller than the one before."
        )


def split_family(document: Document, cuts: Sequence[Splitter | int], overlap: int = 0) -> Family:
    """Cut a document into large spans, and these into smaller ones, down to the children that are searched.

    ``cuts`` has the most characters of a span, or a splitter, for each level, the children's last. A parent that is
    not found in the document's text is left out. ``overlap`` is the most characters that a child repeats of the one
    before, in whole sentences. A child's ``path`` has the larger spans around it. A blank text has no children.

    Example:
        >>> from langchain_core.documents import Document
        >>> text = "The lake is deep. It is cold. " * 4
        >>> family = split_family(Document(text.strip()), [60, 30])
        >>> [(child.start, child.end, child.path[0].end) for child in family.children]
        [(0, 29, 59), (30, 59, 59), (60, 89, 119), (90, 119, 119)]
    """
    heading_at = heading_lookup(document)
    *parent_cuts, child_cut = cuts
    # the spans of a level, each with the larger ones around it (its path), start and end
    spans: list[tuple[tuple[Ancestor, ...], int, int]] = [((), 0, len(document.page_content))]
    for cut in parent_cuts:
        larger, spans = spans, []
        for path, start, end in larger:
            for part in _split_span(document, cut, start, end, 0):
                if part.start is not None and part.end is not None:  # else a splitter has rewritten the text
                    ancestor = Ancestor(part.start, part.end, 0, **heading_at(part.start))
                    spans.append(((*path, ancestor), part.start, part.end))
    children = []
    for path, start, end in spans:
        for part in _split_span(document, child_cut, start, end, overlap):
            if part.text.strip():
                metadata = {**heading_at(part.start), **part.metadata}
                children.append(Child(part.text, part.start, part.end, path, metadata))
    return Family(document, children)


def _split_span(
    document: Document, cut: Splitter | int, start: int, end: int, overlap: int
) -> Sequence[SplitPart]:
    """Cut the span of a document from ``start`` to ``end`` by a splitter, or into pieces of a size."""
    if not isinstance(cut, int):
        return spans_of(document, cut, start, end)
    text = document.page_content[start:end]
    spans = split_spans(text, chunk_size=cut, chunk_overlap=overlap, markdown=is_markdown(document))
    return [SplitPart(text[s.start : s.end], start + s.start, start + s.end, {}) for s in spans]


def sentence_family(document: Document, *, max_chars: int = 1000) -> Family:
    """Cut a document into sentences as children without parents; one over ``max_chars`` characters becomes several."""
    heading_at = heading_lookup(document)
    children = [
        Child(sentence.text, sentence.start, sentence.end, metadata=heading_at(sentence.start))
        for sentence in sentences(document.page_content, max_chars=max_chars)
    ]
    return Family(document, children)
