"""What the indexes over postings have in common: documents by id, deletion, size."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from rag_kit.indexing.bm25.parameters import check_id_list
from rag_kit.indexing.bm25.store import Store
from rag_kit.indexing.bm25.view import documents_at

if TYPE_CHECKING:
    from langchain_core.documents import Document


class InvertedIndex:
    """Base of the indexes that keep documents and postings in memory.

    Args:
        store: The documents and postings.
    """

    def __init__(self, store: Store) -> None:
        self._store = store

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
