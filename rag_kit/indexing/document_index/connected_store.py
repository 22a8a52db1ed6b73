"""A LangChain vector store that holds the rows of an index under ids of the index, with the index's own vectors."""

from __future__ import annotations

import contextlib
import json
import threading
import uuid
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import VectorStore

from rag_kit._redact import error_text
from rag_kit.documents import Filter
from rag_kit.documents.fields import fields_of_filter
from rag_kit.errors import DocumentIndexError, FilterError, InvalidInputError
from rag_kit.indexing.document_index.sql import Connection, in_groups, marks
from rag_kit.indexing.document_index.store import State
from rag_kit.indexing.document_index.vector_file import stored_blocks
from rag_kit.indexing.searched import asked
from rag_kit.indexing.store_filters import is_chroma, made_by, translator_of

if TYPE_CHECKING:
    from rag_kit.indexing.document_index.vector_file import Numbers
    from rag_kit.indexing.document_index.vectors import Vectors

MakeStore = Callable[[Embeddings], VectorStore]
Translate = Callable[[Filter], Mapping[str, Any]]

_REPLACING = ("langchain_chroma", "langchain_qdrant", "langchain_postgres")
_ROW = "rag_kit_row"  # metadata key of a row's id: not every store gives its own ids back


class KnownVectors(Embeddings):
    """Gives a store the vectors that are in the index, whichever way it embeds what it is to hold.

    Args:
        model: For what else a store embeds, such as a text that tells the length of the vectors.
    """

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
    """A vector store, connected to when it is first needed; whatever it raises comes out as one class of error.

    Args:
        make: Makes the store, given its embedding model.
        embeddings: The model of the index.
        translate: A filter as keyword arguments of its search; ``None`` for the kit's own translation.
    """

    def __init__(
        self, make: MakeStore, embeddings: Embeddings | None, translate: Translate | None = None
    ) -> None:
        if isinstance(make, VectorStore) or not callable(make):
            raise InvalidInputError(
                f"vector_store is {type(make).__name__}; give a function that makes the store with the embedding model "
                "that it is given: vector_store=lambda embeddings: Chroma('manual', embeddings, host=...)."
            )
        self._make, self._translate = make, translate
        self._known = KnownVectors(embeddings)
        self._lock = threading.RLock()
        self._store: VectorStore | None = None

    @contextlib.contextmanager
    def _used(self) -> Iterator[VectorStore]:
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
        with self._used() as store:
            return type(store).__name__

    @property
    def replaces(self) -> bool:
        """Whether adding a row replaces the one of its id; of 680 rows that were deleted before, Chroma lost 20."""
        with self._used() as store:
            return any(made_by(store, package) for package in _REPLACING)

    def nearest(self, state: State, vector: Vectors, k: int, arguments: Mapping[str, Any]) -> Numbers:
        """Numbers of the rows nearest to a vector, -1 for what is not of this index."""
        with self._used() as store:
            found = store.similarity_search_by_vector(vector.tolist(), k=k, **arguments)
        keys = (str(document.metadata.get(_ROW)).replace("-", "") for document in found)
        return np.array(
            [int(key[16:], 16) if key.startswith(state.uid[:16]) else -1 for key in keys], np.int64
        )

    def delete(self, state: State, numbers: Numbers) -> None:
        """Delete rows, whether they are there or not."""
        with self._used() as store:
            for group in in_groups(numbers.tolist()):
                store.delete([_id(state, n) for n in group])

    def add(self, connection: Connection, state: State, numbers: Numbers) -> set[str]:
        """Add rows with their unit vectors, which every metric orders by cosine.

        Returns:
            The fields of which it cannot hold a value.
        """
        left_out: set[str] = set()
        for group in in_groups(numbers.tolist()):
            query = f"SELECT n, text, metadata FROM chunks WHERE n IN ({marks(group)})"
            rows = {n: (text, json.loads(metadata)) for n, text, metadata in connection.execute(query, group)}
            waiting = {
                n: vector
                for found, block in stored_blocks(connection, np.array(group), state.dimension or 0)
                for n, vector in zip(found.tolist(), block.tolist(), strict=True)
            }
            while waiting:
                # in one call a text has one vector; the same text below another title waits for the next
                vectors: dict[str, list[float]] = {}
                now = [n for n, vector in waiting.items() if vectors.setdefault(rows[n][0], vector) == vector]
                waiting = {n: waiting[n] for n in waiting.keys() - now}
                with self._used() as store:
                    storable = [_storable(rows[n][1], store) for n in now]
                    self._known.vectors = vectors
                    try:
                        store.add_texts(
                            [rows[n][0] for n in now],
                            [
                                {**fields, _ROW: _id(state, n)}
                                for n, (fields, _) in zip(now, storable, strict=True)
                            ],
                            ids=[_id(state, n) for n in now],
                        )
                    finally:
                        self._known.vectors = {}
                left_out.update(*(lacking for _, lacking in storable))
        return left_out

    def arguments(self, where: Filter | None, left_out: Collection[str]) -> dict[str, Any]:
        """A filter as keyword arguments of the search.

        Raises:
            FilterError: The store cannot say it, does not hold a field of it, or is not known.
        """
        if not (where := asked(where)):
            return {}
        if lacking := sorted(fields_of_filter(where).keys() & set(left_out)):
            raise FilterError(
                f"{self.name} cannot hold some values of the field {lacking[0]!r} (mappings, lists of values of "
                "several types, whole numbers beyond 64 bits), so it cannot filter by it. Filter the results."
            )
        if self._translate is not None:
            return dict(self._translate(where))
        with self._used() as store:
            translate = translator_of(store)
        if translate is None:
            raise FilterError(
                f"The kit has no filters for {self.name}, which would have to filter by {sorted(where)}. Give "
                "vector_store_filter=, a function from a filter to keyword arguments of its search."
            )
        native = translate(where)
        return {} if native is None else {"filter": native}


def _id(state: State, number: int) -> str:
    """The id of a row, the same each time: a UUID, which every store takes."""
    return str(uuid.UUID(state.uid[:16] + f"{number:016x}"))


def _storable(metadata: dict[str, Any], store: VectorStore) -> tuple[dict[str, Any], set[str]]:
    """The metadata that a store can hold, and the fields that it cannot; not each takes what is empty."""
    chroma = is_chroma(store)
    if not chroma and translator_of(store) is not None:
        return metadata, set()
    fields = {key: value for key, value in metadata.items() if value not in (None, [], {})}
    lacking = {key for key, value in fields.items() if chroma and not _fits_chroma(key, value)}
    return {key: value for key, value in fields.items() if key not in lacking}, lacking


def _fits_chroma(key: str, value: Any) -> bool:
    values = value if isinstance(value, list) else [value]
    kinds = {type(item) for item in values}
    wide = kinds == {int} and not all(-(2**63) <= item < 2**63 for item in values)
    return (
        len(kinds) == 1
        and kinds <= {str, int, float, bool}
        and not wide
        and not key.startswith(("#", "chroma:"))
    )
