"""Several queries for one retriever: each is a call of its own, and vectors are searched for all of them at once.

The calls stay what they are, with their own runs, callbacks, time-outs and provenance, through whatever wraps the
retriever. A retriever over vectors that is reached by one of them searches for all queries of the group together, and
the other calls take their part of that. If that search fails or cannot be had, each call searches for itself.
"""

from __future__ import annotations

import asyncio
import logging
import weakref
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.vectorstores import InMemoryVectorStore, VectorStore

from rag_kit.concurrency import afan_out, fan_out
from rag_kit.concurrency.branches import FanOut, describe_failure
from rag_kit.concurrency.bridge import run_in_thread
from rag_kit.concurrency.steps import Logic, Step, arun, run
from rag_kit.documents import Filter
from rag_kit.errors import InvalidInputError
from rag_kit.models.clients import aembed_documents, aembed_query, embed_documents, embed_query
from rag_kit.retrieval.base import RagKitRetriever, Request
from rag_kit.retrieval.compose import acall_retriever, call_retriever, current_group, groups_of
from rag_kit.retrieval.vectors import checked_vectors

_log = logging.getLogger(__name__)
T = TypeVar("T")
ByQuery = Mapping[str, T] | None
Vectors = Sequence[Sequence[float]]
Hits = list[tuple[Document, float]]
SearchMany = Callable[[Vectors, int, Any], list[Hits]]

# Another instruction for queries moves a vector by some hundredths, another batch by less than this.
_MAX_DISTANCE = 1e-3
_embeds_alike: dict[int, tuple[weakref.ref[Embeddings], bool]] = {}


