"""How surely each passage helps to answer a question."""

from __future__ import annotations

from collections.abc import Sequence

from rag_kit.models.extractive.evidence import PassageText, collect
from rag_kit.models.extractive.question import analyse
from rag_kit.models.extractive.select import choose
from rag_kit.models.extractive.support import strength

MAX_QUESTION = 4_000


def usefulness(
    question: str, passages: Sequence[PassageText], cosines: Sequence[float] | None = None
) -> list[float]:
    """How surely each passage helps, from 0 to 1, by its words (and vectors, where cosines are given)."""
    asked = analyse(question[:MAX_QUESTION])
    values = []
    for passage in passages:
        found = collect(asked, [passage])
        values.append(strength(asked, [passage], found, choose(asked, found)))
    return values
