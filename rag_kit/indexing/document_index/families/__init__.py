"""Documents that are searched by their parts: parents and children in one transaction."""

from __future__ import annotations

from rag_kit.indexing.document_index.families.model import PARENT_KEY, Ancestor, Child, Family, Place
from rag_kit.indexing.document_index.families.reading import Families, FamilyView, Sibling
from rag_kit.indexing.document_index.families.rows import offset_in_source

__all__ = [
    "PARENT_KEY",
    "Ancestor",
    "Child",
    "Families",
    "Family",
    "FamilyView",
    "Place",
    "Sibling",
    "offset_in_source",
]
