"""What a reranker is: a query and documents in, an order with scores out."""

from __future__ import annotations

import inspect
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar

from langchain_core.documents import Document
from langchain_core.runnables import Runnable

from rag_kit.concurrency.bridge import run_in_thread
from rag_kit.concurrency.steps import Logic
from rag_kit.errors import InvalidInputError
from rag_kit.retrieval.base import check_count
from rag_kit.retrieval.query_call import QueryCall
from rag_kit.retrieval.refining import RefiningError
from rag_kit.retrieval.showing import Shown


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


class Reranker(Shown, ABC):
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
        """Order documents: a coroutine that does all waiting through ``call``.

        Args:
            query: The query.
            documents: At least one, best first as far as known; not to be changed.
            call: Does model calls and others, on threads or natively asynchronous.

        Returns:
            The ranking.

        Raises:
            RagKitError: It failed as a whole.
        """

    def parts(self) -> Iterator[Runnable[Any, Any]]:
        """The models inside."""
        yield from ()


class FunctionReranker(Reranker):
    """A function as a reranker.

    Args:
        func: Takes the query and the list of documents, returns one score a document, higher is better. An
            ``async`` function works with ``ainvoke`` alone.
        name: Stands in the provenance; by default the function's name.
        depth: See ``Reranker``.

    Raises:
        InvalidInputError: If ``func`` cannot be called.

    Example:
        >>> from rag_kit.retrieval import BM25Retriever, RerankRetriever
        >>> words = BM25Retriever.from_texts(["a fan", "a fan that hums"])
        >>> longest = RerankRetriever(retriever=words, reranker=lambda q, docs: [len(d.page_content) for d in docs])
        >>> [doc.page_content for doc in longest.invoke("fan")]
        ['a fan that hums', 'a fan']
    """

    def __init__(
        self,
        func: Callable[[str, list[Document]], Any],
        *,
        name: str | None = None,
        depth: int | None = None,
    ) -> None:
        super().__init__(depth=depth)
        if not callable(func):
            raise InvalidInputError(
                f"func is {type(func).__name__}; it must be a function of query and documents."
            )
        self.func = func
        given = getattr(func, "__name__", "function")
        self.name = name or ("function" if given == "<lambda>" else given)

    async def rank(self, query: str, documents: Sequence[Document], call: QueryCall) -> Ranking:
        """Order the documents; see ``Reranker.rank``."""
        given = [doc.model_copy(deep=True) for doc in documents]
        scores = await call.do(f"rerank:{self.name}", *both_ways(self.func, query, given))
        return by_scores(check_scores(scores, len(documents)))


def both_ways(func: Callable[..., Any], *arguments: Any) -> tuple[Callable[[], Any], Callable[[], Any]]:
    """A user's function to call on a thread, and to await.

    An asynchronous one is awaited, and refused on threads: there is no loop to run it in.
    """
    name = getattr(func, "__name__", type(func).__name__)
    if inspect.iscoroutinefunction(func) or inspect.iscoroutinefunction(getattr(func, "__call__", None)):  # noqa: B004

        def refuse() -> Any:
            raise InvalidInputError(
                f"{name} is asynchronous, so it works with ainvoke alone; give a plain function for invoke."
            )

        return refuse, partial(func, *arguments)
    return partial(func, *arguments), partial(run_in_thread, partial(func, *arguments))


def check_scores(scores: Any, count: int) -> list[float | None]:
    """Read scores that a third party gave.

    Args:
        scores: A sequence or array of numbers.
        count: How many documents they are for.

    Returns:
        Plain floats; ``None`` for what is not a finite number.

    Raises:
        RefiningError: If their number is another one, so that it is unknown which belongs to which document.

    Example:
        >>> check_scores([1, float("nan")], 2)
        [1.0, None]
    """
    listed = scores.tolist() if hasattr(scores, "tolist") else scores
    if not isinstance(listed, (list, tuple)):
        raise RefiningError(f"The reranker gave {type(scores).__name__}; it must give a list of scores.")
    if len(listed) != count:
        raise RefiningError(
            f"The reranker gave {len(listed)} scores for {count} documents; it must give one each."
        )
    return [_score(value) for value in listed]


def _score(value: Any) -> float | None:
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
    """A ranking from scores: the highest first, equal ones in the order given.

    A document without a score stays where it is: nothing is known that speaks for or against it.

    Raises:
        RefiningError: If there is no score at all.

    Example:
        >>> by_scores([0.1, None, 0.9]).order
        [2, 1, 0]
    """
    failed = frozenset(place for place, score in enumerate(scores) if score is None)
    if scores and len(failed) == len(scores):
        raise RefiningError("The reranker gave no usable score.")
    ranked = sorted(
        (place for place in range(len(scores)) if place not in failed),
        key=lambda place: -(scores[place] or 0.0),
    )
    rest = iter(ranked)
    order = [place if place in failed else next(rest) for place in range(len(scores))]
    lines = list(notes)
    if failed and not notes:
        lines.append(
            f"degraded: {len(failed)} of {len(scores)} passages got no score and stay in their place"
        )
    return Ranking(order, list(scores), details, failed, lines)


def check_ranking(ranking: Ranking, count: int) -> Ranking:
    """See that a ranking holds each document once.

    Raises:
        RefiningError: If one is lost, repeated or unknown.
    """
    if sorted(ranking.order) != list(range(count)) or len(ranking.scores) != count:
        raise RefiningError(
            f"The ranking of {count} documents holds {len(ranking.order)} places and {len(ranking.scores)} scores; "
            "it must hold each document exactly once."
        )
    return ranking
