"""Local ONNX models by the package fastembed: vectors, cross-encoders, sparse encoders, late interaction; no torch.

The weights come from fastembed's hub on first use and stay in its cache (``FASTEMBED_CACHE_PATH``).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np
from langchain_core.cross_encoders import BaseCrossEncoder
from langchain_core.embeddings import Embeddings

from rag_kit.errors import ConfigurationError, MissingExtraError
from rag_kit.models.late_interaction import LateInteraction, TokenVectors


class _LocalModel:
    """A model of fastembed, loaded on its first use, once, whatever thread asks; a pickled copy loads its own.

    ``batch_size`` texts, pairs or passages go into a forward pass; ``settings`` are those of fastembed's class:
    ``cache_dir``, ``threads``, ``local_files_only``, ``specific_model_path``, ...
    """

    kind: str
    module = "fastembed"  # of the class of this name

    def __init__(self, model: str, *, batch_size: int = 64, **settings: Any) -> None:
        try:
            model_class = getattr(import_module(self.module), self.kind)
        except ImportError as error:
            raise MissingExtraError("fastembed", "A local model by fastembed") from error
        if model.lower() not in {known["model"].lower() for known in model_class.list_supported_models()}:
            raise ConfigurationError(
                f"fastembed knows no {self.kind} named {model!r}; {self.kind}.list_supported_models() lists those it "
                "has, and add_custom_model adds one."
            )
        self.model, self.batch_size, self.name = model, batch_size, f"fastembed:{model}"
        self._make = partial(model_class, model, **settings)
        self._lock, self._loaded = threading.Lock(), None

    def _load(self) -> Any:
        """Load the model of fastembed, once."""
        with self._lock:
            if self._loaded is None:
                try:
                    self._loaded = self._make()
                except Exception as error:  # whatever a download or a damaged file raises
                    raise ConfigurationError(
                        f"The files of {self.model!r} cannot be loaded ({error}). They come from fastembed's hub on "
                        "first use; without a network, put them into its cache (FASTEMBED_CACHE_PATH), or name a "
                        "folder with specific_model_path=."
                    ) from error
        return self._loaded

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(type(self), batch_size=self.batch_size, **self._make.keywords), (self.model,)


class FastEmbedEmbeddings(_LocalModel, Embeddings):
    """Dense vectors of a model that fastembed supports; queries and passages are embedded as the model wants each."""

    kind = "TextEmbedding"

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Embed passages: one vector each."""
        return [vector.tolist() for vector in self._load().passage_embed(texts, batch_size=self.batch_size)]

    def embed_query(self, text: str) -> list[float]:
        """Embed a question."""
        vectors = [vector.tolist() for vector in self._load().query_embed(text)]
        return list(vectors[0])


class FastEmbedCrossEncoder(_LocalModel, BaseCrossEncoder):
    """A cross-encoder of fastembed, for `CrossEncoderReranker`: ``FastEmbedCrossEncoder("BAAI/bge-reranker-base")``."""

    kind = "TextCrossEncoder"
    module = "fastembed.rerank.cross_encoder"

    def score(self, text_pairs: Sequence[tuple[str, str]]) -> list[float]:
        """Return a score for each pair of query and passage; higher is better."""
        return list(map(float, self._load().rerank_pairs(list(text_pairs), batch_size=self.batch_size)))


class FastEmbedLateInteraction(_LocalModel, LateInteraction):
    """A late-interaction model of fastembed as a reranker, or for the leg ``"tokens"`` of an index.

    ``RerankRetriever(reranker=FastEmbedLateInteraction("answerdotai/answerai-colbert-small-v1"), ...)``.
    """

    kind = "LateInteractionTextEmbedding"

    def query_tokens(self, query: str) -> TokenVectors:
        """Return the vectors of a query's tokens."""
        return np.asarray(next(iter(self._load().query_embed(query))), np.float32)

    def passage_tokens(self, texts: Sequence[str]) -> list[TokenVectors]:
        """Return the vectors of each passage's tokens; fastembed gives padding and left-out tokens rows of zeros."""
        arrays = (np.asarray(rows) for rows in self._load().embed(list(texts), batch_size=self.batch_size))
        return [rows[rows.any(axis=1)] for rows in arrays]


class _SparseModel(_LocalModel):
    kind = "SparseTextEmbedding"

    def passages(self, texts: list[str]) -> list[dict[int, float]]:
        return [_weights(vector) for vector in self._load().passage_embed(texts, batch_size=self.batch_size)]

    def queries(self, texts: list[str]) -> list[dict[int, float]]:
        return [_weights(vector) for vector in self._load().query_embed(texts)]


def sparse_encoders(model: str, *, batch_size: int = 64, **settings: Any) -> dict[str, Callable[..., Any]]:
    """Make the arguments ``encoder`` and ``query_encoder`` of `SparseRetriever` from a sparse model of fastembed.

    `settings` are those of fastembed's class.

    Example::

        SparseRetriever.from_texts(["a cat", "a dog"], **sparse_encoders("prithivida/Splade_PP_en_v1"))
    """
    model_object = _SparseModel(model, batch_size=batch_size, **settings)
    return {"encoder": model_object.passages, "query_encoder": model_object.queries}


def _weights(vector: Any) -> dict[int, float]:
    """Return fastembed's sparse vector as a dict from the number of a term to its weight."""
    return {int(term): float(weight) for term, weight in zip(vector.indices, vector.values, strict=True)}
