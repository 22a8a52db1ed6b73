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
from rag_kit.concurrency.steps import call_step
from rag_kit.documents import compile_filter
from rag_kit.models.clients import prepare_vectors, prepared_vector
from rag_kit.models.runnables import connections_of
from rag_kit.retrieval.base import RagKitRetriever
from rag_kit.retrieval.call import Call
from rag_kit.retrieval.stores import deeper, is_native, left_out, native_filter

_Scored = list[tuple[Document, float | None]]
#: Methods of stores that search for a text, or for a vector, and give scores; for a vector there is no common name.
_FOR_TEXT = ("similarity_search_with_score",)
_FOR_VECTOR = ("similarity_search_with_score_by_vector", "similarity_search_by_vector_with_relevance_scores")


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
            await prepare_vectors(self.vectorstore.embeddings, queries)

    async def _search(self, query: str, call: Call) -> list[Document]:
        store = self.vectorstore
        vector = prepared_vector(store.embeddings, query) if _finds_alike_by_vector(store) else None
        return await self._nearest(query if vector is None else vector, call)

    async def _nearest(self, sought: str | list[float], call: Call, static: Any = None) -> list[Document]:
        """Search the store for a text, or for a vector, under the filter of the call.

        If the store cannot check that filter, the results are filtered, and more are fetched until enough pass.
        ``static`` is another filter, in the store's own language, which must hold too.
        """
        passing: _Scored = []
        store_filter, passes = static, None  # checked by the store, and on its results
        depths = [call.k]  # how many documents to fetch, in one search after the other
        if call.filter is not None:
            translator = self.structured_query_translator
            store_filter = native_filter(self.vectorstore, call.filter, static=static, translator=translator)
            if store_filter is None:  # the store cannot check the filter of the call
                store_filter, passes, depths = static, compile_filter(call.filter), deeper(call.k)
        for depth in depths:
            arguments = {"k": depth} if store_filter is None else {"k": depth, "filter": store_filter}
            sync = partial(self._search_store, sought, arguments)
            scored = await call_step("search", sync, partial(self._asearch_store, sought, arguments))
            passing = scored if passes is None else [pair for pair in scored if passes(pair[0].metadata)]
            if len(scored) < depth or len(passing) >= call.k:
                break
        else:  # not even the deepest search gave enough
            call.note(left_out(self.get_name(), len(scored) - len(passing)), unsearched=True)
        return self._with_stages(call, passing)

    def _search_store(self, sought: str | list[float], arguments: dict[str, Any]) -> _Scored:
        for name in _FOR_TEXT if isinstance(sought, str) else _FOR_VECTOR:
            if hasattr(self.vectorstore, name):
                with suppress(NotImplementedError):
                    return list(getattr(self.vectorstore, name)(sought, **arguments))
        unscored = "similarity_search" if isinstance(sought, str) else "similarity_search_by_vector"
        return [(doc, None) for doc in getattr(self.vectorstore, unscored)(sought, **arguments)]

    async def _asearch_store(self, sought: str | list[float], arguments: dict[str, Any]) -> _Scored:
        """Search the store by its own coroutine that gives scores; without one, as ``_search_store`` on a thread."""
        store, blocking = self.vectorstore, partial(self._search_store, sought, arguments)
        for name in _FOR_TEXT if isinstance(sought, str) else _FOR_VECTOR:
            if is_native(store, f"a{name}"):
                search = partial(getattr(store, f"a{name}"), sought, **arguments)
                with suppress(NotImplementedError):
                    return list(await call_client(search, blocking, connections_of(store)))
        return await run_in_thread(blocking)

    def _with_stages(self, call: Call, scored: _Scored) -> list[Document]:
        """Put the store's score and, where the store can tell it, its relevance (0 to 1) into the provenance."""
        relevance: Callable[[float], float] = float  # the store's score itself
        with suppress(NotImplementedError, ValueError):  # raised by stores that cannot tell
            relevance = self.vectorstore._select_relevance_score_fn()
        documents = []
        for rank, (doc, store_score) in enumerate(scored[: call.k], start=1):
            score = None if store_score is None else float(relevance(float(store_score)))
            if score is not None and not math.isfinite(score):
                score = None
            # no sources and notes: a stored document may hold the provenance of another search
            fields: dict[str, Any] = {"sources": (), "notes": (), "store_score": store_score}
            documents.append(call.with_stage(doc, "dense", rank, score, **fields))
        return documents


def _finds_alike_by_vector(store: VectorStore) -> bool:
    """Tell whether a store is known to find the same by vector as by text; subclasses with another search are not."""
    search = type(store).similarity_search_with_score
    if search is InMemoryVectorStore.similarity_search_with_score:
        return True
    chroma = sys.modules.get("langchain_chroma")  # if nobody imported it, the store is not Chroma
    return chroma is not None and search is chroma.Chroma.similarity_search_with_score


class VectorSearch(VectorRetriever):
    """A search of a store by a ready vector, under a filter in the store's own language beside the kit's."""

    searches_together: ClassVar[bool] = False

    vector: Sequence[float]
    store_filter: Any = None

    async def _search(self, query: str, call: Call) -> list[Document]:
        return await self._nearest(list(self.vector), call, self.store_filter)
