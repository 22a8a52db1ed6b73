"""Several queries for one retriever: each is a call of its own, and vectors are searched for all of them at once.

The calls stay what they are, with their own runs, callbacks, time-outs and provenance, through whatever wraps the
retriever. A retriever over vectors that is reached by one of them searches for all queries of the group together, and
the other calls take their part of that. If that search fails or cannot be had, each call searches for itself.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

from langchain_core.documents import Document
from langchain_core.runnables import Runnable, RunnableConfig

from rag_kit.concurrency import afan_out, fan_out
from rag_kit.concurrency.branches import describe_failure
from rag_kit.concurrency.steps import Logic, Step
from rag_kit.documents import Filter
from rag_kit.errors import InvalidInputError
from rag_kit.retrieval.base import Request
from rag_kit.retrieval.compose import SearchGroup, acall_retriever, call_retriever, current_group, groups_of

_log = logging.getLogger(__name__)
T = TypeVar("T")
Many = Mapping[str, T] | None


async def search_together(
    resource: object,
    query: str,
    request: Request,
    many: Callable[[Sequence[str]], Logic[Many[T]]],
    one: Callable[[], Logic[T]],
) -> T:
    """What ``one`` finds for a query, or ``many`` for all queries of its group, in ``resource`` (a store, an index).

    Of the request only k and filter may matter to what is found. ``many`` gives ``None`` if it cannot.
    """
    group = current_group.get()
    future, leads = (None, False) if group is None else group.join(resource, query, request)
    if group is None or future is None:
        return await one()
    done = future
    if leads:
        found: Many[T] = None
        try:
            found = await many(group.queries)
        except Exception as error:  # noqa: BLE001 - each call searches for itself, and meets it if it stays
            what = describe_failure("the search for several queries", error)
            _log.warning("%s; each query is searched by itself", what)
        finally:
            done.set_result(found)  # also when this call is cancelled: the others go on alone
    waiting: Step[Many[T]] = Step(
        "together", lambda _: done.result(), lambda _: asyncio.shield(asyncio.wrap_future(done))
    )
    found = await waiting
    return await one() if found is None else found[query]


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
