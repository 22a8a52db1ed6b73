"""Vectors for chunks that have none: an index that gets an embedding model later, or a repair."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING

from rag_kit.indexing.document_index.embedding import EMBED_BATCH, embed_texts
from rag_kit.indexing.document_index.store import Store
from rag_kit.indexing.document_index.writing import known_vectors

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings

_WITHOUT = "FROM chunks c LEFT JOIN vectors v USING (n) WHERE v.n IS NULL"


def fill_vectors(
    store: Store,
    embeddings: Embeddings,
    name: str,
    progress: Callable[[int, int], None] | None = None,
) -> int:
    """Embed the chunks that have no vector, batch by batch; what a kill leaves is used by the next run.

    The index counts as one with vectors only when the last batch is in.

    Args:
        store: The store, opened for writing.
        embeddings: The model.
        name: Its name.
        progress: Told how many chunks of how many are done.

    Returns:
        How many texts were embedded.
    """
    embedded = done = 0
    with store.write_lock:
        with store.writing() as connection:
            begun = connection.execute("SELECT value FROM meta WHERE key = 'filling'").fetchone()
            state = store.state(connection)
            if state.embedding is None and (begun is None or json.loads(begun[0]) != name):
                connection.execute("DELETE FROM vectors")
                store.set_meta(dimension=None, filling=name)
            total = connection.execute(f"SELECT count(*) {_WITHOUT}").fetchone()[0]
        while True:
            with store.looking() as connection:
                query = f"SELECT c.n, c.hash, c.text {_WITHOUT} ORDER BY c.n LIMIT {EMBED_BATCH}"
                rows = connection.execute(query).fetchall()
                vectors = known_vectors(connection, {digest for _, digest, _ in rows})
                state = store.state(connection)
            if not rows:
                break
            texts = {digest: text for _, digest, text in rows if digest not in vectors}
            fresh, dimension = embed_texts(embeddings, texts, state.dimension)
            vectors.update(fresh)
            embedded += len(fresh)
            with store.writing() as connection:
                connection.executemany(
                    "INSERT OR REPLACE INTO vectors VALUES (?, ?, ?)",
                    [(n, vectors[digest], state.generation + 1) for n, digest, _ in rows],
                )
                store.set_meta(dimension=dimension or state.dimension)
            done += len(rows)
            if progress is not None:
                progress(done, total)
        with store.writing() as connection:
            state = store.state(connection)
            connection.execute("DELETE FROM meta WHERE key = 'filling'")
            if state.embedding is None or total:
                store.set_meta(embedding=name, generation=state.generation + 1)
    return embedded
