"""Arrays of vectors: unit length, ties, bytes of the store."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

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


def near_best(numbers: NDArray[np.int64], scores: Vectors, k: int) -> tuple[NDArray[np.int64], Vectors]:
    """The k best and whatever ties with the last of them, in no order."""
    if k < len(scores):
        near = scores >= np.partition(scores, len(scores) - k)[len(scores) - k] - 2 * TIE
        numbers, scores = numbers[near], scores[near]
    return numbers, scores


def unpack(blobs: list[bytes], dimension: int) -> Vectors:
    """Stored vectors as an array of shape (len(blobs), dimension)."""
    return (
        np.frombuffer(b"".join(blobs), dtype="<f4")
        .reshape(len(blobs), dimension)
        .astype(np.float32, copy=False)
    )
