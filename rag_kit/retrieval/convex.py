"""Convex combination: a weighted mean of scores in standard deviations from the mean of their list (z-scores).

Paper: Bruch, Gai, Ingber: An Analysis of Fusion Functions for Hybrid Retrieval, TOIS 2023 (arXiv 2210.11934).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from rag_kit.errors import InvalidInputError


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
    zero_count = max(0, (depth or 0) - len(present))  # none if the list is as long as ``depth``
    values, value_of_zero = _z_scores(present, zero_count)
    return Standardised(values, value_of_zero if zero_count else min(-1.0, min(values)), note)


def _z_scores(scores: list[float], zero_count: int) -> tuple[list[float], float]:
    """Return the z-score of each score, and of 0, in the list of the scores and so many zeros; 0.0 if all are equal."""
    largest = max(map(abs, scores)) or 1.0
    scaled = [score / largest for score in scores]  # so that no square overflows
    count = len(scores) + zero_count
    mean = math.fsum(scaled) / count
    distances = [score - mean for score in scaled]
    # each zero is as far from the mean as the mean is from 0
    deviation = math.hypot(*distances, mean * math.sqrt(zero_count)) / math.sqrt(count)
    if not deviation > 1e-12:  # equal but for rounding
        return [0.0] * len(scores), 0.0
    return [distance / deviation for distance in distances], -mean / deviation


def weighted_mean(lists: Sequence[Standardised], weights: Sequence[float]) -> dict[str, float]:
    """Return the weighted mean of the values of each key; a list that lacks the key counts with its ``absent``.

    The lists hold their values by key; empty ones are left out.
    """
    used = [(each, weight) for each, weight in zip(lists, weights, strict=True) if weight > 0 and each.values]
    total_weight = sum(weight for _, weight in used)
    mean_of_absent = sum(weight / total_weight * each.absent for each, weight in used)
    means: dict[str, float] = {}
    for (values, absent, _), weight in used:
        share = weight / total_weight
        for key, value in values.items():  # a mean starts at that of a key which all lists lack
            means[key] = means.get(key, mean_of_absent) + share * (value - absent)
    return means
