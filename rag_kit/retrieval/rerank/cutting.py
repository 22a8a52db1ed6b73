"""Which of the ranked passages come back: up to a drop of the scores, with the passages around them, in what order."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from langchain_core.documents import Document

from rag_kit.concurrency.branches import describe_failure
from rag_kit.concurrency.bridge import acall_function, call_function
from rag_kit.documents import Filter, compile_filter
from rag_kit.errors import InvalidInputError
from rag_kit.retrieval.base import check_count, check_number
from rag_kit.retrieval.query_call import Call, QueryCall

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
        min_share: A drop counts if it is at least this share (0 to 1) of the way from the first score to the one
            after the last place looked at. 0 cuts at the largest drop whatever its size; 0.5 asks that it stands out.

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
        """How many passages to keep, 0 (of no scores) to ``k``, of those with these scores, best first."""
        most = min(k, len(scores), self.max_k or k)
        least = min(self.min_k, most)
        places = range(least, min(most, len(scores) - 1) + 1)
        drops = {place: scores[place - 1] - scores[place] for place in places}
        largest = max(drops.values(), default=0.0)
        spread = scores[0] - scores[max(places)] if drops else 0.0
        if largest <= 0 or largest < self.min_share * spread:
            return most
        return max(place for place, drop in drops.items() if drop >= largest - _TIE * max(1.0, abs(spread)))


def lost_in_the_middle(items: Sequence[T]) -> list[T]:
    """Put the best at both ends and the weakest in the middle, where models read least.

    Paper: Liu et al., Lost in the Middle, arXiv 2307.03172.

    Args:
        items: Best first.

    Returns:
        The first, third, fifth... in order, then the others backwards, so that the second stands last.

    Example:
        >>> lost_in_the_middle([1, 2, 3, 4, 5])
        [1, 3, 5, 4, 2]
    """
    return [*items[::2], *reversed(items[1::2])]


async def fetch_neighbours(
    func: Callable[[Document], Sequence[Document]],
    documents: Sequence[Document],
    call: QueryCall,
    where: Filter | None,
) -> list[list[Document]]:
    """The neighbours of each document that pass a filter; a failure is noted, or raised (``on_error="raise"``)."""
    calls = []
    for number, doc in enumerate(documents, start=1):
        given = func, doc.model_copy(deep=True)
        both = partial(call_function, *given), partial(acall_function, *given)
        calls.append(Call(f"neighbours of passage {number}", *both))
    outcomes = (await call.do_all(calls)).outcomes
    failures = [outcome for outcome in outcomes if not outcome.ok]
    if failures and call.owner.on_error == "raise":
        call.value(failures[0])
    if failures:
        why = describe_failure(failures[0].name, failures[0].error)
        call.note(f"degraded: neighbours of {len(failures)} of {len(documents)} passages: {why}")
    passes = compile_filter(where) if where else None
    return [_checked(outcome.value, passes) if outcome.ok else [] for outcome in outcomes]


def _checked(given: Any, passes: Callable[[Mapping[str, Any]], bool] | None) -> list[Document]:
    if not isinstance(given, (list, tuple)) or not all(isinstance(doc, Document) for doc in given):
        raise InvalidInputError(
            f"The function neighbours gave {type(given).__name__}; it must give a list of documents."
        )
    return [doc for doc in given if passes is None or passes(doc.metadata)]
