"""The keyword view of an index in PostgreSQL: what retrievers read of its keyword leg, and walks over its terms."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from rag_kit.documents import Filter
from rag_kit.indexing.bm25.parameters import check_k
from rag_kit.indexing.bm25.postings import Postings
from rag_kit.indexing.bm25.term_graph import TermGraph
from rag_kit.indexing.bm25.view import Query
from rag_kit.indexing.document_index.keyword import KeywordView
from rag_kit.indexing.document_index.rows import documents
from rag_kit.indexing.postgres.connection import filter_rows
from rag_kit.indexing.postgres.keyword_scores import (
    Numbers,
    best_hits,
    maximum,
    read_counts,
    read_frequencies,
    read_postings,
    read_terms,
    score_all,
)

if TYPE_CHECKING:
    from langchain_core.documents import Document
    from psycopg import Connection


class PostgresKeywordView(KeywordView):
    """See ``KeywordView``; each method reads one committed state, the newest."""

    def __init__(self, store: Any, analyzer: Callable[[str], list[str]]) -> None:
        self._store = store
        self._analyzer = analyzer
        self._derived = store.state().derived

    def __len__(self) -> int:
        with self._store.reading() as connection:
            return read_counts(connection.native).documents

    def __contains__(self, key: object) -> bool:
        with self._store.reading() as connection:
            return isinstance(key, str) and bool(documents(connection, [key]))

    def analyzer(self, text: str) -> list[str]:
        """See ``KeywordView``."""
        return self._analyzer(text)

    def _best(self, terms: Query, k: int, where: Filter | None) -> list[tuple[Document, float]]:
        with self._store.reading() as connection:
            hits = best_hits(connection.native, *score_all(connection.native, terms), k, where)
            rows = documents(connection, [key for key, _, _ in hits])
        return [(rows[key], score) for key, _, score in hits]

    def document_frequencies(self, terms: Iterable[str]) -> dict[str, int]:
        """See ``KeywordView``."""
        with self._store.reading() as connection:
            frequencies = read_frequencies(connection.native, terms := list(terms))
        return {term: frequencies.get(term, 0) for term in terms}

    def spread(
        self, seeds: Mapping[str, float], k: int = 4, filter: Filter | None = None, **settings: Any
    ) -> list[tuple[Document, float, list[str]]]:
        """See ``KeywordView``."""
        settings = {"damping": 0.5, "max_df": 100, **settings}
        with self._store.reading() as connection:
            hits = spread(connection.native, seeds, check_k(k), self._where(filter), **settings)
            rows = documents(connection, [key for key, _, _ in hits])
        return [(rows[key], mass, terms) for key, mass, terms in hits]

    def maximum(self, query: str | Mapping[str, float]) -> float:
        """See ``KeywordView``."""
        with self._store.reading() as connection:
            return maximum(connection.native, self._terms(query))


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
    a term with those. Only these are read, and numbered by their place in the sorted array of their row numbers.

    Returns:
        Of each document its id, how often the walk is there, and the terms that led to it.
    """
    query = "SELECT n, id FROM chunks WHERE id = ANY(%b::text[])"
    weights = {n: seeds[key] for n, key in native.execute(query, (list(seeds),))}
    starts = list(filter_rows(native, list(weights), where))
    if not sum(weights[n] for n in starts) > 0:
        return []
    places, edges = np.array(starts, np.int64), dict[str, Numbers]()
    for _ in range(2):
        passing = list(filter_rows(native, places.tolist(), where))
        edges = _documents_of_terms(native, passing, max_df)
        places = np.unique(np.concatenate([np.array(starts, np.int64), *edges.values()]))
    ids = filter_rows(native, places.tolist(), where)
    size = read_counts(native).documents  # of all: by it the rarity of a term is counted
    allowed = np.zeros(size, bool)
    allowed[: len(places)] = np.isin(places, list(ids))
    documents = np.searchsorted(places, np.concatenate([places[:0], *edges.values()])).astype(np.int32)
    pointers = np.cumsum([0, *map(len, edges.values())])
    graph = TermGraph(
        Postings(pointers, documents, np.ones(len(documents), np.uint16)), size, list(edges), max_df
    )
    seeds_at = {int(np.searchsorted(places, n)): weights[n] for n in starts}
    visits = graph.visits(seeds_at, k, damping, allowed)
    return [(ids[int(places[place])], mass, terms) for place, mass, terms in visits]


def _documents_of_terms(native: Connection[Any], numbers: Sequence[int], max_df: int) -> dict[str, Numbers]:
    """The terms of some documents that other documents have too, and the numbers of all documents with each."""
    terms = set().union(*read_terms(native, numbers).values())
    shared = sorted(term for term, count in read_frequencies(native, terms).items() if 1 < count <= max_df)
    postings = read_postings(native, shared)
    return {term: postings[term].numbers for term in shared}