async def search_together(
    resource: object,
    query: str,
    request: Request,
    search_queries: Callable[[Sequence[str]], Logic[ByQuery[T]]],
    search_query: Callable[[], Logic[T]],
) -> T:
    """Search ``resource`` (a store, an index) once for all queries of the group that this call belongs to.

    The first call of a group leads: it searches by ``search_queries``, and the others wait for its result. Outside of
    a group, and where ``search_queries`` fails or gives ``None``, each call searches by ``search_query``. Calls share a
    search only if their k and filter are the same, so nothing else of the request may matter to what is found.
    """
    group = current_group.get()
    future, leads = (None, False) if group is None else group.join(resource, query, request)
    if group is None or future is None:
        return await search_query()
    shared = future
    if leads:
        results: ByQuery[T] = None
        try:
            results = await search_queries(group.queries)
        except Exception as error:  # noqa: BLE001 - each call searches for itself, and meets it if it stays
            failure = describe_failure("the search for several queries", error)
            _log.warning("%s; each query is searched by itself", failure)
        finally:
            shared.set_result(results)  # also when this call is cancelled: the others go on alone
    waiting: Step[ByQuery[T]] = Step(
        "together", lambda _: shared.result(), lambda _: asyncio.shield(asyncio.wrap_future(shared))
    )
    results = await waiting
    return await search_query() if results is None else results[query]


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
        BranchError: A call failed.

    Example:
        >>> from langchain_core.embeddings import DeterministicFakeEmbedding
        >>> from rag_kit.retrieval import ExactVectorRetriever
        >>> documents = [Document("sun"), Document("moon")]
        >>> retriever = ExactVectorRetriever.from_documents(documents, DeterministicFakeEmbedding(size=8))
        >>> [found[0].page_content for found in search_many(retriever, ["moon", "sun"], k=1)]
        ['moon', 'sun']
    """
    return run(_search_all(retriever, queries, max_concurrency, config=config, k=k, filter=filter))


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
    return await arun(_search_all(retriever, queries, max_concurrency, config=config, k=k, filter=filter))


async def _search_all(
    retriever: Runnable[Any, Any], queries: Any, width: int | None, **settings: Any
) -> list[list[Document]]:
    """Search for all queries side by side; those of one retriever form a group."""
    if isinstance(queries, str) or not all(isinstance(query, str) for query in queries):
        raise InvalidInputError(
            "queries must be a list of strings; for one query use the retriever's invoke."
        )
    names = [f"{retriever.get_name()}, query {number}" for number in range(1, len(queries) + 1)]
    pairs = list(zip(groups_of([(retriever, query) for query in queries]), queries, strict=True))
    calls = [partial(group.call, call_retriever, retriever, query, **settings) for group, query in pairs]
    acalls = [partial(group.acall, acall_retriever, retriever, query, **settings) for group, query in pairs]
    searches: Step[FanOut[list[Document]]] = Step(
        "queries",
        lambda _: fan_out(calls, names=names, max_concurrency=width),
        lambda _: afan_out(acalls, names=names, max_concurrency=width),
    )
    return (await searches).values


async def embed_in_one(embeddings: Embeddings, queries: list[str]) -> Vectors | None:
    """Embed queries in one request; ``None`` if the model embeds questions in a way of its own, one at a time.

    Whether it does is seen from one query, embedded both ways the first time. A model's ``embed_queries`` is preferred.
    """
    embed_queries = getattr(embeddings, "embed_queries", None)
    if callable(embed_queries):
        answer: Vectors = await blocking_step("embeddings", embed_queries, queries)
        checked_vectors(answer, len(queries), embeddings)
        return answer
    is_alike = _remembered(embeddings)
    if is_alike is False:
        return None
    tasks: list[Any] = [partial(embed_documents, embeddings, queries)]
    atasks: list[Any] = [partial(aembed_documents, embeddings, queries)]
    if is_alike is None:
        tasks.append(partial(embed_query, embeddings, queries[0]))
        atasks.append(partial(aembed_query, embeddings, queries[0]))
    step: Step[Any] = Step("embeddings", lambda _: fan_out(tasks), lambda _: afan_out(atasks))
    values: list[Any] = (await step).values
    vectors: Vectors = values[0]
    checked = checked_vectors(vectors, len(queries), embeddings)
    if is_alike is None and not _compare(embeddings, checked[0], values[1]):
        return None
    return vectors


async def search_by_vector(
    resource: object,
    embeddings: Embeddings,
    query: str,
    request: Request,
    search: Callable[[Sequence[str], Vectors], Mapping[str, T]],
) -> T:
    """What ``search`` finds for a query, embedded and searched with the other queries of its group in ``resource``.

    Embedding is what takes long and does not block; on an event loop the search runs on a thread. Of the request
    only k and filter may matter to what is found.
    """

    async def search_queries(queries: Sequence[str]) -> Mapping[str, T] | None:
        vectors = await embed_in_one(embeddings, list(queries))
        return None if vectors is None else await blocking_step("search", search, queries, vectors)

    async def search_query() -> T:
        vector = await embedding_step(embeddings, query)
        results = await blocking_step("search", search, [query], [vector])
        return results[query]

    return await search_together(resource, query, request, search_queries, search_query)


def blocking_step(name: str, func: Callable[..., T], *arguments: Any) -> Step[T]:
    """A step that calls a function, on an event loop on a thread."""
    return Step(name, lambda _: func(*arguments), lambda _: run_in_thread(func, *arguments))


def embedding_step(model: Embeddings, query: str) -> Step[list[float]]:
    """A step that embeds a query."""
    return Step("embedding", lambda _: embed_query(model, query), lambda _: aembed_query(model, query))


def search_step(retriever: Runnable[str, list[Document]], query: str, **kwargs: Any) -> Step[list[Document]]:
    """A step that asks another retriever; ``kwargs`` go to ``call_retriever``."""
    call = partial(call_retriever, retriever, query, **kwargs)
    acall = partial(acall_retriever, retriever, query, **kwargs)
    return Step("retriever", lambda _: call(), lambda _: acall())


class SteppedRetriever(RagKitRetriever):
    """Base of the retrievers whose search is written once, in steps."""

    @abstractmethod
    def _search_in_steps(self, query: str, request: Request) -> Logic[list[Document]]:
        """As ``_retrieve``: a coroutine that awaits steps."""

    def _retrieve(self, query: str, request: Request) -> list[Document]:
        return run(self._search_in_steps(query, request))

    async def _aretrieve(self, query: str, request: Request) -> list[Document]:
        return await arun(self._search_in_steps(query, request))


def _remembered(embeddings: Embeddings) -> bool | None:
    """Whether a model embeds questions as it embeds documents; ``None`` before it was compared."""
    entry = _embeds_alike.get(id(embeddings))
    return entry[1] if entry is not None and entry[0]() is embeddings else None


def _compare(embeddings: Embeddings, as_document: Any, as_query: Any) -> bool:
    """Whether a model's two vectors of one text are alike, which is remembered."""
    import numpy as np

    alone = checked_vectors([as_query], 1, embeddings)[0]
    distance = np.linalg.norm(as_document - alone) if as_document.shape == alone.shape else np.inf
    alike = bool(distance <= _MAX_DISTANCE * np.linalg.norm(alone))
    key = id(embeddings)
    try:
        _embeds_alike[key] = (weakref.ref(embeddings, lambda _: _embeds_alike.pop(key, None)), alike)
    except TypeError:
        return False  # it cannot be remembered, and comparing each time would save nothing
    return alike


def many_searcher(store: VectorStore) -> SearchMany | None:
    """A function that searches a store with several vectors, and gives documents and the store's scores for each.

    ``None`` if the store is unknown, or is a class made from a known one that searches otherwise.
    """
    search = type(store).similarity_search_with_score
    if search is InMemoryVectorStore.similarity_search_with_score:
        return partial(_in_memory, store)
    if search.__module__.split(".")[0] == "langchain_chroma":
        return partial(_chroma, store)
    return None


def _in_memory(store: Any, vectors: Vectors, k: int, where: Any) -> list[Hits]:
    return [store.similarity_search_with_score_by_vector(list(v), k=k, filter=where) for v in vectors]


def _chroma(store: Any, vectors: Vectors, k: int, where: Any) -> list[Hits]:
    """LangChain asks Chroma for one vector at a time; Chroma itself takes several."""
    result = store._collection.query(query_embeddings=[list(v) for v in vectors], n_results=k, where=where)
    columns = (result[name] for name in ("ids", "documents", "metadatas", "distances"))
    return [
        [
            (Document(page_content=text, metadata=metadata or {}, id=key), distance)
            for key, text, metadata, distance in zip(*rows, strict=True)
            if text is not None  # as in LangChain
        ]
        for rows in zip(*columns, strict=True)
    ]
