"""Arrays of vectors: unit length, ties, bytes of the store; the nearest by exact scores, or by sign bits first."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float32]

#: Similarities closer than this are ties, which the id decides: sums differ in their last bits with the
#: number of rows that are multiplied at once.
TIE = 1e-6
_BLOCK = 16_384  # rows whose bits are counted at a time: they stay in the processor's cache
_NOWHERE = np.iinfo(np.uint16).max


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
    places, near = near_best(np.arange(len(scores)), scores, k)
    rounded = [(-round(score / TIE), ids[i]) for i, score in zip(places.tolist(), near.tolist(), strict=True)]
    return [(key, round(-steps * TIE, 6)) for steps, key in sorted(rounded)[:k]]


def near_best(numbers: NDArray[np.int64], scores: Vectors, k: int) -> tuple[NDArray[np.int64], Vectors]:
    """The k best and whatever ties with the last of them, in no order."""
    if k < len(scores):
        near = scores >= np.partition(scores, len(scores) - k)[len(scores) - k] - 2 * TIE
        numbers, scores = numbers[near], scores[near]
    return numbers, scores


def words_of(dimension: int) -> int:
    """How many 64-bit words hold a bit for each dimension."""
    return -(-dimension // 64)


def pack_signs(rows: Vectors, centre: Vectors) -> NDArray[np.uint64]:
    """On which side of the centre each row lies, a bit a dimension.

    Centred, since the vectors of many models share a large part, which would make most signs equal.

    Returns:
        Shape (words, n): the same word of all rows side by side, which is what a search reads.
    """
    packed = np.packbits(rows > centre, axis=1)
    words = np.zeros((len(rows), words_of(rows.shape[1]) * 8), np.uint8)
    words[:, : packed.shape[1]] = packed
    return np.ascontiguousarray(words.view(np.uint64).T)


def candidates(
    signs: NDArray[np.uint64], query: NDArray[np.uint64], min_count: int, allowed: NDArray[np.bool_] | None
) -> NDArray[np.int64]:
    """Positions of ``min_count`` rows or more whose bits are nearest to the query's; rows alike come together."""
    words, count = signs.shape
    differences = np.zeros(count, np.uint16)  # in how many bits each row differs
    differing, bits = np.empty(_BLOCK, np.uint64), np.empty(_BLOCK, np.uint8)
    for start in range(0, count, _BLOCK):
        part = differences[start : start + _BLOCK]
        for word in range(words):
            one = np.bitwise_xor(signs[word, start : start + _BLOCK], query[word], out=differing[: len(part)])
            np.add(part, np.bitwise_count(one, out=bits[: len(part)]), out=part)
    if allowed is not None:
        np.putmask(differences, ~allowed, _NOWHERE)
    limit = np.partition(differences, min_count - 1)[min_count - 1]
    return np.flatnonzero(differences <= limit)


def score_rows(
    rows: Vectors, query: Vectors, allowed: NDArray[np.bool_] | None
) -> tuple[NDArray[np.int64], Vectors]:
    """Positions and scores of all rows that are allowed."""
    if allowed is None:
        return np.arange(len(rows)), rows @ query
    places = np.flatnonzero(allowed)
    return places, rows[places] @ query
