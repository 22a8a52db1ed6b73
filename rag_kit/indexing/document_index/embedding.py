"""Texts to stored vectors: of what is written, and of all chunks where they lack them or another model is taken."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from typing import NamedTuple

import numpy as np
from langchain_core.embeddings import Embeddings

from rag_kit.concurrency.pool import map_ahead
from rag_kit.errors import IndexMismatchError, InvalidInputError, LockedError, ModelOutputError
from rag_kit.indexing.document_index.rows import text_hash
from rag_kit.indexing.document_index.state import Connection, State, in_groups, select_in, upsert_statement
from rag_kit.indexing.document_index.store import Store
from rag_kit.indexing.document_index.vectors import Vectors, unit
from rag_kit.indexing.document_index.writing import vectors_by_hash
from rag_kit.indexing.searched import embedded_row
from rag_kit.models.clients import check_embeddings, embed_documents
from rag_kit.models.runnables import connections_of

EMBED_BATCH = 512
_REQUESTS = 4  # to an endpoint at a time
_NEXT = "next_vectors"
#: Of the next vectors those of the present texts: a chunk that was changed keeps that of its former text.
_RIGHT = f"EXISTS (SELECT 1 FROM chunks c WHERE c.n = {_NEXT}.n AND {_NEXT}.generation >= c.generation)"
_LACKING = "FROM chunks c LEFT JOIN {} v USING (n) WHERE v.n IS NULL"


def name_of(embeddings: Embeddings) -> str:
    """The stable name of an embedding model, as recorded in an index."""
    from rag_kit.models.embedding import embedding_name

    check_embeddings(embeddings)
    return getattr(embeddings, "recorded_as", None) or embedding_name(embeddings)


def check_model(folder: object, recorded: str | None, name: str | None, *, writing: bool) -> None:
    """Refuse another embedding model than the index was built with, or rows without vectors for one that has them."""
    if recorded is not None and name is not None and recorded != name:
        raise IndexMismatchError(
            f"The index in {folder} was built with the embedding model {recorded!r}, but {name!r} was given. "
            f"Give {recorded!r} (behind an @ is the host: RAG_KIT_EMBEDDING_BASE_URL), or build another index."
        )
    if writing and recorded is not None and name is None:
        raise IndexMismatchError(
            f"The index in {folder} was built with the embedding model {recorded!r}, but none was given, so "
            f"new chunks would have no vectors. Give {recorded!r} (embeddings=, --embedding-model), or build an index "
            "without vectors in another folder."
        )


def embed_ahead(
    embeddings: Embeddings,
    groups: Iterable[Mapping[bytes, str]],
    dimension: int | None,
    max_concurrency: int | None = None,
) -> Generator[dict[bytes, bytes]]:
    """Embed groups of texts by hash while the caller uses the vectors of those before.

    Groups are drawn on the caller's thread. Of each, stored vectors (float32, little endian) by hash come back, which
    must have the length `dimension`; ``None`` takes that of the first. An endpoint gets several requests at a time, by
    default 4; other models are called once at a time.
    """

    def embed_piece(piece: tuple[list[tuple[bytes, str]], bool]) -> tuple[list[bytes], Vectors, bool]:
        texts, last = piece
        if not texts:
            return [], np.empty((0, dimension or 1), np.float32), last
        answer = embed_documents(embeddings, [text for _, text in texts])
        return [key for key, _ in texts], check_vectors(answer, len(texts), None), last

    width = requests_of(embeddings, max_concurrency)
    vectors: dict[bytes, bytes] = {}
    with closing(map_ahead(embed_piece, _batches_of(groups), max_concurrency=width)) as made:
        for keys, array, last in made:
            if keys:
                dimension = check_vectors(array, len(keys), dimension).shape[1]
            vectors.update((key, row.tobytes()) for key, row in zip(keys, array, strict=True))
            if last:
                yield vectors
                vectors = {}


def requests_of(embeddings: Embeddings, max_concurrency: int | None) -> int:
    """How many batches a model is given at a time."""
    if connections_of(embeddings):
        return max_concurrency or _REQUESTS
    return int(getattr(embeddings, "concurrent_batches", 1))


def _batches_of(groups: Iterable[Mapping[bytes, str]]) -> Iterator[tuple[list[tuple[bytes, str]], bool]]:
    """Cut a group into the batches of its calls, each with whether it is the last; an empty group has one."""
    for texts in groups:
        pieces = list(in_groups(texts.items(), EMBED_BATCH)) or [[]]
        yield from ((piece, number == len(pieces)) for number, piece in enumerate(pieces, 1))


def check_vectors(
    answer: Sequence[Sequence[float]] | Sequence[Vectors] | Vectors, count: int, dimension: int | None
) -> Vectors:
    """Check what a model answered and return it as an array of shape (count, dimension)."""
    try:
        array = np.asarray(answer, dtype="<f4")
    except (ValueError, TypeError) as error:
        raise ModelOutputError(f"The embedding model gave no vectors of one length ({error}).") from error
    if array.ndim != 2 or array.shape[0] != count or not array.shape[1]:
        raise ModelOutputError(
            f"The embedding model gave an array of shape {array.shape} for {count} texts; one vector each is needed."
        )
    if dimension is not None and array.shape[1] != dimension:
        raise ModelOutputError(
            f"The embedding model gave vectors of length {array.shape[1]}; those in the index have {dimension}. "
            "Has the model changed under its name? Build another index in another folder."
        )
    if not np.isfinite(array).all():
        raise ModelOutputError("The embedding model gave vectors that hold infinities or no numbers.")
    return array


def query_vector(value: Sequence[float], dimension: int | None) -> Vectors:
    """A query's vector, scaled to length 1."""
    try:
        array = np.asarray(value, dtype=np.float32)
    except (ValueError, TypeError):
        array = np.empty(0, np.float32)
    if array.shape != (dimension or len(array),) or not len(array) or not np.isfinite(array).all():
        raise InvalidInputError(
            f"The query must be a text, or finite numbers of length {dimension}; its shape is {array.shape}."
        )
    return unit(array)


