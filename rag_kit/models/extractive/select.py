"""Choosing the sentences of the answer."""

from __future__ import annotations

import re
from collections.abc import Sequence

from rag_kit.models.extractive.evidence import FEATURES, Candidate
from rag_kit.models.extractive.question import Question

# One weight per feature of evidence.FEATURES, fitted by a softmax over the sentences of each question
# (docs/decisions/0050-how-the-extractive-model-chooses-sentences.md).
WEIGHTS = (2.1, 3.2, 4.1, 3.5, 1.9, 2.1, 0.6, 1.8, 1.4, 0.7, 0.9, -0.5)
_NEW_TERMS = 1.0
# How far behind the first sentence a second one may be, in its passage and in another one.
_BEHIND, _BEHIND_ELSEWHERE = 5.0, 3.5
_KIND = FEATURES.index("kind")
_NOT_WORD = re.compile(r"\W+")


def score(candidate: Candidate) -> float:
    """The linear score of a candidate."""
    return sum(weight * value for weight, value in zip(WEIGHTS, candidate.features, strict=True))


def telling(picked: Sequence[Candidate]) -> list[Candidate]:
    """The chosen sentences without a second one that only distracts.

    It does where it is far behind the first (a score is the logarithm of a share: five less means that it holds
    the answer 150 times less often), and where it has no term of the question and nothing of the kind asked for.

    Example:
        >>> from rag_kit.models.extractive.evidence import PassageText, collect
        >>> from rag_kit.models.extractive.question import analyse
        >>> question = analyse("Who wrote Emma?")
        >>> passage = PassageText(1, "Cats sleep. Jane Austen wrote Emma.")
        >>> [one.text for one in telling(choose(question, collect(question, [passage])))]
        ['Jane Austen wrote Emma.']
    """
    return [*picked[:1], *(one for one in picked[1:] if _tells(picked[0], one))]


def _tells(first: Candidate, one: Candidate) -> bool:
    limit = _BEHIND if one.place == first.place else _BEHIND_ELSEWHERE
    return score(first) - score(one) < limit and bool(one.matched or one.features[_KIND])


def choose(question: Question, found: Sequence[Candidate], count: int = 2) -> list[Candidate]:
    """The best `count` distinct sentences, best first; equal scores keep reading order.

    After the first, a sentence gains by the terms of the question that it adds to those chosen.

    Example:
        >>> from rag_kit.models.extractive.evidence import PassageText, collect
        >>> from rag_kit.models.extractive.question import analyse
        >>> passage = PassageText(1, "Emma is a novel. Cats sleep. Jane Austen wrote Emma.")
        >>> question = analyse("Who wrote Emma?")
        >>> [c.text for c in choose(question, collect(question, [passage]), 1)]
        ['Jane Austen wrote Emma.']
    """
    salience = {term.key: term.salience for term in question.terms}
    left = [(score(one), one, _NOT_WORD.sub("", one.text.casefold())) for one in found]
    total = sum(salience.values()) or 1.0
    chosen: list[Candidate] = []
    matched: frozenset[str] = frozenset()
    while left and len(chosen) < count:

        def value(item: tuple[float, Candidate, str], matched: frozenset[str] = matched) -> tuple[float, int]:
            gain = sum(salience.get(key, 0.0) for key in item[1].matched - matched) / total
            return item[0] + (_NEW_TERMS * gain if chosen else 0.0), -item[1].order

        _, best, plain = max(left, key=value)
        chosen.append(best)
        matched |= best.matched
        left = [item for item in left if item[2] and item[2] != plain]
    return chosen
