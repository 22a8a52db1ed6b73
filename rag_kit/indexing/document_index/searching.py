"""Search over both legs, always with the store's committed state as the truth."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections import OrderedDict
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rag_kit.documents import Filter, compile_filter, validate_filter
from rag_kit.errors import InvalidInputError
from rag_kit.indexing.document_index.changes import documents
from rag_kit.indexing.document_index.keyword import KeywordLeg
from rag_kit.indexing.document_index.lost_rows import MirrorError
from rag_kit.indexing.document_index.matrix import TIE, VectorMatrix, Vectors, best, unit, unpack
from rag_kit.indexing.document_index.meta import State
from rag_kit.indexing.document_index.mirror import ChromaMirror
from rag_kit.indexing.document_index.store import Store, in_groups, marks

if TYPE_CHECKING:
    from langchain_core.documents import Document

    from rag_kit.indexing.bm25 import BM25Index

_CACHED_FILTERS = 32
_CACHED_METADATA = 50_000  # rows
_SPARE = 20  # rows asked of Chroma beyond k: it is approximate, and ties are ordered by id


class Searcher:
    """Keyword and dense search.

    Args:
        store: The truth.
        keyword: BM25 over it.
        matrix: All its vectors.
        mirror: Its Chroma collection.
        exact_rows: Up to so many rows, dense search is exact, by the matrix; above, by Chroma.
    """

    def __init__(
        self,
        store: Store,
        keyword: KeywordLeg,
        matrix: VectorMatrix,
        mirror: ChromaMirror,
        exact_rows: int,
    ) -> None:
        self._store = store
        self._keyword = keyword
        self._matrix = matrix
        self._mirror = mirror
        self._exact_rows = exact_rows
        self._lock = threading.Lock()
        self._allowed: OrderedDict[tuple[int, str], frozenset[str]] = OrderedDict()
        self._metadata: tuple[int, list[tuple[str, Mapping[str, Any]]]] | None = None
        self._rows: tuple[int, int] = (-1, 0)

    def keyword(self, query: str, k: int, where: Filter | None) -> list[tuple[Document, float]]:
        """The k best by BM25."""
        check_k(k)
        validate_filter(where)
        if not isinstance(query, str):
            raise InvalidInputError(f"The query must be a text, not {type(query).__name__}.")
        return self._keyword.search(self.keyword_index(), query, k, where or None)

    def keyword_index(self) -> BM25Index:
        """The BM25 index as of the committed state; only to be read."""
        with self._store.reading() as connection:
            return self._keyword.follow(connection, self._store.state(connection))

    def dense(self, query: Vectors, k: int, where: Filter | None) -> list[tuple[Document, float]]:
        """The k nearest by cosine."""
        check_k(k)
        validate_filter(where)
        where = where or None
        with self._store.reading() as connection:
            few = self._count(connection, self._store.state(connection)) <= self._exact_rows
        hits = None if few else self._by_chroma(query, k, where)
        with self._store.reading() as connection:
            state = self._store.state(connection)
            if hits is None:
                hits = self._exact(connection, state, query, k, where)
            ids = [key for key, _ in hits]
            # out of memory where the keyword leg holds them: no reading and no parsing
            held = self._keyword.held(ids, state.generation)
            found = {doc.id: doc for doc in held} if held is not None else documents(connection, ids)
        return [(found[key], score) for key, score in hits if key in found]

    def _count(self, connection: sqlite3.Connection, state: State) -> int:
        if self._rows[0] != state.generation:
            count = connection.execute("SELECT count(*) FROM chunks").fetchone()[0]
            self._rows = (state.generation, count)
        return self._rows[1]

    def _exact(
        self, connection: sqlite3.Connection, state: State, query: Vectors, k: int, where: Filter | None
    ) -> list[tuple[str, float]]:
        allowed = None if where is None else self._passing(connection, state, where)
        return self._matrix.search(connection, state, query, k, allowed)

    def _by_chroma(self, query: Vectors, k: int, where: Filter | None) -> list[tuple[str, float]] | None:
        """Candidates from Chroma, and whatever it does not hold yet, scored by the stored vectors.

        Chroma is asked outside of the store's transaction, which is opened later and so sees at least what
        the collection saw.

        Returns:
            ``None`` where Chroma cannot be used, or the filter lets too little through.
        """
        passes = compile_filter(where) if where is not None else None
        fetch = k + _SPARE
        while True:
            try:
                ids, generation, unreached = self._mirror.query(query, fetch)
            except MirrorError:
                return None
            with self._store.reading() as connection:
                fresh = connection.execute(
                    "SELECT c.id FROM vectors v JOIN chunks c USING (n) WHERE v.generation > ?", (generation,)
                ).fetchall()
                candidates = list(dict.fromkeys([*ids, *unreached, *(key for (key,) in fresh)]))
                keys, scores = self._scored(connection, self._store.state(connection), query, candidates)
                nearest = set(ids)
                worst = min(
                    (float(score) for key, score in zip(keys, scores, strict=True) if key in nearest),
                    default=0.0,
                )
                if passes is not None:
                    metadata = {key: doc.metadata for key, doc in documents(connection, keys).items()}
                    kept = [i for i, key in enumerate(keys) if passes(metadata[key])]
                    keys, scores = [keys[i] for i in kept], scores[kept]
            hits = best(scores, keys, k)
            # more may follow that pass the filter, or that score as the last hit does
            if len(ids) < fetch or (len(hits) == k and hits[-1][1] > worst + 2 * TIE):
                return hits
            if fetch > 100 * k:
                return None
            fetch *= 5

    @staticmethod
    def _scored(
        connection: sqlite3.Connection, state: State, query: Vectors, ids: list[str]
    ) -> tuple[list[str], Vectors]:
        """Those of the ids that exist, and their cosines."""
        keys: list[str] = []
        blobs: list[bytes] = []
        for group in in_groups(ids):
            sql = (
                f"SELECT c.id, v.vector FROM chunks c JOIN vectors v USING (n) WHERE c.id IN ({marks(group)})"
            )
            for key, blob in connection.execute(sql, group):
                keys.append(key)
                blobs.append(blob)
        return keys, unit(unpack(blobs, state.dimension or 0)) @ query

    def _passing(self, connection: sqlite3.Connection, state: State, where: Filter) -> frozenset[str]:
        """Ids of the rows that pass a filter; kept for the next query with the same filter."""
        passes = compile_filter(where)
        try:
            key = (state.generation, json.dumps(where, sort_keys=True))
        except TypeError:
            key = None
        with self._lock:
            if key is not None and key in self._allowed:
                self._allowed.move_to_end(key)
                return self._allowed[key]
        found = frozenset(i for i, metadata in self._all_metadata(connection, state) if passes(metadata))
        with self._lock:
            if key is not None:
                self._allowed[key] = found
            while len(self._allowed) > _CACHED_FILTERS:
                self._allowed.popitem(last=False)
        return found

    def _all_metadata(
        self, connection: sqlite3.Connection, state: State
    ) -> list[tuple[str, Mapping[str, Any]]]:
        with self._lock:
            if self._metadata is not None and self._metadata[0] == state.generation:
                return self._metadata[1]
        rows = [
            (key, json.loads(metadata))
            for key, metadata in connection.execute("SELECT id, metadata FROM chunks")
        ]
        with self._lock:
            self._metadata = (state.generation, rows) if len(rows) <= _CACHED_METADATA else None
        return rows


def check_k(k: int) -> None:
    """Refuse a k that is no whole number above 0.

    Raises:
        InvalidInputError: So it is.
    """
    if isinstance(k, bool) or not isinstance(k, int) or k < 1:
        raise InvalidInputError(f"k must be a whole number, 1 or more, not {k!r}.")
