"""Embedding a query and texts within one call, and cosines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from langchain_core.embeddings import Embeddings

from rag_kit.concurrency import run_in_thread
from rag_kit.errors import InvalidInputError, ModelOutputError
from rag_kit.retrieval.refine_call import RefineCall
from rag_kit.retrieval.rewrite_steps import Call, Steps

if TYPE_CHECKING:
    import numpy as np


def check_embeddings(embeddings: Any) -> Embeddings:
    """See that something is an embedding model.

    Raises:
        InvalidInputError: If not.
    """
    if not isinstance(embeddings, Embeddings):
        raise InvalidInputError(
            f"embeddings is {type(embeddings).__name__}; it must be a LangChain Embeddings, such as "
            "rag_kit.models.embedding_model('minilm')."
        )
    return embeddings


def embed(
    embeddings: Embeddings, query: str, texts: Sequence[str], call: RefineCall, name: str
) -> Steps[tuple[np.ndarray, np.ndarray]]:
    """Embed a query and texts, at the same time.

    Returns:
        The vector of the query (size,), and of the texts (number, size), as float64.

    Raises:
        BranchError: The model failed.
        ModelOutputError: It gave vectors that do not fit together.
    """
    import numpy as np

    def query_vector() -> list[float]:
        return embeddings.embed_query(query)

    def text_vectors() -> list[list[float]]:
        return embeddings.embed_documents(list(texts))

    async def aquery_vector() -> list[float]:
        if type(embeddings).aembed_query is Embeddings.aembed_query:
            return await run_in_thread(query_vector)
        return await embeddings.aembed_query(query)

    async def atext_vectors() -> list[list[float]]:
        # The default of LangChain runs on asyncio's small pool.
        if type(embeddings).aembed_documents is Embeddings.aembed_documents:
            return await run_in_thread(text_vectors)
        return await embeddings.aembed_documents(list(texts))

    outcomes = yield from call.do_all(
        [
            Call(f"{name}, query embedding", query_vector, aquery_vector),
            Call(f"{name}, embeddings", text_vectors, atext_vectors),
        ]
    )
    for outcome in outcomes:
        if not outcome.ok:
            raise call.failure(outcome)
    one = np.asarray(outcomes[0].value, dtype=np.float64)
    many = np.asarray(outcomes[1].value, dtype=np.float64)
    if one.ndim != 1 or many.shape != (len(texts), one.size):
        raise ModelOutputError(
            f"The embedding model gave vectors of shape {many.shape} for {len(texts)} texts and {one.shape} for the "
            "query; it must give one vector a text, all of one size."
        )
    return one, many


def unit(vectors: np.ndarray) -> np.ndarray:
    """Vectors scaled to length 1; a zero vector, or one with values that are not finite, becomes zero."""
    import numpy as np

    finite = np.where(np.isfinite(vectors).all(axis=-1, keepdims=True), vectors, 0.0)
    norms = np.linalg.norm(finite, axis=-1, keepdims=True)
    return finite / np.where(norms > 0, norms, 1.0)
