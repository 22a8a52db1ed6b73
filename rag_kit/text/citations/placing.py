"""Whether the values of a statement stand beside the words that they stand beside in its passage."""

from __future__ import annotations

from collections.abc import Sequence, Set
from itertools import combinations
from typing import Literal

from rag_kit.text.citations.source import ValueMention, content_keys
from rag_kit.text.citations.tokens import Token
from rag_kit.text.values.reading import Value, same_value

Placed = Literal["wrong", "all", "some", "open"]
_MAX_PLACED = 20  # values of a statement that are compared by what stands beside them


def says(said: Value, stated: Value) -> bool:
    """Tell whether a passage's value supports a stated one: it is equal, or the stated one leaves out the unit."""
    if same_value(stated, said):
        return True
    if stated.bound and said.bound and stated.bound != said.bound:
        return False
    bare = not stated.dimension or (not stated.per and stated.unit == said.unit)
    return bare and bool(said.unit) and said.dimension != "ratio" and stated.amount == said.amount


def place_values(
    stated: Sequence[Token], parts: Sequence[Sequence[Token]], mentions: Sequence[ValueMention]
) -> Placed:
    """Tell whether the values of a statement stand beside the same words in its passage.

    "wrong": another value stands beside the statement's words. "all" or "some": of the values with rivals (others of
    the same kind in the passage), so many surely stand beside these words. "open": no value can be told from a rival.
    """
    if _have_swapped(parts, mentions):
        return "wrong"
    values = [(token.key, token.value) for token in stated if token.value][:_MAX_PLACED]
    words, all_values = content_keys(stated), [value for _, value in values]
    found = [_place_value(value, words - {key}, words, all_values, mentions) for key, value in values]
    if "wrong" in found:
        return "wrong"
    sure, unsure = found.count("sure"), found.count("unsure")
    if not sure:
        return "open"
    return "some" if unsure else "all"


def _place_value(
    value: Value, beside: Set[str], words: Set[str], values: Sequence[Value], mentions: Sequence[ValueMention]
) -> Literal["wrong", "sure", "unsure", "alone"]:
    """Tell whether a value fits the words beside it in a statement better than its rivals in the passage do."""
    same = [mention for mention in mentions if value.dimension != "id" and says(mention.value, value)]
    kind = _kind(same[0].value) if same else ""
    rivals = [
        mention
        for mention in mentions
        if same and _kind(mention.value) == kind and not any(says(mention.value, one) for one in values)
    ]
    if not rivals:
        return "alone"
    if all(_is_of_another(words, mention, rivals) for mention in same):
        return "wrong"
    best = max(same, key=lambda mention: _fit(beside, mention))
    if any(_is_nearer(beside, rival, best) for rival in rivals):
        return "wrong"
    return "sure" if _fit(beside, best) > max(_fit(beside, rival) for rival in rivals) else "unsure"


def _have_swapped(parts: Sequence[Sequence[Token]], mentions: Sequence[ValueMention]) -> bool:
    """Tell whether a statement has swapped two values: each has the words beside the other in the passage."""
    stated: list[tuple[Value, set[str]]] = []
    for part in parts:
        words = {token.key for token in part if token.content and not token.value}
        stated += [(token.value, words) for token in part if token.value]
    found = [
        (value, words, [mention for mention in mentions if says(mention.value, value)])
        for value, words in stated[:_MAX_PLACED]
    ]
    for (value, words, first), (other, other_words, second) in combinations(found, 2):
        if words is other_words or not (len(first) == len(second) == 1) or _kind(value) != _kind(other):
            continue
        straight = len(words & first[0].own) + len(other_words & second[0].own)
        crossed = len(words & second[0].own) + len(other_words & first[0].own)
        if crossed > straight:
            return True
    return False


def _is_of_another(words: Set[str], mention: ValueMention, rivals: Sequence[ValueMention]) -> bool:
    """Tell whether a value belongs to another thing than the statement names, in a sentence that names both."""
    if not mention.subject or mention.subject & words:
        return False
    return any(rival.subject & words and rival.sentence == mention.sentence for rival in rivals)


def _kind(value: Value) -> str:
    """Return the dimension of a value without what it is counted by: "length" of "length/time"."""
    return value.dimension.split("/")[0]


def _is_nearer(words: Set[str], rival: ValueMention, best: ValueMention) -> bool:
    """Tell whether a rival stands nearer to the words than `best`; one later in the passage needs a word of its own."""
    unshared = words & rival.own - (best.own | best.within)
    if _fit(words, rival)[:2] == _fit(words, best)[:2]:
        return rival.own <= words and not best.own <= words  # of large tanks, where the statement is of tanks
    # "14 months with the drug and 9 months in the control arm": the second has a word of its own, and no other
    beside = rival.own <= words or len(words & rival.own) >= len(words & best.own)
    return beside and _fit(words, rival) > _fit(words, best) and bool(unshared or rival.order < best.order)


def _fit(words: Set[str], mention: ValueMention) -> tuple[int, int, int]:
    """Count the words beside a value: in its sentence up to its clause, in its clause, in the sentence before."""
    return len(words & (mention.own | mention.within)), len(words & mention.own), len(words & mention.before)
