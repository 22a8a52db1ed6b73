"""Filters of the kit in the language of a vector store, and what a translation has to know of the store."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from rag_kit.documents import Filter, compile_filter
from rag_kit.documents.filter_translations import to_chroma, to_qdrant

if TYPE_CHECKING:
    from langchain_core.vectorstores import VectorStore


def made_by(store: VectorStore, package: str) -> bool:
    """Tell whether a store's class, or a base of it, is of a package, without importing that."""
    return any(base.__module__.split(".")[0] == package for base in type(store).__mro__)


def translator_of(store: VectorStore) -> Callable[[Filter], Any] | None:
    """Return a function from the kit's filters to the ``filter`` argument of a store; ``None`` for an unknown store."""
    from langchain_core.vectorstores import InMemoryVectorStore

    if isinstance(store, InMemoryVectorStore):
        return _predicate
    if made_by(store, "langchain_chroma"):
        return to_chroma
    if made_by(store, "langchain_qdrant"):
        key = str(getattr(store, "metadata_payload_key", "metadata"))
        return lambda where: to_qdrant(where, metadata_key=key)
    return None


def _predicate(where: Filter) -> Callable[[Any], bool]:
    """Make a function from a document to whether it passes."""
    passes = compile_filter(where)
    return lambda document: passes(document.metadata)
