"""Retrievers: LangChain retrievers that compose, explain themselves and take ``k=`` and ``filter=``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rag_kit._lazy import lazy_names

if TYPE_CHECKING:
    from rag_kit.documents.explanation import explain as explain
    from rag_kit.retrieval.base import RagKitRetriever as RagKitRetriever
    from rag_kit.retrieval.bm25 import BM25Retriever as BM25Retriever
    from rag_kit.retrieval.compression.retriever import CompressionRetriever as CompressionRetriever
    from rag_kit.retrieval.conversational import ConversationalRetriever as ConversationalRetriever
    from rag_kit.retrieval.decomposition import DecompositionRetriever as DecompositionRetriever
    from rag_kit.retrieval.ensemble import EnsembleRetriever as EnsembleRetriever
    from rag_kit.retrieval.exact import ExactVectorRetriever as ExactVectorRetriever
    from rag_kit.retrieval.expansion.retriever import ExpansionRetriever as ExpansionRetriever
    from rag_kit.retrieval.fusion import reciprocal_rank_fusion as reciprocal_rank_fusion
    from rag_kit.retrieval.graph import GraphRetriever as GraphRetriever
    from rag_kit.retrieval.hybrid import HybridRetriever as HybridRetriever
    from rag_kit.retrieval.hyde import HyDERetriever as HyDERetriever
    from rag_kit.retrieval.hyde import Query2DocRetriever as Query2DocRetriever
    from rag_kit.retrieval.multi_query import MultiQueryRetriever as MultiQueryRetriever
    from rag_kit.retrieval.multi_query import StepBackRetriever as StepBackRetriever
    from rag_kit.retrieval.parents.parent_document import ParentDocumentRetriever as ParentDocumentRetriever
    from rag_kit.retrieval.parents.sentence_window import SentenceWindowRetriever as SentenceWindowRetriever
    from rag_kit.retrieval.raptor import RaptorRetriever as RaptorRetriever
    from rag_kit.retrieval.representations import MultiRepresentationRetriever as MultiRepresentationRetriever
    from rag_kit.retrieval.representations import index_retriever as index_retriever
    from rag_kit.retrieval.rerank.endpoint import EndpointReranker as EndpointReranker
    from rag_kit.retrieval.rerank.model import ListwiseReranker as ListwiseReranker
    from rag_kit.retrieval.rerank.model import PointwiseReranker as PointwiseReranker
    from rag_kit.retrieval.rerank.retriever import RerankRetriever as RerankRetriever
    from rag_kit.retrieval.rerank.scorers import CrossEncoderReranker as CrossEncoderReranker
    from rag_kit.retrieval.rerank.scorers import EmbeddingReranker as EmbeddingReranker
    from rag_kit.retrieval.rerank.scorers import MMRReranker as MMRReranker
    from rag_kit.retrieval.rerank.signals import MetadataReranker as MetadataReranker
    from rag_kit.retrieval.routing.retriever import RoutingRetriever as RoutingRetriever
    from rag_kit.retrieval.routing.source import Source as Source
    from rag_kit.retrieval.sparse import SparseRetriever as SparseRetriever
    from rag_kit.retrieval.sparse import TrigramRetriever as TrigramRetriever
    from rag_kit.retrieval.vector import VectorRetriever as VectorRetriever

# retrievers of a package above, where a reader looks first
_ELSEWHERE = {
    "SelfQueryRetriever": "rag_kit.query_construction.self_query",
    "SqlRetriever": "rag_kit.query_construction.sql.query",
    "CypherRetriever": "rag_kit.query_construction.cypher.query",
}
__all__, __getattr__, __dir__ = lazy_names(__name__, _ELSEWHERE)
