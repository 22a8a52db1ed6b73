"""The pipelines that the benchmark knows by name, and those of a user."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from rag_kit.errors import ConfigurationError, InvalidInputError
from rag_kit.evaluation.recipes import RECIPES, Pipeline
from rag_kit.models.clients import embed_documents

if TYPE_CHECKING:
    import numpy as np
    from langchain_core.documents import Document
    from langchain_core.embeddings import Embeddings

    from rag_kit.evaluation.embedding_cache import EmbeddingCache
    from rag_kit.indexing import BM25Index
    from rag_kit.retrieval.base import RagKitRetriever

_SLICE = 1024
"""Texts embedded between two progress reports."""


class Parts:
    """What the built-in pipelines share: one keyword index, one set of vectors, each made when asked for.

    Args:
        documents: What is indexed.
        depth: Passages each retriever returns.
        embeddings: The embedding model; ``None`` when there is none.
        cache: Where vectors are kept between runs.
        progress: Called with ``(what, done, total)``.
    """

    def __init__(
        self,
        documents: Sequence[Document],
        *,
        depth: int = 100,
        embeddings: Embeddings | None = None,
        cache: EmbeddingCache | None = None,
        progress: Callable[[str, int, int], None] | None = None,
    ) -> None:
        self.documents = list(documents)
        self.depth = depth
        self._embeddings = embeddings
        self._cache = cache
        self._asked = ""
        self._progress = progress or (lambda what, done, total: None)

    def build(self, name: str, source: object | None = None) -> Pipeline:
        """Make the pipeline of a name, or one around ``source``.

        Args:
            name: One of ``rag_kit.evaluation.recipes.RECIPES``, or ``"module:object"``.
            source: A retriever, or a callable that takes the documents and returns one.

        Raises:
            InvalidInputError: If the name is unknown, or what it stands for is no retriever.
            ConfigurationError: If it needs an embedding model and there is none.
        """
        if source is not None:
            return Pipeline(name, self._as_retriever(name, source))
        if name in RECIPES:
            self._asked = name
            return RECIPES[name].build(name, self)
        if ":" in name:
            return Pipeline(name, self._as_retriever(name, load_object(name)))
        raise InvalidInputError(
            f"unknown pipeline {name!r}; allowed are {', '.join(RECIPES)} and module:object, "
            "a retriever of your own or a function from documents to one"
        )

    @cached_property
    def bm25(self) -> RagKitRetriever:
        """The keyword arm."""
        from rag_kit.retrieval import BM25Retriever

        return BM25Retriever(index=self.index, k=self.depth, name="bm25")

    @cached_property
    def dense(self) -> RagKitRetriever:
        """The dense arm: exact cosines."""
        from rag_kit.retrieval.exact import ExactVectorRetriever

        return ExactVectorRetriever.from_documents(
            self.documents, self.model, vectors=self.vectors, k=self.depth, name="dense"
        )

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

    @property
    def model(self) -> Embeddings:
        """The embedding model.

        Raises:
            ConfigurationError: If there is none.
        """
        if self._embeddings is None:
            raise ConfigurationError(
                f"the pipeline {self._asked!r} needs an embedding model and there is none. Install one with "
                "`rag-kit models install minilm`, or name one with RAG_KIT_EMBEDDING_MODEL or --embedding-model"
            )
        return self._embeddings

    @cached_property
    def index(self) -> BM25Index:
        """The keyword index over all documents."""
        from rag_kit.indexing import BM25Index

        self._progress("keyword index", 0, len(self.documents))
        index = BM25Index.from_documents(self.documents)
        self._progress("keyword index", len(self.documents), len(self.documents))
        return index

    @property
    def known_vectors(self) -> Embeddings:
        """The embedding model, which does not embed again what is indexed."""
        from rag_kit.evaluation.known_vectors import KnownVectors

        return KnownVectors(self.model, [doc.page_content for doc in self.documents], self.vectors)

    def bm25_settings(self) -> dict[str, Any]:
        """What the keyword arm was built with, as plain JSON."""
        index = self.index
        analyzer: dict[str, Any] = getattr(index.analyzer, "settings", dict)()
        return {"k1": index.k1, "b": index.b, "variant": index.variant, "analyzer": analyzer}

    @cached_property
    def vectors(self) -> np.ndarray:
        """The documents' vectors, shape ``(documents, dimensions)``, float32."""
        import numpy as np

        from rag_kit.models import embedding_name

        model = self.model

        def embed(texts: Sequence[str]) -> np.ndarray:
            rows: list[list[float]] = []
            for start in range(0, len(texts), _SLICE):
                rows.extend(embed_documents(model, list(texts[start : start + _SLICE])))
                self._progress("embedding", len(rows), len(texts))
            return np.asarray(rows, dtype=np.float32)

        texts = [document.page_content for document in self.documents]
        if self._cache is None:
            return embed(texts)
        return self._cache.vectors(embedding_name(model), texts, embed)


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
