"""Retrievers: LangChain retrievers that compose, explain themselves and take ``k=`` and ``filter=``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rag_kit._lazy import lazy_attributes

if TYPE_CHECKING:
    from rag_kit.documents import explain
    from rag_kit.retrieval.base import RagKitRetriever, Request
    from rag_kit.retrieval.bm25 import BM25Retriever
    from rag_kit.retrieval.compose import acall_retriever, call_retriever
    from rag_kit.retrieval.compression import (
        CompressionRetriever,
        Compressor,
        EmbeddingCompressor,
        LexicalCompressor,
        ModelCompressor,
    )
    from rag_kit.retrieval.conversational import ConversationalRetriever
    from rag_kit.retrieval.decomposition import DecompositionRetriever
    from rag_kit.retrieval.ensemble import EnsembleRetriever
    from rag_kit.retrieval.exact import ExactVectorRetriever, ExactVectorStore
    from rag_kit.retrieval.expansion import ExpansionRetriever
    from rag_kit.retrieval.fusion import reciprocal_rank_fusion
    from rag_kit.retrieval.graph import GraphRetriever
    from rag_kit.retrieval.hybrid import HybridRetriever
    from rag_kit.retrieval.hyde import HyDERetriever
    from rag_kit.retrieval.multi_query import MultiQueryRetriever
    from rag_kit.retrieval.parents import ParentDocumentRetriever, SentenceWindowRetriever
    from rag_kit.retrieval.query2doc import Query2DocRetriever
    from rag_kit.retrieval.raptor import RaptorRetriever
    from rag_kit.retrieval.representations import MultiRepresentationRetriever, index_retriever
    from rag_kit.retrieval.rerank import (
        Authority,
        CrossEncoderReranker,
        EmbeddingReranker,
        FunctionReranker,
        ListwiseReranker,
        MetadataReranker,
        MMRReranker,
        PointwiseReranker,
        Recency,
        Reranker,
        RerankRetriever,
        ScoreGap,
        lost_in_the_middle,
    )
    from rag_kit.retrieval.routing import (
        NoRouteError,
        Route,
        RoutingRetriever,
        Source,
        aroute_prompt,
        prompt_router,
        route_prompt,
    )
    from rag_kit.retrieval.sparse import SparseRetriever, TrigramRetriever
    from rag_kit.retrieval.step_back import StepBackRetriever
    from rag_kit.retrieval.vector import VectorRetriever

__all__ = [
    "Authority",
    "BM25Retriever",
    "CompressionRetriever",
    "Compressor",
    "ConversationalRetriever",
    "CrossEncoderReranker",
    "DecompositionRetriever",
    "EmbeddingCompressor",
    "EmbeddingReranker",
    "EnsembleRetriever",
    "ExactVectorRetriever",
    "ExactVectorStore",
    "ExpansionRetriever",
    "FunctionReranker",
    "GraphRetriever",
    "HyDERetriever",
    "HybridRetriever",
    "LexicalCompressor",
    "ListwiseReranker",
    "MMRReranker",
    "MetadataReranker",
    "ModelCompressor",
    "MultiQueryRetriever",
    "MultiRepresentationRetriever",
    "NoRouteError",
    "ParentDocumentRetriever",
    "PointwiseReranker",
    "Query2DocRetriever",
    "RagKitRetriever",
    "RaptorRetriever",
    "Recency",
    "Request",
    "RerankRetriever",
    "Reranker",
    "Route",
    "RoutingRetriever",
    "ScoreGap",
    "SentenceWindowRetriever",
    "Source",
    "SparseRetriever",
    "StepBackRetriever",
    "TrigramRetriever",
    "VectorRetriever",
    "acall_retriever",
    "aroute_prompt",
    "call_retriever",
    "explain",
    "index_retriever",
    "lost_in_the_middle",
    "prompt_router",
    "reciprocal_rank_fusion",
    "route_prompt",
]

__getattr__, __dir__ = lazy_attributes(
    __name__,
    {
        "ModelCompressor": ".compression",
        "LexicalCompressor": ".compression",
        "EmbeddingCompressor": ".compression",
        "Compressor": ".compression",
        "CompressionRetriever": ".compression",
        "lost_in_the_middle": ".rerank",
        "Reranker": ".rerank",
        "ScoreGap": ".rerank",
        "Authority": ".rerank",
        "Recency": ".rerank",
        "PointwiseReranker": ".rerank",
        "MetadataReranker": ".rerank",
        "MMRReranker": ".rerank",
        "ListwiseReranker": ".rerank",
        "FunctionReranker": ".rerank",
        "EmbeddingReranker": ".rerank",
        "CrossEncoderReranker": ".rerank",
        "RerankRetriever": ".rerank",
        "BM25Retriever": ".bm25",
        "ConversationalRetriever": ".conversational",
        "DecompositionRetriever": ".decomposition",
        "EnsembleRetriever": ".ensemble",
        "HybridRetriever": ".hybrid",
        "ExactVectorRetriever": ".exact",
        "ExactVectorStore": ".exact",
        "ExpansionRetriever": ".expansion",
        "GraphRetriever": ".graph",
        "HyDERetriever": ".hyde",
        "MultiQueryRetriever": ".multi_query",
        "MultiRepresentationRetriever": ".representations",
        "Query2DocRetriever": ".query2doc",
        "RagKitRetriever": ".base",
        "RaptorRetriever": ".raptor",
        "Request": ".base",
        "ParentDocumentRetriever": ".parents",
        "SentenceWindowRetriever": ".parents",
        "SparseRetriever": ".sparse",
        "NoRouteError": ".routing",
        "Route": ".routing",
        "RoutingRetriever": ".routing",
        "Source": ".routing",
        "aroute_prompt": ".routing",
        "prompt_router": ".routing",
        "route_prompt": ".routing",
        "StepBackRetriever": ".step_back",
        "TrigramRetriever": ".sparse",
        "VectorRetriever": ".vector",
        "acall_retriever": ".compose",
        "call_retriever": ".compose",
        "explain": "rag_kit.documents",
        "index_retriever": ".representations",
        "reciprocal_rank_fusion": ".fusion",
    },
)
