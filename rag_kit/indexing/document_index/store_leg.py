"""The vector leg over a LangChain vector store: the store names candidates, the index's own vectors score them.

The store may be behind, hold too much, or answer roughly: what has changed since it was filled comes out of the index,
as does every score, and what is gone from the index is not found.
"""

from __future__ import annotations

import logging
from collections import Counter
from pathlib import Path

import numpy as np
from pydantic import BaseModel, ConfigDict, ValidationError

from rag_kit.documents import Filter
from rag_kit.documents.atomic_file import replace_file
from rag_kit.errors import DocumentIndexError, InvalidInputError, LockedError
from rag_kit.indexing.document_index.connected_store import ConnectedStore
from rag_kit.indexing.document_index.folder import remove_parts
from rag_kit.indexing.document_index.keyword import KeywordLeg, Mask
from rag_kit.indexing.document_index.report import IndexReport
from rag_kit.indexing.document_index.sql import Connection
from rag_kit.indexing.document_index.store import State
from rag_kit.indexing.document_index.vector_file import Numbers, stored_blocks
from rag_kit.indexing.document_index.vector_leg import named, numbers_of
from rag_kit.indexing.document_index.vectors import Vectors, near_best

logger = logging.getLogger(__name__)

_MORE, _MOST = 10, 1000  # rows asked for beyond those wanted: without a filter, and with one
_SAMPLE = 3  # rows that are looked up before a store is trusted


class Record(BaseModel):
    """What a vector store holds.

    Attributes:
        generation: All rows as of this generation; -1 for none.
        upto: Perhaps changes up to this one.
        highest: No row of a higher number.
        embedding: The model of the vectors.
    """

    model_config = ConfigDict(strict=True, frozen=True)

    generation: int = -1
    upto: int = -1
    highest: int = 0
    embedding: str | None = None


class StoreLeg:
    """The vectors of an index in a vector store; see ``Leg``."""

    def __init__(self, folder: Path, keyword: KeywordLeg, store: ConnectedStore | None) -> None:
        self._folder, self._keyword, self._store = folder, keyword, store
        self._trusted = Record(), False

    def search(
        self, connection: Connection, state: State, query: Vectors, k: int, where: Filter | None
    ) -> list[tuple[str, float]]:
        """Ids and cosines of the k nearest to a unit vector."""
        if (store := self._store) is None:
            raise InvalidInputError(
                f"The vectors of the index {self._folder.name!r} are searched in a vector store "
                f"({state.vector_store}), which was not given: DocumentIndex.open(..., vector_store=...). Keyword "
                "search works without: index_retriever(index, 'bm25'), --pipeline bm25."
            )
        record = self._record(state)
        mask = None if where is None else self._keyword.mask(connection, state, where)
        since = self._followed(connection, state, store, record)
        changed = _changed(connection, since)
        numbers, scores = _scored(connection, state, query, changed, mask)
        if since >= 0:
            # the store is not told of filters, and knows nothing of ties
            found = store.nearest(state, query, k + _MORE if mask is None else 4 * k + _MOST)
            more, cosines = _scored(connection, state, query, np.setdiff1d(found, changed), mask)
            numbers, scores = np.append(numbers, more), np.append(scores, cosines)
            # a writer changes the store meanwhile, or too few of what it gave pass the filter
            if len(numbers) < k or self._record(state).upto > state.generation:
                everything = _changed(connection, -1)
                numbers, scores = _scored(connection, state, query, everything, mask)
        return named(connection, *near_best(numbers, scores, k), k)

    def _followed(self, connection: Connection, state: State, store: ConnectedStore, record: Record) -> int:
        """The generation as of which the store can be asked; -1 where it cannot."""
        fits = record.embedding == state.embedding and record.upto <= state.generation
        if not fits or record.generation < state.floor:
            return -1
        if self._trusted[0] != record:
            self._trusted = record, _holds(connection, state, store, record)
        return record.generation if self._trusted[1] else -1

    def _record(self, state: State) -> Record:
        """The record; an empty one where there is none, or it is damaged."""
        try:
            return Record.model_validate_json(self._path(state).read_bytes())
        except (OSError, ValidationError):
            return Record()

    def _path(self, state: State) -> Path:
        return self._folder / f"store-{state.uid[:8]}.record"

    def take_over(self, state: State) -> None:
        """Where an older store of the index was put back, remember that this holds other rows. Writer only."""
        record = self._record(state)
        if record.upto > state.generation:
            self._save(state, record.model_copy(update={"generation": -1, "upto": state.generation}))

    def _save(self, state: State, record: Record) -> None:
        content = record.model_dump_json().encode()
        replace_file(self._path(state), lambda file: file.write(content), mode=0o600)

    def apply(self, connection: Connection, state: State) -> int:
        """Hand over what has changed; where the store was not given, the next writer that has it does."""
        record = self._record(state)
        if state.embedding is None or self._store is None:
            return state.generation if state.embedding is None else record.generation
        since = self._followed(connection, state, self._store, record)
        if not since == record.upto == state.generation:
            self._fill(connection, state, self._store, since, record)
        return state.generation

    def _fill(
        self, connection: Connection, state: State, store: ConnectedStore, since: int, record: Record
    ) -> None:
        """Bring the store from a generation to the present one; from -1 it is filled anew."""
        changed = _changed(connection, since)
        doomed = numbers_of(connection, "SELECT n FROM gone WHERE generation > ?", since)
        doomed = np.union1d(doomed, changed)
        highest = int(max(record.highest, *doomed[-1:], 0))
        if since < 0:  # whatever it holds of the index; nothing if it never got any
            doomed = np.arange(1, highest + 1 if record.upto >= 0 else 1)
        if store.replaces:
            doomed = np.setdiff1d(doomed, changed)
        begun = Record(generation=since, upto=state.generation, highest=highest, embedding=state.embedding)
        # from here on a reader of an earlier state does not ask the store, and the next writer does what a kill left
        self._save(state, begun)
        store.delete(state, doomed)
        store.add(connection, state, changed)
        done = begun.model_copy(update={"generation": state.generation})
        self._save(state, done)
        self._trusted = done, True
        remove_parts(self._folder.glob("vectors-*"))  # of before the index had a vector store

    def rebuild(self, connection: Connection, state: State) -> str:
        """Fill the store anew with all vectors of the index."""
        if state.embedding is None or self._store is None:
            return ""
        self._fill(connection, state, self._store, -1, self._record(state).model_copy(update={"upto": 0}))
        return f"filled {self._store.name} anew"

    def verify(self, connection: Connection, state: State, report: IndexReport) -> None:
        """Look each row up by its vector: a store may count rows that it does not find."""
        record = self._record(state)
        if state.embedding is not None and record.generation < state.generation:
            report.behind("vectors", lost=max(record.generation, 0) < state.floor)
        if self._store is None:
            report.notes.append(
                f"vectors: {state.vector_store} was not given, so it was neither looked at nor filled; that is done in "
                "Python, by DocumentIndex.open(folder, mode='w', embeddings=..., vector_store=...) and its repair()"
            )
        elif record.embedding == state.embedding and record.upto <= state.generation:
            try:
                _look_up(connection, state, self._store, record, report)
            except (InvalidInputError, DocumentIndexError, LockedError) as error:
                report.problems.append(f"vectors: {error}")


