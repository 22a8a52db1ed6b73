"""Exact vector search in memory: over documents, and over a Chroma collection that may change."""

from __future__ import annotations

from rag_kit.retrieval.exact.nearest import NearestVectors
from rag_kit.retrieval.exact.retriever import ExactVectorRetriever
from rag_kit.retrieval.exact.store import ExactVectorStore

__all__ = ["ExactVectorRetriever", "ExactVectorStore", "NearestVectors"]
