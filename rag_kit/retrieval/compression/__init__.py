"""Compressors, and the retriever that applies them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rag_kit._lazy import lazy_attributes

if TYPE_CHECKING:
    from rag_kit.retrieval.compression.base import Compressor, Passage, Selection
    from rag_kit.retrieval.compression.duplicates import near_duplicates
    from rag_kit.retrieval.compression.embedding import EmbeddingCompressor
    from rag_kit.retrieval.compression.lexical import LexicalCompressor
    from rag_kit.retrieval.compression.model import ModelCompressor
    from rag_kit.retrieval.compression.retriever import CompressionRetriever

__all__ = [
    "CompressionRetriever",
    "Compressor",
    "EmbeddingCompressor",
    "LexicalCompressor",
    "ModelCompressor",
    "Passage",
    "Selection",
    "near_duplicates",
]

__getattr__, __dir__ = lazy_attributes(
    __name__,
    {
        "CompressionRetriever": ".retriever",
        "Compressor": ".base",
        "EmbeddingCompressor": ".embedding",
        "LexicalCompressor": ".lexical",
        "ModelCompressor": ".model",
        "Passage": ".base",
        "Selection": ".base",
        "near_duplicates": ".duplicates",
    },
)
