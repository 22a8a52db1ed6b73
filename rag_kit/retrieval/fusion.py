"""Ranked lists, what all kinds of fusion share, and reciprocal rank fusion.

Paper: Cormack, Clarke, Büttcher: Reciprocal Rank Fusion outperforms Condorcet and individual rank learning
methods, SIGIR 2009.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import TypeVar

from rag_kit.errors import InvalidInputError

K = TypeVar("K", bound=Hashable)

# Sums of the same shares in another order differ by rounding; closer scores than this are a tie.
_TIE = 1e-12


def reciprocal_rank_fusion(
    rankings: Sequence[Iterable[K]], *, weights: Sequence[float] | None = None, k: float = 60
) -> list[tuple[K, float]]:
    """Fuse rankings: an item's score is the sum of ``weight / (k + rank)`` over the lists that hold it.

    Ranks count from 1. An item that a list holds several times counts there once, with its first rank. Lists
    of weight 0 are left out. Ties keep the order in which the items are first seen, list after list.

    Args:
        rankings: Lists of hashable keys, best first.
        weights: One weight a list, >= 0; ``None`` for 1 each.
        k: How slowly a list's influence falls with the rank, >= 0.

    Returns:
        ``(key, score)`` pairs, best first.

    Raises:
        InvalidInputError: If a weight is negative, none is positive, their number differs from that of the
            rankings, or ``k`` is negative.

    Example:
        >>> [key for key, _ in reciprocal_rank_fusion([["a", "b"], ["b", "c"]])]
        ['b', 'a', 'c']
        >>> reciprocal_rank_fusion([["a"], ["a"]], weights=[3, 1], k=0)
        [('a', 4.0)]
    """
    if isinstance(rankings, (str, bytes)) or any(isinstance(r, (str, bytes)) for r in rankings):
        raise InvalidInputError("rankings must be a list of lists of keys; a string was given for a list.")
    if isinstance(k, bool) or not isinstance(k, (int, float)) or not (math.isfinite(k) and k >= 0):
        raise InvalidInputError(f"k={k!r} was given; it must be a number >= 0 (60 is usual).")
    if not rankings:
        return []
    used = check_weights(weights, len(rankings))
    tables: dict[float, list[float]] = {}
    scores: dict[K, float] = {}
    score_of = scores.get
    for ranking, weight in zip(rankings, used, strict=True):
        if weight == 0:
            continue
        keys = ranking if isinstance(ranking, (list, tuple)) else list(ranking)
        shares = tables.get(weight, [])
        if len(shares) < len(keys):
            shares = tables[weight] = [weight / (k + rank) for rank in range(1, len(keys) + 1)]
        if len(set(keys)) == len(keys):
            for key, share in zip(keys, shares, strict=False):
                scores[key] = score_of(key, 0.0) + share
        else:
            for key, place in first_places(keys).items():
                scores[key] = score_of(key, 0.0) + shares[place]
    return ordered(scores)


def check_weights(weights: Sequence[float] | None, count: int) -> list[float]:
    """Check the weights of a fusion.

    Args:
        weights: One number a list, >= 0, at least one above 0; ``None`` for 1 each.
        count: How many lists there are.

    Returns:
        The weights as floats.

    Raises:
        InvalidInputError: If they are not allowed.

    Example:
        >>> check_weights([1, 0.5], 2)
        [1.0, 0.5]
    """
    if weights is None:
        return [1.0] * count
    if isinstance(weights, (str, bytes)) or not hasattr(weights, "__len__") or len(weights) != count:
        raise InvalidInputError(f"weights={weights!r} was given for {count} lists; give one number each.")
    for weight in weights:
        try:
            usable = not isinstance(weight, (bool, str)) and math.isfinite(weight) and weight >= 0
        except TypeError:
            usable = False
        if not usable:
            raise InvalidInputError(
                f"The weight {weight!r} was given; weights must be numbers >= 0 (0 leaves a list out)."
            )
    if count and not any(weight > 0 for weight in weights):
        raise InvalidInputError("All weights are 0; at least one must be above 0.")
    return [float(weight) for weight in weights]


def first_places(keys: Sequence[K]) -> dict[K, int]:
    """Where each key first stands in a list, from 0, in that order.

    Example:
        >>> first_places(["a", "b", "a", "c"])
        {'a': 0, 'b': 1, 'c': 3}
    """
    places = dict(zip(keys, range(len(keys)), strict=True))
    if len(places) == len(keys):
        return places
    places.clear()
    for place, key in enumerate(keys):
        if key not in places:
            places[key] = place
    return places


@dataclass(frozen=True)
class RankedList:
    """One branch's result, as a fusion sees it.

    Attributes:
        keys: Identities, best first; repeats are possible.
        scores: The branch's own score of each, higher is better, or ``None`` where it gave none; fusion by rank
            does not read them, and they may be left out.
        weight: The branch's weight, above 0.
        name: What the branch is called in notes.
        maximum: The highest score that the query can have, where the branch knows it.
        depth: How many results were asked for, where what is not found scores 0 (keyword search).
    """

    keys: Sequence[str]
    scores: Sequence[float | None]
    weight: float
    name: str = "a list"
    maximum: float | None = None
    depth: int | None = None


@dataclass(frozen=True)
class FusionSettings:
    """The parameters a fusion may use.

    Attributes:
        rrf_k: The ``k`` of reciprocal rank fusion.
        normalisation: How a convex combination brings scores to one scale.
    """

    rrf_k: float = 60
    normalisation: str = "min-max"


class FusedList(list[tuple[str, float]]):
    """``(key, score)`` pairs, best first, and how they came about.

    Args:
        pairs: The pairs.
        normalised: For each list, its keys' normalised scores; empty where the fusion looks at ranks.
        weights: The weight that each list had, where it is not the branch's own.
        extra: Plain JSON for the provenance of every document.
        notes: What a reader should know, such as evidence that was missing.
    """

    def __init__(
        self,
        pairs: Iterable[tuple[str, float]],
        *,
        normalised: Sequence[Mapping[str, float]] = (),
        weights: Sequence[float] = (),
        extra: Mapping[str, object] | None = None,
        notes: Sequence[str] = (),
    ) -> None:
        super().__init__(pairs)
        self.normalised = list(normalised)
        self.weights = list(weights)
        self.extra = dict(extra or {})
        self.notes = list(notes)


def ordered(scores: dict[K, float]) -> list[tuple[K, float]]:
    """Items by falling score; ties in the order of the mapping.

    Example:
        >>> ordered({"a": 1.0, "b": 2.0, "c": 1.0})
        [('b', 2.0), ('a', 1.0), ('c', 1.0)]
    """
    return _settle_ties(sorted(scores.items(), key=itemgetter(1), reverse=True), scores)


def _settle_ties(pairs: list[tuple[K, float]], first_seen: dict[K, float]) -> list[tuple[K, float]]:
    """Put items whose scores differ by rounding only into the order in which they were first seen."""
    unclear = False
    before = math.inf
    for _, score in pairs:
        if 0 < before - score < _TIE:
            unclear = True
            break
        before = score
    if not unclear:
        return pairs
    order = {key: place for place, key in enumerate(first_seen)}
    groups: list[list[tuple[K, float]]] = []
    before = math.inf
    for item in pairs:
        if not groups or before - item[1] >= _TIE:
            groups.append([])
        groups[-1].append(item)
        before = item[1]
    return [item for group in groups for item in sorted(group, key=lambda pair: order[pair[0]])]
