"""The pipelines that the benchmark knows by name, and those of a user."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from rag_kit.errors import ConfigurationError, InvalidInputError

if TYPE_CHECKING:
    import numpy as np
    from langchain_core.documents import Document
    from langchain_core.embeddings import Embeddings

    from rag_kit.evaluation.embedding_cache import EmbeddingCache
    from rag_kit.indexing import BM25Index

BUILT_IN = ("bm25", "dense", "hybrid")
_SLICE = 1024
"""Texts embedded between two progress reports."""


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
        self._progress = progress or (lambda what, done, total: None)

    def build(self, name: str, source: object | None = None) -> Pipeline:
        """Make the pipeline of a name, or one around ``source``.

        Args:
            name: ``"bm25"``, ``"dense"``, ``"hybrid"`` or ``"module:object"``.
            source: A retriever, or a callable that takes the documents and returns one.

        Raises:
            InvalidInputError: If the name is unknown, or what it stands for is no retriever.
            ConfigurationError: If it needs an embedding model and there is none.
        """
        if source is not None:
            return Pipeline(name, self._as_retriever(name, source))
        if name in BUILT_IN:
            made: Pipeline = getattr(self, f"_{name}")()
            return made
        if ":" in name:
            return Pipeline(name, self._as_retriever(name, load_object(name)))
        raise InvalidInputError(
            f"unknown pipeline {name!r}; allowed are {', '.join(BUILT_IN)} and module:object, "
            "a retriever of your own or a function from documents to one"
        )

    def _bm25(self) -> Pipeline:
        from rag_kit.retrieval import BM25Retriever

        retriever = BM25Retriever(index=self._index, k=self.depth)
        return Pipeline("bm25", retriever, ("bm25",), {"bm25": self._bm25_settings()})

    def _dense(self) -> Pipeline:
        from rag_kit.evaluation.exact import ExactVectorRetriever
        from rag_kit.models import embedding_name

        model = self._model("dense")
        retriever = ExactVectorRetriever.from_documents(
            self.documents, model, vectors=self._vectors, k=self.depth
        )
        return Pipeline("dense", retriever, ("dense",), {"embeddings": embedding_name(model)})

    def _hybrid(self) -> Pipeline:
        from rag_kit.retrieval import EnsembleRetriever
        from rag_kit.retrieval.indexed import DEFAULT_HYBRID

        self._model("hybrid")
        bm25, dense = self._bm25(), self._dense()
        # A failing arm must not pass for a result, so nothing is skipped here.
        retriever = EnsembleRetriever(
            retrievers=[bm25.retriever, dense.retriever],
            **DEFAULT_HYBRID,
            k=self.depth,
            fetch_k=self.depth,
            on_error="raise",
        )
        settings = {**bm25.settings, **dense.settings, **DEFAULT_HYBRID, "fetch_k": self.depth}
        return Pipeline("hybrid", retriever, ("bm25", "dense"), settings)

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

    def _model(self, pipeline: str) -> Embeddings:
        if self._embeddings is None:
            raise ConfigurationError(
                f"the pipeline {pipeline!r} needs an embedding model and there is none. Install one with "
                "`rag-kit models install minilm`, or name one with RAG_KIT_EMBEDDING_MODEL or --embedding-model"
            )
        return self._embeddings

    @cached_property
    def _index(self) -> BM25Index:
        from rag_kit.indexing import BM25Index

        self._progress("keyword index", 0, len(self.documents))
        index = BM25Index.from_documents(self.documents)
        self._progress("keyword index", len(self.documents), len(self.documents))
        return index

    def _bm25_settings(self) -> dict[str, Any]:
        index = self._index
        analyzer: dict[str, Any] = getattr(index.analyzer, "settings", dict)()
        return {"k1": index.k1, "b": index.b, "variant": index.variant, "analyzer": analyzer}

    @cached_property
    def _vectors(self) -> np.ndarray:
        import numpy as np

        from rag_kit.models import embedding_name

        model = self._model("dense")

        def embed(texts: Sequence[str]) -> np.ndarray:
            rows: list[list[float]] = []
            for start in range(0, len(texts), _SLICE):
                rows.extend(model.embed_documents(list(texts[start : start + _SLICE])))
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
