"""How many passages to keep: score threshold, largest drop of the scores, token budget."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rag_kit.errors import InvalidInputError
from rag_kit.retrieval.base import check_count
from rag_kit.retrieval.numbers import check_number

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
        min_share: A drop counts if it is at least this share (0 to 1) of the way from the first score to the one
            after the last place looked at. 0 cuts at the largest drop whatever its size; 0.5 asks that it stands out.

    Raises:
        InvalidInputError: If an argument is not allowed.

    Example:
        >>> ScoreGap().cut([0.93, 0.90, 0.41, 0.40, 0.38], 4)
        2
    """

    min_k: int = 1
    max_k: int | None = None
    min_share: float = 0.0

    def __post_init__(self) -> None:
        check_count("min_k", self.min_k)
        if self.max_k is not None and check_count("max_k", self.max_k) < self.min_k:
            raise InvalidInputError(
                f"min_k={self.min_k} and max_k={self.max_k} were given; max_k must be at least min_k."
            )
        check_number("min_share", self.min_share, most=1.0)

    def cut(self, scores: Sequence[float], k: int) -> int:
        """How many passages to keep.

        Args:
            scores: Best first.
            k: Most passages.

        Returns:
            A number from 0 (no scores) to ``k``.
        """
        most = min(k, len(scores), self.max_k or k)
        least = min(self.min_k, most)
        places = range(least, min(most, len(scores) - 1) + 1)
        drops = {place: scores[place - 1] - scores[place] for place in places}
        largest = max(drops.values(), default=0.0)
        spread = scores[0] - scores[max(places)] if drops else 0.0
        if largest <= 0 or largest < self.min_share * spread:
            return most
        return max(place for place, drop in drops.items() if drop >= largest - _TIE * max(1.0, abs(spread)))


def as_gap(value: bool | ScoreGap | None) -> ScoreGap | None:
    """``True`` for the default rule.

    Raises:
        InvalidInputError: If it is something else.
    """
    if value is None or isinstance(value, bool):
        return ScoreGap() if value else None
    if not isinstance(value, ScoreGap):
        raise InvalidInputError(f"score_gap={value!r} was given; it must be True, False or a ScoreGap(...).")
    return value
