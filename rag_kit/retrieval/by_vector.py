"""Search a vector store with a vector that is there already."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, ClassVar

from langchain_core.documents import Document
from langchain_core.vectorstores import VectorStore

from rag_kit.concurrency.bridge import call_client, run_in_thread
from rag_kit.documents import compile_filter
from rag_kit.retrieval.base import Request
from rag_kit.retrieval.stores import native_filter
from rag_kit.retrieval.vector import _GROWTH, _MAX_FETCH, VectorRetriever

# LangChain has no common name for the search by vector that also gives scores.
_SCORED = ("similarity_search_with_score_by_vector", "similarity_search_by_vector_with_relevance_scores")


class VectorSearch(VectorRetriever):
    """As ``VectorRetriever``, with a ready vector; the query stands in the provenance alone.

    Args:
        vector: The vector to search with.
        store_filter: A filter in the store's own language that holds beside the kit's.

    Example:
        >>> from langchain_core.embeddings import DeterministicFakeEmbedding
        >>> from langchain_core.vectorstores import InMemoryVectorStore
        >>> embedding = DeterministicFakeEmbedding(size=8)
        >>> store = InMemoryVectorStore(embedding)
        >>> _ = store.add_documents([Document("a", id="1"), Document("b", id="2")])
        >>> search = VectorSearch(vectorstore=store, vector=embedding.embed_query("b"), k=1)
        >>> [doc.id for doc in search.invoke("anything")]
        ['2']
    """

    _searches_by_text: ClassVar[bool] = False

    vector: Sequence[float]
    store_filter: Any = None

    def _attempts(
        self, request: Request
    ) -> list[tuple[int, dict[str, Any], Callable[[dict[str, Any]], bool] | None]]:
        own = {} if self.store_filter is None else {"filter": self.store_filter}
        if request.filter is None:
            return [(request.k, own, None)]
        native = native_filter(self.vectorstore, request.filter, static=self.store_filter)
        if native is not None:
            return [(request.k, {"filter": native}, None)]
        passes = compile_filter(request.filter)
        return [(max(request.k, min(request.k * factor, _MAX_FETCH)), own, passes) for factor in _GROWTH]

    def _search(self, query: str, fetch: int, kwargs: dict[str, Any]) -> list[tuple[Document, float | None]]:
        store, vector = self.vectorstore, list(self.vector)
        for name in _SCORED:
            if hasattr(store, name):
                return list(getattr(store, name)(vector, k=fetch, **kwargs))
        return [(doc, None) for doc in store.similarity_search_by_vector(vector, k=fetch, **kwargs)]

    async def _asearch(
        self, query: str, fetch: int, kwargs: dict[str, Any]
    ) -> list[tuple[Document, float | None]]:
        store, vector = self.vectorstore, list(self.vector)
        below = partial(self._search, query, fetch, kwargs)
        for name in _SCORED:
            if hasattr(store, f"a{name}"):
                return list(
                    await call_client(partial(getattr(store, f"a{name}"), vector, k=fetch, **kwargs), below)
                )
        scored = any(hasattr(store, name) for name in _SCORED)
        native = type(store).asimilarity_search_by_vector is not VectorStore.asimilarity_search_by_vector
        if native and not scored:
            find = partial(store.asimilarity_search_by_vector, vector, k=fetch, **kwargs)
            plain = partial(store.similarity_search_by_vector, vector, k=fetch, **kwargs)
            return [(doc, None) for doc in await call_client(find, plain)]
        return await run_in_thread(below)
