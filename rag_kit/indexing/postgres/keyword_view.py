"""The keyword view of an index in PostgreSQL: what retrievers read of its keyword leg."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rag_kit.documents import Filter
from rag_kit.indexing.bm25 import parameters as check
from rag_kit.indexing.document_index.keyword import KeywordView
from rag_kit.indexing.document_index.rows import documents
from rag_kit.indexing.postgres import keyword_scores
from rag_kit.indexing.postgres.keyword_postings import frequencies
from rag_kit.indexing.postgres.keyword_walk import spread

if TYPE_CHECKING:
    from langchain_core.documents import Document
    from psycopg import Connection

    from rag_kit.indexing.document_index.store import State, Store
    from rag_kit.indexing.postgres.keyword import PostgresKeywordLeg


class PostgresKeywordView(KeywordView):
    """See ``KeywordView``; each method reads one committed state, the newest.

    Args:
        store: The store.
        leg: Its keyword leg.
        state: The state of the index.
    """

    def __init__(self, store: Store, leg: PostgresKeywordLeg, state: State) -> None:
        self._store = store
        self._leg = leg
        self._state = state
        self._derived = state.derived

    @contextmanager
    def _reading(self) -> Iterator[Connection[Any]]:
        with self._store.reading() as connection:
            yield connection.native  # type: ignore[attr-defined]

    def __len__(self) -> int:
        with self._reading() as native:
            return keyword_scores.counts(native).documents

    def __contains__(self, key: object) -> bool:
        with self._store.reading() as connection:
            return isinstance(key, str) and bool(documents(connection, [key]))

    def analyzer(self, text: str) -> list[str]:
        """See ``KeywordView``."""
        return self._leg.analyzer(text)

    def _best(
        self, query: str | Mapping[str, float], k: int, where: Filter | None
    ) -> list[tuple[Document, float]]:
        with self._store.reading() as connection:
            return self._leg.search(connection, self._state, query, k, where)

    def feedback(
        self, query: str, k: int = 10, filter: Filter | None = None, *, max_documents: float = math.inf
    ) -> list[tuple[dict[str, int], float]]:
        """See ``KeywordView``."""
        terms, k, where = self.analyzer(check.check_query(query)), check.check_k(k), self._where(filter)
        with self._reading() as native:
            hits = keyword_scores.best(native, keyword_scores.scores(native, terms), k, where)
            counted = keyword_scores.counted_terms(native, [slot for _, slot, _ in hits])
            occurring = {term for one in counted.values() for term in one}
            few = {term for term, count in frequencies(native, occurring).items() if count <= max_documents}
        return [
            ({term: n for term, n in counted[slot].items() if term in few}, score) for _, slot, score in hits
        ]

    def spread(
        self, seeds: Mapping[str, float], k: int = 4, filter: Filter | None = None, **settings: Any
    ) -> list[tuple[Document, float, list[str]]]:
        """See ``KeywordView``."""
        settings = {"damping": 0.5, "max_df": 100, **settings}
        with self._store.reading() as connection:
            native: Connection[Any] = connection.native  # type: ignore[attr-defined]
            hits = spread(native, seeds, check.check_k(k), self._where(filter), **settings)
            found = documents(connection, [key for key, _, _ in hits])
        return [(found[key], mass, terms) for key, mass, terms in hits]

    def maximum(self, query: str | Mapping[str, float]) -> float:
        """See ``KeywordView``."""
        terms = (
            check.check_weights(query)
            if isinstance(query, Mapping)
            else self.analyzer(check.check_query(query))
        )
        with self._reading() as native:
            return keyword_scores.maximum(native, terms)
