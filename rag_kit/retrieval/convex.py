"""Convex combination: a weighted mean of scores on one scale, with given weights or those that each query's scores say.

Paper: Bruch, Gai, Ingber: An Analysis of Fusion Functions for Hybrid Retrieval, TOIS 2023 (arXiv 2210.11934).
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from statistics import fmean, pstdev
from typing import Literal, TypeVar, get_args

from rag_kit.errors import InvalidInputError
from rag_kit.retrieval.fusion import FusedList, first_places, ordered

K = TypeVar("K", bound=Hashable)
Normalisation = Literal["min-max", "z-score", "maximum"]
NORMALISATIONS: tuple[str, ...] = get_args(Normalisation)

# Of the fusion "auto"; docs/decisions/0011 has the figures.
CENTRE = 0.45
"""The dense side's weight where neither list stands out more."""
SLOPE = 0.06
"""How much one standard deviation more of a lead adds to the dense side's weight."""
LEAST, MOST = 0.25, 0.75
PLACE = 10
"""The result with which the first one is compared."""


@dataclass(frozen=True)
class RankedList:
    """One branch's result, as a fusion sees it: keys best first, and the branch's own score of each, or ``None``.

    ``maximum`` is the highest score that the query can have, where the branch knows it; ``depth`` is how many results
    were asked for, where what is not found scores 0 (keyword search).
    """

    keys: Sequence[str]
    scores: Sequence[float | None]
    weight: float
    name: str = "a list"
    maximum: float | None = None
    depth: int | None = None


@dataclass(frozen=True)
class Normalised:
    """Scores of one list on a common scale."""

    values: list[float]
    absent: float  # what a document counts that the list does not hold
    note: str | None = None  # what stood in for evidence that was not there


def normalise(
    scores: Sequence[float | None],
    method: str = "min-max",
    *,
    maximum: float | None = None,
    depth: int | None = None,
) -> Normalised:
    """Normalise the scores of one list, best first where some are ``None``.

    - ``"min-max"``: the lowest score becomes 0, the highest 1; equal scores all become 1.
    - ``"z-score"``: mean 0, standard deviation 1; equal scores all become 0. A document that is absent counts
      the list's lowest value, at most -1. With ``depth``, mean and deviation are those of the list filled up
      with zeros to that length, and absence counts as 0 does: for keyword scores, where a list is short because
      all other documents score 0.
    - ``"maximum"``: divided by the highest score possible (BM25: the sum of the idf of the query's terms).
      Without ``maximum``, scores within -1 and 1 are taken as they are (cosines); others are divided by the
      list's best score, with a note. Negative scores stay negative.

    A list with a score missing is scored by its ranks, from 1 down to near 0, with a note.

    Example:
        >>> normalise([9.0, 6.0, 3.0]).values
        [1.0, 0.5, 0.0]
        >>> normalise([9.0, 6.0, 3.0], "maximum", maximum=12.0).values
        [0.75, 0.5, 0.25]
    """
    if method not in NORMALISATIONS:
        allowed = ", ".join(map(repr, NORMALISATIONS))
        raise InvalidInputError(f"normalisation={method!r} was given; allowed: {allowed}.")
    present = [float(score) for score in scores if score is not None]
    if not all(map(math.isfinite, present)):
        raise InvalidInputError(f"A retriever gave the scores {present!r:.60}; they must be finite numbers.")
    note = None
    if len(present) < len(scores):
        note = "no scores, so its ranks were used"
        present = [1 - position / len(scores) for position in range(len(scores))]
        maximum = depth = None
    if not present:
        return Normalised([], 0.0)
    if method == "min-max":
        return Normalised(_min_max(present), 0.0, note)
    if method == "maximum":
        values, absent, guess = _by_maximum(present, maximum)
        return Normalised(values, absent, note or guess)
    padding = max(0, (depth or 0) - len(present))
    values = _z_scores([*present, *[0.0] * padding])
    absent = values[-1] if padding else min(-1.0, min(values))
    return Normalised(values[: len(present)], absent, note)


def _min_max(scores: list[float]) -> list[float]:
    low, high = min(scores), max(scores)
    if not high > low:
        return [1.0] * len(scores)
    half = 2.0 if math.isinf(high - low) else 1.0  # the ends are near the limits of a float
    return [(score / half - low / half) / (high / half - low / half) for score in scores]


def _z_scores(scores: list[float]) -> list[float]:
    """Scores in standard deviations from their mean; all 0 if they are equal."""
    size = max(map(abs, scores)) or 1.0
    scaled = [score / size for score in scores]
    mean, deviation = fmean(scaled), pstdev(scaled)
    if not deviation > 1e-12:  # equal but for rounding
        return [0.0] * len(scores)
    return [(score - mean) / deviation for score in scaled]


