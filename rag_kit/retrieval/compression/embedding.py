"""Sentences by the cosine of their embedding and the query's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rag_kit.retrieval.compression.base import Compressor, Passage, Selection, keep_by_score
from rag_kit.retrieval.numbers import check_number
from rag_kit.retrieval.query_call import QueryCall
from rag_kit.retrieval.vectors import check_embeddings, embed, unit


class EmbeddingCompressor(Compressor):
    """Keep the sentences whose embedding is near the query's; also finds what uses other words.

    All sentences of all passages are embedded in one batch, at the same time as the query.

    Args:
        embeddings: Any LangChain embedding model.
        min_score: Lowest cosine of a sentence that is kept, 0 to 1. What is high differs from model to model; 0.3
            suits all-MiniLM-L6-v2.
        share: Lowest share of the best sentence's cosine, 0 to 1.

    Raises:
        InvalidInputError: If an argument is not allowed.

    Example:
        >>> from langchain_core.embeddings import DeterministicFakeEmbedding
        >>> from rag_kit.retrieval import BM25Retriever, CompressionRetriever
        >>> words = BM25Retriever.from_texts(["Tea is hot. Loud fan."])
        >>> near = EmbeddingCompressor(DeterministicFakeEmbedding(size=8), share=0.99)
        >>> CompressionRetriever(retriever=words, compressor=near).invoke("Loud fan.")[0].page_content
        'Loud fan.'
    """

    name = "embedding"

    def __init__(self, embeddings: Any, *, min_score: float = 0.3, share: float = 0.6) -> None:
        self.embeddings = check_embeddings(embeddings)
        self.min_score = check_number("min_score", min_score, most=1.0)
        self.share = check_number("share", share, most=1.0)

    async def select(self, query: str, passages: Sequence[Passage], call: QueryCall) -> list[Selection]:
        """Choose sentences; see ``Compressor.select``."""
        texts = [sentence.text for passage in passages for sentence in passage.sentences]
        distinct = list(dict.fromkeys(texts))
        one, many = await embed(self.embeddings, query, distinct, call, f"compress:{self.name}")
        by_text = dict(zip(distinct, (float(value) for value in unit(many) @ unit(one)), strict=True))
        scores = [[by_text[sentence.text] for sentence in passage.sentences] for passage in passages]
        return keep_by_score(scores, min_score=self.min_score, share=self.share)
