"""Convex combination: a weighted mean of normalised scores.

Paper: Bruch, Gai, Ingber: An Analysis of Fusion Functions for Hybrid Retrieval, TOIS 2023 (arXiv 2210.11934).
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TypeVar

from rag_kit.retrieval.fusion import (
    FusedList,
    FusionSettings,
    RankedList,
    check_weights,
    first_places,
    ordered,
)
from rag_kit.retrieval.normalise import Normalised, normalise

K = TypeVar("K", bound=Hashable)


def convex_combination(
    lists: Sequence[Sequence[tuple[K, float | None]]],
    *,
    weights: Sequence[float] | None = None,
    normalisation: str = "min-max",
    maxima: Sequence[float | None] | None = None,
) -> list[tuple[K, float]]:
    """Fuse scored lists: an item's score is the weighted mean of its normalised scores.

    An item that a list lacks gets what the list's last would (see ``normalise``). An item that a list holds
    twice counts with its first score. Ties keep the order of first sight. Empty lists say nothing.

    Args:
        lists: ``(key, score)`` pairs, best first.
        weights: One number >= 0 a list; only their ratios matter. ``None`` for equal weights.
        normalisation: ``"min-max"``, ``"z-score"`` or ``"maximum"``.
        maxima: For ``"maximum"``, the highest score possible in each list, ``None`` where it is not known.

    Returns:
        ``(key, score)`` pairs, best first.

    Raises:
        InvalidInputError: If weights, normalisation or a score is not allowed.

    Example:
        >>> convex_combination([[("a", 12.0), ("b", 6.0)], [("b", 0.8), ("c", 0.4)]], weights=[3, 1])
        [('a', 0.75), ('b', 0.25), ('c', 0.0)]
    """
    shares = check_weights(weights, len(lists))
    tops = list(maxima) if maxima is not None else [None] * len(lists)
    firsts = [first_places([key for key, _ in pairs]) for pairs in lists]
    tables = [
        normalise([pairs[place][1] for place in first.values()], normalisation, maximum=top)
        for pairs, first, top in zip(lists, firsts, tops, strict=True)
    ]
    return combine([list(first) for first in firsts], tables, shares)


def combine(
    keys: Sequence[Sequence[K]], tables: Sequence[Normalised], weights: Sequence[float]
) -> list[tuple[K, float]]:
    """The weighted mean of normalised lists; each list holds a key once."""
    used = [
        (dict(zip(of_one, table.values, strict=True)), table.absent, weight)
        for of_one, table, weight in zip(keys, tables, weights, strict=True)
        if weight > 0 and of_one
    ]
    total = sum(weight for *_, weight in used)
    scores: dict[K, float] = dict.fromkeys((key for values, *_ in used for key in values), 0.0)
    for values, absent, weight in used:
        for key in scores:
            scores[key] += weight / total * values.get(key, absent)
    return ordered(scores)


def fuse_convex(lists: Sequence[RankedList], settings: FusionSettings) -> FusedList:
    """The fusion ``"convex"`` of an ensemble."""
    firsts = [first_places(ranked.keys) for ranked in lists]
    tables = [
        normalise(
            [ranked.scores[place] for place in first.values()],
            settings.normalisation,
            maximum=ranked.maximum,
            depth=ranked.depth,
        )
        for ranked, first in zip(lists, firsts, strict=True)
    ]
    total = sum(ranked.weight for ranked in lists)
    weights = [ranked.weight / total for ranked in lists]
    return described(firsts, tables, weights, lists, {"normalisation": settings.normalisation})


def described(
    firsts: Sequence[dict[str, int]],
    tables: Sequence[Normalised],
    weights: Sequence[float],
    lists: Sequence[RankedList],
    extra: dict[str, object],
    notes: Sequence[str] = (),
) -> FusedList:
    """Fuse, and keep what a reader needs to follow it."""
    said = [f"{ranked.name}: {table.note}" for ranked, table in zip(lists, tables, strict=True) if table.note]
    return FusedList(
        combine([list(first) for first in firsts], tables, weights),
        normalised=[
            dict(zip(first, table.values, strict=True)) for first, table in zip(firsts, tables, strict=True)
        ],
        weights=list(weights),
        extra=extra,
        notes=[*said, *notes],
    )
