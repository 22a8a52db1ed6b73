"""A LangChain vector store that holds the rows of an index under ids of the index, with the index's own vectors."""

from __future__ import annotations

import contextlib
import threading
import uuid
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import VectorStore

from rag_kit._redact import error_text
from rag_kit.errors import DocumentIndexError, InvalidInputError
from rag_kit.indexing.document_index.state import Connection, State, in_groups
from rag_kit.indexing.document_index.vectors import stored_blocks
from rag_kit.indexing.store_filters import made_by

if TYPE_CHECKING:
    from rag_kit.indexing.document_index.vectors import Numbers, Vectors

MakeStore = Callable[[Embeddings], VectorStore]

_REPLACING = ("langchain_chroma", "langchain_qdrant", "langchain_postgres")
_ROW = "rag_kit_row"  # metadata key of a row's id: not every store gives its own ids back


class KnownVectors(Embeddings):
    """Gives a store the vectors of the rows that it is to hold, by the row's id, which is the text of the row there."""

    def __init__(self, model: Embeddings | None) -> None:
        self._model = model
        self.vectors: dict[str, list[float]] = {}

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """The vectors of the rows that are being added; else the model's."""
        if self.vectors:
            return [self.vectors[text] for text in texts]
        if self._model is None:
            raise InvalidInputError(
                "The vector store needs the index's embedding model: give embeddings= too."
            )
        return self._model.embed_documents(texts)

    def embed_query(self, text: str) -> list[float]:
        """As if it were a document; an index hands vectors of queries over too."""
        return self.embed_documents([text])[0]


class ConnectedStore:
    """A vector store, connected to when it is first needed; whatever it raises comes out as one class of error."""

    def __init__(self, make: MakeStore, embeddings: Embeddings | None) -> None:
        if isinstance(make, VectorStore) or not callable(make):
            raise InvalidInputError(
                f"vector_store is {type(make).__name__}; give a function that makes the store with the embedding model "
                "that it is given: vector_store=lambda embeddings: Chroma('manual', embeddings, host=...)."
            )
        self._make = make
        self._known = KnownVectors(embeddings)
        self._lock = threading.RLock()
        self._store: VectorStore | None = None

    @contextlib.contextmanager
    def _open_store(self) -> Iterator[VectorStore]:
        """The store, for one thread at a time; the stores share no class of errors."""
        with self._lock:
            try:
                store = self._make(self._known) if self._store is None else self._store
                if not isinstance(store, VectorStore) or type(store).delete is VectorStore.delete:
                    raise InvalidInputError(
                        f"vector_store gave {type(store).__name__}, no VectorStore that can delete by id."
                    )
                self._store = store
                yield store
            except (InvalidInputError, DocumentIndexError):
                raise
            except Exception as error:
                raise DocumentIndexError(
                    f"The index's vector store failed: {error_text(error, most=300)}"
                ) from error

    @property
    def name(self) -> str:
        """The name of its class; connects."""
        with self._open_store() as store:
            return type(store).__name__

    @property
    def replaces(self) -> bool:
        """Whether adding a row replaces the one of its id; of 680 rows that were deleted before, Chroma lost 20."""
        with self._open_store() as store:
            return any(made_by(store, package) for package in _REPLACING)

    def nearest(self, state: State, vector: Vectors, k: int) -> Numbers:
        """Numbers of the rows nearest to a vector, -1 for what is not of this index."""
        with self._open_store() as store:
            hits = store.similarity_search_by_vector(vector.tolist(), k=k)
        keys = (str(document.metadata.get(_ROW)).replace("-", "") for document in hits)
        return np.array(
            [int(key[16:], 16) if key.startswith(state.uid[:16]) else -1 for key in keys], np.int64
        )

    def delete(self, state: State, numbers: Numbers) -> None:
        """Delete rows, whether they are there or not."""
        with self._open_store() as store:
            for group in in_groups(numbers.tolist()):
                store.delete([_id(state, n) for n in group])

    def add(self, connection: Connection, state: State, numbers: Numbers) -> None:
        """Add rows with their unit vectors, which every metric orders by cosine."""
        for group, vectors in stored_blocks(connection, numbers, state.dimension or 0):
            ids = [_id(state, n) for n in group.tolist()]
            if ids:
                with self._open_store() as store:
                    self._known.vectors = dict(zip(ids, vectors.tolist(), strict=True))
                    try:
                        store.add_texts(ids, [{_ROW: key} for key in ids], ids=ids)
                    finally:
                        self._known.vectors = {}


def _id(state: State, number: int) -> str:
    """The id of a row, the same each time: a UUID, which every store takes."""
    return str(uuid.UUID(state.uid[:16] + f"{number:016x}"))
