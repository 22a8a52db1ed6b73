"""Sparse vectors of any encoder over numpy postings: inner product, filterable, saved without pickle."""

from __future__ import annotations

from rag_kit.indexing.sparse.index import SparseIndex
from rag_kit.indexing.sparse.tfidf import TfidfEncoder

__all__ = ["SparseIndex", "TfidfEncoder"]
