"""Reranking by the cosine of embeddings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langchain_core.documents import Document

from rag_kit.retrieval.query_call import QueryCall
from rag_kit.retrieval.rerank.base import Ranking, Reranker, by_scores
from rag_kit.retrieval.vectors import check_embeddings, embed, unit


class EmbeddingReranker(Reranker):
    """Score each passage by the cosine of its embedding and the query's, from -1 to 1.

    Useful behind a keyword search whose texts are in no vector store.

    Args:
        embeddings: Any LangChain embedding model. Query and passages are embedded at the same time, the
            passages in one batch.
        depth: See ``Reranker``.

    Raises:
        InvalidInputError: If ``embeddings`` is no embedding model.

    Example:
        >>> from langchain_core.embeddings import DeterministicFakeEmbedding
        >>> from rag_kit.retrieval import BM25Retriever, RerankRetriever
        >>> words = BM25Retriever.from_texts(["fan fan loud", "fan"])
        >>> ranked = RerankRetriever(retriever=words, reranker=EmbeddingReranker(DeterministicFakeEmbedding(size=8)))
        >>> ranked.invoke("fan")[0].page_content
        'fan'
    """

    name = "embedding"

    def __init__(self, embeddings: Any, *, depth: int | None = None) -> None:
        super().__init__(depth=depth)
        self.embeddings = check_embeddings(embeddings)

    async def rank(self, query: str, documents: Sequence[Document], call: QueryCall) -> Ranking:
        """Order the documents; see ``Reranker.rank``."""
        texts = [doc.page_content for doc in documents]
        one, many = await embed(self.embeddings, query, texts, call, f"rerank:{self.name}")
        return by_scores([float(score) for score in unit(many) @ unit(one)])
