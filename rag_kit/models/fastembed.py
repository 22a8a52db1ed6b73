"""Local ONNX models by the package fastembed: vectors, cross-encoders, sparse encoders, late interaction; no torch.

The weights come from fastembed's hub on first use and stay in its cache (``FASTEMBED_CACHE_PATH``).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from langchain_core.cross_encoders import BaseCrossEncoder
from langchain_core.embeddings import Embeddings

from rag_kit.errors import ConfigurationError, MissingExtraError

if TYPE_CHECKING:
    from fastembed import SparseEmbedding


class FastEmbedEmbeddings(Embeddings):
    """Dense vectors of a model that fastembed supports; queries and passages are embedded as the model wants each.

    Args:
        model: Its name, as ``fastembed.TextEmbedding.list_supported_models()`` gives it.
        batch_size: Most texts per forward pass.
        **settings: Further settings of fastembed's class: ``cache_dir``, ``threads``, ``local_files_only``,
            ``specific_model_path``, ...

    Raises:
        MissingExtraError: The extra ``fastembed`` is not installed.
        ConfigurationError: fastembed does not know the model, or its files could not be loaded.

    Example::

        FastEmbedEmbeddings("BAAI/bge-small-zh-v1.5")
    """

    def __init__(self, model: str, *, batch_size: int = 64, **settings: Any) -> None:
        self.model = model
        self.batch_size = batch_size
        self._load = _Loader("TextEmbedding", model, settings)

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """One vector a text."""
        return [vector.tolist() for vector in self._load().passage_embed(texts, batch_size=self.batch_size)]

    def embed_query(self, text: str) -> list[float]:
        """The vector of a question."""
        [vector] = self._load().query_embed(text)
        found: list[float] = vector.tolist()
        return found


class FastEmbedCrossEncoder(BaseCrossEncoder):
    """A cross-encoder of fastembed, for `CrossEncoderReranker`.

    Args:
        model: Its name, as ``fastembed.rerank.cross_encoder.TextCrossEncoder.list_supported_models()`` gives it.
        batch_size: Most pairs per forward pass.
        **settings: As for `FastEmbedEmbeddings`.

    Example::

        FastEmbedCrossEncoder("BAAI/bge-reranker-base")
    """

    def __init__(self, model: str, *, batch_size: int = 64, **settings: Any) -> None:
        self.batch_size = batch_size
        self._load = _Loader("TextCrossEncoder", model, settings)

    def score(self, text_pairs: Sequence[tuple[str, str]]) -> list[float]:
        """One score a pair of query and passage; higher is better."""
        return list(map(float, self._load().rerank_pairs(list(text_pairs), batch_size=self.batch_size)))


class FastEmbedLateInteraction(BaseCrossEncoder):
    """A late-interaction model of fastembed as a reranker: each word of the query finds its best word of the passage.

    The score is the sum of those best inner products (MaxSim). For `CrossEncoderReranker`.

    Khattab and Zaharia: ColBERT, arXiv 2004.12832.

    Args:
        model: Its name, as ``fastembed.LateInteractionTextEmbedding.list_supported_models()`` gives it.
        batch_size: Most passages per forward pass.
        **settings: As for `FastEmbedEmbeddings`.

    Example::

        FastEmbedLateInteraction("answerdotai/answerai-colbert-small-v1")
    """

    def __init__(self, model: str, *, batch_size: int = 64, **settings: Any) -> None:
        self.batch_size = batch_size
        self._load = _Loader("LateInteractionTextEmbedding", model, settings)

    def score(self, text_pairs: Sequence[tuple[str, str]]) -> list[float]:
        """One score a pair of query and passage; higher is better."""
        model, pairs = self._load(), list(text_pairs)
        queries = {
            query: next(iter(model.query_embed(query))) for query in dict.fromkeys(q for q, _ in pairs)
        }
        passages = model.embed([passage for _, passage in pairs], batch_size=self.batch_size)
        return [
            float((queries[query] @ np.asarray(words).T).max(axis=1).sum())
            for (query, _), words in zip(pairs, passages, strict=True)
        ]


def sparse_encoders(model: str, *, batch_size: int = 64, **settings: Any) -> dict[str, Callable[..., Any]]:
    """A sparse model of fastembed as the two encoders of `SparseRetriever`.

    Args:
        model: Its name, as ``fastembed.SparseTextEmbedding.list_supported_models()`` gives it.
        batch_size: Most texts per forward pass.
        **settings: As for `FastEmbedEmbeddings`.

    Returns:
        ``{"encoder": ..., "query_encoder": ...}``, to be passed on as keyword arguments.

    Example::

        encoders = sparse_encoders("prithivida/Splade_PP_en_v1")
        SparseRetriever.from_texts(["a cat", "a dog"], **encoders)
    """
    load = _Loader("SparseTextEmbedding", model, settings)

    def passages(texts: list[str]) -> list[dict[int, float]]:
        return [_weights(each) for each in load().passage_embed(texts, batch_size=batch_size)]

    def queries(texts: list[str]) -> list[dict[int, float]]:
        return [_weights(each) for each in load().query_embed(texts)]

    return {"encoder": passages, "query_encoder": queries}


def _weights(vector: SparseEmbedding) -> dict[int, float]:
    return {int(term): float(weight) for term, weight in zip(vector.indices, vector.values, strict=True)}


class _Loader:
    """Loads a model on the first call, once, whatever thread calls; a pickled copy loads its own."""

    def __init__(self, kind: str, model: str, settings: dict[str, Any]) -> None:
        classes = _classes()
        self._make = partial(classes[kind], model, **settings)
        self._name = model
        known = {each["model"].lower() for each in classes[kind].list_supported_models()}
        if model.lower() not in known:
            raise ConfigurationError(
                f"fastembed knows no {kind} named {model!r}; {kind}.list_supported_models() lists those it has, and "
                "add_custom_model adds one."
            )
        self._lock = threading.Lock()
        self._model: Any = None

    def __call__(self) -> Any:
        with self._lock:
            if self._model is None:
                try:
                    self._model = self._make()
                except Exception as error:  # whatever a download or a damaged file raises
                    raise ConfigurationError(
                        f"The files of {self._name!r} cannot be loaded ({error}). They come from fastembed's hub on "
                        "first use; without a network, put them into its cache (FASTEMBED_CACHE_PATH), or name a "
                        "folder with specific_model_path=."
                    ) from error
        return self._model

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_lock": None, "_model": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _lock=threading.Lock())


def _classes() -> dict[str, Any]:
    try:
        from fastembed import LateInteractionTextEmbedding, SparseTextEmbedding, TextEmbedding
        from fastembed.rerank.cross_encoder import TextCrossEncoder
    except ImportError as error:
        raise MissingExtraError("fastembed", "A local model by fastembed") from error
    found = (TextEmbedding, TextCrossEncoder, SparseTextEmbedding, LateInteractionTextEmbedding)
    return {each.__name__: each for each in found}
