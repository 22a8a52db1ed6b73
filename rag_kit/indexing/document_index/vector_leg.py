"""The vector leg: search by cosine over files that any number of processes map while one writes."""

from __future__ import annotations

import secrets
import threading
from functools import partial
from pathlib import Path

import numpy as np

from rag_kit.documents import Filter
from rag_kit.errors import DocumentIndexError, IndexFormatError
from rag_kit.indexing.document_index import snapshot
from rag_kit.indexing.document_index.changes import records_numbers
from rag_kit.indexing.document_index.meta import State
from rag_kit.indexing.document_index.nearest import pack_signs
from rag_kit.indexing.document_index.report import IndexReport
from rag_kit.indexing.document_index.row_masks import Mask, RowMasks
from rag_kit.indexing.document_index.segment import Numbers, Segment, in_memory, stored_blocks, write
from rag_kit.indexing.document_index.sql import Connection, in_groups, marks
from rag_kit.indexing.document_index.vector_view import View, advanced
from rag_kit.indexing.document_index.vectors import Vectors, best


class VectorLeg:
    """The vectors of an index; see ``Leg``.

    Args:
        folder: The folder of the index.
        masks: Finds the rows that pass a filter.
    """

    def __init__(self, folder: Path, masks: RowMasks) -> None:
        self._folder = folder
        self._lock = threading.RLock()
        self._saved = View()  # the newest snapshot that was read or written
        self._view = View()  # that, and in memory what was written since
        self._masks = masks

    def search(
        self, connection: Connection, state: State, query: Vectors, k: int, where: Filter | None
    ) -> list[tuple[str, float]]:
        """Ids and cosines of the k nearest to a unit vector."""
        view = self._current(connection, state)
        mask = None if where is None else self._masks.mask(connection, state, where)
        try:
            numbers, scores = view.nearest(query, k, mask)
        except IndexFormatError as error:
            snapshot.warn_of(error, self._folder)
            numbers, scores = self._unsaved(connection, state).nearest(query, k, mask)
        return named(connection, numbers, scores, k)

    def _current(self, connection: Connection, state: State) -> View:
        """The view of the state that the connection sees, loaded or brought up to date if need be."""
        with self._lock:
            if self._view.generation != state.generation:
                self._load(state)
                start = max(self._view, self._saved, key=lambda view: view.generation)
                if start.generation < state.floor or not records_numbers(connection):
                    start = View()
                make = partial(in_memory, connection, dimension=state.dimension or 0)
                unsaved = [segment for segment in start.segments if not segment.name]
                self._view = advanced(start, connection, state, make, unsaved)
            return self._view

    def _unsaved(self, connection: Connection, state: State) -> View:
        """The same in memory alone."""
        with self._lock:
            make = partial(in_memory, connection, dimension=state.dimension or 0)
            self._view = advanced(View(), connection, state, make, ())
            return self._view

    def _load(self, state: State) -> None:
        known = max(self._view, self._saved, key=lambda view: view.generation)
        # an older store was put in its place, or the vectors are of another model now
        if known.generation > state.generation or known.embedding not in (None, state.embedding):
            self._view = self._saved = View()
        self._saved = snapshot.newest(self._folder, state, self._saved)

    def waiting(self, connection: Connection, state: State) -> int:
        """How many vectors are not saved yet."""
        if state.embedding is None:
            return 0
        with self._lock:
            self._load(state)
            query = "SELECT count(*) FROM vectors WHERE generation > ?"
            return int(connection.execute(query, (self._saved.generation,)).fetchone()[0])

    def apply(self, connection: Connection, state: State) -> int:
        """Write what has changed to a new segment, and a snapshot that lists it."""
        if state.embedding is None:
            return state.generation
        with self._lock:
            self._load(state)
            there = snapshot.generations(self._folder, state)
            if self._saved.generation != state.generation or state.generation not in there:
                follows = state.floor <= self._saved.generation < state.generation
                start = self._saved if follows and self._saved.generation in there else View()
                make = partial(self._write, connection, state)
                self._saved = advanced(start, connection, state, make, start.segments)
                snapshot.save(self._folder, state, self._saved)
            elif there == [state.generation]:
                return state.generation
            self._view = self._saved
            snapshot.remove_others(self._folder, state, self._saved)
        return state.generation

    def _write(self, connection: Connection, state: State, numbers: Numbers) -> Segment | None:
        path = self._folder / f"vectors-{state.uid[:8]}-{secrets.token_hex(8)}.rows"
        return write(path, connection, numbers, state.dimension or 0)

    def rebuild(self, connection: Connection, state: State) -> str:
        """Write the files of all vectors again from the store."""
        if state.embedding is None:
            return ""
        with self._lock:
            for generation in snapshot.generations(self._folder, state):
                snapshot.path_of(self._folder, state, generation).unlink(missing_ok=True)
            self._saved = self._view = View()
            self.apply(connection, state)
            return f"rebuilt the vector file of {len(self._saved)} rows"

    def verify(self, connection: Connection, state: State, report: IndexReport) -> None:
        """Compare each vector in the files with the store's."""
        if state.embedding is None:
            return
        saved = max(snapshot.generations(self._folder, state), default=-1)
        if saved < state.generation:
            report.behind("vectors", lost=max(saved, 0) < state.floor)
        try:
            view = snapshot.newest(self._folder, state, View(), strict=True)
        except (DocumentIndexError, OSError) as error:
            report.problems.append(f"vectors: {error}")
            return
        if view.generation < 0:  # a writer has just put one of a later state in its place
            return
        query = "SELECT n FROM vectors WHERE generation <= ? ORDER BY n"
        stored = np.array([n for (n,) in connection.execute(query, (view.generation,))], np.int64)
        mapped = np.concatenate([np.empty(0, np.int64), *(s.live_numbers() for s in view.segments)])
        if len(lacking := np.setdiff1d(stored, mapped)):
            report.problems.append(f"vectors: {len(lacking)} rows are missing from the file")
        if len(np.unique(mapped)) != len(mapped) or (
            view.generation == state.generation and len(np.setdiff1d(mapped, stored))
        ):
            report.problems.append("vectors: the file holds rows that should be gone")
        wrong = 0
        for segment in view.segments:
            numbers = np.intersect1d(segment.live_numbers(), stored)
            for group, rows in stored_blocks(connection, numbers, state.dimension or 0):
                wrong += len(group) - int(_equal(segment, group, rows).sum())
        if wrong:
            report.problems.append(f"vectors: {wrong} rows of the file are not what was written")
        report.checked["vector rows"] = len(mapped)


def named(connection: Connection, numbers: Numbers, scores: Vectors, k: int) -> list[tuple[str, float]]:
    """The k best of some rows by their ids, ties by id; rows that are gone are left out."""
    ids: dict[int, str] = {}
    for group in in_groups(numbers.tolist()):
        ids.update(connection.execute(f"SELECT n, id FROM chunks WHERE n IN ({marks(group)})", group))
    there = [i for i, n in enumerate(numbers.tolist()) if n in ids]
    return best(scores[there], [ids[n] for n in numbers[there].tolist()], k)


def _equal(segment: Segment, numbers: Numbers, rows: Vectors) -> Mask:
    """For each row of the store, whether its vector and sign bits in a segment equal it."""
    places = segment.places(numbers)
    if len(places) != len(numbers):
        return np.zeros(len(numbers), bool)
    equal = np.isclose(segment.rows[places], rows, rtol=0, atol=1e-6).all(axis=1)
    bits = pack_signs(segment.rows[places], segment.centre)
    return np.asarray(equal & (bits == segment.signs[:, places]).all(axis=0))
