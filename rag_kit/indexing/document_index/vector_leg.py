"""The vector leg: search by cosine over a file that any number of processes map while one writes."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rag_kit.documents import Filter
from rag_kit.errors import IndexFormatError
from rag_kit.indexing.document_index import vectors
from rag_kit.indexing.document_index.file_leg import LoadedLeg
from rag_kit.indexing.document_index.folder import repair_advice
from rag_kit.indexing.document_index.postings_leg import KeywordLeg, Mask
from rag_kit.indexing.document_index.state import NO_GENERATION, Connection, IndexReport, IndexState
from rag_kit.indexing.document_index.vectors import Numbers, Vectors, VectorSegment

logger = logging.getLogger(__name__)

EXACT_ROWS = 20_000  # up to so many rows every row is scored; above, sign bits choose which (decision 0020)
_CANDIDATES = 3000  # rows that sign bits choose to be scored, at least
_CANDIDATES_PER_HIT = 20  # and so many for each hit that is asked for
_MAX_COSINE = 1.001  # no score of unit vectors is larger, rounding included


class VectorView(NamedTuple):
    """The vectors of one committed state: rows of a file that are still right, and in memory what was written since."""

    file: VectorSegment  # empty where there is none
    live: NDArray[np.bool_]  # which rows of the file are not replaced or removed since, shape (n,)
    later: VectorSegment  # in memory, of rows that were written later than the file


class VectorLeg(LoadedLeg[VectorView]):
    """The vectors of an index; see ``Leg``."""

    label = kind = "vectors"
    tables = ("vectors", "removed")
    made_by = "embedding"
    takes_newer = True  # it is mapped, and what is in memory is scored row by row

    def __init__(self, folder: Path, keyword: KeywordLeg) -> None:
        super().__init__(folder)
        self._keyword = keyword

    def search(
        self, connection: Connection, state: IndexState, query: Vectors, k: int, where: Filter | None
    ) -> vectors.RankedIds:
        """Return ids and cosines of the k vectors nearest to a unit vector, among the rows that pass a filter."""
        mask = None if where is None else self._keyword.mask(connection, state, where)
        try:
            numbers, scores = _nearest(self.current(connection, state), query, k, mask)
        except IndexFormatError as error:  # the file is damaged: take all vectors out of the store
            self._refuse(error)
            with self._lock:
                self._loaded = self._follow(self._empty(state), connection, NO_GENERATION, state)
                numbers, scores = _nearest(self._loaded, query, k, mask)
        return vectors.best_by_id(connection, numbers, scores, k)

    def _read(self, path: Path) -> VectorView:
        file = vectors.open_file(path)
        none_later = vectors.segment_in_memory([], file.rows.shape[1])
        return VectorView(file, np.ones(len(file.numbers), bool), none_later)

    def _empty(self, state: IndexState) -> VectorView:
        empty = vectors.segment_in_memory([], state.dimension or 0)
        return VectorView(empty, np.ones(0, bool), empty)

    def _follow(self, view: VectorView, connection: Connection, since: int, state: IndexState) -> VectorView:
        """Return a view in which rows changed after a generation are out of the file, and their vectors in memory."""
        changed = read_changed_numbers(connection, since, *self.tables)
        if not len(changed):
            return view
        file, live, later = view
        live = live & ~np.isin(file.numbers, changed)
        is_kept, dimension = ~np.isin(later.numbers, changed), state.dimension or 0
        kept = (later.numbers[is_kept], later.rows[is_kept])
        blocks = [*vectors.read_blocks(connection, changed, dimension), kept]
        return VectorView(file, live, vectors.segment_in_memory(blocks, dimension))

    def _refuse(self, error: Exception) -> None:
        logger.warning("%s Vectors are searched in memory instead. %s", error, repair_advice(self._folder))

    def _save(self, connection: Connection, state: IndexState, path: Path) -> None:
        numbers, dimension = read_changed_numbers(connection, NO_GENERATION, "vectors"), state.dimension or 0
        vectors.write_file(path, vectors.read_blocks(connection, numbers, dimension), dimension)
        self._keep(self._read(path), self._prefix(state), state.generation)

    def verify(self, connection: Connection, state: IndexState, report: IndexReport) -> None:
        """Report rows that the file lacks or should not have, and a file whose content does not fit its digest."""
        if state.embedding is None:
            return
        self.check_saved(connection, state, report)
        try:
            generation, path = self.readable(state)[0]
            file = vectors.open_file(path)
        except (IndexError, FileNotFoundError):
            return  # lost, or a writer has just put one of a later state in its place
        except (IndexFormatError, OSError) as error:
            report.problems.append(f"vectors: {error}")
            return
        query = "SELECT n FROM vectors WHERE generation <= ? ORDER BY n"
        stored = read_numbers(connection, query, generation)
        if len(lacking := np.setdiff1d(stored, file.numbers)):
            report.problems.append(f"vectors: {len(lacking)} rows are missing from the file")
        changed = read_changed_numbers(connection, generation, *self.tables)
        if len(np.setdiff1d(file.numbers, np.append(stored, changed))):
            report.problems.append("vectors: the file holds rows that should be gone")
        if not file.is_sound():
            report.problems.append(f"vectors: {path.name} is not what was written")
        report.checked["vector rows"] = len(file.numbers)


def _nearest(view: VectorView, query: Vectors, k: int, mask: Mask | None) -> tuple[Numbers, Vectors]:
    """Return row numbers and cosines of the k nearest rows, and of those that tie with the k-th, in no order."""
    numbers: list[Numbers] = [np.empty(0, np.int64)]
    scores: list[Vectors] = [np.empty(0, np.float32)]
    all_later = np.ones(len(view.later.numbers), bool)
    for segment, live in ((view.file, view.live), (view.later, all_later)):
        if not len(segment.numbers):
            continue  # it may have no dimension yet, to be multiplied by the query
        positions, cosines = _score_segment(segment, live, query, k, mask)
        if not (np.abs(cosines) <= _MAX_COSINE).all():  # this finds NaN, too, which no comparison is true for
            raise IndexFormatError("The file of vectors is damaged: it holds rows that are no unit vectors.")
        numbers.append(segment.numbers[positions])
        scores.append(cosines)
    return vectors.best_with_ties(np.concatenate(numbers), np.concatenate(scores), k)


def _score_segment(
    segment: VectorSegment, live: NDArray[np.bool_], query: Vectors, k: int, mask: Mask | None
) -> tuple[Numbers, Vectors]:
    """Return positions and cosines of rows that may be among the k nearest, of the live ones that pass the mask."""
    size = len(segment.numbers)
    # clipped numbers are those of removed rows, which are not live
    allowed = live if mask is None else live & np.take(mask, segment.numbers, mode="clip")
    allowed_count, wanted_count = int(np.count_nonzero(allowed)), max(_CANDIDATES, _CANDIDATES_PER_HIT * k)
    is_large = allowed_count > 2 * wanted_count and size > EXACT_ROWS  # then sign bits choose the rows
    if is_large and segment.signs is not None and segment.centre is not None:
        bits = vectors.pack_signs(query[None], segment.centre)[:, 0]
        positions = vectors.candidates(segment.signs, bits, wanted_count, allowed)
    elif allowed_count < size:
        positions = np.flatnonzero(allowed)
    else:  # without a copy of the rows
        return np.arange(size), segment.rows @ query
    return positions, segment.rows[positions] @ query


def read_changed_numbers(connection: Connection, since: int, *tables: str) -> Numbers:
    """Return the numbers of the rows that any of the tables has with a later generation than ``since``, rising."""
    query = "SELECT n FROM {} WHERE generation > ?"
    numbers = [read_numbers(connection, query.format(table), since) for table in tables]
    return np.unique(np.concatenate(numbers))  # sorts, too: for an ORDER BY, SQLite would read all rows


def read_numbers(connection: Connection, query: str, generation: int) -> Numbers:
    """Return the row numbers that a query gives for a generation."""
    return np.array([n for (n,) in connection.execute(query, (generation,))], np.int64)
