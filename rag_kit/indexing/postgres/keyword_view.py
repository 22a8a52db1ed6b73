"""The keyword view of an index in PostgreSQL: what retrievers read of its keyword leg, and walks over its terms."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rag_kit.documents import Filter
from rag_kit.indexing.bm25 import parameters as check
from rag_kit.indexing.bm25.postings import Postings
from rag_kit.indexing.bm25.term_graph import TermGraph
from rag_kit.indexing.document_index.keyword import KeywordView
from rag_kit.indexing.document_index.rows import documents
from rag_kit.indexing.postgres import keyword_scores
from rag_kit.indexing.postgres.keyword_scores import counted_terms, counts, frequencies, passing, postings

if TYPE_CHECKING:
    from langchain_core.documents import Document
    from psycopg import Connection

    from rag_kit.indexing.postgres.store import PostgresStore

Slots = NDArray[np.int64]


class PostgresKeywordView(KeywordView):
    """See ``KeywordView``; each method reads one committed state, the newest."""

    def __init__(self, store: PostgresStore, analyzer: Callable[[str], list[str]]) -> None:
        self._store = store
        self._analyzer = analyzer
        self._derived = store.state().derived

    def __len__(self) -> int:
        with self._store.reading() as connection:
            return counts(connection.native).documents

    def __contains__(self, key: object) -> bool:
        with self._store.reading() as connection:
            return isinstance(key, str) and bool(documents(connection, [key]))

    def analyzer(self, text: str) -> list[str]:
        """See ``KeywordView``."""
        return self._analyzer(text)

    def _best(
        self, query: str | Mapping[str, float], k: int, where: Filter | None
    ) -> list[tuple[Document, float]]:
        terms = self.analyzer(query) if isinstance(query, str) else check.check_weights(query)
        with self._store.reading() as connection:
            table = keyword_scores.scores(connection.native, terms)
            hits = keyword_scores.best(connection.native, table, k, where)
            found = documents(connection, [key for key, _, _ in hits])
        return [(found[key], score) for key, _, score in hits]

    def document_frequencies(self, terms: Iterable[str]) -> dict[str, int]:
        """See ``KeywordView``."""
        with self._store.reading() as connection:
            found = frequencies(connection.native, terms := list(terms))
        return {term: found.get(term, 0) for term in terms}

    def spread(
        self, seeds: Mapping[str, float], k: int = 4, filter: Filter | None = None, **settings: Any
    ) -> list[tuple[Document, float, list[str]]]:
        """See ``KeywordView``."""
        settings = {"damping": 0.5, "max_df": 100, **settings}
        with self._store.reading() as connection:
            hits = spread(connection.native, seeds, check.check_k(k), self._where(filter), **settings)
            found = documents(connection, [key for key, _, _ in hits])
        return [(found[key], mass, terms) for key, mass, terms in hits]

    def maximum(self, query: str | Mapping[str, float]) -> float:
        """See ``KeywordView``."""
        terms = (
            check.check_weights(query)
            if isinstance(query, Mapping)
            else self.analyzer(check.check_query(query))
        )
        with self._store.reading() as connection:
            return keyword_scores.maximum(connection.native, terms)


def spread(
    native: Connection[Any],
    seeds: Mapping[str, float],
    k: int,
    where: Filter | None,
    *,
    damping: float,
    max_df: int,
) -> list[tuple[str, float, list[str]]]:
    """The k documents that a random walk over shared terms visits most often; see ``TermGraph.visits``.

    The walk has two rounds: from the seeds to documents that share a term with them, and on to documents that share
    a term with those. Only these are read, and numbered by their place in the sorted array of their slots.

    Returns:
        Of each document its id, how often the walk is there, and the terms that led to it.
    """
    query = "SELECT slot, id FROM keyword_documents JOIN chunks USING (n) WHERE id = ANY(%b::text[])"
    weights = {slot: seeds[key] for slot, key in native.execute(query, (list(seeds),))}
    starts = [slot for _, slot in passing(native, list(weights), where)]
    if not sum(weights[slot] for slot in starts) > 0:
        return []
    near = _slots(_edges(native, starts, max_df))
    edges = _edges(native, [slot for _, slot in passing(native, near.tolist(), where)], max_df)
    places = np.union1d(_slots(edges), np.array(starts, np.int64))
    ids = {slot: key for key, slot in passing(native, places.tolist(), where)}
    allowed = np.zeros(
        size := counts(native).documents, bool
    )  # of all: by it the rarity of a term is counted
    allowed[: len(places)] = np.isin(places, list(ids))
    seeds_at = {int(np.searchsorted(places, slot)): weights[slot] for slot in starts}
    visits = _graph(edges, places, size, max_df).visits(seeds_at, k, damping, allowed)
    return [(ids[int(places[place])], mass, terms) for place, mass, terms in visits]


def _edges(native: Connection[Any], slots: Sequence[int], max_df: int) -> dict[str, Slots]:
    """The terms of some documents that other documents have too, and the slots of all documents with each."""
    terms = {term for found in counted_terms(native, slots).values() for term in found}
    shared = sorted(term for term, count in frequencies(native, terms).items() if 1 < count <= max_df)
    postings_of = dict(postings(native, shared))
    return {term: postings_of[term].slots for term in shared}


def _slots(edges: Mapping[str, Slots]) -> Slots:
    """The slots of all documents that some edge leads to, sorted."""
    return np.unique(np.concatenate([np.zeros(0, np.int64), *edges.values()]))


def _graph(edges: Mapping[str, Slots], places: Slots, size: int, max_df: int) -> TermGraph:
    """The graph of these edges, whose documents are numbered by place."""
    documents = np.searchsorted(places, np.concatenate([np.zeros(0, np.int64), *edges.values()]))
    pointers = np.cumsum([0, *map(len, edges.values())])
    compact = Postings(pointers, documents.astype(np.int32), np.ones(len(documents), np.uint16))
    return TermGraph(compact, size, list(edges), max_df)
