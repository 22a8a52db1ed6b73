"""What can be given as a reranker."""

from __future__ import annotations

from typing import Any

from langchain_core.documents import BaseDocumentCompressor
from langchain_core.embeddings import Embeddings
from langchain_core.language_models import BaseLanguageModel
from langchain_core.runnables import Runnable

from rag_kit.errors import InvalidInputError
from rag_kit.retrieval.document_compressor import DocumentCompressor
from rag_kit.retrieval.rerank.base import FunctionReranker, Reranker
from rag_kit.retrieval.rerank.cross_encoder import CrossEncoderReranker, is_cross_encoder
from rag_kit.retrieval.rerank.embedding import EmbeddingReranker


def as_rerankers(value: Any) -> list[Reranker | DocumentCompressor]:
    """One reranker or several in a row.

    Args:
        value: A ``Reranker``, a LangChain cross-encoder or document compressor, an embedding model, a function of
            query and documents that gives scores, or a list of these.

    Raises:
        InvalidInputError: If it is something else, or an empty list.

    Example:
        >>> [one.name for one in as_rerankers([lambda query, docs: [1.0] * len(docs)])]
        ['function']
    """
    items = list(value) if isinstance(value, (list, tuple)) else [value]
    if not items:
        raise InvalidInputError("reranker is an empty list; give at least one reranker.")
    return [_one(item) for item in items]


def _one(value: Any) -> Reranker | DocumentCompressor:
    if isinstance(value, (Reranker, DocumentCompressor)):
        return value
    if isinstance(value, BaseDocumentCompressor):
        return DocumentCompressor(value)
    if is_cross_encoder(value):
        return CrossEncoderReranker(value)
    if isinstance(value, Embeddings):
        return EmbeddingReranker(value)
    if isinstance(value, BaseLanguageModel):
        raise InvalidInputError(
            f"reranker is the model {type(value).__name__}; say how it is to be asked: PointwiseReranker(model) or "
            "ListwiseReranker(model)."
        )
    if callable(value) and not isinstance(value, (type, Runnable)):
        return FunctionReranker(value)
    raise InvalidInputError(
        f"reranker is {type(value).__name__}; it must be a reranker of rag_kit.retrieval.rerank, a LangChain "
        "cross-encoder or document compressor, an embedding model, a function of query and documents, or a list of "
        "these."
    )
