"""Dense search over any LangChain vector store, with scores in the provenance."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, ClassVar

from langchain_core.documents import Document
from langchain_core.structured_query import Visitor
from langchain_core.vectorstores import InMemoryVectorStore, VectorStore

from rag_kit.concurrency.bridge import call_client, run_in_thread
from rag_kit.concurrency.steps import Step
from rag_kit.documents import compile_filter
from rag_kit.models.query_vectors import prepare_vectors, prepared_vector
from rag_kit.models.runnables import connections_of
from rag_kit.retrieval.base import RagKitRetriever
from rag_kit.retrieval.call import Call
from rag_kit.retrieval.stores import deeper, is_native, native_filter

_Scored = list[tuple[Document, float | None]]
# Searches that also give scores, and one that does not; for the former by vector LangChain has no common name.
#: Methods of stores by what they search for: those that give scores, and the one that does not.
_SCORED = {
    str: ("similarity_search_with_score",),
    list: ("similarity_search_with_score_by_vector", "similarity_search_by_vector_with_relevance_scores"),
}
_UNSCORED = {str: "similarity_search", list: "similarity_search_by_vector"}


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

    async def prepare(self, queries: Sequence[str]) -> None:
        """Embed the queries in one request, where the model can and the store finds the same by vector."""
        if self.searches_together and _finds_alike_by_vector(self.vectorstore):
            await prepare_vectors(self, self.vectorstore.embeddings, queries)

    async def _search(self, query: str, call: Call) -> list[Document]:
        store = self.vectorstore
        vector = prepared_vector(self, store.embeddings, query) if _finds_alike_by_vector(store) else None
        return await self._nearest(query if vector is None else [*vector], call)

    async def _nearest(self, sought: str | list[float], call: Call, static: Any = None) -> list[Document]:
        """Search for a text or a vector; go deeper until enough documents pass a filter that the store cannot check.

        ``static`` is a filter in the store's own language, which holds beside the kit's.
        """
        passing: _Scored = []
        for fetch, where, passes in self._attempts(call, static):
            arguments = {"k": fetch} if where is None else {"k": fetch, "filter": where}
            scored = await self._store_step(sought, arguments)
            passing = scored if passes is None else [pair for pair in scored if passes(pair[0].metadata)]
            if passes is None or len(scored) < fetch or len(passing) >= call.k:
                break
        return self._with_stages(call, passing)

    def _attempts(
        self, call: Call, static: Any
    ) -> list[tuple[int, Any, Callable[[dict[str, Any]], bool] | None]]:
        """Return how deep to search in turn, the filter for the store, and the filter to check afterwards."""
        if call.filter is None:
            return [(call.k, static, None)]
        translator = self.structured_query_translator
        native = native_filter(self.vectorstore, call.filter, static=static, translator=translator)
        if native is not None:
            return [(call.k, native, None)]
        passes = compile_filter(call.filter)
        return [(fetch, static, passes) for fetch in deeper(call.k)]

    def _store_step(self, sought: str | list[float], arguments: dict[str, Any]) -> Step[_Scored]:
        """Make the step that searches the store for a text or a vector; it needs no context of the run."""
        return Step(
            "search",
            lambda _: self._from_store(sought, arguments),
            lambda _: self._afrom_store(sought, arguments),
        )

    def _from_store(self, sought: str | list[float], arguments: dict[str, Any]) -> _Scored:
        """Search the store, with scores where it gives them."""
        kind = str if isinstance(sought, str) else list
        for name in _SCORED[kind]:
            if hasattr(self.vectorstore, name):
                with suppress(NotImplementedError):
                    return list(getattr(self.vectorstore, name)(sought, **arguments))
        return [(doc, None) for doc in getattr(self.vectorstore, _UNSCORED[kind])(sought, **arguments)]

    async def _afrom_store(self, sought: str | list[float], arguments: dict[str, Any]) -> _Scored:
        """As ``_from_store``; a store without a coroutine of its own is searched on a thread."""
        store, blocking = self.vectorstore, partial(self._from_store, sought, arguments)
        for name in _SCORED[str if isinstance(sought, str) else list]:
            if is_native(store, f"a{name}"):
                search = partial(getattr(store, f"a{name}"), sought, **arguments)
                with suppress(NotImplementedError):
                    return list(await call_client(search, blocking, connections_of(store)))
        return await run_in_thread(blocking)

    def _with_stages(self, call: Call, scored: _Scored) -> list[Document]:
        """Put the store's score and its relevance (0 to 1) into the documents' provenance."""
        relevance = self._relevance()
        # what a store keeps from an earlier search is not of this one
        fresh: dict[str, Any] = {"sources": (), "notes": ()}
        return [
            call.with_stage(doc, "dense", rank, _relevant(raw, relevance), **fresh, store_score=raw)
            for rank, (doc, raw) in enumerate(scored[: call.k], start=1)
        ]

    def _relevance(self) -> Callable[[float], float] | None:
        """Return the store's own function from scores to relevance, if it has one."""
        try:
            return self.vectorstore._select_relevance_score_fn()
        except (NotImplementedError, ValueError):
            return None


def _relevant(raw: float | None, relevance: Callable[[float], float] | None) -> float | None:
    if raw is None:
        return None
    value = float(raw) if relevance is None else float(relevance(float(raw)))
    return value if math.isfinite(value) else None


def _finds_alike_by_vector(store: VectorStore) -> bool:
    """Tell whether searching the store by vector finds the same as by text; a subclass may differ."""
    search = type(store).similarity_search_with_score
    if search is InMemoryVectorStore.similarity_search_with_score:
        return True
    chroma = sys.modules.get("langchain_chroma")
    return chroma is not None and search is chroma.Chroma.similarity_search_with_score


class VectorSearch(VectorRetriever):
    """As ``VectorRetriever``, with a ready vector, and a filter in the store's own language beside the kit's."""

    searches_together: ClassVar[bool] = False

    vector: Sequence[float]
    store_filter: Any = None

    async def _search(self, query: str, call: Call) -> list[Document]:
        return await self._nearest(list(self.vector), call, self.store_filter)
