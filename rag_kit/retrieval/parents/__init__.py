"""Retrievers that search small parts and return what stands around them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rag_kit._lazy import lazy_attributes

if TYPE_CHECKING:
    from rag_kit.retrieval.parents.base import FamilyRetriever
    from rag_kit.retrieval.parents.parent_document import ParentDocumentRetriever
    from rag_kit.retrieval.parents.sentence_window import SentenceWindowRetriever
    from rag_kit.retrieval.parents.writing import FamilyReport

__all__ = ["FamilyReport", "FamilyRetriever", "ParentDocumentRetriever", "SentenceWindowRetriever"]

__getattr__, __dir__ = lazy_attributes(
    __name__,
    {
        "FamilyReport": ".writing",
        "FamilyRetriever": ".base",
        "ParentDocumentRetriever": ".parent_document",
        "SentenceWindowRetriever": ".sentence_window",
    },
)
