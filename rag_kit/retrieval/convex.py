"""Convex combination: a weighted mean of scores in standard deviations from the mean of their list (z-scores).

Paper: Bruch, Gai, Ingber: An Analysis of Fusion Functions for Hybrid Retrieval, TOIS 2023 (arXiv 2210.11934).
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from rag_kit.errors import InvalidInputError

K = TypeVar("K", bound=Hashable)


class Standardised(NamedTuple):
    """The z-scores of a list; ``absent`` is the value for documents that are not in the list."""

    values: Any  # in the order of the list, or by key
    absent: float
    note: str | None = None  # what stood in for scores that were not there


def standardise(scores: Sequence[float | None], depth: int | None = None) -> Standardised:
    """Turn the scores of one list, best first, into z-scores: mean 0, standard deviation 1.

    Equal scores all become 0. A document that is absent counts the list's lowest value, at most -1. With ``depth``,
    mean and deviation are those of the list filled up with zeros to that length, and absence counts as 0 does: for
    keyword scores, where a list is short because all other documents score 0. A list with a score missing is scored by
    its ranks, from 1 down to near 0, with a note.

    Raises:
        InvalidInputError: A score is not finite.

    Example:
        >>> [round(value, 3) for value in standardise([3.0, 2.0, 1.0]).values]
        [1.225, 0.0, -1.225]
    """
    present = [float(score) for score in scores if score is not None]
    if not all(map(math.isfinite, present)):
        raise InvalidInputError(f"A retriever gave the scores {present!r:.60}; they must be finite numbers.")
    note = None
    if len(present) < len(scores):
        note, depth = "no scores, so its ranks were used", None
        present = [1 - position / len(scores) for position in range(len(scores))]
    if not present:
        return Standardised([], 0.0)
    zeros = max(0, (depth or 0) - len(present))  # none if the list is as long as ``depth``
    values, of_zero = _z_scores(present, zeros)
    return Standardised(values, of_zero if zeros else min(-1.0, min(values)), note)


def _z_scores(scores: list[float], zeros: int) -> tuple[list[float], float]:
    """Return scores, and 0, in standard deviations from the mean of them and further ``zeros``; 0 if all are equal."""
    largest = max(map(abs, scores)) or 1.0
    scaled = [score / largest for score in scores]  # so that no square overflows
    count = len(scores) + zeros
    mean = math.fsum(scaled) / count
    distances = [score - mean for score in scaled]
    deviation = math.hypot(*distances, mean * math.sqrt(zeros)) / math.sqrt(count)
    if not deviation > 1e-12:  # equal but for rounding
        return [0.0] * len(scores), 0.0
    return [distance / deviation for distance in distances], -mean / deviation


def weighted_mean(lists: Sequence[tuple[Mapping[K, float], float, float]]) -> dict[K, float]:
    """Return the weighted mean of standardised lists for every key in any of them.

    Each list is a tuple: the values of its keys, the value of an absent key, and the list's weight. Empty lists are
    left out. Each mean starts at the value of a key that all lists lack; a list that holds the key adds the difference.
    """
    used = [(values, absent, weight) for values, absent, weight in lists if weight > 0 and values]
    total_weight = sum(weight for *_, weight in used)
    mean_of_absent = sum(weight / total_weight * absent for _, absent, weight in used)
    means: dict[K, float] = {}
    for values, absent, weight in used:
        share = weight / total_weight
        for key, value in values.items():
            means[key] = means.get(key, mean_of_absent) + share * (value - absent)
    return means