def _look_up(
    connection: Connection, state: State, store: ConnectedStore, record: Record, report: IndexReport
) -> None:
    changed, alive = (_changed(connection, start) for start in (record.generation, -1))
    numbers, dimension = np.setdiff1d(alive, changed), state.dimension or 0
    equal = Counter(
        hash(row.tobytes()) for _, rows in stored_blocks(connection, alive, dimension) for row in rows
    )
    lacking = 0
    for group, rows in stored_blocks(connection, numbers, dimension):
        for number, row in zip(group.tolist(), rows, strict=True):
            ties = equal[hash(row.tobytes())]
            lacking += not any(number in store.nearest(state, row, ties + more) for more in (_MORE, _MOST))
    report.checked["vector rows"] = len(numbers)
    if lacking:
        report.problems.append(f"vectors: {lacking} rows are missing from {store.name}")


def _holds(connection: Connection, state: State, store: ConnectedStore, record: Record) -> bool:
    """Whether something that was handed over is found: not in another, or an emptied, store."""
    query = f"SELECT n FROM vectors WHERE generation <= ? ORDER BY generation DESC LIMIT {_SAMPLE}"
    sample = numbers_of(connection, query, record.generation)
    for _, rows in stored_blocks(connection, sample, state.dimension or 0):
        for row in rows:
            _, cosines = _scored(connection, state, row, store.nearest(state, row, _MORE), None)
            if cosines.max(initial=-1) > 1 - 1e-4 or not row.any():
                return True
    if len(sample):
        logger.warning(
            "%s lacks what the index wrote to it; it is not asked until a writer has filled it.", store.name
        )
    return not len(sample)


def _changed(connection: Connection, since: int) -> Numbers:
    """Numbers of the rows whose vectors were written after a generation."""
    # sorted here: for an ORDER BY, SQLite would read all rows
    return np.sort(numbers_of(connection, "SELECT n FROM vectors WHERE generation > ?", since))


def _scored(
    connection: Connection, state: State, query: Vectors, numbers: Numbers, mask: Mask | None
) -> tuple[Numbers, Vectors]:
    """Rows that are in the index and pass, and their cosines: in double precision, so that equal ones tie."""
    numbers = np.unique(numbers[numbers >= 0])
    if mask is not None:
        numbers = numbers[np.take(mask, numbers, mode="clip")]
    blocks = list(stored_blocks(connection, numbers, state.dimension or 0))
    scores = [rows.astype(np.float64) @ query for _, rows in blocks]
    none: Vectors = np.empty(0, np.float32)
    return np.concatenate([none.astype(np.int64), *(n for n, _ in blocks)]), np.concatenate([none, *scores])
