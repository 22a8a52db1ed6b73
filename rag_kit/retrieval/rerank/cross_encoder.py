"""Reranking by a cross-encoder: a model that reads query and passage together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langchain_core.cross_encoders import BaseCrossEncoder
from langchain_core.documents import Document

from rag_kit.errors import InvalidInputError
from rag_kit.retrieval.query_call import QueryCall
from rag_kit.retrieval.rerank.base import Ranking, Reranker, both_ways, by_scores, check_scores


def is_cross_encoder(value: Any) -> bool:
    """Whether it is a LangChain cross-encoder; older releases of langchain-classic had a base class of their own.

    Example:
        >>> is_cross_encoder("model")
        False
    """
    return isinstance(value, BaseCrossEncoder) or any(
        base.__name__ == "BaseCrossEncoder" and base.__module__.startswith("langchain")
        for base in type(value).__mro__
    )


class CrossEncoderReranker(Reranker):
    """Score each passage with any LangChain cross-encoder.

    All pairs go to the model in one call. The interface has no asynchronous form, so in async code it runs on a
    thread of the shared pool, not in the event loop.

    Args:
        model: A ``langchain_core.cross_encoders.BaseCrossEncoder``.
        depth: See ``Reranker``.

    Raises:
        InvalidInputError: If ``model`` is no cross-encoder.

    Example:
        >>> class Shared(BaseCrossEncoder):
        ...     def score(self, text_pairs):
        ...         return [len(set(a.split()) & set(b.split())) for a, b in text_pairs]
        >>> from rag_kit.retrieval import BM25Retriever, RerankRetriever
        >>> words = BM25Retriever.from_texts(["fan fan fan", "the fan is loud"])
        >>> ranked = RerankRetriever(retriever=words, reranker=CrossEncoderReranker(Shared()))
        >>> [doc.page_content for doc in ranked.invoke("is the fan loud")]
        ['the fan is loud', 'fan fan fan']
    """

    name = "cross_encoder"

    def __init__(self, model: Any, *, depth: int | None = None) -> None:
        super().__init__(depth=depth)
        if not is_cross_encoder(model):
            raise InvalidInputError(
                f"model is {type(model).__name__}; it must be a LangChain cross-encoder "
                "(langchain_core.cross_encoders.BaseCrossEncoder)."
            )
        self.model = model

    async def rank(self, query: str, documents: Sequence[Document], call: QueryCall) -> Ranking:
        """Order the documents; see ``Reranker.rank``."""
        pairs = [(query, doc.page_content) for doc in documents]
        scores = await call.do(f"rerank:{self.name}", *both_ways(self.model.score, pairs))
        return by_scores(check_scores(scores, len(documents)))
