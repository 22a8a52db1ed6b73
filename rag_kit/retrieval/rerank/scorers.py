"""Rerankers that score by a function, a cross-encoder or embeddings (MMR too), and what else is taken as a reranker."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from langchain_core.cross_encoders import BaseCrossEncoder
from langchain_core.documents import BaseDocumentCompressor, Document
from langchain_core.embeddings import Embeddings
from langchain_core.language_models import BaseLanguageModel
from langchain_core.runnables import Runnable

from rag_kit.errors import InvalidInputError
from rag_kit.models.clients import check_embeddings
from rag_kit.models.late_interaction import LateInteraction, max_sim
from rag_kit.models.wheels.files import RERANKERS
from rag_kit.models.wheels.models import wheel_reranker
from rag_kit.retrieval.call import Call
from rag_kit.retrieval.fields import check_number
from rag_kit.retrieval.inside import indexes_inside
from rag_kit.retrieval.rerank.base import DocumentCompressor, Ranking, Reranker, by_scores, check_scores
from rag_kit.retrieval.vectors import embed


class FunctionReranker(Reranker):
    """A function of query and documents that gives one score a document, higher is better; it may be asynchronous."""

    def __init__(
        self, func: Callable[[str, list[Document]], Any], *, name: str | None = None, depth: int | None = None
    ) -> None:
        super().__init__(depth=depth)
        self.func = func
        function_name = getattr(func, "__name__", "function")
        self.name = name or ("function" if function_name == "<lambda>" else function_name)

    async def rank(self, query: str, documents: Sequence[Document], call: Call) -> Ranking:
        """Order the documents; see ``Reranker.rank``."""
        copies = [doc.model_copy(deep=True) for doc in documents]
        scores = await call.call(f"rerank:{self.name}", self.func, query, copies)
        return by_scores(check_scores(scores, len(documents)))


class CrossEncoderReranker(Reranker):
    """Score each passage with any LangChain cross-encoder.

    All pairs go to the model in one call. The interface has no asynchronous form, so in async code it runs on a
    thread of the shared pool, not in the event loop.

    Where the model is a `LateInteraction`, and an index that the retriever searches has its leg ``"tokens"`` by it, the
    stored vectors are taken. Those that are lacking are computed, with a note.

    Args:
        model: A ``langchain_core.cross_encoders.BaseCrossEncoder``.
        depth: See ``Reranker``.

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

    def __init__(self, model: Any, *, depth: int | None = None) -> None:
        super().__init__(depth=depth)
        if not isinstance(model, BaseCrossEncoder):
            raise InvalidInputError(
                f"model is {type(model).__name__}; it must be a LangChain cross-encoder "
                "(langchain_core.cross_encoders.BaseCrossEncoder)."
            )
        self.model = model
        self.name = "late_interaction" if isinstance(model, LateInteraction) else "cross_encoder"

    async def rank(self, query: str, documents: Sequence[Document], call: Call) -> Ranking:
        """Order the documents; see ``Reranker.rank``."""
        texts, stage = [doc.page_content for doc in documents], f"rerank:{self.name}"
        if not isinstance(self.model, LateInteraction):
            scores = await call.call(stage, self.model.score, [(query, text) for text in texts])
            return by_scores(check_scores(scores, len(documents)))
        indexes = indexes_inside(call.owner, call.config)
        scores, lacking = await call.call(stage, _score_by_tokens, self.model, query, texts, indexes)
        if lacking:
            call.note(
                f"{stage}: {lacking} passages have no stored vectors by {self.model.name}, so they were computed"
            )
        return by_scores(check_scores(scores, len(documents)))


def _score_by_tokens(
    model: LateInteraction, query: str, texts: Sequence[str], indexes: Sequence[Any]
) -> tuple[list[float], int]:
    """Return the scores of texts, and how many of them lack vectors in indexes that store some; these are computed."""
    found = [index.token_vectors(texts, model.name) for index in indexes]
    stored = [vectors for vectors in found if vectors is not None]
    vectors = dict(ChainMap(*stored))
    computed = model.tokens_by_text([text for text in texts if text not in vectors])
    vectors |= computed
    question = model.query_tokens(query)
    return [max_sim(question, vectors[text]) for text in texts], len(computed) if stored else 0


