"""Dense search over any LangChain vector store, with scores in the provenance."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, ClassVar, Self

from langchain_core.documents import Document
from langchain_core.structured_query import Visitor
from langchain_core.vectorstores import VectorStore

from rag_kit.concurrency.bridge import call_client, run_in_thread
from rag_kit.documents import Filter, compile_filter, with_provenance
from rag_kit.errors import InvalidInputError
from rag_kit.indexing.store_filters import is_chroma
from rag_kit.models.clients import connections_of
from rag_kit.retrieval.base import RagKitRetriever, Request
from rag_kit.retrieval.batching import asearch_together, search_together
from rag_kit.retrieval.batching_vectors import aembed_queries, embed_queries, many_searcher
from rag_kit.retrieval.stores import native_async, native_async_scores, native_filter

_Scored = list[tuple[Document, float | None]]
# A store whose filter language is unknown is searched deeper, and filtered here.
_GROWTH = (4, 16, 64)
_MAX_FETCH = 10_000


class VectorRetriever(RagKitRetriever):
    """Search a vector store.

    The score in the provenance is the store's relevance (higher is better) where the store can tell it, else
    the store's own number, which may be a distance. That number is kept beside it as ``store_score``.

    Several queries at once (multi-query, decomposition, ``search_many``) are embedded in one request and sent to
    Chroma, ``ExactVectorStore`` and the in-memory store in one.

    Args:
        vectorstore: Any LangChain vector store.
        k: Most documents to return.
        filter: Metadata filter. Chroma and the in-memory store get it in their own language; for others, and
            for what Chroma cannot say, more is fetched (up to 64 times ``k``) and filtered here.
        structured_query_translator: LangChain's translator of filters into the language of a store that the kit
            has none for.

    Example:
        >>> from langchain_core.embeddings import DeterministicFakeEmbedding
        >>> from langchain_core.vectorstores import InMemoryVectorStore
        >>> store = InMemoryVectorStore(DeterministicFakeEmbedding(size=8))
        >>> _ = store.add_documents([Document("a", id="1"), Document("b", id="2")])
        >>> [doc.id for doc in VectorRetriever(vectorstore=store, k=1).invoke("b")]
        ['2']
    """

    takes_search_kwargs: ClassVar[bool] = True

    vectorstore: VectorStore
    structured_query_translator: Visitor | None = None

    _searches_by_text: ClassVar[bool] = True

    def __getstate__(self) -> dict[Any, Any]:
        """What a copy is made of; none is made of a store that holds a live connection."""
        self._check_copied()
        return super().__getstate__()

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Self:
        """As ``__getstate__``."""
        self._check_copied()
        return super().__deepcopy__(memo)

    def _check_copied(self) -> None:
        if is_chroma(getattr(self.vectorstore, "vectorstore", self.vectorstore)):
            raise InvalidInputError(
                "A retriever over Chroma holds its connection and cannot be pickled or copied; give the other process "
                "the folder, and make it there: VectorRetriever(vectorstore=Chroma(persist_directory=folder, ...))."
            )

    def _retrieve(self, query: str, request: Request) -> list[Document]:
        found = search_together(
            self.vectorstore,
            query,
            request,
            partial(self._find_many, request=request),
            partial(self._find, query, request),
        )
        return self._finish(query, request, found)

    async def _aretrieve(self, query: str, request: Request) -> list[Document]:
        found = await asearch_together(
            self.vectorstore,
            query,
            request,
            partial(self._afind_many, request=request),
            partial(self._afind, query, request),
        )
        return self._finish(query, request, found)

    def _find(self, query: str, request: Request) -> _Scored:
        found: _Scored = []
        for fetch, kwargs, passes in self._attempts(request):
            found = self._search(query, fetch, kwargs)
            if _enough(found, fetch, request.k, passes):
                break
        return _passing(found, passes)

    async def _afind(self, query: str, request: Request) -> _Scored:
        found: _Scored = []
        for fetch, kwargs, passes in self._attempts(request):
            found = await self._asearch(query, fetch, kwargs)
            if _enough(found, fetch, request.k, passes):
                break
        return _passing(found, passes)

    def _find_many(self, queries: Sequence[str], request: Request) -> dict[str, _Scored] | None:
        search = self._many_searcher(request)
        embeddings = self.vectorstore.embeddings
        if search is None or embeddings is None or (vectors := embed_queries(embeddings, queries)) is None:
            return None
        return dict(zip(queries, search(vectors), strict=True))

    async def _afind_many(self, queries: Sequence[str], request: Request) -> dict[str, _Scored] | None:
        search = self._many_searcher(request)
        embeddings = self.vectorstore.embeddings
        if search is None or embeddings is None:
            return None
        if (vectors := await aembed_queries(embeddings, queries)) is None:
            return None
        return dict(zip(queries, await run_in_thread(search, vectors), strict=True))

    def _many_searcher(self, request: Request) -> Callable[[Any], list[Any]] | None:
        """Searches with several vectors; ``None`` where the store cannot, or results have to be filtered here."""
        search = many_searcher(self.vectorstore) if self._searches_by_text else None
        attempts = self._attempts(request)
        if search is None or len(attempts) > 1:
            return None
        ((fetch, kwargs, _),) = attempts
        return lambda vectors: search(vectors, fetch, kwargs.get("filter"))

    def _attempts(
        self, request: Request
    ) -> list[tuple[int, dict[str, Any], Callable[[dict[str, Any]], bool] | None]]:
        """How deep to search, with which arguments, and what to filter here."""
        if request.filter is None:
            return [(request.k, {}, None)]
        native = native_filter(self.vectorstore, request.filter, translator=self.structured_query_translator)
        if native is not None:
            return [(request.k, {"filter": native}, None)]
        passes = _passes(request.filter)
        return [(max(request.k, min(request.k * factor, _MAX_FETCH)), {}, passes) for factor in _GROWTH]

    def _search(self, query: str, fetch: int, kwargs: dict[str, Any]) -> _Scored:
        try:
            return list(self.vectorstore.similarity_search_with_score(query, k=fetch, **kwargs))
        except NotImplementedError:
            return [(doc, None) for doc in self.vectorstore.similarity_search(query, k=fetch, **kwargs)]

    async def _asearch(self, query: str, fetch: int, kwargs: dict[str, Any]) -> _Scored:
        store = self.vectorstore
        clients = connections_of(store)
        if native_async_scores(store):
            search = partial(store.asimilarity_search_with_score, query, k=fetch, **kwargs)
            return list(await call_client(search, partial(self._search, query, fetch, kwargs), clients))
        scored = type(store).similarity_search_with_score is not VectorStore.similarity_search_with_score
        if not scored and native_async(store):
            find = partial(store.asimilarity_search, query, k=fetch, **kwargs)
            plain = partial(store.similarity_search, query, k=fetch, **kwargs)
            return [(doc, None) for doc in await call_client(find, plain, clients)]
        return await run_in_thread(partial(self._search, query, fetch, kwargs))

    def _finish(self, query: str, request: Request, found: _Scored) -> list[Document]:
        relevance = self._relevance()
        return [
            with_provenance(
                doc,
                score=_relevant(raw, relevance),
                rank=rank,
                stage="dense",
                retriever=self.get_name(),
                query=query,
                sources=(),  # what a store keeps from an earlier search is not of this one
                notes=(),
                store_score=raw,
            )
            for rank, (doc, raw) in enumerate(found[: request.k], start=1)
        ]

    def _relevance(self) -> Callable[[float], float] | None:
        """The store's own map from its scores to relevance, if it has one."""
        try:
            return self.vectorstore._select_relevance_score_fn()
        except (NotImplementedError, ValueError):
            return None


def _relevant(raw: float | None, relevance: Callable[[float], float] | None) -> float | None:
    if raw is None:
        return None
    value = float(raw) if relevance is None else float(relevance(float(raw)))
    return value if math.isfinite(value) else None


def _passes(where: Filter) -> Callable[[dict[str, Any]], bool]:
    return compile_filter(where)


def _passing(found: _Scored, passes: Callable[[dict[str, Any]], bool] | None) -> _Scored:
    return found if passes is None else [pair for pair in found if passes(pair[0].metadata)]


def _enough(found: _Scored, fetch: int, k: int, passes: Callable[[dict[str, Any]], bool] | None) -> bool:
    if passes is None or len(found) < fetch:
        return True
    return sum(passes(doc.metadata) for doc, _ in found) >= k
