"""The file of the vector leg: vectors by row number, mapped by any number of readers and never changed.

Layout: a head of 64 bytes, then [rows: float32, n x d][numbers: int64, n][centre: float32, d]
[signs: uint64, words x n], each part at a multiple of 64 bytes, little-endian.
"""

from __future__ import annotations

import mmap
import os
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray

from rag_kit.documents.atomic_file import replace_file
from rag_kit.errors import IndexFormatError
from rag_kit.indexing.document_index.sql import Connection, in_groups, marks
from rag_kit.indexing.document_index.vectors import Vectors, pack_signs, unit, words_of

Numbers = NDArray[np.int64]
Blocks = Iterable[tuple[Numbers, Vectors]]

_HEAD = struct.Struct("<8sQQ40x")  # magic, rows, numbers of a vector
_MAGIC = b"RAGKVEC2"
_ALIGN = 64
_BLOCK = 4096  # rows


@dataclass(frozen=True)
class Segment:
    """Vectors by row number of the store, in memory or in the file.

    Attributes:
        numbers: Row numbers, rising, shape (n,).
        rows: Unit vectors, shape (n, d).
        centre: Their mean, shape (d,); only for the file.
        signs: On which side of the centre each row lies, a bit a dimension, shape (words, n); only for the file.
        live: Which rows are not replaced or removed since, shape (n,); ``None`` for all.
    """

    numbers: Numbers
    rows: Vectors
    centre: Vectors | None = None
    signs: NDArray[np.uint64] | None = None
    live: NDArray[np.bool_] | None = None

    def __len__(self) -> int:
        """How many rows are live."""
        return len(self.numbers) if self.live is None else int(np.count_nonzero(self.live))

    def live_numbers(self) -> Numbers:
        """Row numbers of the live rows."""
        return self.numbers if self.live is None else self.numbers[self.live]

    def without(self, numbers: Numbers) -> Segment:
        """The same segment with some rows dead."""
        places = self.places(numbers)
        if not len(places):
            return self
        live = np.ones(len(self.numbers), bool) if self.live is None else self.live.copy()
        live[places] = False
        return replace(self, live=live)

    def places(self, numbers: Numbers) -> NDArray[np.int64]:
        """Positions of those row numbers that are in it."""
        found = np.searchsorted(self.numbers, numbers)
        inside = found < len(self.numbers)
        found, numbers = found[inside], numbers[inside]
        places: NDArray[np.int64] = found[self.numbers[found] == numbers]
        return places


def stored_blocks(
    connection: Connection, numbers: Numbers, dimension: int
) -> Iterator[tuple[Numbers, Vectors]]:
    """Unit vectors of some rows out of the store, in the order of their numbers; damaged ones are left out."""
    for group in in_groups(numbers.tolist()):
        query = f"SELECT n, vector FROM vectors WHERE n IN ({marks(group)}) AND length(vector) = ? ORDER BY n"
        yield _sound(connection.execute(query, (*group, 4 * dimension)).fetchall(), dimension)


def all_blocks(connection: Connection, dimension: int) -> Iterator[tuple[Numbers, Vectors]]:
    """As `stored_blocks`, of all rows."""
    found = connection.execute(
        "SELECT n, vector FROM vectors WHERE length(vector) = ? ORDER BY n", (4 * dimension,)
    )
    while block := found.fetchmany(_BLOCK):
        yield _sound(block, dimension)


def _sound(found: list[tuple[int, bytes]], dimension: int) -> tuple[Numbers, Vectors]:
    rows = np.frombuffer(b"".join(blob for _, blob in found), "<f4").reshape(len(found), dimension)
    rows = rows.astype(np.float32, copy=False)
    sound = np.isfinite(rows).all(axis=1)
    return np.array([n for n, _ in found], np.int64)[sound], unit(rows[sound])


def in_memory(blocks: Blocks) -> Segment | None:
    """A segment of blocks of rows, whose numbers are all different; ``None`` for none."""
    parts = [(numbers, rows) for numbers, rows in blocks if len(numbers)]
    if not parts:
        return None
    numbers = np.concatenate([part for part, _ in parts])
    order = np.argsort(numbers)
    return Segment(numbers[order], np.concatenate([rows for _, rows in parts])[order])


def write(path: Path, blocks: Blocks, dimension: int) -> None:
    """Write blocks of rows, in the order of their numbers, safe on disk."""

    def fill(file: IO[bytes]) -> None:
        found: list[Numbers] = [np.empty(0, np.int64)]
        total = np.zeros(dimension)
        file.seek(_HEAD.size)
        for group, rows in blocks:
            file.write(rows.astype("<f4", copy=False).tobytes())
            total += rows.sum(axis=0, dtype=np.float64)
            found.append(group)
        numbers = np.concatenate(found)
        count = len(numbers)
        centre = (total / max(1, count)).astype("<f4")
        places, size = _layout(count, dimension)
        _put(file, 0, _HEAD.pack(_MAGIC, count, dimension))  # the rows come next
        signs = np.empty((words_of(dimension), count), "<u8")
        for start in range(0, count, _BLOCK):
            block = file.read(min(_BLOCK, count - start) * dimension * 4)
            rows = np.frombuffer(block, "<f4").reshape(-1, dimension)
            signs[:, start : start + len(rows)] = pack_signs(rows, centre)
        for place, part in zip(places[1:], (numbers.astype("<i8"), centre, signs), strict=True):
            _put(file, place, part.tobytes())
        file.truncate(size)

    replace_file(path, fill, mode=0o600)


def mapped(path: Path) -> Segment:
    """The segment in a file, of which only the row numbers are read yet.

    Raises:
        FileNotFoundError: It is not there.
        IndexFormatError: It is of another format, not of its size, or its row numbers do not rise.
    """
    with path.open("rb") as file:
        magic, count, dimension = _HEAD.unpack(file.read(_HEAD.size).ljust(_HEAD.size, b"\0"))
        found = os.fstat(file.fileno()).st_size
        if magic != _MAGIC or max(count, dimension) > found:
            raise IndexFormatError(f"{path} is no file of vectors, or its beginning is damaged.")
        places, size = _layout(count, dimension)
        if found != size:
            raise IndexFormatError(f"{path} is cut short or damaged: {found} bytes, {size} expected.")
        content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    rows = np.frombuffer(content, "<f4", count * dimension, places[0]).reshape(count, dimension)
    numbers = np.frombuffer(content, "<i8", count, places[1])
    if not (numbers[1:] > numbers[:-1]).all():
        raise IndexFormatError(f"{path} is damaged: its row numbers do not rise.")
    centre = np.frombuffer(content, "<f4", dimension, places[2])
    words = words_of(dimension)
    signs = np.frombuffer(content, "<u8", words * count, places[3]).reshape(words, count)
    return Segment(numbers, rows, centre, signs)


def _layout(count: int, dimension: int) -> tuple[list[int], int]:
    """Where the parts of a file begin, and where it ends."""
    places, end = [], _HEAD.size
    for size in (count * dimension * 4, count * 8, dimension * 4, words_of(dimension) * count * 8):
        places.append(-(-end // _ALIGN) * _ALIGN)
        end = places[-1] + size
    return places, end


def _put(file: IO[bytes], place: int, data: bytes) -> None:
    file.seek(place)
    file.write(data)
