"""Choosing the sentences of the answer."""

from __future__ import annotations

import re
from collections.abc import Sequence

from rag_kit.models.extractive.evidence import Candidate

# One weight per feature of evidence.FEATURES, fitted by a softmax over the sentences of each question
# (docs/decisions/0050-how-the-extractive-model-chooses-sentences.md).
WEIGHTS = (2.0, 3.5, 4.4, 3.3, 1.4, 2.4, 0.6, 1.7, 1.1, 1.3, 0.7, -0.2)
_NOT_WORD = re.compile(r"\W+")


def score(candidate: Candidate) -> float:
    """The linear score of a candidate."""
    return sum(weight * value for weight, value in zip(WEIGHTS, candidate.features, strict=True))


def choose(found: Sequence[Candidate], count: int = 2) -> list[Candidate]:
    """The best `count` distinct sentences, best first; equal scores keep reading order.

    Example:
        >>> from rag_kit.models.extractive.evidence import PassageText, collect
        >>> from rag_kit.models.extractive.question import analyse
        >>> passage = PassageText(1, "Emma is a novel. Cats sleep. Jane Austen wrote Emma.")
        >>> [c.text for c in choose(collect(analyse("Who wrote Emma?"), [passage]), 1)]
        ['Jane Austen wrote Emma.']
    """
    chosen: list[Candidate] = []
    seen: set[str] = set()
    for candidate in sorted(found, key=lambda one: (-score(one), one.order)):
        plain = _NOT_WORD.sub("", candidate.text.casefold())
        if plain and plain not in seen:
            seen.add(plain)
            chosen.append(candidate)
            if len(chosen) == count:
                break
    return chosen
