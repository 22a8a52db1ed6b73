"""Search over both legs, always with the store's committed state as the truth."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rag_kit.documents import Filter, validate_filter
from rag_kit.errors import InvalidInputError
from rag_kit.indexing.document_index.changes import documents
from rag_kit.indexing.document_index.embedding import query_vector
from rag_kit.indexing.document_index.keyword import KeywordLeg
from rag_kit.indexing.document_index.store import Store
from rag_kit.indexing.document_index.vector_leg import VectorLeg

if TYPE_CHECKING:
    from langchain_core.documents import Document

    from rag_kit.indexing.bm25 import BM25Index


class Searcher:
    """Keyword and dense search.

    Args:
        store: The truth.
        keyword: BM25 over it.
        vectors: Its vectors.
    """

    def __init__(self, store: Store, keyword: KeywordLeg, vectors: VectorLeg) -> None:
        self._store = store
        self._keyword = keyword
        self._vectors = vectors

    def keyword(self, query: str, k: int, where: Filter | None) -> list[tuple[Document, float]]:
        """The k best by BM25."""
        check_k(k)
        validate_filter(where)
        if not isinstance(query, str):
            raise InvalidInputError(f"The query must be a text, not {type(query).__name__}.")
        # the store is not needed any more once the index has followed it
        return self._keyword.search_index(self.keyword_index(), query, k, where or None)

    def keyword_index(self) -> BM25Index:
        """The BM25 index as of the committed state; only to be read."""
        with self._store.reading() as connection:
            return self._keyword.follow(connection, self._store.state(connection))

    def dense(self, query: Sequence[float], k: int, where: Filter | None) -> list[tuple[Document, float]]:
        """The k nearest to a vector by cosine."""
        check_k(k)
        validate_filter(where)
        with self._store.reading() as connection:
            state = self._store.state(connection)
            hits = self._vectors.search(
                connection, state, query_vector(query, state.dimension), k, where or None
            )
            ids = [key for key, _ in hits]
            # out of memory where the keyword leg holds them: no reading and no parsing
            loaded = self._keyword.loaded_documents(ids, state.generation)
            found = {doc.id: doc for doc in loaded} if loaded is not None else documents(connection, ids)
        return [(found[key], score) for key, score in hits if key in found]


def check_k(k: int) -> None:
    """Refuse a k that is no whole number above 0.

    Raises:
        InvalidInputError: So it is.
    """
    if isinstance(k, bool) or not isinstance(k, int) or k < 1:
        raise InvalidInputError(f"k must be a whole number, 1 or more, not {k!r}.")
