"""Clauses of a sentence that say alike things of different ones, and statements that mix two of them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from rag_kit.text.citations.cutting import Clause
from rag_kit.text.citations.tokens import Token, content_keys, has_form_or_synonym

_MAX_WORDS = 7  # content words of a statement; a longer one may join what both clauses say
_MAX_CLAUSES = 12  # of a sentence; a longer one is a list


def mixes_parallels(stated: Sequence[Token], clauses: Sequence[Clause]) -> bool:
    """Tell whether a statement puts what one clause says with what another one is about.

    Example:
        >>> from rag_kit.text.citations.tokens import tokens
        >>> said = [tokens("The north wing houses the archive"), tokens("the south wing the reading room")]
        >>> mixes_parallels(tokens("The archive is in the south wing"), said)
        True
        >>> mixes_parallels(tokens("The archive is in the north wing"), said)
        False
    """
    words = content_keys(stated)
    if len(words) > _MAX_WORDS or any(token.value for token in stated):  # values are compared by their places
        return False

    def has(one: Token) -> bool:
        return has_form_or_synonym(one.key, words)

    for first, second in combinations(clauses[:_MAX_CLAUSES], 2):
        own, later = _words_alone(first, second), _words_alone(second, first)
        if len(own) < 2 or len(later) < 2:
            continue
        about, said = own[0], own[-1]
        later_about, later_said = later[0], later[-1]
        if has(later_about) and has(said) and not has(about) and not has(later_said):
            return True
    return False


def _words_alone(clause: Clause, other: Clause) -> list[Token]:
    """Return the content words of a clause that another one lacks."""
    of_other = content_keys(other)
    return [token for token in clause if token.content and token.key not in of_other]
