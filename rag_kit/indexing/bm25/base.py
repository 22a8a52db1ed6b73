"""What the indexes over postings have in common: constructors, documents by id, writing, storing."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from rag_kit.indexing.bm25.parameters import check_id_list, documents_of_texts
from rag_kit.indexing.bm25.store import Store
from rag_kit.indexing.bm25.view import documents_at

if TYPE_CHECKING:
    from langchain_core.documents import Document


class InvertedIndex(ABC):
    """Base of the indexes that keep documents and postings in memory.

    Args:
        store: The documents and postings.
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    @classmethod
    def from_documents(
        cls, documents: Iterable[Document], *, ids: Iterable[str] | None = None, **settings: Any
    ) -> Self:
        """Build an index of documents.

        Args:
            documents: The documents.
            ids: As for :meth:`add`.
            **settings: As for the constructor.

        Raises:
            InvalidInputError: Something else was given, or as for :meth:`add`.
        """
        index = cls(**settings)
        index.add(documents, ids)
        index.prepare()
        return index

    @classmethod
    def from_texts(
        cls,
        texts: Iterable[str],
        metadatas: Iterable[Mapping[str, Any]] | None = None,
        *,
        ids: Iterable[str] | None = None,
        **settings: Any,
    ) -> Self:
        """Build an index of texts.

        Args:
            texts: The texts.
            metadatas: Metadata of each text, in the same order.
            ids: As for :meth:`add`.
            **settings: As for the constructor.

        Raises:
            InvalidInputError: Something else was given, or ``metadatas`` or ``ids`` are not as many as ``texts``.
        """
        return cls.from_documents(documents_of_texts(texts, metadatas), ids=ids, **settings)

    def __len__(self) -> int:
        return len(self._store)

    def __contains__(self, key: object) -> bool:
        return key in self._store

    @property
    def ids(self) -> list[str]:
        """The ids in insertion order, as a new list."""
        view = self._store.current()
        return view.columns.ids[: len(view)]

    def metadata_rows(self) -> Iterator[Mapping[str, Any]]:
        """The metadata of all documents, in insertion order; only to be read."""
        view = self._store.current()
        return iter(view.columns.metadata[: len(view)])

    def get(self, ids: Iterable[str]) -> list[Document]:
        """Copies of the documents with these ids, in that order; an id that is not there is passed over.

        Raises:
            InvalidInputError: ``ids`` is not a list of strings.
        """
        return documents_at(*self._store.find(check_id_list(ids)))

    def add(self, documents: Iterable[Document], ids: Iterable[str] | None = None) -> list[str]:
        """Add documents at the end.

        Args:
            documents: The documents; copies are kept, without provenance.
            ids: Their ids, in the index and in results. Without them ``Document.id`` counts, and without that the
                hash of the text (a repeated text gets ``#2``, ``#3``... at the end of it).

        Returns:
            The ids, in order.

        Raises:
            InvalidInputError: An id is there already or comes twice (nothing is added then), or is not a string.

        Example:
            >>> from langchain_core.documents import Document
            >>> from rag_kit.indexing import BM25Index
            >>> index = BM25Index()
            >>> index.add([Document("a cat", id="1")]), index.add([Document("a dog")], ids=["2"]), len(index)
            (['1'], ['2'], 2)
        """
        return self._write(documents, ids, replace=False)

    def update(self, documents: Iterable[Document], ids: Iterable[str] | None = None) -> list[str]:
        """Replace the documents that have these ids, in their places; add those whose id is new at the end.

        Args:
            documents: The new state of the documents.
            ids: As for :meth:`add`.

        Returns:
            The ids, in order.

        Raises:
            InvalidInputError: An id comes twice (nothing is changed then), or is not a string.

        Example:
            >>> from langchain_core.documents import Document
            >>> from rag_kit.indexing import BM25Index
            >>> index = BM25Index.from_texts(["a cat", "a dog"], ids=["1", "2"])
            >>> index.update([Document("a bird", id="1")]), index.ids, index.search("cat")
            (['1'], ['1', '2'], [])
        """
        return self._write(documents, ids, replace=True)

    @abstractmethod
    def _write(self, documents: Iterable[Document], ids: Iterable[str] | None, *, replace: bool) -> list[str]:
        """Add documents, or replace those that are there."""

    def delete(self, ids: Iterable[str]) -> int:
        """Remove documents.

        Args:
            ids: Their ids; an id that is not there is passed over.

        Returns:
            How many were removed.

        Raises:
            InvalidInputError: ``ids`` is not a list of strings.

        Example:
            >>> from rag_kit.indexing import BM25Index
            >>> index = BM25Index.from_texts(["a cat", "a dog"], ids=["1", "2"])
            >>> index.delete(["1", "9"]), len(index)
            (1, 1)
        """
        return self._store.delete(check_id_list(ids))

    def prepare(self) -> None:
        """Merge what was written now, which otherwise the first search after a write does."""
        self._store.current()

    @abstractmethod
    def save(self, path: str | Path) -> None:
        """Write the index to one file, atomically: a crash leaves the old file or the new one."""
