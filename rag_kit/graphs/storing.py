"""Passages that any checkpointer takes, whatever their metadata hold."""

from __future__ import annotations

from typing import Any

from langchain_core.documents import Document
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from rag_kit.documents.plain import to_plain

_SERIALIZER = JsonPlusSerializer()


def storable(document: Document) -> Document:
    """The document, or a copy with plain metadata where LangGraph's serializer refuses them.

    Stores give back objects of their own (identifiers, numbers beyond 64 bits); with a checkpointer one of them would
    end the run with an error that does not say where it is.

    Example:
        >>> known = Document("Text.", metadata={"page": 2})
        >>> storable(known) is known
        True
        >>> storable(Document("Text.", metadata={"page": 2, "n": 10**30})).metadata
        {'page': 2, 'n': '1000000000000000000000000000000'}
    """
    try:
        _SERIALIZER.dumps_typed(document.metadata)
    except (TypeError, ValueError, OverflowError, RecursionError):
        plain = _small(to_plain(document.metadata))
        return Document(page_content=document.page_content, metadata=plain, id=document.id)
    return document


def _small(value: Any) -> Any:
    """Plain data without numbers beyond 64 bits, and without halves of characters in keys."""
    if isinstance(value, dict):
        return {key.encode("utf-8", "backslashreplace").decode(): _small(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_small(item) for item in value]
    if isinstance(value, int) and not -(2**63) <= value < 2**64:
        return str(value)
    return value
