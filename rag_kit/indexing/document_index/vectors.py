"""Arrays of vectors: unit length, ties, the nearest by exact scores or by sign bits first; the vector leg's file.

Layout: a head of 64 bytes with a digest of the rest, then [rows: float32, n x d][numbers: int64, n][centre: float32, d]
[signs: uint64, words x n], each part at a multiple of 64 bytes, little-endian. Rows of int8 have no signs.
"""

from __future__ import annotations

import hashlib
import mmap
import os
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from rag_kit.documents.files import replace_file
from rag_kit.errors import IndexFormatError
from rag_kit.indexing.document_index.state import Connection, in_groups, placeholders, select_in

Vectors = NDArray[np.float32]
RankedIds = list[tuple[str, float]]  # ids with their scores

#: Similarities closer than this are ties, which the id decides: sums differ in their last bits with the
#: number of rows that are multiplied at once.
TIE = 1e-6
_BLOCK = 16_384  # rows whose bits are counted at a time: they stay in the processor's cache
_MOST_DIFFERENT = np.iinfo(np.uint16).max


def unit(vectors: NDArray[Any]) -> NDArray[Any]:
    """Scale rows to length 1, so that a product is a cosine; zeros stay, and what is not finite becomes zeros."""
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    is_sound = np.isfinite(lengths) & (lengths > 0)
    scaled: NDArray[Any] = np.divide(vectors, lengths, out=np.zeros_like(vectors), where=is_sound)
    return scaled


def order_of(ids: Sequence[str], scores: NDArray[Any]) -> list[int]:
    """Return the positions of ids, the best first; scores that round to the same step of `TIE` are ordered by id."""
    steps = np.rint(scores.astype(np.float64) / -TIE).tolist()
    return sorted(range(len(ids)), key=lambda position: (steps[position], ids[position]))


def best_ids(scores: Vectors, ids: list[str], k: int) -> RankedIds:
    """Return the k best ids with their scores, rounded to steps of `TIE`; equal scores are ordered by id."""
    best = order_of(ids, scores)[:k]
    return [(ids[position], round(round(float(scores[position]) / TIE) * TIE, 6)) for position in best]


def best_with_ties(numbers: NDArray[np.int64], scores: Vectors, k: int) -> tuple[NDArray[np.int64], Vectors]:
    """Return the numbers and scores of the k best rows and of those that tie with the k-th, in no order."""
    if k < len(scores):
        kth_best = np.partition(scores, len(scores) - k)[len(scores) - k]
        is_near = scores >= kth_best - 2 * TIE
        numbers, scores = numbers[is_near], scores[is_near]
    return numbers, scores


def best_by_id(connection: Connection, numbers: Numbers, scores: Vectors, k: int) -> RankedIds:
    """Return ids and scores of the k best rows, ties by id; rows that are no longer in the store are left out."""
    id_of = dict(select_in(connection, "SELECT n, id FROM chunks WHERE n IN ({})", numbers.tolist()))
    present = [position for position, n in enumerate(numbers.tolist()) if n in id_of]
    return best_ids(scores[present], [id_of[n] for n in numbers[present].tolist()], k)


