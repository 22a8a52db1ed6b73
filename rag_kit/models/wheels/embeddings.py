"""Embedding models out of wheels as a LangChain ``Embeddings``."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from langchain_core.embeddings import Embeddings
from numpy.typing import NDArray

from rag_kit.errors import ConfigurationError, InvalidInputError
from rag_kit.models.wheels.engine import WheelEngine
from rag_kit.models.wheels.table import EMBEDDINGS


class WheelEmbeddings(WheelEngine, Embeddings):
    """Sentence vectors of length 1, on the CPU, by a model that was fetched with ``rag-kit models install NAME``.

    Texts are cut at the model's length (minilm: 256 tokens, the others: 512), and get the prefix that it was trained
    with. The same list of texts always gives the same vectors; the batch a text falls into may move its values in the
    seventh digit (e5: in the third). Thread-safe. Arguments and errors are those of ``WheelEngine``.
    """

    def __init__(self, name: str, *, threads: int = 0) -> None:
        super().__init__(name, threads=threads)
        if name not in EMBEDDINGS:
            raise ConfigurationError(f"{name!r} is no embedding model; there are: {', '.join(EMBEDDINGS)}.")
        self.name, self.dimensions = name, self.model.dimensions

    def embed_documents(self, texts: Sequence[str]) -> list[list[float]]:
        """One vector for each text, in order."""
        vectors: list[list[float]] = self.embed_array(texts).tolist()
        return vectors

    def embed_query(self, text: str) -> list[float]:
        """The vector of a question."""
        vector: list[float] = self._embed([self.model.query_prefix + self.model.prefix + text])[0].tolist()
        return vector

    def embed_array(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """``embed_documents`` without the conversion to lists: float32, shape (texts, dimensions)."""
        if isinstance(texts, str) or not all(isinstance(text, str) for text in texts):
            raise InvalidInputError("embed_documents takes a list of str; for one text use embed_query")
        return self._embed([self.model.prefix + text for text in texts])

    def _embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Vectors of texts that have their prefix."""
        result = np.empty((len(texts), self.dimensions), np.float32)
        for rows, output, _ in self.run(texts):
            # A graph of the kit pools by itself; the others give a vector a token, of which the first is the text's.
            vectors = output if output.ndim == 2 else output[:, 0]
            result[rows] = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
        return result
