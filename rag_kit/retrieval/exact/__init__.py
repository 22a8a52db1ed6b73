"""Exact vector search in memory: over documents, and over a Chroma collection that may change."""
