"""Search over both legs, always with the store's committed state as the truth; what was made of passages stays out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rag_kit.documents import Filter, validate_filter
from rag_kit.indexing.document_index.changes import documents
from rag_kit.indexing.document_index.embedding import query_vector
from rag_kit.indexing.document_index.keyword import KeywordLeg
from rag_kit.indexing.document_index.keyword_view import KeywordView, check_k
from rag_kit.indexing.document_index.store import Store
from rag_kit.indexing.document_index.vector_leg import VectorLeg
from rag_kit.indexing.searched import passages

if TYPE_CHECKING:
    from langchain_core.documents import Document


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

    def keyword_view(self) -> KeywordView:
        """The keyword leg as of the committed state; it needs the store no more."""
        with self._store.reading() as connection:
            state = self._store.state(connection)
            return KeywordView(self._keyword.follow(connection, state), state.derived)

    def dense(self, query: Sequence[float], k: int, where: Filter | None) -> list[tuple[Document, float]]:
        """The k nearest to a vector by cosine."""
        check_k(k)
        validate_filter(where)
        with self._store.reading() as connection:
            state = self._store.state(connection)
            where = passages(where) if state.derived else where or None
            hits = self._vectors.search(connection, state, query_vector(query, state.dimension), k, where)
            ids = [key for key, _ in hits]
            # out of memory where the keyword leg holds them: no reading and no parsing
            loaded = self._keyword.loaded_documents(ids, state.generation)
            found = {doc.id: doc for doc in loaded} if loaded is not None else documents(connection, ids)
        return [(found[key], score) for key, score in hits if key in found]
