"""Vectors of all chunks by one model: for an index that has none, after damage, or by another model than before."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from rag_kit.errors import LockedError
from rag_kit.indexing.document_index.embedding import EMBED_BATCH, embed_ahead, requests_of
from rag_kit.indexing.document_index.rows import text_hash
from rag_kit.indexing.document_index.sql import Connection, chosen, replacing
from rag_kit.indexing.document_index.store import State, Store
from rag_kit.indexing.document_index.writing import known_vectors
from rag_kit.indexing.searched import embedded_row

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings

_NEXT = "next_vectors"
_LACKING = "FROM chunks c LEFT JOIN {} v USING (n) WHERE v.n IS NULL"


def fill_vectors(
    store: Store,
    embeddings: Embeddings,
    name: str,
    progress: Callable[[int, int], None] | None = None,
    max_concurrency: int | None = None,
) -> int:
    """Embed the chunks that have no vector by a model; what a kill leaves, the next call uses.

    Vectors of another model than the index has are collected beside the old ones, which serve searches until
    one transaction puts the new ones in their place. Other processes may write meanwhile, so it looks again until
    nothing is lacking.

    """
    size = EMBED_BATCH * requests_of(embeddings, max_concurrency)
    embedded = done = 0
    with store.write_lock:
        while lacking := _begin_or_finish(store, name, written=done > 0):
            total, last = done + lacking, -1
            while rows := _lacking_rows(store, name, last, size):
                count, filled = _fill(store, name, rows, embeddings, max_concurrency)
                embedded, done, last = embedded + count, done + filled, rows[-1][0]
                if progress is not None:
                    progress(done, max(total, done))
    return embedded


def _table(state: State, name: str) -> str:
    return "vectors" if state.embedding == name else _NEXT


def _begin_or_finish(store: Store, name: str, *, written: bool) -> int:
    """How many chunks lack a vector; if none, those of another model take the place of the old ones."""
    with store.writing() as connection:
        state = store.state(connection)
        table = _table(state, name)
        if table == _NEXT:
            _keep_current(store, connection, state, name)
        [(lacking,)] = connection.execute(f"SELECT count(*) {_LACKING.format(table)}").fetchall()
        if not lacking:
            if table == _NEXT:
                columns = "n, vector, generation"
                connection.execute("DELETE FROM vectors")
                connection.execute(f"INSERT INTO vectors ({columns}) SELECT {columns} FROM {_NEXT}")
                connection.execute(f"DELETE FROM {_NEXT}")
                dimension = store.state(connection).next_dimension
                store.set_meta(embedding=name, dimension=dimension, next_embedding=None, next_dimension=None)
            if table == _NEXT or written:
                store.set_meta(generation=state.generation + 1)
    return int(lacking)


def _keep_current(store: Store, connection: Connection, state: State, name: str) -> None:
    """Keep the vectors that an interrupted call made by this model, but for chunks that were changed since then."""
    kept = "FALSE"
    if state.next_embedding == name:
        kept = f"EXISTS (SELECT 1 FROM chunks c WHERE c.n = {_NEXT}.n AND {_NEXT}.generation >= c.generation)"
    else:
        store.set_meta(next_embedding=name, next_dimension=None)
    connection.execute(f"DELETE FROM {_NEXT} WHERE NOT {kept}")


def _lacking_rows(store: Store, name: str, last: int, size: int) -> list[tuple[int, bytes, str, str]]:
    """Number, hash, text and metadata of the next chunks that lack a vector."""
    with store.looking() as connection:
        lacking = _LACKING.format(_table(store.state(connection), name))
        query = f"SELECT c.n, c.hash, c.text, c.metadata {lacking} AND c.n > ? ORDER BY c.n LIMIT {size}"
        return list(connection.execute(query, (last,)).fetchall())


def _fill(
    store: Store,
    name: str,
    rows: list[tuple[int, bytes, str, str]],
    embeddings: Embeddings,
    max_concurrency: int | None,
) -> tuple[int, int]:
    """Embed some chunks, write the vectors of those that did not change meanwhile; count texts and chunks."""
    texts = {n: embedded_row(text, metadata) for n, _, text, metadata in rows}
    keys = {n: text_hash(text) for n, text in texts.items()}
    with store.looking() as connection:
        state = store.state(connection)
        table = _table(state, name)
        length = state.dimension if table == "vectors" else state.next_dimension
        known = known_vectors(connection, {row[1] for row in rows}, table)
    wanted = {keys[n]: text for n, text in texts.items() if keys[n] not in known}
    made = next(embed_ahead(embeddings, [wanted], length, max_concurrency))
    vectors = known | made
    with store.writing() as connection:
        now = store.state(connection)
        if _table(now, name) != table:
            return len(made), 0  # another process was first
        if table == _NEXT and now.next_embedding != name:
            raise LockedError(
                f"Another process makes vectors by {now.next_embedding!r} in {store.path} now. Nothing of the index "
                "was changed; run the same again when it is done."
            )
        query = f"SELECT n FROM chunks WHERE n IN ({{}}) AND generation <= {state.generation}"
        same = {n for (n,) in chosen(connection, query, keys)}
        generation = now.generation + (table == "vectors")
        connection.executemany(
            replacing(table, "n", "vector", "generation"),
            [(n, vectors[key], generation) for n, key in keys.items() if n in same],
        )
        for vector in list(vectors.values())[:1]:
            dimension = "dimension" if table == "vectors" else "next_dimension"
            store.set_meta(**{dimension: len(vector) // 4})
    return len(made), len(same)
