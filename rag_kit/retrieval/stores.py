"""What vector stores differ in: their filter language, and whether they are asynchronous by themselves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from langchain_core.structured_query import Visitor
from langchain_core.vectorstores import VectorStore

from rag_kit.documents import Filter
from rag_kit.errors import FilterError
from rag_kit.indexing.store_filters import translator_of
from rag_kit.retrieval.translators import by_langchain


def native_filter(
    store: VectorStore, where: Filter, *, static: Any = None, translator: Visitor | None = None
) -> Any | None:
    """A filter in the store's own language, ANDed with the store's own static one.

    Args:
        store: The vector store; Chroma, PGVectorStore, Qdrant, the in-memory store and ``ExactVectorStore`` are known,
            and plain comparisons go to the stores that LangChain has a translator for.
        where: The filter of the kit.
        static: A filter in the store's own language that holds already, or ``None``.
        translator: LangChain's translator for a store that is not known.

    Returns:
        What the store's ``filter`` argument takes; ``None`` if the store is unknown or cannot say it, so that
        the results have to be filtered afterwards.
    """
    translate = translator_of(store)
    if translate is None:
        return by_langchain(store, where, translator) if static is None else None
    try:
        return _both(static, translate(where))
    except FilterError:
        return None


def _both(static: Any, mine: Any) -> Any | None:
    """Two filters of one store, ANDed; ``None`` where they are not of one kind."""
    if mine is None or static is None:
        return mine if mine is not None else static
    if callable(mine):
        return (lambda document: mine(document) and bool(static(document))) if callable(static) else None
    if isinstance(mine, Mapping):
        return {"$and": [static, mine]} if isinstance(static, Mapping) else None
    return type(mine)(must=[static, mine]) if isinstance(static, type(mine)) else None


def native_async(store: VectorStore) -> bool:
    """Whether the store searches asynchronously by itself, rather than through asyncio's small pool."""
    return type(store).asimilarity_search is not VectorStore.asimilarity_search


def native_async_scores(store: VectorStore) -> bool:
    """As ``native_async``, for the search with scores."""
    return type(store).asimilarity_search_with_score is not VectorStore.asimilarity_search_with_score
