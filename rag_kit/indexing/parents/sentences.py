"""A document as its sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rag_kit.indexing.document_index.families import Child, Family
from rag_kit.indexing.splitting.structure import Headings
from rag_kit.text import sentences

if TYPE_CHECKING:
    from langchain_core.documents import Document


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
    headings = Headings(document)
    children = []
    for sentence in sentences(document.page_content, max_chars=max_chars):
        heading = headings.at(sentence.start)
        metadata = {"heading": heading} if heading else {}
        children.append(Child(sentence.text, sentence.start, sentence.end, metadata=metadata))
    return Family(document, children)
