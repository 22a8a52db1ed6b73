"""An embedding model that knows the corpus already."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from langchain_core.embeddings import Embeddings

from rag_kit.models.clients import aembed_query, embed_documents, embed_query

if TYPE_CHECKING:
    import numpy as np


class KnownVectors(Embeddings):
    """Looks up the vectors of known texts, and asks the model for the others.

    Args:
        model: The model that made the vectors.
        texts: The known texts.
        vectors: Their vectors, shape ``(texts, dimensions)``.

    Example:
        >>> import numpy as np
        >>> from langchain_core.embeddings import DeterministicFakeEmbedding
        >>> known = KnownVectors(DeterministicFakeEmbedding(size=2), ["a"], np.array([[3.0, 4.0]]))
        >>> known.embed_documents(["a"])
        [[3.0, 4.0]]
    """

    def __init__(self, model: Embeddings, texts: Sequence[str], vectors: np.ndarray) -> None:
        self._model = model
        self._rows = {text: row for row, text in enumerate(texts)}
        self._vectors = vectors

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """One vector a text."""
        unknown = [text for text in dict.fromkeys(texts) if text not in self._rows]
        fresh = dict(zip(unknown, embed_documents(self._model, unknown), strict=True)) if unknown else {}
        return [fresh[text] if text in fresh else self._vectors[self._rows[text]].tolist() for text in texts]

    def embed_query(self, text: str) -> list[float]:
        """The model's own."""
        return embed_query(self._model, text)

    async def aembed_query(self, text: str) -> list[float]:
        """The model's own."""
        return await aembed_query(self._model, text)
