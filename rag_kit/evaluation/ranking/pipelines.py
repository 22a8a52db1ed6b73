"""The retrievers that the benchmark knows by name, and those of a user."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rag_kit.errors import ConfigurationError, InvalidInputError

if TYPE_CHECKING:
    import numpy as np
    from langchain_core.documents import Document
    from langchain_core.embeddings import Embeddings

    from rag_kit.indexing import BM25Index
    from rag_kit.models.vector_cache import CachedEmbeddings
    from rag_kit.retrieval.base import RagKitRetriever


@dataclass(frozen=True)
class Pipeline:
    """A retriever to measure.

    Args:
        name: Its name in the results.
        retriever: The retriever, or any Runnable from a question to documents.
        arms: Stages that must each bring documents, such as ``("bm25", "dense")``.
        settings: What it was built with; plain JSON.
    """

    name: str
    retriever: Any
    arms: tuple[str, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)


class Parts:
    """What the built-in pipelines share: one keyword index, one set of vectors, each made when asked for.

    Args:
        documents: What is indexed.
        depth: Passages each retriever returns.
        embeddings: The embedding model or its name; default: what ``embedding_model()`` finds.
        cache: Folder that keeps vectors between runs.
        progress: Called with ``(what, done, total)``.
    """

    def __init__(
        self,
        documents: Sequence[Document],
        *,
        depth: int = 100,
        embeddings: Embeddings | str | None = None,
        cache: Path | str | None = None,
        progress: Callable[[str, int, int], None] | None = None,
    ) -> None:
        self.documents = list(documents)
        self.depth = depth
        self._embeddings = embeddings
        self._cache = cache
        self._progress = progress or (lambda what, done, total: None)

    def build(self, name: str, source: object | None = None) -> Pipeline:
        """Make the pipeline of a name, or one around ``source``.

        Args:
            name: One of `RECIPES`, or ``"module:object"``.
            source: A retriever, or a callable that takes the documents and returns one.

        Raises:
            InvalidInputError: If there is no such object, or it is no retriever.
            ConfigurationError: If it needs an embedding model and there is none.
        """
        if source is None and name in RECIPES:
            recipe = RECIPES[name]
            settings: dict[str, Any] = {}
            if "bm25" in recipe.arms:
                settings["bm25"] = self._bm25_settings()
            if "dense" in recipe.arms:
                from rag_kit.models.embedding import embedding_name

                settings["embeddings"] = embedding_name(self.model)
            return Pipeline(name, recipe.make(self), recipe.arms, {**settings, **recipe.settings})
        return Pipeline(name, self._as_retriever(name, load_object(name) if source is None else source))

    @cached_property
    def index(self) -> BM25Index:
        """The keyword index over all documents."""
        from rag_kit.indexing import BM25Index

        self._progress("keyword index", 0, len(self.documents))
        index = BM25Index.from_documents(self.documents)
        self._progress("keyword index", len(self.documents), len(self.documents))
        return index

    @cached_property
    def bm25(self) -> RagKitRetriever:
        """The keyword arm."""
        from rag_kit.retrieval import BM25Retriever

        return BM25Retriever(index=self.index, k=self.depth, name="bm25")

    @cached_property
    def model(self) -> Embeddings:
        """The embedding model.

        Raises:
            ConfigurationError: If there is none.
        """
        from rag_kit.models import embedding_model

        given = self._embeddings
        model = embedding_model(given) if given is None or isinstance(given, str) else given
        if model is None:
            raise ConfigurationError(
                "this pipeline needs an embedding model and there is none. Install one with "
                "`rag-kit models install minilm`, or name one with RAG_KIT_EMBEDDING_MODEL or --embedding-model"
            )
        return model

    @cached_property
    def _embedded(self) -> tuple[CachedEmbeddings, np.ndarray]:
        from rag_kit.models.vector_cache import CachedEmbeddings

        made = CachedEmbeddings(self.model, self._cache, progress=self._progress)
        return made, made.vectors([document.page_content for document in self.documents])

    @property
    def known_vectors(self) -> Embeddings:
        """The embedding model, which does not embed again what is indexed."""
        return self._embedded[0]

    @cached_property
    def dense(self) -> RagKitRetriever:
        """The dense arm: exact cosines."""
        from rag_kit.retrieval.exact.retriever import ExactVectorRetriever

        return ExactVectorRetriever.from_documents(
            self.documents, self.model, vectors=self._embedded[1], k=self.depth, name="dense"
        )

    def _bm25_settings(self) -> dict[str, Any]:
        index = self.index
        analyzer: dict[str, Any] = getattr(index.analyzer, "settings", dict)()
        return {"k1": index.k1, "b": index.b, "variant": index.variant, "analyzer": analyzer}

    def _as_retriever(self, name: str, value: Any) -> Any:
        from langchain_core.runnables import Runnable

        if isinstance(value, type):
            raise InvalidInputError(
                f"pipeline {name!r} is the class {value.__name__}; give an object of it, or a function from "
                f"documents to one, such as {name}.from_documents"
            )
        if not isinstance(value, Runnable) and callable(value):
            value = value(list(self.documents))
        if not isinstance(value, Runnable):
            raise InvalidInputError(
                f"pipeline {name!r} is a {type(value).__name__}; give a LangChain retriever, or a function that "
                "takes the list of documents and returns one"
            )
        return value


def load_object(name: str) -> Any:
    """Import ``module:object``; the object may be dotted, as in ``module:Class.from_documents``.

    Importing runs the module's code. The current folder is looked in first, as ``python -m`` does.

    Raises:
        InvalidInputError: If the module or the object is not there.

    Example:
        >>> load_object("math:pi")
        3.141592653589793
    """
    module_name, _, path = name.partition(":")
    if not module_name or not path:
        raise InvalidInputError(f"{name!r} is not of the form module:object, such as my_retrievers:make")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        value: Any = importlib.import_module(module_name)
    except ImportError as error:
        raise InvalidInputError(
            f"{name!r}: the module {module_name!r} cannot be imported ({error}); run this from the folder that "
            "holds it, or install it"
        ) from error
    for attribute in path.split("."):
        try:
            value = getattr(value, attribute)
        except AttributeError as error:
            raise InvalidInputError(f"{name!r}: {error}") from error
    return value


@dataclass(frozen=True)
class Recipe:
    """How a pipeline is made from the shared parts; its settings are those beside the settings of its arms."""

    make: Callable[[Parts], Any]
    arms: tuple[str, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)


def _hybrid(**fusion: Any) -> Recipe:
    """Both arms, fused. A failing arm must not pass for a result, so nothing is skipped."""

    def make(parts: Parts) -> Any:
        from rag_kit.retrieval import EnsembleRetriever

        both = [parts.bm25, parts.dense]
        return EnsembleRetriever(retrievers=both, **fusion, **_depth(parts))

    return Recipe(make, ("bm25", "dense"), fusion)


def _depth(parts: Parts) -> dict[str, Any]:
    return {"k": parts.depth, "fetch_k": parts.depth, "on_error": "raise"}


def _default_hybrid(parts: Parts) -> Any:
    from rag_kit.retrieval.hybrid import HybridRetriever

    return HybridRetriever(retrievers=[parts.bm25, parts.dense], **_depth(parts))


def _rm3(parts: Parts) -> Any:
    from rag_kit.retrieval import ExpansionRetriever

    return ExpansionRetriever.from_feedback(parts.index, k=parts.depth, on_error="raise")


def _mmr(parts: Parts) -> Any:
    from rag_kit.retrieval import RerankRetriever
    from rag_kit.retrieval.rerank.mmr import MMRReranker

    return RerankRetriever(retriever=parts.dense, reranker=MMRReranker(parts.known_vectors), **_depth(parts))


def _from_documents(retriever: str, **settings: Any) -> Callable[[Parts], Any]:
    def make(parts: Parts) -> Any:
        from rag_kit import retrieval

        return getattr(retrieval, retriever).from_documents(parts.documents, k=parts.depth, **settings)

    return make


RECIPES: dict[str, Recipe] = {
    "bm25": Recipe(lambda parts: parts.bm25, ("bm25",)),
    "dense": Recipe(lambda parts: parts.dense, ("dense",)),
    "hybrid": Recipe(_default_hybrid, ("bm25", "dense"), {"fusion": "auto", "feedback": 0.45}),
    "auto": _hybrid(fusion="auto"),
    "rrf": _hybrid(fusion="rrf", rrf_k=60),
    "rrf-10": _hybrid(fusion="rrf", rrf_k=10),
    "weighted-rrf": _hybrid(fusion="rrf", rrf_k=60, weights=[0.6, 0.4]),
    "convex": _hybrid(fusion="convex", normalisation="min-max", weights=[0.5, 0.5]),
    "convex-z": _hybrid(fusion="convex", normalisation="z-score", weights=[0.5, 0.5]),
    "convex-maximum": _hybrid(fusion="convex", normalisation="maximum", weights=[0.7, 0.3]),
    "rm3": Recipe(_rm3, settings={"fb_docs": 10, "fb_terms": 10, "original_weight": 0.5}),
    "tfidf": Recipe(_from_documents("SparseRetriever", name="tf-idf")),
    "trigram": Recipe(_from_documents("TrigramRetriever", name="trigram")),
    "mmr": Recipe(_mmr, ("dense",), {"lambda_mult": 0.9}),
    "parent": Recipe(
        _from_documents("ParentDocumentRetriever", pipeline="bm25"),
        settings={"children": "bm25", "child_size": 400},
    ),
    "sentence-window": Recipe(
        _from_documents("SentenceWindowRetriever", pipeline="bm25"),
        settings={"children": "bm25", "window": 3},
    ),
}
"""Name -> recipe. ``hybrid`` is the kit's default; the others with both arms fuse otherwise, without feedback."""
