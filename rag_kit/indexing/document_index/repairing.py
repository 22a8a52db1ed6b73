"""Building anew what is derived from the store."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rag_kit.errors import IndexMismatchError
from rag_kit.indexing.document_index import verifying
from rag_kit.indexing.document_index.backend import Backend
from rag_kit.indexing.document_index.families.checking import mend_families, orphans
from rag_kit.indexing.document_index.filling import fill_vectors
from rag_kit.indexing.document_index.sql import scan
from rag_kit.indexing.document_index.writing import remove_rows
from rag_kit.indexing.searched import embedded_row

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings


def rebuild(backend: Backend, embeddings: Embeddings | None, *, titles: bool | None = None) -> list[str]:
    """Write the manifest if it is damaged, make missing vectors, rebuild all legs.

    Args:
        backend: The index.
        embeddings: Its model.
        titles: Whether titles are searched with the texts; ``None`` as before.

    Returns:
        What was done, in words.
    """
    done: list[str] = []
    store = backend.store
    with store.write_lock:
        state = store.state()
        if mended := backend.mend(state):
            done.append(mended)
        with store.writing() as connection:
            if sources := verifying.damaged_sources(connection):
                verifying.invalidate_unsound(connection)
                connection.executemany("DELETE FROM sources WHERE source = ?", [(s,) for s in sources])
                done.append(f"{len(sources)} files with damaged chunks will be read again by the next ingest")
            if marked := mend_families(connection):
                done.append(f"marked {marked} damaged parents, to be replaced when they are written again")
            if lone := orphans(connection):
                remove_rows(store, lone)
                done.append(f"removed {len(lone)} children without a parent or a row")
        if state.embedding is not None:
            if dropped := verifying.drop_unsound_vectors(store):
                done.append(f"dropped {dropped} damaged vectors")
            if embeddings is not None and (filled := fill_vectors(store, embeddings, state.embedding)):
                done.append(f"embedded {filled} texts again")
        if titles is not None and titles != state.titles:
            done.append(_search_titles(backend, embeddings, titles))
        done += backend.rebuild()
    return done


def _search_titles(backend: Backend, embeddings: Embeddings | None, titles: bool) -> str:
    """Search texts with their titles from now on, or without; gives in words what was done."""
    embedded, store = 0, backend.store
    with store.writing() as connection:
        state = store.state(connection)
        if state.embedding is not None and embeddings is None:
            raise IndexMismatchError(
                f"Texts with titles have other vectors: open the index in {backend.location} with its embedding model "
                f"{state.embedding!r} to change that (rag-kit repair --titles does)."
            )
        rows = scan(connection, "SELECT n, text, metadata FROM chunks")
        changed = [(n,) for n, text, metadata in rows if embedded_row(text, metadata, titles=True) != text]
        connection.executemany("DELETE FROM vectors WHERE n = ?", changed)
        generation = state.generation + 1
        # a short text is embedded alone, and yet found by the words of its title
        connection.execute("UPDATE chunks SET generation = ?", (generation,))
        store.set_meta(titles=titles, generation=generation)
        if state.embedding is not None and embeddings is not None:
            embedded = fill_vectors(store, embeddings, state.embedding)
    how = "with" if titles else "without"
    return f"texts are searched {how} their titles and headings now; embedded {embedded} again"
