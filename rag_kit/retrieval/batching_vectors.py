"""Embed several queries in one request, and send several vectors to a store in one."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import InMemoryVectorStore, VectorStore

from rag_kit.concurrency import afan_out, fan_out
from rag_kit.concurrency.bridge import run_in_thread
from rag_kit.models.clients import aembed_documents, aembed_query, embed_documents, embed_query
from rag_kit.retrieval.base import Request
from rag_kit.retrieval.batching import asearch_together, search_together
from rag_kit.retrieval.embedded import embedded

T = TypeVar("T")
Vectors = Sequence[Sequence[float]]
Hits = list[tuple[Document, float]]
SearchMany = Callable[[Vectors, int, Any], list[Hits]]

# Another instruction for queries moves a vector by some hundredths, another batch by less than this.
_SAME = 1e-3
_alike: dict[int, tuple[weakref.ref[Embeddings], bool]] = {}


def embed_queries(embeddings: Embeddings, queries: Sequence[str]) -> Vectors | None:
    """Embed queries in one request.

    LangChain's ``embed_documents`` takes several texts, but some models embed questions otherwise than
    documents. So the first time both are asked for one query, and compared. A model may also offer
    ``embed_queries``, which is then taken.

    Args:
        embeddings: The model.
        queries: At least one.

    Returns:
        One vector each; ``None`` if the model embeds questions in a way of its own, one at a time.

    Example:
        >>> from langchain_core.embeddings import DeterministicFakeEmbedding
        >>> len(embed_queries(DeterministicFakeEmbedding(size=8), ["a", "b"]))
        2
    """
    if callable(own := getattr(embeddings, "embed_queries", None)):
        return _checked(embeddings, own(list(queries)), len(queries))
    known = _known(embeddings)
    if known is None:
        tasks: list[Any] = [
            partial(embed_documents, embeddings, list(queries)),
            partial(embed_query, embeddings, queries[0]),
        ]
        return _compared(embeddings, len(queries), *fan_out(tasks).values)
    if not known:
        return None
    return _checked(embeddings, embed_documents(embeddings, list(queries)), len(queries))


async def aembed_queries(embeddings: Embeddings, queries: Sequence[str]) -> Vectors | None:
    """As ``embed_queries``, by the model's own asynchronous methods where it has them."""
    cls = type(embeddings)
    if cls.aembed_documents is Embeddings.aembed_documents or hasattr(embeddings, "embed_queries"):
        return await run_in_thread(embed_queries, embeddings, queries)
    known = _known(embeddings)
    if known is None:
        tasks: list[Any] = [
            partial(aembed_documents, embeddings, list(queries)),
            partial(aembed_query, embeddings, queries[0]),
        ]
        return _compared(embeddings, len(queries), *(await afan_out(tasks)).values)
    if not known:
        return None
    return _checked(embeddings, await aembed_documents(embeddings, list(queries)), len(queries))


def search_by_vector(
    resource: object,
    embeddings: Embeddings,
    query: str,
    request: Request,
    search: Callable[[Sequence[str], Vectors], Mapping[str, T]],
) -> T:
    """What a retriever over vectors finds for a query, embedded and searched with the other queries of its group.

    Args:
        resource: What is searched: the store or the index.
        embeddings: The model.
        query: The query of this call.
        request: The request of this call; only its k and its filter may matter to what is found.
        search: Searches for queries by their vectors.
    """

    def many(queries: Sequence[str]) -> Mapping[str, T] | None:
        vectors = embed_queries(embeddings, queries)
        return None if vectors is None else search(queries, vectors)

    def one() -> T:
        return search([query], [embed_query(embeddings, query)])[query]

    return search_together(resource, query, request, many, one)


async def asearch_by_vector(
    resource: object,
    embeddings: Embeddings,
    query: str,
    request: Request,
    search: Callable[[Sequence[str], Vectors], Mapping[str, T]],
) -> T:
    """As ``search_by_vector``; embedding is what takes long and does not block, the search runs on a thread."""

    async def many(queries: Sequence[str]) -> Mapping[str, T] | None:
        vectors = await aembed_queries(embeddings, queries)
        return None if vectors is None else await run_in_thread(search, queries, vectors)

    async def one() -> T:
        vector = await aembed_query(embeddings, query)
        return (await run_in_thread(search, [query], [vector]))[query]

    return await asearch_together(resource, query, request, many, one)


def _known(embeddings: Embeddings) -> bool | None:
    entry = _alike.get(id(embeddings))
    return entry[1] if entry is not None and entry[0]() is embeddings else None


def _checked(embeddings: Embeddings, answer: Any, count: int) -> Vectors:
    embedded(answer, count, embeddings)
    vectors: Vectors = answer
    return vectors


def _compared(embeddings: Embeddings, count: int, several: Any, one: Any) -> Vectors | None:
    import numpy as np

    first = embedded(several, count, embeddings)[0]
    alone = embedded([one], 1, embeddings)[0]
    length = float(np.linalg.norm(alone))
    alike = first.shape == alone.shape and float(np.linalg.norm(first - alone)) <= _SAME * length
    key = id(embeddings)
    try:
        _alike[key] = (weakref.ref(embeddings, lambda _: _alike.pop(key, None)), alike)
    except TypeError:
        return None  # it cannot be remembered, and comparing each time would save nothing
    vectors: Vectors = several
    return vectors if alike else None


def many_searcher(store: VectorStore) -> SearchMany | None:
    """A function that searches a store with several vectors, and gives documents and the store's scores for each.

    Returns:
        ``None`` if the store is unknown, or is a class made from a known one that searches otherwise.
    """
    if getattr(store, "takes_kit_filters", False):
        return partial(_exact, store)
    search = type(store).similarity_search_with_score
    if search is InMemoryVectorStore.similarity_search_with_score:
        return partial(_in_memory, store)
    if search.__module__.split(".")[0] == "langchain_chroma":
        return partial(_chroma, store)
    return None


def _exact(store: Any, vectors: Vectors, k: int, where: Any) -> list[Hits]:
    found: list[Hits] = store.search_many(vectors, k, where)
    return found


def _in_memory(store: Any, vectors: Vectors, k: int, where: Any) -> list[Hits]:
    return [store.similarity_search_with_score_by_vector(list(v), k=k, filter=where) for v in vectors]


def _chroma(store: Any, vectors: Vectors, k: int, where: Any) -> list[Hits]:
    """LangChain asks Chroma for one vector at a time; Chroma itself takes several."""
    found = store._collection.query(query_embeddings=[list(v) for v in vectors], n_results=k, where=where)
    columns = (found[name] for name in ("ids", "documents", "metadatas", "distances"))
    return [
        [
            (Document(page_content=text, metadata=metadata or {}, id=key), distance)
            for key, text, metadata, distance in zip(*rows, strict=True)
            if text is not None  # as in LangChain
        ]
        for rows in zip(*columns, strict=True)
    ]
