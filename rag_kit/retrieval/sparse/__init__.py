"""Retrieval by sparse vectors of any encoder, and by character n-grams."""

from __future__ import annotations

from rag_kit.retrieval.sparse.retriever import SparseRetriever
from rag_kit.retrieval.sparse.trigram import TrigramRetriever

__all__ = ["SparseRetriever", "TrigramRetriever"]
