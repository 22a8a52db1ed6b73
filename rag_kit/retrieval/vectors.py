"""Embedding a query and texts within one call, and cosines."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from langchain_core.embeddings import Embeddings

from rag_kit.errors import InvalidInputError, ModelOutputError
from rag_kit.models.clients import aembed_documents, aembed_query, embed_documents, embed_query
from rag_kit.retrieval.query_call import Call, QueryCall

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


async def embed(
    embeddings: Embeddings, query: str, texts: Sequence[str], call: QueryCall, name: str
) -> tuple[np.ndarray, np.ndarray]:
    """Embed a query and texts, at the same time.

    Returns:
        The vector of the query (size,), and of the texts (number, size), as float64.

    Raises:
        BranchError: The model failed.
        ModelOutputError: It gave vectors that do not fit together.
    """
    import numpy as np

    result = await call.do_all(
        [
            Call(
                f"{name}, query embedding",
                partial(embed_query, embeddings, query),
                partial(aembed_query, embeddings, query),
            ),
            Call(
                f"{name}, embeddings",
                partial(embed_documents, embeddings, list(texts)),
                partial(aembed_documents, embeddings, list(texts)),
            ),
        ]
    )
    one, many = (np.asarray(call.value(outcome), dtype=np.float64) for outcome in result.outcomes)
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