class EmbeddingReranker(Reranker):
    """Score each passage by the cosine of its embedding and the query's, from -1 to 1.

    Useful behind a keyword search whose texts are in no vector store.

    Args:
        embeddings: Any LangChain embedding model; embeds the query and, in one batch, the passages at the same time.
        depth: See ``Reranker``.
    """

    name = "embedding"

    def __init__(self, embeddings: Any, *, depth: int | None = None) -> None:
        super().__init__(depth=depth)
        self.embeddings = check_embeddings(embeddings)

    async def rank(self, query: str, documents: Sequence[Document], call: Call) -> Ranking:
        """Order the documents; see ``Reranker.rank``."""
        cosines, _ = await self._cosines(query, documents, call)
        return by_scores([float(score) for score in cosines])

    async def _cosines(
        self, query: str, documents: Sequence[Document], call: Call
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the cosine of the query and each document, and the documents' unit vectors."""
        texts = [doc.page_content for doc in documents]
        query_vector, vectors = await embed(self.embeddings, query, texts, call, f"rerank:{self.name}")
        return vectors @ query_vector, vectors


class MMRReranker(EmbeddingReranker):
    """Order passages by maximal marginal relevance, so that near-duplicates come late.

    Each next passage is the one with the highest ``lambda_mult * relevance - (1 - lambda_mult) * (its highest
    similarity to a passage chosen before)``. Both are cosines of embeddings.

    Paper: Carbonell and Goldstein, The use of MMR, SIGIR 1998, doi 10.1145/290941.291025.

    Args:
        embeddings: Any LangChain embedding model.
        lambda_mult: From 0, diversity alone, to 1, relevance alone; .5 buries what fits: docs/benchmarks.md.
        depth: See ``Reranker``.
    """

    name = "mmr"

    def __init__(self, embeddings: Any, *, lambda_mult: float = 0.9, depth: int | None = None) -> None:
        super().__init__(embeddings, depth=depth)
        self.lambda_mult = check_number("lambda_mult", lambda_mult, maximum=1.0)

    async def rank(self, query: str, documents: Sequence[Document], call: Call) -> Ranking:
        """Order the documents; see ``Reranker.rank``."""
        relevance, vectors = await self._cosines(query, documents, call)
        order, marginal = marginal_relevance(relevance, vectors, self.lambda_mult)
        return Ranking(order, marginal, [{"relevance": float(value)} for value in relevance])


def marginal_relevance(
    relevance: np.ndarray, vectors: np.ndarray, lambda_mult: float
) -> tuple[list[int], list[float]]:
    """Order texts by marginal relevance; return their positions, best first, and the value at which each was chosen."""
    count = len(relevance)
    marginal = [0.0] * count
    is_unchosen = np.ones(count, dtype=bool)
    highest_similarity = np.zeros(count)  # of each text to those chosen before
    order: list[int] = []
    for position in range(count):
        values = lambda_mult * relevance - (1 - lambda_mult) * highest_similarity
        is_first = position == 0  # nothing is chosen yet: the most relevant wins, whatever lambda is
        chosen = int(np.argmax(np.where(is_unchosen, relevance if is_first else values, -np.inf)))
        marginal[chosen] = float(values[chosen])
        order.append(chosen)
        is_unchosen[chosen] = False
        similarity = vectors @ vectors[chosen]
        highest_similarity = similarity if is_first else np.maximum(highest_similarity, similarity)
    return order, marginal


def as_rerankers(value: Any) -> list[Reranker | DocumentCompressor]:
    """Return the ``reranker`` argument of ``RerankRetriever``, one or several in any form, as a list of rerankers."""
    items = list(value) if isinstance(value, (list, tuple)) else [value]
    if not items:
        raise InvalidInputError("reranker is an empty list; give at least one reranker.")
    return [_as_reranker(item) for item in items]


def _as_reranker(value: Any) -> Reranker | DocumentCompressor:
    """Return a reranker for a user's argument: wrap a model or function; a name means a model from a wheel."""
    if value in RERANKERS:
        return CrossEncoderReranker(wheel_reranker(value))
    if isinstance(value, (Reranker, DocumentCompressor)):
        return value
    if isinstance(value, BaseDocumentCompressor):
        return DocumentCompressor(value)
    if isinstance(value, BaseCrossEncoder):
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
        f"reranker is {repr(value)[:60] if isinstance(value, str) else type(value).__name__}; it must be one of "
        f"{', '.join(RERANKERS)}, a reranker of rag_kit.retrieval.rerank, a LangChain cross-encoder or document "
        "compressor, an embedding model, a function of query and documents, or a list of these."
    )
