"""Texts to stored vectors: of what is written, and of all chunks where they lack them or another model is taken."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing

import numpy as np
from langchain_core.embeddings import Embeddings

from rag_kit.concurrency.pool import map_ahead
from rag_kit.errors import IndexMismatchError, InvalidInputError, LockedError, ModelOutputError
from rag_kit.indexing.document_index.rows import text_hash
from rag_kit.indexing.document_index.state import (
    Connection,
    IndexState,
    in_groups,
    select_in,
    upsert_statement,
)
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


class Filling:
    """Makes the vectors that chunks lack by a model; what a kill leaves, the next one uses.

    Another model's vectors are collected beside the old ones, which serve searches until one transaction replaces them.
    """

    def __init__(
        self, store: Store, embeddings: Embeddings, name: str, max_concurrency: int | None = None
    ) -> None:
        self._store, self._embeddings, self._name = store, embeddings, name
        self._max_concurrency = max_concurrency
        self._size = EMBED_BATCH * requests_of(embeddings, max_concurrency)

    def run(self, progress: Callable[[int, int], None] | None = None) -> int:
        """Embed what is lacking, and count the texts; others may write meanwhile, so it looks until nothing is."""
        embedded = done = 0
        with self._store.write_lock:
            while lacking := self._begin_or_finish(written=done > 0):
                total, last = done + lacking, -1  # the last row number, below all at first
                while filled := self._fill(last):
                    texts, chunks, last = filled
                    embedded, done = embedded + texts, done + chunks
                    if progress is not None:
                        progress(done, max(total, done))
        return embedded

    def _table(self, state: IndexState) -> str:
        return "vectors" if state.embedding == self._name else _NEXT

    def _begin_or_finish(self, *, written: bool) -> int:
        """How many chunks lack a vector; if none, those of another model take the place of the old ones."""
        with self._store.writing() as connection:
            state = self._store.state(connection)
            table = self._table(state)
            if table == _NEXT:
                self._delete_outdated(connection, state)
            [(lacking,)] = connection.execute(f"SELECT count(*) {_LACKING.format(table)}").fetchall()
            if not lacking and table == _NEXT:
                columns, dimension = "n, vector, generation", self._store.state(connection).next_dimension
                connection.execute("DELETE FROM vectors")
                connection.execute(f"INSERT INTO vectors ({columns}) SELECT {columns} FROM {_NEXT}")
                connection.execute(f"DELETE FROM {_NEXT}")
                facts = {"embedding": self._name, "dimension": dimension}
                self._store.set_meta(**facts, next_embedding=None, next_dimension=None)
            if not lacking and (table == _NEXT or written):
                self._store.set_meta(generation=state.generation + 1)
        return int(lacking)

    def _delete_outdated(self, connection: Connection, state: IndexState) -> None:
        """Keep the vectors that an interrupted call made by this model, but for chunks that were changed since then."""
        still_right = _RIGHT if state.next_embedding == self._name else "FALSE"
        if state.next_embedding != self._name:
            self._store.set_meta(next_embedding=self._name, next_dimension=None)
        connection.execute(f"DELETE FROM {_NEXT} WHERE NOT {still_right}")

    def _fill(self, last: int) -> tuple[int, int, int] | None:
        """Embed the next chunks after a row number: how many texts, how many chunks got theirs, and the last number."""
        with self._store.reading_uncommitted() as connection:
            state = self._store.state(connection)
            table = self._table(state)
            query = (
                f"SELECT c.n, c.hash, c.text, c.metadata {_LACKING.format(table)} AND c.n > ? ORDER BY c.n"
            )
            rows = connection.execute(f"{query} LIMIT {self._size}", (last,)).fetchall()
            present = f"(SELECT * FROM {_NEXT} WHERE {_RIGHT})" if table == _NEXT else table
            vectors = vectors_by_hash(connection, {row[1] for row in rows}, present)
        if not rows:
            return None
        texts = {n: embedded_row(text, metadata) for n, _, text, metadata in rows}
        keys = {n: text_hash(text) for n, text in texts.items()}
        missing = {keys[n]: text for n, text in texts.items() if keys[n] not in vectors}
        length = state.dimension if table == "vectors" else state.next_dimension
        made = next(embed_ahead(self._embeddings, [missing], length, self._max_concurrency))
        return len(made), self._write(state, table, keys, vectors | made), rows[-1][0]

    def _write(
        self, seen: IndexState, table: str, keys: Mapping[int, bytes], vectors: Mapping[bytes, bytes]
    ) -> int:
        """Write the vectors of chunks that did not change since a state was seen, by row number; how many."""
        with self._store.writing() as connection:
            state = self._store.state(connection)
            if self._table(state) != table:
                return 0  # another process was first
            if table == _NEXT and state.next_embedding != self._name:
                raise LockedError(
                    f"Another process makes vectors by {state.next_embedding!r} in {self._store.location} now. Nothing "
                    "of the index was changed; run the same again when it is done."
                )
            query = f"SELECT n FROM chunks WHERE n IN ({{}}) AND generation <= {seen.generation}"
            unchanged = [n for (n,) in select_in(connection, query, keys)]
            generation = state.generation + (table == "vectors")
            rows = [(n, vectors[keys[n]], generation) for n in unchanged]
            connection.executemany(upsert_statement(table, "n", "vector", "generation"), rows)
            for vector in list(vectors.values())[:1]:
                dimension = "dimension" if table == "vectors" else "next_dimension"
                self._store.set_meta(**{dimension: len(vector) // 4})
        return len(unchanged)
