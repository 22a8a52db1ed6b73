"""Weigh a keyword list against lists of vectors for each query, by how clearly the first results stand out.

No labels are used, and nothing is remembered between queries: the same lists give the same weights.
``docs/decisions/0011`` has the figures.
"""

from __future__ import annotations

from collections.abc import Sequence

from rag_kit.retrieval.convex import described
from rag_kit.retrieval.fusion import FusedList, FusionSettings, RankedList, first_places
from rag_kit.retrieval.normalise import Normalised, normalise

CENTRE = 0.45
"""The dense side's weight where neither list stands out more."""
SLOPE = 0.06
"""How much one standard deviation more of a lead adds to the dense side's weight."""
LEAST, MOST = 0.25, 0.75
PLACE = 10
"""The result with which the first one is compared."""
FALLBACK = "auto: {}; used z-scores with the retrievers' own weights"


def lead(table: Normalised) -> float:
    """How far a list's first result stands above its tenth, in standard deviations of the list.

    Example:
        >>> lead(normalise([9.0, 1.0, 1.0, 1.0], "z-score", depth=100)) > lead(normalise([9.0, 8.0, 7.0], "z-score"))
        True
    """
    return table.values[0] - (table.values[PLACE - 1] if len(table.values) >= PLACE else table.absent)


def dense_share(keyword: Normalised, dense: Normalised) -> float:
    """The weight of the dense side, between 0.25 and 0.75; the keyword list has the rest."""
    return min(MOST, max(LEAST, CENTRE + SLOPE * (lead(dense) - lead(keyword))))


def fuse_auto(lists: Sequence[RankedList], settings: FusionSettings) -> FusedList:
    """The fusion ``"auto"`` of an ensemble: z-scores, weighted by how clearly each list has decided.

    It needs one list whose retriever gives ``max_score`` (`BM25Retriever`), and beside it one or several others
    with scores, the dense side. The branches' own weights multiply the two sides' weights. A list that is empty
    says nothing. Anything else is fused by z-scores with the branches' weights, and noted.
    """
    firsts = [first_places(ranked.keys) for ranked in lists]
    tables = [
        normalise([ranked.scores[place] for place in first.values()], "z-score", depth=ranked.depth)
        for ranked, first in zip(lists, firsts, strict=True)
    ]
    extra: dict[str, object] = {"normalisation": "z-score"}
    filled = [ranked for ranked in lists if ranked.keys]
    factors = [ranked.weight for ranked in lists]
    reason = _unfit(filled)
    notes = [FALLBACK.format(reason)] if reason and len(filled) > 1 else []
    if not reason:
        keyword = next(number for number, ranked in enumerate(lists) if ranked.keys and ranked.maximum)
        others = [number for number, ranked in enumerate(lists) if ranked.keys and number != keyword]
        share = dense_share(tables[keyword], tables[max(others, key=lambda number: lists[number].weight)])
        extra["dense_share"] = round(share, 6)
        for number in others:
            factors[number] *= share
        factors[keyword] *= 1 - share
    total = sum(factors)
    return described(firsts, tables, [factor / total for factor in factors], lists, extra, notes)


def _unfit(lists: Sequence[RankedList]) -> str | None:
    """Why the lists that hold something cannot be weighed."""
    if len(lists) < 2:
        return "there is one list only"
    if any(score is None for ranked in lists for score in ranked.scores):
        return "a retriever gave no scores"
    if sum(1 for ranked in lists if ranked.maximum) != 1:
        return "exactly one retriever must state the highest score possible"
    return None
