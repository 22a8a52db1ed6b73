"""Dense search over any LangChain vector store, with scores in the provenance."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, ClassVar

from langchain_core.documents import Document
from langchain_core.structured_query import Visitor
from langchain_core.vectorstores import VectorStore

from rag_kit.concurrency.bridge import call_client, run_in_thread
from rag_kit.concurrency.steps import Step
from rag_kit.documents import compile_filter, with_provenance
from rag_kit.models.runnables import connections_of
from rag_kit.retrieval.base import Request
from rag_kit.retrieval.batching import (
    SteppedRetriever,
    blocking_step,
    embed_in_one,
    many_searcher,
    search_together,
)
from rag_kit.retrieval.stores import deeper, native_async_scores, native_filter

_Scored = list[tuple[Document, float | None]]
# LangChain has no common name for the search by vector that also gives scores.
_SCORED = ("similarity_search_with_score_by_vector", "similarity_search_by_vector_with_relevance_scores")


class VectorRetriever(SteppedRetriever):
    """Search a vector store.

    The score in the provenance is the store's relevance (higher is better) where the store can tell it, else
    the store's own number, which may be a distance. That number is kept beside it as ``store_score``.

    Several queries at once (``search_many``...) go to the model, Chroma and the in-memory store in one request each.

    Args:
        vectorstore: Any LangChain vector store.
        k: Most documents to return.
        filter: Metadata filter. Chroma and the in-memory store get it in their own language; for others, and
            for what Chroma cannot say, more is fetched (up to 64 times ``k``) and filtered here.
        structured_query_translator: LangChain's translator of filters, for a store that the kit has none for.

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

    async def _search_in_steps(self, query: str, request: Request) -> list[Document]:
        search_queries = partial(self._for_many, request=request)
        search_query = partial(self._for_one, query, request)
        scored = await search_together(self.vectorstore, query, request, search_queries, search_query)
        return self._with_stages(query, request, scored)

    async def _for_one(self, query: str, request: Request) -> _Scored:
        """Search for one query, ever deeper, until enough documents pass a filter that the store does not take."""
        passing: _Scored = []
        for fetch, kwargs, passes in self._attempts(request):
            scored = await self._searching(query, fetch, kwargs)
            passing = scored if passes is None else [pair for pair in scored if passes(pair[0].metadata)]
            if passes is None or len(scored) < fetch or len(passing) >= request.k:
                break
        return passing

    def _searching(self, *arguments: Any) -> Step[_Scored]:
        return Step("search", lambda _: self._search(*arguments), lambda _: self._asearch(*arguments))

    async def _for_many(self, queries: Sequence[str], request: Request) -> dict[str, _Scored] | None:
        """Search for several queries by one request each to model and store; ``None`` where that is not possible."""
        search = many_searcher(self.vectorstore) if self._searches_by_text else None
        (fetch, kwargs, _), *deeper_attempts = self._attempts(request)
        embeddings = self.vectorstore.embeddings
        if search is None or embeddings is None or deeper_attempts:
            return None
        vectors = await embed_in_one(embeddings, list(queries))
        if vectors is None:
            return None
        hits: list[Any] = await blocking_step("search", search, vectors, fetch, kwargs.get("filter"))
        return dict(zip(queries, hits, strict=True))

    def _attempts(
        self, request: Request
    ) -> list[tuple[int, dict[str, Any], Callable[[dict[str, Any]], bool] | None]]:
        """How deep to search, with which arguments, and what to filter here."""
        static = self._store_filter()
        static_kwargs = {} if static is None else {"filter": static}
        if request.filter is None:
            return [(request.k, static_kwargs, None)]
        translator = self.structured_query_translator
        native = native_filter(self.vectorstore, request.filter, static=static, translator=translator)
        if native is not None:
            return [(request.k, {"filter": native}, None)]
        passes = compile_filter(request.filter)
        return [(fetch, static_kwargs, passes) for fetch in deeper(request.k)]

    def _store_filter(self) -> Any:
        """A filter in the store's own language that holds beside the kit's, if there is one."""
        return None

    def _search(self, query: str, fetch: int, kwargs: dict[str, Any]) -> _Scored:
        try:
            return list(self.vectorstore.similarity_search_with_score(query, k=fetch, **kwargs))
        except NotImplementedError:
            return [(doc, None) for doc in self.vectorstore.similarity_search(query, k=fetch, **kwargs)]

    async def _asearch(self, query: str, fetch: int, kwargs: dict[str, Any]) -> _Scored:
        store = self.vectorstore
        if native_async_scores(store):
            search = partial(store.asimilarity_search_with_score, query, k=fetch, **kwargs)
            blocking = partial(self._search, query, fetch, kwargs)
            return list(await call_client(search, blocking, connections_of(store)))
        return await run_in_thread(partial(self._search, query, fetch, kwargs))

    def _with_stages(self, query: str, request: Request, scored: _Scored) -> list[Document]:
        """The documents, with the store's score and its relevance (0 to 1) in the provenance."""
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
            for rank, (doc, raw) in enumerate(scored[: request.k], start=1)
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


class VectorSearch(VectorRetriever):
    """As ``VectorRetriever``, with a ready vector, and a filter in the store's own language beside the kit's."""

    _searches_by_text: ClassVar[bool] = False

    vector: Sequence[float]
    store_filter: Any = None

    def _store_filter(self) -> Any:
        return self.store_filter

    def _search(self, query: str, fetch: int, kwargs: dict[str, Any]) -> _Scored:
        store, vector = self.vectorstore, list(self.vector)
        for name in _SCORED:
            if hasattr(store, name):
                return list(getattr(store, name)(vector, k=fetch, **kwargs))
        return [(doc, None) for doc in store.similarity_search_by_vector(vector, k=fetch, **kwargs)]

    async def _asearch(self, query: str, fetch: int, kwargs: dict[str, Any]) -> _Scored:
        store, vector = self.vectorstore, list(self.vector)
        below = partial(self._search, query, fetch, kwargs)
        for name in _SCORED:
            if hasattr(store, f"a{name}"):
                search = partial(getattr(store, f"a{name}"), vector, k=fetch, **kwargs)
                return list(await call_client(search, below))
        return await run_in_thread(below)
