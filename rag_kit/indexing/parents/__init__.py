"""Cutting documents into the parts that are searched in their place."""

from __future__ import annotations

from rag_kit.indexing.parents.hierarchy import PartSizes, split_family
from rag_kit.indexing.parents.sentences import sentence_family

__all__ = ["PartSizes", "sentence_family", "split_family"]
