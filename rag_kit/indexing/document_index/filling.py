"""Vectors of all chunks by one model: for an index that has none, after damage, or by another model than before."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from typing import TYPE_CHECKING

from rag_kit.indexing.document_index.embedding import EMBED_BATCH, embed_texts
from rag_kit.indexing.document_index.rows import text_hash
from rag_kit.indexing.document_index.store import VECTORS, Store
from rag_kit.indexing.document_index.writing import known_vectors
from rag_kit.indexing.searched import embedded_row

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings

_NEXT = "next_vectors"


def fill_vectors(
    store: Store,
    embeddings: Embeddings,
    name: str,
    progress: Callable[[int, int], None] | None = None,
) -> int:
    """Embed the chunks that have no vector by a model, batch by batch; what a kill leaves, the next call uses.

    Vectors of another model than the index has are collected beside the old ones, which serve searches until
    one transaction puts the new ones in their place.

    Args:
        store: The store, opened for writing.
        embeddings: The model.
        name: Its name.
        progress: Called with how many of how many chunks are done.

    Returns:
        How many texts were embedded.
    """
    embedded = done = 0
    with store.write_lock:
        with store.writing() as connection:
            state = store.state(connection)
            table = "vectors" if state.embedding == name else _NEXT
            dimension = state.dimension if table == "vectors" else _begin(store, connection, name)
            generation = state.generation + (table == "vectors")
            lacking = f"FROM chunks c LEFT JOIN {table} v USING (n) WHERE v.n IS NULL"
            total = connection.execute(f"SELECT count(*) {lacking}").fetchone()[0]
        while True:
            with store.looking() as connection:
                query = f"SELECT c.n, c.hash, c.text, c.metadata {lacking} ORDER BY c.n LIMIT {EMBED_BATCH}"
                rows = connection.execute(query).fetchall()
                vectors = known_vectors(connection, {row[1] for row in rows}, table, titles=state.titles)
            if not rows:
                break
            searched = [embedded_row(row[2], row[3], titles=state.titles) for row in rows]
            hashes = [text_hash(text) for text in searched]
            texts = {key: text for key, text in zip(hashes, searched, strict=True) if key not in vectors}
            fresh, dimension = embed_texts(embeddings, texts, dimension)
            vectors.update(fresh)
            embedded += len(fresh)
            with store.writing() as connection:
                connection.executemany(
                    f"INSERT OR REPLACE INTO {table} VALUES (?, ?, ?)",
                    [(row[0], vectors[key], generation) for row, key in zip(rows, hashes, strict=True)],
                )
                store.set_meta(**{"dimension" if table == "vectors" else "next_dimension": dimension})
            done += len(rows)
            if progress is not None:
                progress(done, total)
        with store.writing() as connection:
            if table == _NEXT:
                _switch(connection)
                store.set_meta(embedding=name, dimension=dimension)
            if table == _NEXT or total:
                store.set_meta(generation=state.generation + 1)
    return embedded


def _begin(store: Store, connection: sqlite3.Connection, name: str) -> int | None:
    """Keep the vectors that an interrupted call made by this model; returns their length, if there are any.

    Those of another model are dropped, and those of chunks that were changed since then.
    """
    connection.execute(VECTORS.format(_NEXT))
    meta = {key: json.loads(value) for key, value in connection.execute("SELECT * FROM meta")}
    if meta.get("next_embedding") == name:
        connection.execute(
            f"DELETE FROM {_NEXT} WHERE n NOT IN "
            f"(SELECT c.n FROM chunks c JOIN {_NEXT} v USING (n) WHERE v.generation >= c.generation)"
        )
        length = meta.get("next_dimension")
        return length if type(length) is int else None
    connection.execute(f"DELETE FROM {_NEXT}")
    store.set_meta(next_embedding=name, next_dimension=None)
    return None


def _switch(connection: sqlite3.Connection) -> None:
    """Replace the old vectors by the new ones."""
    connection.execute("DROP TABLE vectors")
    connection.execute(f"ALTER TABLE {_NEXT} RENAME TO vectors")
    connection.execute("CREATE INDEX vectors_generation ON vectors (generation)")
    connection.execute("DELETE FROM meta WHERE key IN ('next_embedding', 'next_dimension')")
