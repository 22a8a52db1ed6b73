"""What a reranker is: a query and documents in, an order with scores out."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from langchain_core.documents import Document

from rag_kit.concurrency.steps import Logic
from rag_kit.errors import ModelOutputError
from rag_kit.retrieval.base import check_count
from rag_kit.retrieval.query_call import QueryCall


@dataclass(frozen=True)
class Ranking:
    """What a reranker made of the documents.

    Attributes:
        order: Positions in the list it was given, best first; each exactly once.
        scores: One a document, in the order it was given; higher is better. ``None`` where there is none.
        details: More for the provenance of each document, in the order it was given; or nothing.
        failed: Positions that could not be judged; they stay in their place, and no threshold drops them.
        notes: Notes for every result.
    """

    order: Sequence[int]
    scores: Sequence[float | None]
    details: Sequence[Mapping[str, Any]] = ()
    failed: frozenset[int] = frozenset()
    notes: Sequence[str] = field(default=())


class Reranker(ABC):
    """Base of rerankers; implement ``rank``.

    Args:
        depth: How many documents, from the first, are looked at; the others stay behind these in their order.
            ``None`` for all.

    Attributes:
        name: Stands in the provenance as ``rerank:<name>``.
        scored: Whether it gives scores that a threshold or a gap can be looked for in.
    """

    name: str = "reranker"
    scored: ClassVar[bool] = True

    def __init__(self, *, depth: int | None = None) -> None:
        self.depth = None if depth is None else check_count("depth", depth)

    @abstractmethod
    def rank(self, query: str, documents: Sequence[Document], call: QueryCall) -> Logic[Ranking]:
        """Order documents, of which there is at least one: a coroutine that does all waiting through ``call``.

        The documents come best first as far as known, and are not to be changed. What is raised leaves their order.
        """


def check_scores(scores: Any, count: int) -> list[float | None]:
    """Scores that a third party gave for ``count`` documents; ``None`` for what is not a finite number.

    Raises ``ModelOutputError`` for another number of scores: it is unknown which belongs to which document.
    """
    listed = scores.tolist() if hasattr(scores, "tolist") else scores
    if not isinstance(listed, (list, tuple)):
        raise ModelOutputError(f"The reranker gave {type(scores).__name__}; it must give a list of scores.")
    if len(listed) != count:
        raise ModelOutputError(
            f"The reranker gave {len(listed)} scores for {count} documents; it must give one each."
        )
    return [_score(value) for value in listed]


def _score(value: Any) -> float | None:
    """A score as a finite number; ``None`` for anything else."""
    if isinstance(value, (list, tuple)) and len(value) == 1:
        value = value[0]  # models with one output give a column
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return number if math.isfinite(number) and not isinstance(value, (bool, str)) else None


def by_scores(
    scores: Sequence[float | None],
    *,
    details: Sequence[Mapping[str, Any]] = (),
    notes: Sequence[str] = (),
) -> Ranking:
    """A ranking by score, equal ones in the order given; a document without a score stays where it is.

    Raises ``ModelOutputError`` if there is no score at all.
    """
    failed = frozenset(position for position, score in enumerate(scores) if score is None)
    if scores and len(failed) == len(scores):
        raise ModelOutputError("The reranker gave no usable score.")
    scored = (position for position in range(len(scores)) if position not in failed)
    best = iter(sorted(scored, key=lambda position: -(scores[position] or 0.0)))
    order = [position if position in failed else next(best) for position in range(len(scores))]
    if failed and not notes:
        notes = [f"degraded: {len(failed)} of {len(scores)} passages got no score and stay in their place"]
    return Ranking(order, list(scores), details, failed, list(notes))
