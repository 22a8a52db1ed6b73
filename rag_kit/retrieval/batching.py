"""Several queries for one retriever: each is a call of its own, and vectors are searched for all of them at once.

The calls stay what they are, with their own runs, callbacks, time-outs and provenance, through whatever wraps the
retriever. A retriever over vectors that is reached by one of them searches for all queries of the group together, and
the other calls take their part of that. If that search fails or cannot be had, each call searches for itself.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import Future
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from langchain_core.documents import Document
from langchain_core.runnables import Runnable, RunnableConfig

from rag_kit.concurrency import afan_out, fan_out
from rag_kit.concurrency.outcome import describe_failure
from rag_kit.documents import Filter
from rag_kit.errors import InvalidInputError
from rag_kit.retrieval.base import Request
from rag_kit.retrieval.compose import acall_retriever, call_retriever

_log = logging.getLogger(__name__)
T = TypeVar("T")
Many = Mapping[str, T] | None


@dataclass(frozen=True)
class _Round:
    """One search for all queries of a group.

    Attributes:
        resource: What is searched; kept, so that its identity stays its own.
        k: Documents a query.
        filter: The filter.
        future: Gets what was found for each query; ``None`` if each call has to search for itself.
    """

    resource: object
    k: int
    filter: Filter | None
    future: Any


class SearchGroup:
    """Queries that one retriever is about to be asked.

    Args:
        queries: The queries.

    Example:
        >>> group = SearchGroup(["a", "b"])
        >>> group.call(lambda: _current.get() is group)
        True
    """

    def __init__(self, queries: Sequence[str]) -> None:
        self.queries = tuple(dict.fromkeys(queries))
        self._rounds: dict[tuple[int, bool], _Round] = {}
        self._lock = threading.Lock()

    def call(self, function: Callable[..., T], *args: Any, **kwargs: Any) -> T:
        """Make one of the calls."""
        token = _current.set(self)
        try:
            return function(*args, **kwargs)
        finally:
            _current.reset(token)

    async def acall(self, function: Callable[..., Awaitable[T]], *args: Any, **kwargs: Any) -> T:
        """Make one of the calls, natively asynchronous."""
        token = _current.set(self)
        try:
            return await function(*args, **kwargs)
        finally:
            _current.reset(token)

    def join(
        self, resource: object, query: str, request: Request, make_future: Callable[[], Any], native: bool
    ) -> tuple[Any, bool]:
        """The round that a search belongs to, and whether it is this one that has to do it.

        There is one round for what is searched. A call with another k or filter searches for itself: were there
        a round for each of them, five calls would search five times for five queries.
        """
        if len(self.queries) < 2 or query not in self.queries:
            return None, False
        with self._lock:
            place = (id(resource), native)
            found = self._rounds.get(place)
            if found is None:
                found = self._rounds[place] = _Round(resource, request.k, request.filter, make_future())
                return found.future, True
        same = found.k == request.k and found.filter == request.filter
        return (found.future if same else None), False


_current: ContextVar[SearchGroup | None] = ContextVar("rag_kit_search_group", default=None)


def groups_of(searches: Sequence[tuple[object, str]]) -> list[SearchGroup]:
    """The group of each (retriever, query): one for those with the same retriever.

    Example:
        >>> first, second, third = groups_of([(int, "a"), (str, "b"), (int, "c")])
        >>> first is third, first.queries, second.queries
        (True, ('a', 'c'), ('b',))
    """
    queries: dict[int, list[str]] = {}
    for retriever, query in searches:
        queries.setdefault(id(retriever), []).append(query)
    groups = {key: SearchGroup(texts) for key, texts in queries.items()}
    return [groups[id(retriever)] for retriever, _ in searches]


def search_together(
    resource: object,
    query: str,
    request: Request,
    many: Callable[[Sequence[str]], Many[T]],
    one: Callable[[], T],
) -> T:
    """What a retriever over vectors searches with.

    Args:
        resource: What is searched: the store or the index.
        query: The query of this call.
        request: The request of this call; only its k and its filter may matter to what is found.
        many: Searches for several queries; ``None`` if that cannot be had.
        one: Searches for the query alone.
    """
    group = _current.get()
    future, leads = (None, False) if group is None else group.join(resource, query, request, Future, False)
    if group is None or future is None:
        return one()
    if leads:
        found: Many[T] = None
        try:
            found = many(group.queries)
        except Exception as error:  # noqa: BLE001 - each call searches for itself, and meets it if it stays
            _tell(error)
        finally:
            future.set_result(found)
    found = future.result()
    return one() if found is None else found[query]


async def asearch_together(
    resource: object,
    query: str,
    request: Request,
    many: Callable[[Sequence[str]], Awaitable[Many[T]]],
    one: Callable[[], Awaitable[T]],
) -> T:
    """As ``search_together``, natively asynchronous."""
    group = _current.get()
    make = asyncio.get_running_loop().create_future
    future, leads = (None, False) if group is None else group.join(resource, query, request, make, True)
    if group is None or future is None:
        return await one()
    if leads:
        found: Many[T] = None
        try:
            found = await many(group.queries)
        except Exception as error:  # noqa: BLE001 - as above
            _tell(error)
        finally:
            future.set_result(found)  # also when this call is cancelled: the others go on alone
    found = await asyncio.shield(future)
    return await one() if found is None else found[query]


def _tell(error: Exception) -> None:
    _log.warning(
        "%s; each query is searched by itself", describe_failure("the search for several queries", error)
    )


def search_many(
    retriever: Runnable[str, list[Document]],
    queries: Sequence[str],
    *,
    config: RunnableConfig | None = None,
    k: int | None = None,
    filter: Filter | None = None,
    max_concurrency: int | None = None,
) -> list[list[Document]]:
    """Ask any retriever several queries, side by side; embedded and searched at once where it can.

    Args:
        retriever: Any LangChain retriever.
        queries: The queries.
        config: The config of each call.
        k: Most documents a query; ``None`` leaves it to the retriever.
        filter: Metadata filter for all.
        max_concurrency: Most calls at a time.

    Returns:
        What each query found, in order, as separate calls would have.

    Raises:
        InvalidInputError: If the queries are no list of strings.
        BranchError: If one of the calls failed.

    Example:
        >>> from langchain_core.embeddings import DeterministicFakeEmbedding
        >>> from rag_kit.retrieval import ExactVectorRetriever
        >>> documents = [Document("sun"), Document("moon")]
        >>> retriever = ExactVectorRetriever.from_documents(documents, DeterministicFakeEmbedding(size=8))
        >>> [found[0].page_content for found in search_many(retriever, ["moon", "sun"], k=1)]
        ['moon', 'sun']
    """
    names, calls = _calls(retriever, queries, config=config, k=k, filter=filter)
    tasks = [partial(group.call, call_retriever, *args, **kwargs) for group, args, kwargs in calls]
    return fan_out(tasks, names=names, max_concurrency=max_concurrency).values


async def asearch_many(
    retriever: Runnable[str, list[Document]],
    queries: Sequence[str],
    *,
    config: RunnableConfig | None = None,
    k: int | None = None,
    filter: Filter | None = None,
    max_concurrency: int | None = None,
) -> list[list[Document]]:
    """As ``search_many``, natively asynchronous."""
    names, calls = _calls(retriever, queries, config=config, k=k, filter=filter)
    tasks = [partial(group.acall, acall_retriever, *args, **kwargs) for group, args, kwargs in calls]
    return (await afan_out(tasks, names=names, max_concurrency=max_concurrency)).values


def _calls(
    retriever: Runnable[Any, Any], queries: Any, **settings: Any
) -> tuple[list[str], list[tuple[SearchGroup, tuple[Any, ...], dict[str, Any]]]]:
    if isinstance(queries, str) or not all(isinstance(query, str) for query in queries):
        raise InvalidInputError(
            "queries must be a list of strings; for one query use the retriever's invoke."
        )
    names = [f"{retriever.get_name()}, query {number}" for number in range(1, len(queries) + 1)]
    groups = groups_of([(retriever, query) for query in queries])
    return names, [
        (group, (retriever, query), settings) for group, query in zip(groups, queries, strict=True)
    ]
