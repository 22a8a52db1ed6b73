"""Maximal marginal relevance: relevant, but not what was chosen already."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from langchain_core.documents import Document

from rag_kit.documents.provenance import peek_score
from rag_kit.errors import InvalidInputError
from rag_kit.retrieval.base import check_number
from rag_kit.retrieval.convex import normalise
from rag_kit.retrieval.query_call import QueryCall
from rag_kit.retrieval.rerank.base import Ranking, Reranker
from rag_kit.retrieval.vectors import check_embeddings, embed, unit

if TYPE_CHECKING:
    import numpy as np


class MMRReranker(Reranker):
    """Order passages by maximal marginal relevance, so that near-duplicates come late.

    Each next passage is the one with the highest ``lambda_mult * relevance - (1 - lambda_mult) * (its highest
    similarity to a passage chosen before)``. Similarities are cosines; so is the relevance unless
    ``relevance="score"``.

    Paper: Carbonell and Goldstein, The use of MMR, SIGIR 1998, doi 10.1145/290941.291025.

    Args:
        embeddings: Any LangChain embedding model.
        lambda_mult: From 0, diversity alone, to 1, relevance alone. Cosines of passages differ more than their
            relevance does, so an even balance buries what fits: ``benchmarks/quality_mmr.py``.
        relevance: ``"embedding"`` for the cosine to the query, or ``"score"`` for the score that the passages
            come with (of the retriever, or of a reranker before), brought to 0..1 by min-max.
        depth: See ``Reranker``.

    Example:
        >>> import numpy as np
        >>> order, _ = marginal_relevance(np.array([0.9, 0.9, 0.5]), np.array([[1.0, 0], [1, 0], [0, 1]]), 0.5)
        >>> order
        [0, 2, 1]
    """

    name = "mmr"

    def __init__(
        self,
        embeddings: Any,
        *,
        lambda_mult: float = 0.9,
        relevance: str = "embedding",
        depth: int | None = None,
    ) -> None:
        super().__init__(depth=depth)
        self.embeddings = check_embeddings(embeddings)
        if relevance not in ("embedding", "score"):
            raise InvalidInputError(f"relevance={relevance!r} was given; allowed: 'embedding', 'score'.")
        self.lambda_mult = check_number("lambda_mult", lambda_mult, most=1.0)
        self.relevance = relevance

    async def rank(self, query: str, documents: Sequence[Document], call: QueryCall) -> Ranking:
        """Order the documents; see ``Reranker.rank``."""
        import numpy as np

        texts = [doc.page_content for doc in documents]
        one, many = await embed(self.embeddings, query, texts, call, f"rerank:{self.name}")
        vectors = unit(many)
        relevance = vectors @ unit(one)
        notes: list[str] = []
        if self.relevance == "score":
            scaled = normalise([peek_score(doc) for doc in documents])
            relevance = np.asarray(scaled.values)
            notes = [f"rerank:mmr: {scaled.note}"] if scaled.note else []
        order, marginal = marginal_relevance(relevance, vectors, self.lambda_mult)
        return Ranking(order, marginal, [{"relevance": float(value)} for value in relevance], notes=notes)


def marginal_relevance(
    relevance: np.ndarray, vectors: np.ndarray, lambda_mult: float
) -> tuple[list[int], list[float]]:
    """The order of texts with unit vectors, and the marginal relevance with which each was chosen."""
    import numpy as np

    count = len(relevance)
    marginal = [0.0] * count
    left = np.ones(count, dtype=bool)
    nearest = np.full(count, -np.inf)
    order: list[int] = []
    for place in range(count):
        # The first one has nothing to repeat; it is the most relevant whatever lambda is.
        value = relevance if place == 0 else lambda_mult * relevance - (1 - lambda_mult) * nearest
        chosen = int(np.argmax(np.where(left, value, -np.inf)))
        marginal[chosen] = float(value[chosen] * (lambda_mult if place == 0 else 1.0))
        order.append(chosen)
        left[chosen] = False
        nearest = np.maximum(nearest, vectors @ vectors[chosen])
    return order, marginal
