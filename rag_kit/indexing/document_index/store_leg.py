"""The vector leg over a LangChain vector store: the store names candidates, the index's own vectors score them.

The store may be behind, hold too much, or answer roughly: what has changed since it was filled comes out of the index,
as does every score, and what is gone from the index is not found.
"""

from __future__ import annotations

import logging
from collections import Counter
from pathlib import Path

import numpy as np

from rag_kit.documents import Filter
from rag_kit.errors import DocumentIndexError, InvalidInputError
from rag_kit.indexing.document_index.connected_store import ConnectedStore
from rag_kit.indexing.document_index.file_leg import FileLeg
from rag_kit.indexing.document_index.folder import remove_parts
from rag_kit.indexing.document_index.keyword import KeywordLeg, Mask
from rag_kit.indexing.document_index.state import Connection, IndexReport, State
from rag_kit.indexing.document_index.vector_leg import (
    best_by_id,
    changed_numbers,
    numbers_of,
    prefix_of_vectors,
)
from rag_kit.indexing.document_index.vectors import Numbers, Vectors, near_best, stored_blocks

logger = logging.getLogger(__name__)

_MORE, _MORE_FILTERED = 10, 1000  # rows asked for beyond those wanted
_SAMPLE = 3  # rows that are looked up before a store is trusted


class StoreLeg(FileLeg):
    """The vectors of an index in a vector store; see ``Leg``.

    An empty file, named for a generation, says that the store holds all vectors as of then. A writer removes it before
    it changes the store: meanwhile, and after a kill, searches score all vectors of the index.
    """

    label = "vectors"
    tables = ("vectors", "removed")

    def __init__(self, folder: Path, keyword: KeywordLeg, store: ConnectedStore | None) -> None:
        super().__init__(folder)
        self._keyword, self._store = keyword, store
        self._forget()

    def _forget(self) -> None:
        self._trusted: Path | None = None  # the file of which rows were looked up
        self._holds = False  # whether they were found

    def _prefix(self, state: State) -> str:
        return prefix_of_vectors("store", state)

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
        mask = None if where is None else self._keyword.mask(connection, state, where)
        file, since = self._usable_file(connection, state, store)
        changed = changed_numbers(connection, since, "vectors")
        numbers, scores = _score_candidates(connection, state, query, changed, mask)
        if file is not None:
            # the store gets no filter, and knows nothing of ties
            candidates = store.nearest(state, query, k + _MORE if mask is None else 4 * k + _MORE_FILTERED)
            more, cosines = _score_candidates(
                connection, state, query, np.setdiff1d(candidates, changed), mask
            )
            numbers, scores = np.append(numbers, more), np.append(scores, cosines)
            # too few of what it gave pass the filter, or a writer changes it
            if len(numbers) < k or not file.exists():
                numbers, scores = _score_candidates(
                    connection, state, query, changed_numbers(connection, -1, "vectors"), mask
                )
        return best_by_id(connection, *near_best(numbers, scores, k), k)

    def _usable_file(
        self, connection: Connection, state: State, store: ConnectedStore
    ) -> tuple[Path | None, int]:
        """The file of the generation as of which the store can be asked; ``None`` and -1 where it cannot."""
        if (since := self._saved_generation(state)) < 0:
            return None, -1
        file = self._file(state, since)
        if self._trusted != file:
            self._trusted, self._holds = file, _holds_sample(connection, state, store, since)
        return (file, since) if self._holds else (None, -1)

    def apply(self, connection: Connection, state: State) -> int:
        """Hand over what has changed; where the store was not given, the next writer that has it does."""
        if state.embedding is None:
            return state.generation
        if self._store is None:
            return self._saved_generation(state)
        if self._usable_file(connection, state, self._store)[0] is None:
            self._remove_files(state)
        return super().apply(connection, state)

    def _save(self, connection: Connection, state: State, path: Path) -> None:
        """Bring the store to the present generation, from that of the newest file, or from nothing."""
        assert self._store is not None
        since = self._saved_generation(state)
        changed = changed_numbers(connection, since, "vectors")
        doomed = changed_numbers(connection, since, "removed")
        self._remove_files(state)
        # some lose rows that are deleted before they are added again
        unwanted = np.setdiff1d(doomed, changed) if self._store.replaces else np.union1d(doomed, changed)
        self._store.delete(state, unwanted)
        self._store.add(connection, state, changed)
        path.touch(mode=0o600)
        self._trusted, self._holds = path, True
        remove_parts(self._folder.glob("vectors-*"))  # of before the index had a vector store

    def rebuild(self, connection: Connection, state: State) -> str:
        """Fill the store anew with all vectors of the index."""
        if state.embedding is None or self._store is None:
            return ""
        super().rebuild(connection, state)
        return f"filled {self._store.name} anew"

    def verify(self, connection: Connection, state: State, report: IndexReport) -> None:
        """Look each row up by its vector: a store may count rows that it does not find."""
        if state.embedding is not None:
            self.check_saved(connection, state, report)
        if self._store is None:
            report.notes.append(
                f"vectors: {state.vector_store} was not given, so it was neither looked at nor filled; that is done in "
                "Python, by DocumentIndex.open(folder, mode='w', embeddings=..., vector_store=...) and its repair()"
            )
            return
        try:
            self._look_up(connection, state, self._store, report)
        except (InvalidInputError, DocumentIndexError) as error:
            report.problems.append(f"vectors: {error}")

    def _look_up(
        self, connection: Connection, state: State, store: ConnectedStore, report: IndexReport
    ) -> None:
        if (since := self._saved_generation(state)) < 0:
            return
        alive, dimension = changed_numbers(connection, -1, "vectors"), state.dimension or 0
        numbers = np.setdiff1d(alive, changed_numbers(connection, since, "vectors"))
        equal = Counter(
            hash(row.tobytes()) for _, rows in stored_blocks(connection, alive, dimension) for row in rows
        )
        lacking = 0
        for group, rows in stored_blocks(connection, numbers, dimension):
            for number, row in zip(group.tolist(), rows, strict=True):
                counts = (equal[hash(row.tobytes())] + more for more in (_MORE, _MORE_FILTERED))
                lacking += not any(number in store.nearest(state, row, count) for count in counts)
        report.checked["vector rows"] = len(numbers)
        if lacking:
            report.problems.append(f"vectors: {lacking} rows are missing from {store.name}")


def _holds_sample(connection: Connection, state: State, store: ConnectedStore, since: int) -> bool:
    """Whether something that was handed over is found: not in another, or an emptied, store."""
    query = f"SELECT n FROM vectors WHERE generation <= ? ORDER BY generation DESC LIMIT {_SAMPLE}"
    sample = numbers_of(connection, query, since)
    for _, rows in stored_blocks(connection, sample, state.dimension or 0):
        for row in rows:
            _, cosines = _score_candidates(connection, state, row, store.nearest(state, row, _MORE), None)
            if cosines.max(initial=-1) > 1 - 1e-4 or not row.any():
                return True
    if len(sample):
        logger.warning(
            "%s lacks what the index wrote to it; it is not asked until a writer has filled it.", store.name
        )
    return not len(sample)


def _score_candidates(
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
