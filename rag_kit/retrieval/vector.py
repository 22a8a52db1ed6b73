"""Dense search over any LangChain vector store, with scores in the provenance."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, ClassVar

from langchain_core.documents import Document
from langchain_core.structured_query import Visitor
from langchain_core.vectorstores import InMemoryVectorStore, VectorStore

from rag_kit.concurrency.bridge import call_client, run_in_thread
from rag_kit.concurrency.steps import Step
from rag_kit.documents import compile_filter, with_provenance
from rag_kit.models.query_vectors import embed_together
from rag_kit.models.runnables import connections_of
from rag_kit.retrieval.base import RagKitRetriever
from rag_kit.retrieval.call import Call, Job
from rag_kit.retrieval.inner import Found
from rag_kit.retrieval.stores import deeper, native_async_scores, native_filter

_Scored = list[tuple[Document, float | None]]
# LangChain has no common name for the search by vector that also gives scores.
_SCORED = ("similarity_search_with_score_by_vector", "similarity_search_by_vector_with_relevance_scores")


class VectorRetriever(RagKitRetriever):
    """Search a vector store.

    The score in the provenance is the store's relevance (higher is better) where the store can tell it, else
    the store's own number, which may be a distance. That number is kept beside it as ``store_score``.

    Several queries at once (``search_many``, multi-query...) go to the embedding model in one request.

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
    searches_together: ClassVar[bool] = True

    vectorstore: VectorStore
    structured_query_translator: Visitor | None = None

    def searched(self) -> Sequence[Any]:
        """The store."""
        return [self.vectorstore]

    async def _search(self, query: str, call: Call) -> list[Document]:
        """Search, ever deeper, until enough documents pass a filter that the store does not take."""
        passing: _Scored = []
        for fetch, kwargs, passes in self._attempts(call):
            scored = await Step("search", *self._forms(query, fetch, kwargs))
            passing = scored if passes is None else [pair for pair in scored if passes(pair[0].metadata)]
            if passes is None or len(scored) < fetch or len(passing) >= call.k:
                break
        return self._with_stages(query, call, passing)

    async def _search_many(self, calls: Sequence[Call]) -> list[Found]:
        """Embed the queries in one request where the model can, and search by vector for each."""
        vectors = None
        if method_by_vector(self.vectorstore) is not None:
            vectors = await embed_together(self.vectorstore.embeddings, [call.query for call in calls])
        if vectors is None:
            return await super()._search_many(calls)
        jobs = [
            Job.of(self.get_name(), partial(self._with_vector(vector)._search, call.query, call))
            for call, vector in zip(calls, vectors, strict=True)
        ]
        return [outcome.value_or_error for outcome in await calls[0].side_by_side(jobs)]

    def _with_vector(self, vector: Sequence[float]) -> VectorSearch:
        """This retriever for one query whose vector is there already."""
        fields = {name: getattr(self, name) for name in VectorRetriever.model_fields}
        return VectorSearch(**{**fields, "name": self.get_name()}, vector=vector)

    def _attempts(
        self, call: Call
    ) -> list[tuple[int, dict[str, Any], Callable[[dict[str, Any]], bool] | None]]:
        """How deep to search, with which arguments, and what to filter here."""
        static = self._store_filter()
        static_kwargs = {} if static is None else {"filter": static}
        if call.filter is None:
            return [(call.k, static_kwargs, None)]
        translator = self.structured_query_translator
        native = native_filter(self.vectorstore, call.filter, static=static, translator=translator)
        if native is not None:
            return [(call.k, {"filter": native}, None)]
        passes = compile_filter(call.filter)
        return [(fetch, static_kwargs, passes) for fetch in deeper(call.k)]

    def _store_filter(self) -> Any:
        """A filter in the store's own language that holds beside the kit's, if there is one."""
        return None

    def _forms(self, query: str, fetch: int, kwargs: dict[str, Any]) -> tuple[Any, Any]:
        """The blocking and the asynchronous form of one search of the store."""
        return (
            lambda _: self._from_store(query, fetch, kwargs),
            lambda _: self._afrom_store(query, fetch, kwargs),
        )

    def _from_store(self, query: str, fetch: int, kwargs: dict[str, Any]) -> _Scored:
        try:
            return list(self.vectorstore.similarity_search_with_score(query, k=fetch, **kwargs))
        except NotImplementedError:
            return [(doc, None) for doc in self.vectorstore.similarity_search(query, k=fetch, **kwargs)]

    async def _afrom_store(self, query: str, fetch: int, kwargs: dict[str, Any]) -> _Scored:
        store = self.vectorstore
        if native_async_scores(store):
            search = partial(store.asimilarity_search_with_score, query, k=fetch, **kwargs)
            blocking = partial(self._from_store, query, fetch, kwargs)
            return list(await call_client(search, blocking, connections_of(store)))
        return await run_in_thread(partial(self._from_store, query, fetch, kwargs))

    def _with_stages(self, query: str, call: Call, scored: _Scored) -> list[Document]:
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
            for rank, (doc, raw) in enumerate(scored[: call.k], start=1)
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


def method_by_vector(store: VectorStore) -> str | None:
    """The store's method that finds by vector what its search by text does; known of two stores.

    Of other stores, and of classes made from these, the search by text may do more than compare vectors.
    """
    search = type(store).similarity_search_with_score
    if search is InMemoryVectorStore.similarity_search_with_score:
        return _SCORED[0]
    chroma = sys.modules.get("langchain_chroma")
    return _SCORED[1] if chroma and search is chroma.Chroma.similarity_search_with_score else None


class VectorSearch(VectorRetriever):
    """As ``VectorRetriever``, with a ready vector, and a filter in the store's own language beside the kit's."""

    searches_together: ClassVar[bool] = False

    vector: Sequence[float]
    store_filter: Any = None

    def _store_filter(self) -> Any:
        return self.store_filter

    def _from_store(self, query: str, fetch: int, kwargs: dict[str, Any]) -> _Scored:
        store, vector = self.vectorstore, list(self.vector)
        for name in _SCORED:
            if hasattr(store, name):
                return list(getattr(store, name)(vector, k=fetch, **kwargs))
        return [(doc, None) for doc in store.similarity_search_by_vector(vector, k=fetch, **kwargs)]

    async def _afrom_store(self, query: str, fetch: int, kwargs: dict[str, Any]) -> _Scored:
        store, blocking = self.vectorstore, partial(self._from_store, query, fetch, kwargs)
        for name in _SCORED:
            if hasattr(store, f"a{name}"):
                search = partial(getattr(store, f"a{name}"), list(self.vector), k=fetch, **kwargs)
                return list(await call_client(search, blocking))
        return await run_in_thread(blocking)

    async def _search_many(self, calls: Sequence[Call]) -> list[Found]:
        return await RagKitRetriever._search_many(self, calls)
