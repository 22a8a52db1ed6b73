"""What vector stores differ in: their filter language, and whether they are asynchronous by themselves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from langchain_core.documents import Document
from langchain_core.structured_query import Visitor
from langchain_core.vectorstores import InMemoryVectorStore, VectorStore

from rag_kit.documents import Filter, combine_filters, compile_filter, to_chroma
from rag_kit.documents.filters_postgres import to_postgres
from rag_kit.documents.filters_qdrant import to_qdrant
from rag_kit.errors import FilterError
from rag_kit.retrieval.store_access import both_qdrant, made_by, payload_key, postgres_columns
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
    if isinstance(store, InMemoryVectorStore):
        return _predicate(where, static)
    if getattr(store, "takes_kit_filters", False):
        return combine_filters(static, where)
    try:
        if is_chroma(store):
            return _both(static, to_chroma(where))
        if made_by(store, "langchain_postgres"):
            columns = postgres_columns(store)
            return None if columns is None else _both(static, to_postgres(where, columns))
        if made_by(store, "langchain_qdrant"):
            return both_qdrant(static, to_qdrant(where, metadata_key=payload_key(store)))
    except FilterError:
        return None
    return by_langchain(store, where, translator) if static is None else None


def _both(static: Any, mine: dict[str, Any] | None) -> Any | None:
    """Two filters of the Mongo kind, ANDed."""
    if mine is None or static is None:
        return mine if mine is not None else static
    return {"$and": [static, mine]} if isinstance(static, Mapping) else None


def is_chroma(store: VectorStore) -> bool:
    """Whether a store is LangChain's Chroma, or a class made from it; imports nothing to tell."""
    return made_by(store, "langchain_chroma")


def native_async(store: VectorStore) -> bool:
    """Whether the store searches asynchronously by itself, rather than through asyncio's small pool."""
    return type(store).asimilarity_search is not VectorStore.asimilarity_search


def native_async_scores(store: VectorStore) -> bool:
    """As ``native_async``, for the search with scores."""
    return type(store).asimilarity_search_with_score is not VectorStore.asimilarity_search_with_score


def _predicate(where: Filter, static: Any) -> Any | None:
    if static is not None and not callable(static):
        return None
    passes = compile_filter(where)

    def both(doc: Document) -> bool:
        return passes(doc.metadata) and (static is None or bool(static(doc)))

    return both
