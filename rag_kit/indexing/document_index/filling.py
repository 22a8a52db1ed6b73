"""Vectors of all chunks by one model: for an index that has none, after damage, or by another model than before."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Collection, Iterator
from contextlib import closing
from typing import TYPE_CHECKING, Any

from rag_kit.errors import LockedError
from rag_kit.indexing.document_index.embedding import EMBED_BATCH, embed_ahead
from rag_kit.indexing.document_index.rows import text_hash
from rag_kit.indexing.document_index.sql import Connection, chosen, replacing
from rag_kit.indexing.document_index.store import State, Store
from rag_kit.indexing.document_index.writing import known_vectors
from rag_kit.indexing.searched import embedded_row

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings

_NEXT = "next_vectors"
_Texts = list[
    tuple[int, bytes, bytes]
]  # of each row: its number, the hash of its text, that of what is embedded


def fill_vectors(
    store: Store,
    embeddings: Embeddings,
    name: str,
    progress: Callable[[int, int], None] | None = None,
    max_concurrency: int | None = None,
) -> int:
    """Embed the chunks that have no vector by a model, ahead of writing; what a kill leaves, the next call uses.

    Vectors of another model than the index has are collected beside the old ones, which serve searches until
    one transaction puts the new ones in their place.

    Args:
        store: The store, opened for writing.
        embeddings: The model.
        name: Its name.
        progress: Called with how many of how many chunks are done.
        max_concurrency: As for ``embed_ahead``.

    Returns:
        How many texts were embedded.
    """
    filling = _Filling(store, name, progress)
    with store.write_lock:
        while not filling.is_complete():
            filling.once(embeddings, max_concurrency)
    return filling.embedded


class _Filling:
    """One call of `fill_vectors`; other processes may write meanwhile, so it looks again until nothing is lacking."""

    def __init__(self, store: Store, name: str, progress: Callable[[int, int], None] | None) -> None:
        self._store, self._name, self._progress = store, name, progress
        self.embedded = self._done = self._total = 0
        self._begun = False

    def _table(self, state: State) -> str:
        return "vectors" if state.embedding == self._name else _NEXT

    def is_complete(self) -> bool:
        """Begin, or finish: once no chunk lacks a vector, those of another model take the place of the old ones."""
        with self._store.writing() as connection:
            state = self._store.state(connection)
            table = self._table(state)
            if table == _NEXT:
                self._keep_current(connection)
            [(lacking,)] = connection.execute(f"SELECT count(*) {_lacking(table)}").fetchall()
            self._begun, self._total = True, self._done + lacking
            if lacking:
                return False
            if table == _NEXT:
                self._store.switch_vectors(connection)
                found = _meta(connection).get("next_dimension")
                connection.execute("DELETE FROM meta WHERE key IN ('next_embedding', 'next_dimension')")
                self._store.set_meta(embedding=self._name, dimension=found)
            if table == _NEXT or self._done:
                self._store.set_meta(generation=state.generation + 1)
        return True

    def _keep_current(self, connection: Connection) -> None:
        """Keep the vectors that an interrupted call made by this model, but for chunks that were changed since then.

        Those of another model are dropped.
        """
        self._store.begin_vectors(connection)
        if self._begun:
            self._check_alone(connection)
        if self._begun or _meta(connection).get("next_embedding") == self._name:
            connection.execute(
                f"DELETE FROM {_NEXT} WHERE NOT EXISTS (SELECT 1 FROM chunks c "
                f"WHERE c.n = {_NEXT}.n AND {_NEXT}.generation >= c.generation)"
            )
            return
        connection.execute(f"DELETE FROM {_NEXT}")
        self._store.set_meta(next_embedding=self._name, next_dimension=None)

    def _check_alone(self, connection: Connection) -> None:
        """Raise LockedError where another process has begun to make vectors of another model meanwhile."""
        if (found := _meta(connection).get("next_embedding")) != self._name:
            raise LockedError(
                f"Another process makes vectors by {found!r} in {self._store.path} now. Nothing of the index was "
                "changed; run the same again when it is done."
            )

    def once(self, embeddings: Embeddings, max_concurrency: int | None) -> None:
        """Embed the chunks that lack a vector now."""
        with self._store.looking() as connection:
            state = self._store.state(connection)
            table = self._table(state)
            length = state.dimension if table == "vectors" else _meta(connection).get("next_dimension")
        waiting: deque[tuple[_Texts, Collection[bytes]]] = deque()
        made = embed_ahead(embeddings, self._wanted(table, waiting), length, max_concurrency)
        with closing(made) as groups:
            for vectors in groups:
                rows, _ = waiting.popleft()
                self.embedded += len(vectors)
                if not self._write(table, state.generation, rows, vectors):
                    return
                self._done += len(rows)
                if self._progress is not None:
                    self._progress(self._done, self._total)

    def _wanted(
        self, table: str, waiting: deque[tuple[_Texts, Collection[bytes]]]
    ) -> Iterator[dict[bytes, str]]:
        """The texts without a vector, of one batch of rows after the other; the rows are put into `waiting`."""
        last = -1
        query = f"SELECT c.n, c.hash, c.text, c.metadata {_lacking(table)} AND c.n > ? ORDER BY c.n "
        while True:
            with self._store.looking() as connection:
                found = connection.execute(f"{query} LIMIT {EMBED_BATCH}", (last,)).fetchall()
                made = known_vectors(connection, {row[1] for row in found}, table)
            if not found:
                return
            last = found[-1][0]
            texts = [embedded_row(row[2], row[3]) for row in found]
            rows = [(row[0], row[1], text_hash(text)) for row, text in zip(found, texts, strict=True)]
            coming = set(made).union(*(keys for _, keys in waiting))
            new = {row[2]: text for row, text in zip(rows, texts, strict=True) if row[2] not in coming}
            waiting.append((rows, new.keys()))
            yield new

    def _write(self, table: str, since: int, rows: _Texts, vectors: dict[bytes, bytes]) -> bool:
        """Write the vectors of rows that have not changed meanwhile; false where another process was first."""
        with self._store.writing() as connection:
            now = self._store.state(connection)
            if self._table(now) != table:
                return False
            if table == _NEXT:
                self._check_alone(connection)
            vectors |= known_vectors(connection, {text for _, text, key in rows if key not in vectors}, table)
            query = f"SELECT n FROM chunks WHERE n IN ({{}}) AND generation <= {since}"
            same = {n for (n,) in chosen(connection, query, (row[0] for row in rows))}
            generation = now.generation + (table == "vectors")
            connection.executemany(
                replacing(table, "n", "vector", "generation"),
                [(n, vectors[key], generation) for n, _, key in rows if key in vectors and n in same],
            )
            for vector in list(vectors.values())[:1]:
                dimension = "dimension" if table == "vectors" else "next_dimension"
                self._store.set_meta(**{dimension: len(vector) // 4})
        return True


def _lacking(table: str) -> str:
    return f"FROM chunks c LEFT JOIN {table} v USING (n) WHERE v.n IS NULL"


def _meta(connection: Connection) -> dict[str, Any]:
    return {key: json.loads(value) for key, value in connection.execute("SELECT key, value FROM meta")}
