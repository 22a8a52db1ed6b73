"""Whether the values of a statement stand beside the words that they stand beside in its passage."""

from __future__ import annotations

from collections.abc import Sequence, Set
from itertools import combinations
from typing import Literal

from rag_kit.text.citations.source import ValuePlace, content_keys
from rag_kit.text.citations.tokens import Token
from rag_kit.text.values.reading import Value, same_value

Placed = Literal["wrong", "all", "some", "open"]
_MAX_PLACED = 20  # values of a statement that are compared by what stands beside them


def says(said: Value, stated: Value) -> bool:
    """Tell whether a passage that says one value supports the other: equal, or with less said of its unit."""
    if same_value(stated, said):
        return True
    if stated.bound and said.bound and stated.bound != said.bound:
        return False
    bare = not stated.dimension or (not stated.per and stated.unit == said.unit)
    return bare and bool(said.unit) and said.dimension != "ratio" and stated.amount == said.amount


def place_values(
    stated: Sequence[Token], parts: Sequence[Sequence[Token]], places: Sequence[ValuePlace]
) -> Placed:
    """Tell where the values of a statement stand in its passage.

    "wrong": another value stands beside the statement's words; "all" or "some": so many that have rivals stand beside
    them for sure; "open": nothing tells.
    """
    if _have_swapped(parts, places):
        return "wrong"
    values = [(token.key, token.value) for token in stated if token.value][:_MAX_PLACED]
    words, mine = content_keys(stated), [value for _, value in values]
    found = [_place_value(value, words - {key}, words, mine, places) for key, value in values]
    if "wrong" in found:
        return "wrong"
    sure, unsure = found.count("sure"), found.count("unsure")
    return "open" if not sure else "some" if unsure else "all"


def _place_value(
    value: Value, beside: Set[str], words: Set[str], mine: Sequence[Value], places: Sequence[ValuePlace]
) -> Literal["wrong", "sure", "unsure", "alone"]:
    """Tell whether a value stands beside some words of a statement better than all that could stand in its place."""
    same = [place for place in places if value.dimension != "id" and says(place.value, value)]
    kind = _kind(same[0].value) if same else ""
    rivals = [
        place
        for place in places
        if same and _kind(place.value) == kind and not any(says(place.value, one) for one in mine)
    ]
    if not rivals:
        return "alone"
    if all(_is_of_another(words, place, rivals) for place in same):
        return "wrong"
    best = max(same, key=lambda place: _fit(beside, place))
    if any(_is_nearer(beside, rival, best) for rival in rivals):
        return "wrong"
    return "sure" if _fit(beside, best) > max(_fit(beside, rival) for rival in rivals) else "unsure"


def _have_swapped(parts: Sequence[Sequence[Token]], places: Sequence[ValuePlace]) -> bool:
    """Tell whether two values of a statement each stand beside words that stand beside the other in the passage."""
    held = [
        (token.value, {one.key for one in part if one.content and not one.value})
        for part in parts
        for token in part
        if token.value
    ][:_MAX_PLACED]
    found = [(value, words, [place for place in places if says(place.value, value)]) for value, words in held]
    for (value, words, at), (other, others, there) in combinations(found, 2):
        if words is others or not (len(at) == len(there) == 1) or _kind(value) != _kind(other):
            continue
        straight = len(words & at[0].own) + len(others & there[0].own)
        if len(words & there[0].own) + len(others & at[0].own) > straight:
            return True
    return False


def _is_of_another(words: Set[str], place: ValuePlace, rivals: Sequence[ValuePlace]) -> bool:
    """Tell whether a value is said of another thing than a statement names, whose value its sentence has too."""
    if not place.subject or place.subject & words:
        return False
    return any(rival.subject & words and rival.sentence == place.sentence for rival in rivals)


def _kind(value: Value) -> str:
    """The dimension of a value, whatever it is counted by."""
    return value.dimension.split("/")[0]


def _is_nearer(words: Set[str], rival: ValuePlace, best: ValuePlace) -> bool:
    """Say if a value stands nearer to the words than another; a later one needs a word that goes with it alone."""
    apart = words & rival.own - (best.own | best.within)
    if _fit(words, rival)[:2] == _fit(words, best)[:2]:
        return rival.own <= words and not best.own <= words  # of large tanks, where the statement is of tanks
    # "14 months with the drug and 9 months in the control arm": the second has a word of its own, and no other
    beside = rival.own <= words or len(words & rival.own) >= len(words & best.own)
    return beside and _fit(words, rival) > _fit(words, best) and bool(apart or rival.order < best.order)


def _fit(words: Set[str], place: ValuePlace) -> tuple[int, int, int]:
    """How many of the words stand beside a value: in the sentence up to it, in its clause, in the sentence before."""
    return len(words & (place.own | place.within)), len(words & place.own), len(words & place.before)
