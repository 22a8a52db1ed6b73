"""Texts to stored vectors: of what is written, and of all chunks where they lack them or another model is taken."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass

import numpy as np
from langchain_core.embeddings import Embeddings

from rag_kit.concurrency.pool import map_ahead
from rag_kit.errors import IndexMismatchError, InvalidInputError, LockedError, ModelOutputError
from rag_kit.indexing.document_index.rows import text_hash
from rag_kit.indexing.document_index.state import Connection, IndexState, select_in, upsert_statement
from rag_kit.indexing.document_index.store import Store
from rag_kit.indexing.document_index.vectors import Vectors, unit
from rag_kit.indexing.document_index.writing import vectors_by_hash
from rag_kit.indexing.searched import embedded_row
from rag_kit.models.clients import check_embeddings, embed_documents
from rag_kit.models.runnables import connections_of

EMBED_BATCH = 512
_DEFAULT_REQUESTS = 4  # to an endpoint at a time
_NEXT = "next_vectors"  # table of a new model's vectors, until they replace those in the table "vectors"
#: Condition for next vectors that are those of the present texts: a changed chunk keeps that of its former text.
_IS_CURRENT = f"EXISTS (SELECT 1 FROM chunks c WHERE c.n = {_NEXT}.n AND {_NEXT}.generation >= c.generation)"
_FROM_LACKING = "FROM chunks c LEFT JOIN {} v USING (n) WHERE v.n IS NULL"


def name_of(embeddings: Embeddings) -> str:
    """Return the stable name of an embedding model, as recorded in an index."""
    from rag_kit.models.embedding import embedding_name

    check_embeddings(embeddings)
    # a model that asks workers (`ClusterEmbeddings`) has the name of the one that these use
    return getattr(embeddings, "recorded_as", None) or embedding_name(embeddings)


def check_model(folder: object, recorded: str | None, name: str | None, *, writing: bool) -> None:
    """Raise IndexMismatchError for another model than the recorded one, or for none if rows are to be written."""
    if recorded in (None, name) or (name is None and not writing):
        return
    given = f"{name!r} was given"
    advice = "(behind an @ is the host: RAG_KIT_EMBEDDING_BASE_URL), or build another index."
    if name is None:
        given = "none was given, so new chunks would have no vectors"
        advice = "(embeddings=, --embedding-model), or build an index without vectors in another folder."
    raise IndexMismatchError(
        f"The index in {folder} was built with the embedding model {recorded!r}, but {given}. Give {recorded!r} "
        f"{advice}"
    )


def embed_ahead(
    embeddings: Embeddings,
    groups: Iterable[Mapping[bytes, str]],
    dimension: int | None,
    max_concurrency: int | None = None,
) -> Generator[dict[bytes, bytes]]:
    """Embed groups of texts (hash -> text); yield for each, in order, hash -> vector (bytes: float32, little endian).

    The next groups are drawn, on the caller's thread, and embedded while the caller uses a result. Vectors must have
    the length `dimension`; ``None`` takes that of the first. ``max_concurrency`` is as for `requests_of`.
    """

    def embed_batch(batch: tuple[dict[bytes, str], bool]) -> tuple[dict[bytes, Vectors], bool]:
        texts, ends_group = batch
        if not texts:
            return {}, ends_group
        vectors = check_vectors(embed_documents(embeddings, list(texts.values())), len(texts))
        return dict(zip(texts, vectors, strict=True)), ends_group

    width = requests_of(embeddings, max_concurrency)
    group: dict[bytes, bytes] = {}
    with closing(map_ahead(embed_batch, _batches_of(groups), max_concurrency=width)) as embedded:
        for vectors, ends_group in embedded:
            if vectors:  # all of a batch have one length
                dimension = check_length(len(next(iter(vectors.values()))), dimension)
            group.update((key, vector.tobytes()) for key, vector in vectors.items())
            if ends_group:
                yield group
                group = {}


def requests_of(embeddings: Embeddings, max_concurrency: int | None) -> int:
    """Return how many batches a model is given at a time: several (default: 4) only by an endpoint, or by workers."""
    if connections_of(embeddings):
        return max_concurrency or _DEFAULT_REQUESTS
    return int(getattr(embeddings, "concurrent_batches", 1))


def _batches_of(groups: Iterable[Mapping[bytes, str]]) -> Iterator[tuple[dict[bytes, str], bool]]:
    """Cut groups into batches of `EMBED_BATCH`; yield each with whether it ends its group. An empty group has one."""
    for group in groups:
        texts = list(group.items())
        for start in range(0, max(1, len(texts)), EMBED_BATCH):
            end = start + EMBED_BATCH
            yield dict(texts[start:end]), end >= len(texts)


def check_vectors(answer: Sequence[Sequence[float]] | Vectors, count: int) -> Vectors:
    """Return a model's answer as an array of shape (count, dimension); raise ModelOutputError for any other answer."""
    try:
        array = np.asarray(answer, dtype="<f4")
    except (ValueError, TypeError):  # its text would quote what the model gave
        raise ModelOutputError("The embedding model did not give vectors of numbers of one length.") from None
    if array.ndim != 2 or array.shape[0] != count or not array.shape[1]:
        raise ModelOutputError(
            f"The embedding model gave an array of shape {array.shape} for {count} texts; one vector each is needed."
        )
    if not np.isfinite(array).all():
        raise ModelOutputError("The embedding model gave vectors with infinite or NaN values.")
    return array


