"""Which of the ranked passages come back, up to a drop of the scores, and in what order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from rag_kit.errors import InvalidInputError
from rag_kit.retrieval.base import check_count

T = TypeVar("T")
_TIE = 1e-9


@dataclass(frozen=True)
class ScoreGap:
    """Cut where the scores drop most, so that a narrow question gets few passages and a broad one many.

    Of the places after ``min_k``, ``min_k + 1``, ... ``max_k`` passages the one with the largest difference
    between the score before and after it is the end of the result; of equal ones the later, which keeps more.
    Where no score drops, ``max_k`` passages stay.

    Args:
        min_k: Fewest passages, at least 1.
        max_k: Most passages; ``None`` for the retriever's ``k``, which is never exceeded.

    Example:
        >>> ScoreGap().cut([0.93, 0.90, 0.41, 0.40, 0.38], 4)
        2
    """

    min_k: int = 1
    max_k: int | None = None

    def __post_init__(self) -> None:
        check_count("min_k", self.min_k)
        if self.max_k is not None and check_count("max_k", self.max_k) < self.min_k:
            raise InvalidInputError(
                f"min_k={self.min_k} and max_k={self.max_k} were given; max_k must be at least min_k."
            )

    def cut(self, scores: Sequence[float], k: int) -> int:
        """How many passages to keep, 0 (of no scores) to ``k``, of those with these scores, best first."""
        max_count = min(k, len(scores), self.max_k or k)
        min_count = min(self.min_k, max_count)
        positions = range(min_count, min(max_count, len(scores) - 1) + 1)
        drops = {position: scores[position - 1] - scores[position] for position in positions}
        largest = max(drops.values(), default=0.0)
        spread = scores[0] - scores[max(positions)] if drops else 0.0
        if largest <= 0:
            return max_count
        return max(
            position for position, drop in drops.items() if drop >= largest - _TIE * max(1.0, abs(spread))
        )


def lost_in_the_middle(items: Sequence[T]) -> list[T]:
    """Put the best at both ends and the weakest in the middle, where models read least.

    Paper: Liu et al., Lost in the Middle, arXiv 2307.03172.

    Example:
        >>> lost_in_the_middle([1, 2, 3, 4, 5])
        [1, 3, 5, 4, 2]
    """
    return [*items[::2], *reversed(items[1::2])]
