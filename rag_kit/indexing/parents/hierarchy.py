"""A document as a tree of spans, large ones to return and small ones to search; or as its sentences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from rag_kit.errors import InvalidInputError
from rag_kit.indexing.document_index.families import Ancestor, Child, Family
from rag_kit.indexing.splitting.api import Part, Splitter, spans_of
from rag_kit.indexing.splitting.packing import check_sizes, split_spans
from rag_kit.indexing.splitting.structure import heading_lookup, is_markdown
from rag_kit.text import sentences

if TYPE_CHECKING:
    from langchain_core.documents import Document


@dataclass(frozen=True)
class PartSizes:
    """How documents are cut.

    Attributes:
        parents: Most characters of a parent, level by level, largest first; empty for whole documents.
        child: Most characters of a child.
        overlap: Most characters that a child repeats of the one before, in whole sentences.

    Raises:
        InvalidInputError: A size is not allowed, or they do not fall from level to level.
    """

    parents: tuple[int, ...] = ()
    child: int = 400
    overlap: int = 0

    def __post_init__(self) -> None:
        check_sizes(self.child, self.overlap)
        for size in self.parents:
            check_sizes(size, 0)
        levels = [*self.parents, self.child]
        if any(large <= small for large, small in pairwise(levels)):
            raise InvalidInputError(
                f"Sizes {levels} were given (parents, then the child); each must be smaller than the one before."
            )


def split_family(
    document: Document,
    sizes: PartSizes | None = None,
    *,
    parent_splitter: Splitter | None = None,
    child_splitter: Splitter | None = None,
) -> Family:
    """Cut a document into spans, and these into smaller ones, down to the children.

    Args:
        document: The document; it is not changed.
        sizes: The sizes of the levels.
        parent_splitter: Cuts the document into parents instead; what it gives must stand in the document.
        child_splitter: Cuts parents into children instead.

    Returns:
        The document and its children; each says in which larger spans it lies. A text without a visible
        character has no children.

    Example:
        >>> from langchain_core.documents import Document
        >>> text = "The lake is deep. It is cold. " * 4
        >>> family = split_family(Document(text.strip()), PartSizes(parents=(60,), child=30))
        >>> [(child.start, child.end, child.path[0].end) for child in family.children]
        [(0, 29, 59), (30, 59, 59), (60, 89, 119), (90, 119, 119)]
    """
    sizes = sizes or PartSizes()
    heading_at = heading_lookup(document)
    levels: list[tuple[tuple[Ancestor, ...], int, int]] = [((), 0, len(document.page_content))]
    cuts: list[Splitter | int] = [parent_splitter] if parent_splitter else [*sizes.parents]
    for cut in cuts:
        levels = [
            ((*path, Ancestor(part.start, part.end, 0, **heading_at(part.start))), part.start, part.end)
            for path, start, end in levels
            for part in _split_span(document, cut, start, end, 0)
            if part.start is not None and part.end is not None
        ]
    children = [
        Child(part.text, part.start, part.end, path, {**heading_at(part.start), **part.metadata})
        for path, start, end in levels
        for part in _split_span(document, child_splitter or sizes.child, start, end, sizes.overlap)
        if part.text.strip()
    ]
    return Family(document, children)


def _split_span(
    document: Document, cut: Splitter | int, start: int, end: int, overlap: int
) -> Sequence[Part]:
    if not isinstance(cut, int):
        return spans_of(document, cut, start, end)
    text = document.page_content[start:end]
    spans = split_spans(text, chunk_size=cut, chunk_overlap=overlap, markdown=is_markdown(document))
    return [Part(text[s.start : s.end], start + s.start, start + s.end, {}) for s in spans]


def sentence_family(document: Document, *, max_chars: int = 1000) -> Family:
    """Cut a document into sentences.

    Args:
        document: The document; it is not changed.
        max_chars: Longest sentence, in characters.

    Example:
        >>> from langchain_core.documents import Document
        >>> family = sentence_family(Document("湖水很深。The lake is cold."))
        >>> [(child.text, child.start) for child in family.children]
        [('湖水很深。', 0), ('The lake is cold.', 5)]
    """
    heading_at = heading_lookup(document)
    children = [
        Child(sentence.text, sentence.start, sentence.end, metadata=heading_at(sentence.start))
        for sentence in sentences(document.page_content, max_chars=max_chars)
    ]
    return Family(document, children)