def fill_vectors(
    store: Store,
    embeddings: Embeddings,
    name: str,
    progress: Callable[[int, int], None] | None = None,
    max_concurrency: int | None = None,
) -> int:
    """Embed the chunks that have no vector by a model, and count their texts; what a kill leaves, the next call uses.

    Another model's vectors are collected beside the old ones, which serve searches until one transaction replaces them.
    Other processes may write meanwhile, so it looks again until nothing is lacking.
    """
    size = EMBED_BATCH * requests_of(embeddings, max_concurrency)
    embedded = done = 0
    with store.write_lock:
        while lacking := _begin_or_finish(store, name, written=done > 0):
            total, last = done + lacking, -1  # the last row number, below all at first
            while (lacked := _lacking_rows(store, name, last, size)).rows:
                count, filled = _embed_rows(store, name, lacked, embeddings, max_concurrency)
                embedded, done, last = embedded + count, done + filled, lacked.rows[-1][0]
                if progress is not None:
                    progress(done, max(total, done))
    return embedded


def _vector_table(state: State, name: str) -> str:
    return "vectors" if state.embedding == name else _NEXT


def _begin_or_finish(store: Store, name: str, *, written: bool) -> int:
    """How many chunks lack a vector; if none, those of another model take the place of the old ones."""
    with store.writing() as connection:
        state = store.state(connection)
        table = _vector_table(state, name)
        if table == _NEXT:
            _delete_outdated(store, connection, state, name)
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


def _delete_outdated(store: Store, connection: Connection, state: State, name: str) -> None:
    """Keep the vectors that an interrupted call made by this model, but for chunks that were changed since then."""
    still_right = _RIGHT if state.next_embedding == name else "FALSE"
    if state.next_embedding != name:
        store.set_meta(next_embedding=name, next_dimension=None)
    connection.execute(f"DELETE FROM {_NEXT} WHERE NOT {still_right}")


class _Lacking(NamedTuple):
    """Chunks that lack a vector, and what was true when they were read: others may write from then on."""

    rows: list[tuple[int, bytes, str, str]]  # number, hash, text, metadata
    state: State
    known: dict[bytes, bytes]  # vectors of the same texts, by the hash of what is embedded


def _lacking_rows(store: Store, name: str, last: int, size: int) -> _Lacking:
    """The next chunks that lack a vector."""
    with store.reading_uncommitted() as connection:
        state = store.state(connection)
        table = _vector_table(state, name)
        query = f"SELECT c.n, c.hash, c.text, c.metadata {_LACKING.format(table)} AND c.n > ? ORDER BY c.n LIMIT {size}"
        rows = connection.execute(query, (last,)).fetchall()
        present = f"(SELECT * FROM {_NEXT} WHERE {_RIGHT})" if table == _NEXT else table
        return _Lacking(rows, state, vectors_by_hash(connection, {row[1] for row in rows}, present))


def _embed_rows(
    store: Store, name: str, lacking: _Lacking, embeddings: Embeddings, max_concurrency: int | None
) -> tuple[int, int]:
    """Embed some chunks, write the vectors of those that did not change meanwhile; count texts and chunks."""
    rows, state, known = lacking
    texts = {n: embedded_row(text, metadata) for n, _, text, metadata in rows}
    keys = {n: text_hash(text) for n, text in texts.items()}
    table = _vector_table(state, name)
    length = state.dimension if table == "vectors" else state.next_dimension
    missing = {keys[n]: text for n, text in texts.items() if keys[n] not in known}
    embedded = next(embed_ahead(embeddings, [missing], length, max_concurrency))
    vectors = known | embedded
    with store.writing() as connection:
        current_state = store.state(connection)
        if _vector_table(current_state, name) != table:
            return len(embedded), 0  # another process was first
        if table == _NEXT and current_state.next_embedding != name:
            raise LockedError(
                f"Another process makes vectors by {current_state.next_embedding!r} in {store.location} now. Nothing "
                "of the index was changed; run the same again when it is done."
            )
        query = f"SELECT n FROM chunks WHERE n IN ({{}}) AND generation <= {state.generation}"
        unchanged = {n for (n,) in select_in(connection, query, keys)}
        generation = current_state.generation + (table == "vectors")
        connection.executemany(
            upsert_statement(table, "n", "vector", "generation"),
            [(n, vectors[key], generation) for n, key in keys.items() if n in unchanged],
        )
        for vector in list(vectors.values())[:1]:
            dimension = "dimension" if table == "vectors" else "next_dimension"
            store.set_meta(**{dimension: len(vector) // 4})
    return len(embedded), len(unchanged)
