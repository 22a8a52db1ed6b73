"""The vectors of one committed state: segments, what is dead in them, and the step to the next state."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rag_kit.errors import IndexFormatError
from rag_kit.indexing.document_index.meta import State
from rag_kit.indexing.document_index.nearest import candidates, pack_signs, scored
from rag_kit.indexing.document_index.segment import Numbers, Segment
from rag_kit.indexing.document_index.sql import Connection
from rag_kit.indexing.document_index.vectors import Vectors, near_best

#: Up to so many rows every row is scored; above, sign bits choose which (decision 0020).
EXACT_ROWS = 20_000
#: Rows that sign bits choose of a segment to be scored: at least these, and their share of these.
_LEAST, _SHARED = 400, 2600
_PER_HIT = 20  # and so many for each hit that is asked for
_MOST_SEGMENTS = 12
_MERGED = 8
_COSINE = 1.001  # no score of unit vectors is larger
_DEAD = 0.25  # a segment of which more is dead is written again


@dataclass(frozen=True)
class View:
    """All vectors of a generation; never changes.

    Attributes:
        generation: The store's; -1 for none.
        segments: No row number is live in two of them.
        embedding: Name of the model of the vectors.
    """

    generation: int = -1
    segments: tuple[Segment, ...] = ()
    embedding: str | None = None

    def __len__(self) -> int:
        return sum(len(segment) for segment in self.segments)

    def nearest(self, query: Vectors, k: int, mask: NDArray[np.bool_] | None) -> tuple[Numbers, Vectors]:
        """Row numbers and scores of the k nearest, and of whatever ties with the last of them, in no order.

        Args:
            query: Unit vector.
            k: How many.
            mask: Which row numbers are allowed; ``None`` for all.

        Raises:
            IndexFormatError: A score is no cosine, so a file is damaged.
        """
        total = len(self)
        numbers: list[Numbers] = [np.empty(0, np.int64)]
        scores: list[Vectors] = [np.empty(0, np.float32)]
        for segment in self.segments:
            positions, found = _of_segment(segment, query, k, mask, total)
            if len(found) and not (found.min() >= -_COSINE and found.max() <= _COSINE):  # NaN is neither
                raise IndexFormatError(f"{segment.name} is damaged: it holds rows that are no unit vectors.")
            numbers.append(segment.numbers[positions])
            scores.append(found)
        number, score = np.concatenate(numbers), np.concatenate(scores)
        return near_best(number, score, k)


def _of_segment(
    segment: Segment, query: Vectors, k: int, mask: NDArray[np.bool_] | None, total: int
) -> tuple[NDArray[np.int64], Vectors]:
    """Positions and scores of the rows that may be among the nearest."""
    allowed = segment.live
    if mask is not None:
        passing = np.take(mask, segment.numbers, mode="clip")
        allowed = passing if allowed is None else passing & allowed
    count = len(segment.numbers) if allowed is None else int(np.count_nonzero(allowed))
    wanted = max(_LEAST + _SHARED * len(segment.numbers) // max(1, total), _PER_HIT * k)
    if total <= EXACT_ROWS or count <= 2 * wanted:
        return scored(segment.rows, query, allowed, count)
    bits = pack_signs(query[None], segment.centre)[:, 0]
    positions = candidates(segment.signs, bits, wanted, allowed)
    return positions, segment.rows[positions] @ query


def advanced(
    view: View,
    connection: Connection,
    state: State,
    make: Callable[[Numbers], Segment | None],
    mergeable: Sequence[Segment],
) -> View:
    """The view of the state that a connection sees, from an earlier one.

    Args:
        view: Where to start; one without a generation starts from nothing.
        connection: Where to read.
        state: The state it sees.
        make: Makes a segment of rows of the store.
        mergeable: Segments of the view that may be put together with others.
    """
    query = "SELECT n FROM vectors WHERE generation > ? ORDER BY n"
    changed = numbers_of(connection, query, view.generation)
    merged: list[Segment] = []
    kept: list[Segment] = []
    if view.generation >= 0:
        gone = numbers_of(connection, "SELECT n FROM gone WHERE generation > ?", view.generation)
        killed = np.concatenate([gone, changed])
        free = {id(segment) for segment in mergeable}
        smallest = set()
        if len(mergeable) >= _MOST_SEGMENTS and len(changed):
            smallest = {id(segment) for segment in sorted(mergeable, key=len)[:_MERGED]}
        for segment in view.segments:
            left = segment.without(killed)
            dead = id(segment) in free and len(left) < (1 - _DEAD) * len(left.numbers)
            (merged if dead or id(segment) in smallest else kept).append(left)
    kept = [segment for segment in kept if len(segment)]
    numbers = np.sort(np.concatenate([changed, *(segment.live_numbers() for segment in merged)]))
    if len(numbers) and (made := make(numbers)) is not None:
        kept.append(made)
    return View(state.generation, tuple(kept), state.embedding)


def numbers_of(connection: Connection, query: str, generation: int) -> Numbers:
    """Row numbers that a query gives for a generation."""
    return np.array([n for (n,) in connection.execute(query, (generation,))], np.int64)
