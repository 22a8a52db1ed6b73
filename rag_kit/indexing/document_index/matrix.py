"""Exact vector search: all vectors in one matrix."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Collection
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from rag_kit.indexing.document_index.changes import changed_vectors, removed_since
from rag_kit.indexing.document_index.store import Store

if TYPE_CHECKING:
    from rag_kit.indexing.document_index.meta import State

Vectors = NDArray[np.float32]

#: Similarities closer than this are ties, which the id decides: sums differ in their last bits with the
#: number of rows that are multiplied at once.
TIE = 1e-6


def unit(vectors: Vectors) -> Vectors:
    """Rows scaled to length 1, so that a product is a cosine; rows of zeros stay."""
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    scaled: Vectors = np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)
    return scaled


def best(scores: Vectors, ids: list[str], k: int) -> list[tuple[str, float]]:
    """The k best, by score and then by id.

    Example:
        >>> best(np.array([0.5, 0.9, 0.9], np.float32), ["c", "b", "a"], 2)
        [('a', 0.9), ('b', 0.9)]
    """
    if k <= 0 or not len(scores):
        return []
    if k < len(scores):
        least = np.partition(scores, len(scores) - k)[len(scores) - k] - 2 * TIE
        candidates = np.flatnonzero(scores >= least).tolist()
    else:
        candidates = list(range(len(scores)))
    rounded = [(-round(float(scores[i]) / TIE), ids[i]) for i in candidates]
    return [(key, round(-steps * TIE, 6)) for steps, key in sorted(rounded)[:k]]


class VectorMatrix:
    """The vectors of an index in memory; follows the store from one generation to the next."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._generation = -1
        self._ids: list[str] = []
        self._matrix: Vectors = np.zeros((0, 0), np.float32)

    def current(self, connection: sqlite3.Connection, state: State) -> tuple[list[str], Vectors]:
        """Ids and unit vectors of the state that the connection sees; neither is changed afterwards."""
        with self._lock:
            if self._generation > state.generation:
                self._generation, self._ids = -1, []
            if self._generation < state.generation or not self._ids:
                self._follow(connection, state)
            return self._ids, self._matrix

    def _follow(self, connection: sqlite3.Connection, state: State) -> None:
        changed = changed_vectors(connection, self._generation)
        gone = {key for key, _ in changed}
        if self._generation >= 0:
            gone.update(removed_since(connection, state, self._generation, lambda: self._ids))
        fresh = unpack([blob for _, blob in changed], state.dimension or 0)
        if not self._ids:
            ids, matrix = [], fresh[:0]
        elif gone:
            kept = [i for i, key in enumerate(self._ids) if key not in gone]
            ids, matrix = [self._ids[i] for i in kept], self._matrix[kept]
        else:
            ids, matrix = self._ids, self._matrix
        if changed:
            ids = ids + [key for key, _ in changed]
            matrix = np.concatenate([matrix, unit(fresh)]) if len(matrix) else unit(fresh)
        self._ids, self._matrix, self._generation = ids, matrix, state.generation

    def search(
        self,
        connection: sqlite3.Connection,
        state: State,
        query: Vectors,
        k: int,
        allowed: Collection[str] | None,
    ) -> list[tuple[str, float]]:
        """The k nearest by cosine.

        Args:
            connection: Where to read.
            state: The state it sees.
            query: Unit vector.
            k: How many.
            allowed: Only these ids.
        """
        ids, matrix = self.current(connection, state)
        if allowed is not None:
            chosen = [i for i, key in enumerate(ids) if key in allowed]
            ids, matrix = [ids[i] for i in chosen], matrix[chosen]
        if not ids:
            return []
        return best(matrix @ query, ids, k)


def unpack(blobs: list[bytes], dimension: int) -> Vectors:
    """Stored vectors as an array of shape (len(blobs), dimension)."""
    return (
        np.frombuffer(b"".join(blobs), dtype="<f4")
        .reshape(len(blobs), dimension)
        .astype(np.float32, copy=False)
    )
