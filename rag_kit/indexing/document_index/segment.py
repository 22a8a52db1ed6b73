"""A segment: vectors of some rows, in memory or mapped from a file that is written once and never changed.

A file is [rows: float32, n x d][numbers: int64, n][centre: float32, d][signs: uint64, words x n], each part at a
multiple of 64 bytes, little-endian. Its name, n and d stand in the snapshot that lists it.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from rag_kit.errors import IndexFormatError
from rag_kit.indexing.document_index.nearest import pack_signs, words_of
from rag_kit.indexing.document_index.sql import Connection, in_groups, marks
from rag_kit.indexing.document_index.vectors import Vectors, unit, unpack

Numbers = NDArray[np.int64]

_ALIGN = 64
_BLOCK = 4096  # rows


@dataclass(frozen=True)
class Segment:
    """Vectors by row number of the store.

    Attributes:
        numbers: Row numbers, rising, shape (n,).
        rows: Unit vectors, shape (n, d).
        centre: Their mean, shape (d,).
        signs: On which side of the centre each row lies, a bit a dimension, shape (words, n).
        live: Which rows are not replaced or removed since, shape (n,); ``None`` for all.
        name: Of the file; empty in memory.
    """

    numbers: Numbers
    rows: Vectors
    centre: Vectors
    signs: NDArray[np.uint64]
    live: NDArray[np.bool_] | None = None
    name: str = ""

    def __len__(self) -> int:
        """How many rows are live."""
        return len(self.numbers) if self.live is None else int(np.count_nonzero(self.live))

    def live_numbers(self) -> Numbers:
        """Row numbers of the live rows."""
        return self.numbers if self.live is None else self.numbers[self.live]

    def without(self, numbers: Numbers) -> Segment:
        """The same segment with some rows dead."""
        places = self.places(numbers)
        return self.with_dead(np.concatenate([self.dead(), places])) if len(places) else self

    def dead(self) -> NDArray[np.int64]:
        """Positions of the dead rows."""
        return np.empty(0, np.int64) if self.live is None else np.flatnonzero(~self.live)

    def with_dead(self, places: NDArray[np.int64]) -> Segment:
        """The same segment with just these rows dead."""
        if not len(places):
            return self if self.live is None else replace(self, live=None)
        live = np.ones(len(self.numbers), bool)
        live[places] = False
        return replace(self, live=live)

    def places(self, numbers: Numbers) -> NDArray[np.int64]:
        """Positions of those row numbers that are in it."""
        found = np.searchsorted(self.numbers, numbers)
        found[found == len(self.numbers)] = 0  # beyond the last one
        places: NDArray[np.int64] = found[self.numbers[found] == numbers]
        return places


def stored_blocks(
    connection: Connection, numbers: Numbers, dimension: int
) -> Iterator[tuple[Numbers, Vectors]]:
    """Unit vectors of some rows out of the store, in the order of their numbers; damaged ones are left out."""
    for group in in_groups(numbers.tolist()):
        query = f"SELECT n, vector FROM vectors WHERE n IN ({marks(group)}) AND length(vector) = ? ORDER BY n"
        found = connection.execute(query, (*group, 4 * dimension)).fetchall()
        rows = unpack([blob for _, blob in found], dimension)
        sound = np.isfinite(rows).all(axis=1)
        yield np.array([n for n, _ in found], np.int64)[sound], unit(rows[sound])


def in_memory(connection: Connection, numbers: Numbers, dimension: int) -> Segment | None:
    """A segment of some rows of the store; ``None`` where all are damaged."""
    blocks = list(stored_blocks(connection, numbers, dimension))
    rows = np.concatenate([rows for _, rows in blocks])
    if not len(rows):
        return None
    centre = rows.mean(axis=0, dtype=np.float64).astype(np.float32)
    signs = pack_signs(rows, centre)
    return Segment(np.concatenate([group for group, _ in blocks]), rows, centre, signs)


def write(path: Path, connection: Connection, numbers: Numbers, dimension: int) -> Segment | None:
    """Write a segment of some rows of the store to a file, safe on disk, and map it.

    Returns:
        The segment; ``None`` where all rows are damaged.

    Raises:
        OSError: It cannot be written.
    """
    found: list[Numbers] = []
    total = np.zeros(dimension)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w+b") as file:
        for group, rows in stored_blocks(connection, numbers, dimension):
            file.write(rows.astype("<f4", copy=False).tobytes())
            total += rows.sum(axis=0, dtype=np.float64)
            found.append(group)
        numbers = np.concatenate(found)
        if not len(numbers):
            return None
        centre = (total / len(numbers)).astype("<f4")
        places, _ = _layout(len(numbers), dimension)
        _put(file, places[1], numbers.astype("<i8").tobytes())
        _put(file, places[2], centre.tobytes())
        file.seek(0)
        signs = np.empty((words_of(dimension), len(numbers)), "<u8")
        for start in range(0, len(numbers), _BLOCK):
            count = min(_BLOCK, len(numbers) - start)
            rows = np.frombuffer(file.read(count * dimension * 4), "<f4").reshape(count, dimension)
            signs[:, start : start + count] = pack_signs(rows, centre)
        _put(file, places[3], signs.tobytes())
        file.flush()
        os.fsync(file.fileno())
    return mapped(path, len(numbers), dimension)


def mapped(path: Path, count: int, dimension: int) -> Segment:
    """A segment out of its file, of which only the row numbers are read yet.

    Raises:
        FileNotFoundError: It is not there.
        IndexFormatError: It is a link, not of its size, or its row numbers do not rise.
    """
    if path.is_symlink():
        raise IndexFormatError(f"{path} is a link, which is not followed.")
    places, size = _layout(count, dimension)
    with path.open("rb") as file:
        if (found := os.fstat(file.fileno()).st_size) != size or not count or not dimension:
            raise IndexFormatError(f"{path} is cut short or damaged: {found} bytes, {size} expected.")
        content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    rows = np.frombuffer(content, "<f4", count * dimension, places[0]).reshape(count, dimension)
    numbers = np.frombuffer(content, "<i8", count, places[1])
    if not (numbers[1:] > numbers[:-1]).all():
        raise IndexFormatError(f"{path} is damaged: its row numbers do not rise.")
    centre = np.frombuffer(content, "<f4", dimension, places[2])
    words = words_of(dimension)
    signs = np.frombuffer(content, "<u8", words * count, places[3]).reshape(words, count)
    return Segment(numbers, rows, centre, signs, name=path.name)


def _layout(count: int, dimension: int) -> tuple[list[int], int]:
    """Where the parts of a file begin, and where it ends."""
    places, end = [], 0
    for size in (count * dimension * 4, count * 8, dimension * 4, words_of(dimension) * count * 8):
        places.append(-(-end // _ALIGN) * _ALIGN)
        end = places[-1] + size
    return places, end


def _put(file: BinaryIO, place: int, data: bytes) -> None:
    file.seek(place)
    file.write(data)