def _by_maximum(scores: list[float], maximum: float | None) -> tuple[list[float], float, str | None]:
    """Scores divided by the highest possible one, what an absent document counts, and a note if none is known."""
    if maximum and 0 < maximum < math.inf:
        return [score / maximum for score in scores], 0.0, None
    if all(-1 <= score <= 1 for score in scores):
        return list(scores), min(scores), None
    best = max(scores)
    if best <= 0:
        return _min_max(scores), 0.0, "no highest possible score, so min-max was used"
    note = "no highest possible score, so the best of the list stood in for it"
    return [score / best for score in scores], min(0.0, min(scores) / best), note


def combine(
    keys: Sequence[Sequence[K]], tables: Sequence[Normalised], weights: Sequence[float]
) -> list[tuple[K, float]]:
    """The weighted mean of normalised lists; each list holds a key once."""
    used = [
        (dict(zip(list_keys, table.values, strict=True)), table.absent, weight)
        for list_keys, table, weight in zip(keys, tables, weights, strict=True)
        if weight > 0 and list_keys
    ]
    total = sum(weight for *_, weight in used)
    scores: dict[K, float] = dict.fromkeys((key for values, *_ in used for key in values), 0.0)
    for values, absent, weight in used:
        for key in scores:
            scores[key] += weight / total * values.get(key, absent)
    return ordered(scores)


def fuse(name: str, lists: Sequence[RankedList], normalisation: str = "min-max") -> FusedList:
    """Fuse ranked lists by ``"convex"`` or ``"auto"``.

    ``"auto"`` is a convex combination of z-scores, weighted by how clearly each list has decided: no labels are used,
    and nothing is remembered between queries. It needs one list whose retriever gives ``max_score``
    (`BM25Retriever`), and beside it others with scores, the dense side. The branches' own weights multiply the two
    sides' weights. An empty list says nothing. All else is fused by z-scores with the branches' weights, and noted.
    """
    weights = [ranked.weight for ranked in lists]
    auto = name == "auto"
    normalisation = "z-score" if auto else normalisation
    firsts = [first_places(ranked.keys) for ranked in lists]
    tables = [
        normalise(
            [ranked.scores[position] for position in first.values()],
            normalisation,
            maximum=None if auto else ranked.maximum,
            depth=ranked.depth,
        )
        for ranked, first in zip(lists, firsts, strict=True)
    ]
    pairs = zip(lists, tables, strict=True)
    notes = [f"{ranked.name}: {table.note}" for ranked, table in pairs if table.note]
    extra: dict[str, object] = {"normalisation": normalisation}
    if auto:
        filled = [number for number, ranked in enumerate(lists) if ranked.keys]
        if reason := _why_unfit([lists[number] for number in filled]):
            if len(filled) > 1:
                notes.append(f"auto: {reason}; used z-scores with the retrievers' own weights")
        else:
            keyword = next(number for number in filled if lists[number].maximum)
            dense = [number for number in filled if number != keyword]
            share = dense_share(tables[keyword], tables[max(dense, key=lambda number: weights[number])])
            extra["dense_share"] = round(share, 6)
            for number in filled:
                weights[number] *= 1 - share if number == keyword else share
    total = sum(weights)
    weights = [weight / total for weight in weights]
    fused = FusedList(combine([list(first) for first in firsts], tables, weights))
    fused.normalised = [
        dict(zip(first, table.values, strict=True)) for first, table in zip(firsts, tables, strict=True)
    ]
    fused.weights, fused.extra, fused.notes = weights, extra, notes
    return fused


def lead(table: Normalised) -> float:
    """How far a list's first result stands above its tenth, in standard deviations of the list."""
    return table.values[0] - (table.values[PLACE - 1] if len(table.values) >= PLACE else table.absent)


def dense_share(keyword: Normalised, dense: Normalised) -> float:
    """The weight of the dense side, between 0.25 and 0.75; the keyword list has the rest."""
    return min(MOST, max(LEAST, CENTRE + SLOPE * (lead(dense) - lead(keyword))))


def _why_unfit(lists: Sequence[RankedList]) -> str | None:
    """Why the lists that hold something cannot be weighed."""
    if len(lists) < 2:
        return "there is one list only"
    if any(score is None for ranked in lists for score in ranked.scores):
        return "a retriever gave no scores"
    if sum(1 for ranked in lists if ranked.maximum) != 1:
        return "exactly one retriever must state the highest score possible"
    return None
