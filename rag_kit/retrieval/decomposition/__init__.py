"""Decomposition: a question split into parts, searched for side by side or one after the other."""

from __future__ import annotations

from rag_kit.retrieval.decomposition.retriever import DecompositionRetriever

__all__ = ["DecompositionRetriever"]
