"""Rerankers, and the retriever that applies them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rag_kit._lazy import lazy_attributes

if TYPE_CHECKING:
    from rag_kit.retrieval.rerank.base import FunctionReranker, Ranking, Reranker
    from rag_kit.retrieval.rerank.cross_encoder import CrossEncoderReranker
    from rag_kit.retrieval.rerank.cutting import ScoreGap
    from rag_kit.retrieval.rerank.embedding import EmbeddingReranker
    from rag_kit.retrieval.rerank.listwise import ListwiseReranker
    from rag_kit.retrieval.rerank.metadata import MetadataReranker
    from rag_kit.retrieval.rerank.mmr import MMRReranker
    from rag_kit.retrieval.rerank.ordering import lost_in_the_middle
    from rag_kit.retrieval.rerank.pointwise import PointwiseReranker
    from rag_kit.retrieval.rerank.retriever import RerankRetriever
    from rag_kit.retrieval.rerank.signals import Authority, Recency, Signal

__all__ = [
    "Authority",
    "CrossEncoderReranker",
    "EmbeddingReranker",
    "FunctionReranker",
    "ListwiseReranker",
    "MMRReranker",
    "MetadataReranker",
    "PointwiseReranker",
    "Ranking",
    "Recency",
    "RerankRetriever",
    "Reranker",
    "ScoreGap",
    "Signal",
    "lost_in_the_middle",
]

__getattr__, __dir__ = lazy_attributes(
    __name__,
    {
        "Authority": ".signals",
        "CrossEncoderReranker": ".cross_encoder",
        "EmbeddingReranker": ".embedding",
        "FunctionReranker": ".base",
        "ListwiseReranker": ".listwise",
        "MMRReranker": ".mmr",
        "MetadataReranker": ".metadata",
        "PointwiseReranker": ".pointwise",
        "Ranking": ".base",
        "Recency": ".signals",
        "RerankRetriever": ".retriever",
        "Reranker": ".base",
        "ScoreGap": ".cutting",
        "Signal": ".signals",
        "lost_in_the_middle": ".ordering",
    },
)