def check_length(length: int, dimension: int | None) -> int:
    """Return the length of a model's vectors; raise ModelOutputError if those in the index have another."""
    if dimension is not None and length != dimension:
        raise ModelOutputError(
            f"The embedding model gave vectors of length {length}; those in the index have {dimension}. "
            "Has the model changed under its name? Build another index in another folder."
        )
    return length


def query_vector(value: Sequence[float], dimension: int | None) -> Vectors:
    """Return a query's vector, scaled to length 1; a ``dimension`` of ``None`` allows every length but 0."""
    try:
        array = np.asarray(value, dtype=np.float32)
    except (ValueError, TypeError):
        array = np.empty(0, np.float32)  # refused below
    is_vector = array.ndim == 1 and array.size > 0 and np.isfinite(array).all()
    if not is_vector or dimension not in (None, array.size):
        length = "" if dimension is None else f" of length {dimension}"
        raise InvalidInputError(
            f"A query is a text, or finite numbers{length}; what was given has the shape {array.shape}."
        )
    return unit(array)


@dataclass
class VectorFiller:
    """Makes the vectors that chunks lack by a model; after a kill, the next one goes on with those made so far.

    Vectors of a new model are collected beside the old ones, which serve searches until one transaction replaces them.
    """

    _store: Store
    _embeddings: Embeddings
    _name: str  # of the model
    _max_concurrency: int | None = None

    def run(self, progress: Callable[[int, int], None] | None = None) -> int:
        """Embed until no chunk lacks a vector, for others may write meanwhile; return how many texts were embedded."""
        embedded = done = 0
        with self._store.write_lock:
            while lacking := self._begin_or_finish(has_new_vectors=done > 0):
                total = done + lacking
                for text_count, chunk_count in self._fill():
                    embedded, done = embedded + text_count, done + chunk_count
                    if progress is not None:
                        progress(done, max(total, done))
        return embedded

    def _table(self, state: IndexState) -> str:
        return "vectors" if state.embedding == self._name else _NEXT

    def _begin_or_finish(self, *, has_new_vectors: bool) -> int:
        """Return how many chunks lack a vector; if none does, let a new model's vectors replace the old ones."""
        with self._store.writing() as connection:
            state = self._store.state(connection)
            table = self._table(state)
            is_new_model = table == _NEXT
            if is_new_model and state.next_embedding == self._name:  # begun before: go on
                connection.execute(f"DELETE FROM {_NEXT} WHERE NOT {_IS_CURRENT}")
            elif is_new_model:
                connection.execute(f"DELETE FROM {_NEXT}")
                self._store.set_meta(next_embedding=self._name, next_dimension=None)
            [(lacking,)] = connection.execute(f"SELECT count(*) {_FROM_LACKING.format(table)}").fetchall()
            if lacking:
                return int(lacking)
            if is_new_model:
                self._replace_vectors(connection)
            if is_new_model or has_new_vectors:
                self._store.set_meta(generation=state.generation + 1)
        return 0

    def _replace_vectors(self, connection: Connection) -> None:
        """Put the vectors of the new model in the place of the old ones."""
        columns, dimension = "n, vector, generation", self._store.state(connection).next_dimension
        connection.execute("DELETE FROM vectors")
        connection.execute(f"INSERT INTO vectors ({columns}) SELECT {columns} FROM {_NEXT}")
        connection.execute(f"DELETE FROM {_NEXT}")
        self._store.set_meta(embedding=self._name, dimension=dimension)
        self._store.set_meta(next_embedding=None, next_dimension=None)

    def _fill(self) -> Iterator[tuple[int, int]]:
        """Embed the chunks that lack vectors, in order; yield the numbers of texts and chunks of each step."""
        size = EMBED_BATCH * requests_of(self._embeddings, self._max_concurrency)
        last = -1  # the last row number, below all at first
        while True:
            with self._store.reading_uncommitted() as connection:
                state = self._store.state(connection)
                table = self._table(state)
                query = f"SELECT c.n, c.hash, c.text, c.metadata {_FROM_LACKING.format(table)} AND c.n > ?"
                rows = connection.execute(f"{query} ORDER BY c.n LIMIT {size}", (last,)).fetchall()
                current_vectors = f"(SELECT * FROM {_NEXT} WHERE {_IS_CURRENT})" if table == _NEXT else table
                known = vectors_by_hash(connection, {digest for _, digest, *_ in rows}, current_vectors)
            if not rows:
                return
            texts = {n: embedded_row(text, metadata) for n, _, text, metadata in rows}
            hashes = {n: text_hash(text) for n, text in texts.items()}
            missing = {hashes[n]: text for n, text in texts.items() if hashes[n] not in known}
            dimension = state.dimension if table == "vectors" else state.next_dimension
            made = next(embed_ahead(self._embeddings, [missing], dimension, self._max_concurrency))
            yield len(made), self._write(state, table, hashes, known | made)
            last = rows[-1][0]

    def _write(
        self, seen: IndexState, table: str, hashes: Mapping[int, bytes], vectors: Mapping[bytes, bytes]
    ) -> int:
        """Write the vectors of chunks (row number -> hash) that did not change since ``seen``; return how many."""
        with self._store.writing() as connection:
            state = self._store.state(connection)
            if self._table(state) != table:
                return 0  # another process has finished the vectors of this model
            if table == _NEXT and state.next_embedding != self._name:
                raise LockedError(
                    f"Another process makes vectors by {state.next_embedding!r} in {self._store.location} now. Nothing "
                    "of the index was changed; run the same again when it is done."
                )
            query = f"SELECT n FROM chunks WHERE n IN ({{}}) AND generation <= {seen.generation}"
            unchanged = [n for (n,) in select_in(connection, query, hashes)]
            generation = state.generation + 1 if table == "vectors" else state.generation
            rows = [(n, vectors[hashes[n]], generation) for n in unchanged]
            connection.executemany(upsert_statement(table, "n", "vector", "generation"), rows)
            if vectors:
                field = "dimension" if table == "vectors" else "next_dimension"
                self._store.set_meta(**{field: len(next(iter(vectors.values()))) // 4})  # float32 has 4 bytes
        return len(unchanged)
