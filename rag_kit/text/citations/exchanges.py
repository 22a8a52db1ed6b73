"""Whether two clauses of a statement would be right if they exchanged a value, a name or other words."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from rag_kit.text.citations.cutting import Clause
from rag_kit.text.citations.placing import kind_of, place_values
from rag_kit.text.citations.source import PassageSource
from rag_kit.text.citations.tokens import Token, content_keys

_MAX_NEAR = 20  # clauses of a passage with most words of two clauses, which are compared with these


def are_values_exchanged(clauses: Sequence[Clause], source: PassageSource) -> bool:
    """Tell whether a clause has the value of another one, and both surely fit once these change places."""
    values = [(clause, token, token.value) for clause in clauses for token in clause if token.value]
    for (clause, token, value), (other_clause, other, other_value) in combinations(values, 2):
        if clause is other_clause or token.key == other.key or kind_of(value) != kind_of(other_value):
            continue
        is_wrong = "wrong" in (place_values(one, source.places) for one in (clause, other_clause))
        swapped = _with(clause, token, other), _with(other_clause, other, token)
        if is_wrong and all(place_values(one, source.places) == "all" for one in swapped):
            return True
    return False


def _with(clause: Clause, old: Token, new: Token) -> Clause:
    return [new if token is old else token for token in clause]


def are_words_exchanged(clauses: Sequence[Clause], source: PassageSource) -> bool:
    """Tell whether two clauses of a statement cross two of a passage.

    Each has words of both, and they share none of these: "Ann cooks, and Ben sings" beside "Ann sings; Ben cooks". Only
    words that the passage has count.
    """
    known = [content_keys(clause) & source.all_keys for clause in clauses]
    said = source.said_together
    unsaid = [keys for keys in known if len(keys) > 1 and not any(keys <= words for words in said)]
    for one, other in combinations(unsaid, 2):
        both = one | other
        near = sorted(said, key=lambda words: -len(words & both))[:_MAX_NEAR]
        for words, other_words in combinations(near, 2):
            if both <= words | other_words and not one & other & (words ^ other_words):
                return True
    return False
