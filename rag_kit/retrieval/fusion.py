"""Join ranked lists: reciprocal rank fusion, and the register of the kinds there are.

Paper: Cormack, Clarke, Büttcher: Reciprocal Rank Fusion outperforms Condorcet and individual rank learning
methods, SIGIR 2009.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import TypeVar

from rag_kit.errors import InvalidInputError
from rag_kit.retrieval.ranked import FusionSettings, RankedList, check_weights, first_places, ordered

K = TypeVar("K", bound=Hashable)


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


FusionFunction = Callable[[Sequence[RankedList], FusionSettings], list[tuple[str, float]]]


def _rrf(lists: Sequence[RankedList], settings: FusionSettings) -> list[tuple[str, float]]:
    return reciprocal_rank_fusion(
        [ranked.keys for ranked in lists], weights=[ranked.weight for ranked in lists], k=settings.rrf_k
    )


def _convex(lists: Sequence[RankedList], settings: FusionSettings) -> list[tuple[str, float]]:
    from rag_kit.retrieval.convex import fuse_convex

    return fuse_convex(lists, settings)


def _auto(lists: Sequence[RankedList], settings: FusionSettings) -> list[tuple[str, float]]:
    from rag_kit.retrieval.auto_fusion import fuse_auto

    return fuse_auto(lists, settings)


FUSIONS: dict[str, FusionFunction] = {"rrf": _rrf, "convex": _convex, "auto": _auto}


#: Fusions that look at ranks alone: who calls them need not read scores.
BY_RANK = frozenset({"rrf"})


def fusion_function(name: str) -> FusionFunction:
    """The fusion of that name.

    Raises:
        InvalidInputError: If there is none; the message names those there are.

    Example:
        >>> fusion_function("rrf") is FUSIONS["rrf"]
        True
    """
    if name not in FUSIONS:
        raise InvalidInputError(
            f"fusion={name!r} was given; allowed: {', '.join(repr(known) for known in sorted(FUSIONS))}."
        )
    return FUSIONS[name]


def check_fusion(name: str, rrf_k: float) -> None:
    """See that there is such a fusion, and that the ``k`` of reciprocal rank fusion makes sense.

    Raises:
        InvalidInputError: If not.
    """
    fusion_function(name)
    if rrf_k < 0:
        raise InvalidInputError(f"rrf_k={rrf_k!r} was given; it must be >= 0 (60 is usual).")
