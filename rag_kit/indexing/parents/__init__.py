"""Cutting documents into the parts that are searched in their place."""

from __future__ import annotations

from rag_kit.indexing.parents.hierarchy import PartSizes, split_family
from rag_kit.indexing.parents.sentences import sentence_family
from rag_kit.indexing.parents.splitters import Splitter, check_splitter, spans_of

__all__ = ["PartSizes", "Splitter", "check_splitter", "sentence_family", "spans_of", "split_family"]