def words_of(dimension: int) -> int:
    """Return how many 64-bit words hold a bit for each dimension."""
    return -(-dimension // 64)  # rounded up


def pack_signs(rows: Vectors, centre: Vectors) -> NDArray[np.uint64]:
    """Return a bit for each number of each row, set if it is above the centre's, as uint64 of shape (words, n).

    With zero for the centre, vectors that share a part would have mostly equal bits. Searches read word after word.
    """
    bits = np.packbits(rows > centre, axis=1)
    padded = np.zeros((len(rows), words_of(rows.shape[1]) * 8), np.uint8)  # to whole words of 8 bytes
    padded[:, : bits.shape[1]] = bits
    return np.ascontiguousarray(padded.view(np.uint64).T)


def candidates(
    signs: NDArray[np.uint64], query: NDArray[np.uint64], min_count: int, allowed: NDArray[np.bool_]
) -> NDArray[np.int64]:
    """Return the positions of the ``min_count`` allowed rows whose bits differ least from the query's, and of ties."""
    words, count = signs.shape  # as of `pack_signs`; the query has shape (words,)
    differences = np.zeros(count, np.uint16)  # in how many bits each row differs
    differing, bit_counts = np.empty(_BLOCK, np.uint64), np.empty(_BLOCK, np.uint8)  # buffers
    for start in range(0, count, _BLOCK):
        totals = differences[start : start + _BLOCK]
        size = len(totals)
        for word in range(words):
            np.bitwise_xor(signs[word, start : start + _BLOCK], query[word], out=differing[:size])
            totals += np.bitwise_count(differing[:size], out=bit_counts[:size])
    np.putmask(differences, ~allowed, _MOST_DIFFERENT)  # more than any row can be
    limit = np.partition(differences, min_count - 1)[min_count - 1]
    return np.flatnonzero(differences <= limit)


Numbers = NDArray[np.int64]
Blocks = Iterable[tuple[Numbers, Vectors]]  # row numbers, and the vectors of these rows

_HEAD = struct.Struct("<8sQQ8x32s")  # magic, rows, numbers of a vector, SHA-256
_KINDS = {b"RAGKVEC3": "<f4", b"RAGKTOK1": "i1"}  # magic -> type of the rows
_ALIGN = 64
_READ_ROWS = 4096  # rows that are read and written together


@dataclass(frozen=True)
class VectorSegment:
    """Vectors by row number of the store, in memory, or in a file, which has all fields."""

    numbers: Numbers  # rising, shape (n,)
    rows: NDArray[Any]  # float32 of length 1, or int8, shape (n, d)
    centre: Vectors | None = None  # the mean of the rows, shape (d,)
    signs: NDArray[np.uint64] | None = None  # see `pack_signs`
    digest: bytes = b""  # SHA-256 of all that

    def is_sound(self) -> bool:
        """Tell whether the file holds what was written; reads all of it."""
        assert self.centre is not None and self.signs is not None
        digest = hashlib.sha256()
        for part in (self.rows, self.numbers, self.centre, self.signs):
            digest.update(np.ascontiguousarray(part).data)
        return digest.digest() == self.digest


def read_blocks(connection: Connection, numbers: Numbers, dimension: int) -> Blocks:
    """Yield unit vectors of some rows out of the store, in the order of their numbers; damaged ones are left out."""
    for group in in_groups(numbers.tolist()):
        query = f"SELECT n, vector FROM vectors WHERE n IN ({placeholders(group)}) ORDER BY n"
        sound, rows = decode_vectors(connection.execute(query, group).fetchall(), dimension)
        yield np.array(sound, np.int64), unit(rows)


def decode_vectors(stored: Iterable[tuple[Any, bytes]], dimension: int) -> tuple[list[Any], Vectors]:
    """Decode stored (key, bytes); return keys and float32 vectors, without those of wrong length or not finite."""
    whole = [(key, blob) for key, blob in stored if len(blob) == 4 * dimension]
    rows = np.frombuffer(b"".join(blob for _, blob in whole), "<f4").reshape(len(whole), dimension)
    sound = np.flatnonzero(np.isfinite(rows).all(axis=1))
    return [whole[position][0] for position in sound.tolist()], rows[sound].astype(np.float32, copy=False)


def segment_in_memory(blocks: Blocks, dimension: int) -> VectorSegment:
    """Make a segment in memory of blocks of vectors with their row numbers (no number twice, in any order)."""
    filled = [(np.empty(0, np.int64), np.empty((0, dimension), np.float32))]
    filled += [block for block in blocks if len(block[0])]  # an empty block may have another dimension
    numbers, rows = (np.concatenate(arrays) for arrays in zip(*filled, strict=True))
    order = np.argsort(numbers)
    return VectorSegment(numbers[order], rows[order])


def write_file(
    path: Path, blocks: Iterable[tuple[Numbers, NDArray[Any]]], dimension: int, kind: str = "<f4"
) -> None:
    """Write blocks of rows of a kind, in the order of their numbers, to a file; whole or not at all."""

    def fill(file: IO[bytes]) -> None:
        """Write the rows, then the parts that are known only after the last row: numbers, centre, signs, head."""
        groups: list[Numbers] = [np.empty(0, np.int64)]
        total, digest = np.zeros(dimension), hashlib.sha256()
        file.seek(_HEAD.size)
        for group, rows in blocks:
            data = rows.astype(kind, copy=False).tobytes()
            file.write(data)
            digest.update(data)
            total += rows.sum(axis=0, dtype=np.float64)
            groups.append(group)
        numbers = np.concatenate(groups).astype("<i8")
        count = len(numbers)
        centre = (total / max(1, count)).astype("<f4")
        words = words_of(dimension) if kind == "<f4" else 0
        signs = np.empty((words, count), "<u8")
        file.seek(_HEAD.size)  # read the rows again, for signs need the centre, the mean of all rows
        for start in range(0, count if words else 0, _READ_ROWS):
            block = file.read(min(_READ_ROWS, count - start) * dimension * 4)
            rows = np.frombuffer(block, "<f4").reshape(-1, dimension)
            signs[:, start : start + len(rows)] = pack_signs(rows, centre)
        offsets, size = _layout(count, dimension, kind)
        for offset, part in zip(offsets[1:], (numbers, centre, signs), strict=True):
            file.seek(offset)
            file.write(part.tobytes())
            digest.update(part.tobytes())
        file.truncate(size)
        file.seek(0)
        magic = next(magic for magic, of_magic in _KINDS.items() if of_magic == kind)
        file.write(_HEAD.pack(magic, count, dimension, digest.digest()))

    replace_file(path, fill, mode=0o600)


def open_file(path: Path) -> VectorSegment:
    """Map a file of vectors, of which only head and row numbers are read now; raise IndexFormatError for damage."""
    with path.open("rb") as file:
        # a file shorter than the head is filled up with zeros, which are no magic number
        magic, count, dimension, digest = _HEAD.unpack(file.read(_HEAD.size).ljust(_HEAD.size, b"\0"))
        length = os.fstat(file.fileno()).st_size
        if magic not in _KINDS or max(count, dimension) > length:  # more rows or numbers than bytes
            raise IndexFormatError(f"{path} is no file of vectors, or its beginning is damaged.")
        kind = _KINDS[magic]
        offsets, size = _layout(count, dimension, kind)
        if length != size:
            raise IndexFormatError(f"{path} is cut short or damaged: {length} bytes, {size} expected.")
        content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    rows = np.frombuffer(content, kind, count * dimension, offsets[0]).reshape(count, dimension)
    numbers = np.frombuffer(content, "<i8", count, offsets[1])
    if not (numbers[1:] > numbers[:-1]).all():
        raise IndexFormatError(f"{path} is damaged: its row numbers do not rise.")
    centre = np.frombuffer(content, "<f4", dimension, offsets[2])
    words = words_of(dimension) if kind == "<f4" else 0
    signs = np.frombuffer(content, "<u8", words * count, offsets[3]).reshape(words, count)
    return VectorSegment(numbers, rows, centre, signs, digest)


def _layout(count: int, dimension: int, kind: str) -> tuple[list[int], int]:
    """Return the offsets of a file's parts (rows, numbers, centre, signs), and its end."""
    offsets, end, words = [], _HEAD.size, words_of(dimension) if kind == "<f4" else 0
    for size in (count * dimension * np.dtype(kind).itemsize, count * 8, dimension * 4, words * count * 8):
        offsets.append(-(-end // _ALIGN) * _ALIGN)  # rounded up
        end = offsets[-1] + size
    return offsets, end
