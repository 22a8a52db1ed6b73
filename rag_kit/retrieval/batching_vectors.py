"""Embed several queries in one request, and send several vectors to a store in one."""

from __future__ import annotations

import weakref
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import InMemoryVectorStore, VectorStore

from rag_kit.concurrency import afan_out, fan_out
from rag_kit.concurrency.bridge import run_in_thread
from rag_kit.concurrency.steps import Logic, Step, arun, run
from rag_kit.models.clients import aembed_documents, aembed_query, embed_documents, embed_query
from rag_kit.retrieval.base import RagKitRetriever, Request
from rag_kit.retrieval.batching import search_together
from rag_kit.retrieval.vectors import embedded

T = TypeVar("T")
Vectors = Sequence[Sequence[float]]
Hits = list[tuple[Document, float]]
SearchMany = Callable[[Vectors, int, Any], list[Hits]]

# Another instruction for queries moves a vector by some hundredths, another batch by less than this.
_SAME = 1e-3
_alike: dict[int, tuple[weakref.ref[Embeddings], bool]] = {}


async def embed_in_one(embeddings: Embeddings, queries: list[str]) -> Vectors | None:
    """Embed queries in one request; ``None`` if the model embeds questions in a way of its own, one at a time.

    LangChain's ``embed_documents`` takes several texts, but some models embed questions otherwise than
    documents. So the first time both are asked for one query, and compared. A model may also offer
    ``embed_queries``, which is then taken.
    """
    own = getattr(embeddings, "embed_queries", None)
    known = True if callable(own) else _known(embeddings)
    if known is False:
        return None
    sync, native = (
        partial(embed_documents, embeddings, queries),
        partial(aembed_documents, embeddings, queries),
    )
    if callable(own):
        sync, native = partial(own, queries), partial(run_in_thread, own, queries)
    if known:
        answer = await Step("embeddings", lambda _: sync(), lambda _: native())
        embedded(answer, len(queries), embeddings)
        return answer
    one, aone = partial(embed_query, embeddings, queries[0]), partial(aembed_query, embeddings, queries[0])
    tasks: list[Any] = [sync, one]
    atasks: list[Any] = [native, aone]
    both = await Step("embeddings", lambda _: fan_out(tasks), lambda _: afan_out(atasks))
    return _compared(embeddings, len(queries), *both.values)


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

    async def found(queries: Sequence[str], vectors: Vectors) -> Mapping[str, T]:
        answer: Mapping[str, T] = await blocking("search", search, queries, vectors)
        return answer

    async def many(queries: Sequence[str]) -> Mapping[str, T] | None:
        vectors = await embed_in_one(embeddings, list(queries))
        return None if vectors is None else await found(queries, vectors)

    async def one() -> T:
        embedding: Step[Any] = Step(
            "embedding", lambda _: embed_query(embeddings, query), lambda _: aembed_query(embeddings, query)
        )
        return (await found([query], [await embedding]))[query]

    return await search_together(resource, query, request, many, one)


def blocking(name: str, func: Callable[..., T], *arguments: Any) -> Step[T]:
    """A step that calls a function, on an event loop on a thread."""
    return Step(name, lambda _: func(*arguments), lambda _: run_in_thread(func, *arguments))


class SteppedRetriever(RagKitRetriever):
    """Base of the retrievers whose search is written once, in steps."""

    @abstractmethod
    def _found(self, query: str, request: Request) -> Logic[list[Document]]:
        """As ``_retrieve``: a coroutine that awaits steps."""

    def _retrieve(self, query: str, request: Request) -> list[Document]:
        return run(self._found(query, request))

    async def _aretrieve(self, query: str, request: Request) -> list[Document]:
        return await arun(self._found(query, request))


def _known(embeddings: Embeddings) -> bool | None:
    entry = _alike.get(id(embeddings))
    return entry[1] if entry is not None and entry[0]() is embeddings else None


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
