"""BM25 over numpy arrays: exact, incremental, filterable, saved without pickle."""

from __future__ import annotations

from rag_kit.indexing.bm25.index import BM25Index

__all__ = ["BM25Index"]
