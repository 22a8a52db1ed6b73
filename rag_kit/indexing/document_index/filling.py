"""Vectors of all chunks by one model: for an index that has none, after damage, or by another model than before."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Collection, Iterator
from contextlib import closing
from typing import TYPE_CHECKING

from rag_kit.indexing.document_index.embedding import EMBED_BATCH, embed_ahead
from rag_kit.indexing.document_index.rows import text_hash
from rag_kit.indexing.document_index.sql import Connection, replacing
from rag_kit.indexing.document_index.store import Store
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
    embedded = done = 0
    with store.write_lock:
        with store.writing() as connection:
            state = store.state(connection)
            table = "vectors" if state.embedding == name else _NEXT
            dimension = state.dimension if table == "vectors" else _begin(store, connection, name)
            generation = state.generation + (table == "vectors")
            lacking = f"FROM chunks c LEFT JOIN {table} v USING (n) WHERE v.n IS NULL"
            total = connection.execute(f"SELECT count(*) {lacking}").fetchone()[0]
        waiting: deque[tuple[list[tuple[int, bytes, bytes]], Collection[bytes]]] = deque()

        def wanted() -> Iterator[dict[bytes, str]]:
            """The texts without a vector, of one batch of rows after the other."""
            last = -1
            query = f"SELECT c.n, c.hash, c.text, c.metadata {lacking} AND c.n > ? ORDER BY c.n LIMIT {EMBED_BATCH}"
            while True:
                with store.looking() as connection:
                    found = connection.execute(query, (last,)).fetchall()
                    made = known_vectors(connection, {row[1] for row in found}, table, titles=state.titles)
                if not found:
                    return
                last = found[-1][0]
                texts = [embedded_row(row[2], row[3], titles=state.titles) for row in found]
                rows = [(row[0], row[1], text_hash(text)) for row, text in zip(found, texts, strict=True)]
                coming = set(made).union(*(keys for _, keys in waiting))
                new = {row[2]: text for row, text in zip(rows, texts, strict=True) if row[2] not in coming}
                waiting.append((rows, new.keys()))
                yield new

        with closing(embed_ahead(embeddings, wanted(), dimension, max_concurrency)) as groups:
            for vectors in groups:
                rows, _ = waiting.popleft()
                embedded += len(vectors)
                with store.writing() as connection:
                    others = {digest for _, digest, key in rows if key not in vectors}
                    vectors |= known_vectors(connection, others, table, titles=state.titles)
                    connection.executemany(
                        replacing(table, "n", "vector", "generation"),
                        [(n, vectors[key], generation) for n, _, key in rows],
                    )
                    dimension = len(vectors[rows[0][2]]) // 4
                    store.set_meta(**{"dimension" if table == "vectors" else "next_dimension": dimension})
                done += len(rows)
                if progress is not None:
                    progress(done, total)
        with store.writing() as connection:
            if table == _NEXT:
                store.switch_vectors(connection)
                connection.execute("DELETE FROM meta WHERE key IN ('next_embedding', 'next_dimension')")
                store.set_meta(embedding=name, dimension=dimension)
            if table == _NEXT or total:
                store.set_meta(generation=state.generation + 1)
    return embedded


def _begin(store: Store, connection: Connection, name: str) -> int | None:
    """Keep the vectors that an interrupted call made by this model; returns their length, if there are any.

    Those of another model are dropped, and those of chunks that were changed since then.
    """
    store.begin_vectors(connection)
    meta = {key: json.loads(value) for key, value in connection.execute("SELECT key, value FROM meta")}
    if meta.get("next_embedding") == name:
        connection.execute(
            f"DELETE FROM {_NEXT} WHERE NOT EXISTS (SELECT 1 FROM chunks c "
            f"WHERE c.n = {_NEXT}.n AND {_NEXT}.generation >= c.generation)"
        )
        length = meta.get("next_dimension")
        return length if type(length) is int else None
    connection.execute(f"DELETE FROM {_NEXT}")
    store.set_meta(next_embedding=name, next_dimension=None)
    return None
