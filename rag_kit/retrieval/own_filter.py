"""What is inside a retriever: the filter it holds by itself, and the fields that its documents have."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from weakref import WeakKeyDictionary

from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable, RunnableConfig, RunnableSequence, RunnableWithFallbacks
from langchain_core.runnables.base import RunnableBindingBase
from langchain_core.runnables.configurable import DynamicRunnable
from langchain_core.vectorstores import InMemoryVectorStore, VectorStore, VectorStoreRetriever

from rag_kit.documents import Filter, combine_filters
from rag_kit.documents.fields import fields_of_filter, read_fields, unknown_field_error
from rag_kit.errors import FilterError
from rag_kit.indexing.store_filters import made_by

_log = logging.getLogger(__name__)
_known: WeakKeyDictionary[Any, set[str]] = WeakKeyDictionary()
_PAGE = 1_000  # rows of a foreign store that are read at a time
_MAX_ROWS = 20_000  # of a foreign store, read to find a field; of a larger one the fields are not known
_MAX_DEPTH = 16  # retrievers inside one another; one that holds itself has no end
_RETRIEVERS = ("retriever", "base_retriever", "retrievers", "sources")
_SEARCHED = ("index", "vectorstore", "documents", *_RETRIEVERS)


def inside(
    retriever: Any, config: RunnableConfig | None = None, names: Sequence[str] = _SEARCHED
) -> list[Any]:
    """What a retriever asks or searches: the retrievers inside it, or its index, store or list of documents."""
    if isinstance(retriever, RunnableBindingBase):
        return [retriever.bound]
    if isinstance(retriever, DynamicRunnable):
        return [retriever.prepare(config)[0]]
    if isinstance(retriever, RunnableWithFallbacks):
        return [retriever.runnable, *retriever.fallbacks]
    if isinstance(retriever, RunnableSequence):
        return [retriever.first]
    part = next((value for name in names if (value := getattr(retriever, name, None)) is not None), None)
    several = isinstance(part, (list, tuple)) and not are_documents(part)
    parts: list[Any] = [] if part is None else [*part] if several else [part]
    # a source of a router is not a runnable; it has one
    return [getattr(item, "retriever", item) if several else item for item in parts]


def are_documents(value: Any) -> bool:
    """Whether this is a list of documents, which may be long: the first one decides."""
    return isinstance(value, (list, tuple)) and (not value or isinstance(value[0], Document))


def own_filter(
    retriever: Any, config: RunnableConfig | None = None, *, strict: bool = False, _depth: int = 0
) -> Filter | None:
    """The filter that all documents of a retriever pass because of how it was made, with what is inside.

    What is fetched past the retriever, by id or by place, has to keep to it too. A filter that cannot be read is
    passed over, or raises ``FilterError`` with ``strict``.
    """
    if _depth > _MAX_DEPTH:
        _refuse_unreadable(retriever, "it is nested too deep", strict)
        return None
    if isinstance(retriever, RunnableBindingBase):
        outer = retriever.kwargs.get("filter")
    elif isinstance(retriever, VectorStoreRetriever):
        outer = retriever.search_kwargs.get("filter")
    elif isinstance(retriever, (DynamicRunnable, RunnableWithFallbacks, RunnableSequence)):
        outer = None
    elif isinstance(retriever, BaseRetriever):
        outer = getattr(retriever, "filter", None)
    else:
        return None
    parts = inside(retriever, config, _RETRIEVERS)
    inner = _any_of([own_filter(part, config, strict=strict, _depth=_depth + 1) for part in parts])
    if outer is None or outer == {}:
        return inner
    if not isinstance(outer, Mapping):
        _refuse_unreadable(retriever, f"it is {type(outer).__name__}", strict)
        return inner
    try:
        return dict(outer) if outer == inner else combine_filters(outer, inner)
    except FilterError as error:
        _refuse_unreadable(retriever, str(error), strict)
        return inner


def _any_of(filters: Sequence[Filter | None]) -> Filter | None:
    """A filter that passes what one of several passes; None if one of them passes everything."""
    distinct = [where for at, where in enumerate(filters) if where is not None and where not in filters[:at]]
    if not distinct or None in filters:
        return None
    return distinct[0] if len(distinct) == 1 else {"$or": distinct}


def _refuse_unreadable(retriever: Any, why: str, strict: bool) -> None:
    """Raise for a filter that cannot be read, if that matters (``strict``)."""
    if strict:
        name = retriever.get_name() if isinstance(retriever, Runnable) else type(retriever).__name__
        raise FilterError(
            f"{name} has a filter that cannot be read ({why}), so what is fetched past it cannot be checked against "
            "it. Give the filter as a mapping such as {'tenant': 'a'}."
        )


class _NotKnownError(Exception):
    """The rows of a source cannot be listed."""


def known_already(retriever: Any, fields: set[str], config: RunnableConfig | None) -> bool:
    """Whether all fields that are wanted were seen in earlier calls, so that no source need be read."""
    try:
        sources = [source for source in _sources(retriever, config, 0) if _can_be_remembered(source)]
    except _NotKnownError:
        return True
    return fields <= set().union(*(_known.get(source, set()) for source in sources))


def check_fields(retriever: Any, fields: set[str], config: RunnableConfig | None = None) -> None:
    """Refuse a filter on a field that no document has; the message lists the fields there are.

    It names none where the retriever has a filter that keeps the caller from some of the documents. Nothing is refused
    where the documents cannot be listed (a foreign store, a retriever that is a function), and where there are none.
    """
    known_fields: set[str] = set()
    try:
        for source in list(_sources(retriever, config, 0)):
            known_fields |= _fields_of(source, fields - known_fields)
            if fields <= known_fields:
                return
    except _NotKnownError:
        return
    if known_fields:
        where = own_filter(retriever, config)
        missing = fields - known_fields
        raise unknown_field_error(
            missing, known_fields, listed=where is None or not missing.isdisjoint(fields_of_filter(where))
        )


def _sources(retriever: Any, config: RunnableConfig | None, depth: int) -> Iterator[Any]:
    """The indexes, stores and lists of documents that a retriever searches; raises if one cannot be listed."""
    if depth > _MAX_DEPTH:
        raise _NotKnownError
    is_listed = isinstance(retriever, InMemoryVectorStore) or hasattr(retriever, "metadata_rows")
    if is_listed or are_documents(retriever):
        yield retriever
    elif isinstance(retriever, VectorStore):
        if not made_by(retriever, "langchain_chroma"):
            raise _NotKnownError
        yield retriever
    elif parts := inside(retriever, config):
        for part in parts:
            yield from _sources(part, config, depth + 1)
    else:
        raise _NotKnownError


def _fields_of(source: Any, needed: set[str]) -> set[str]:
    """The fields of a source as remembered; read again if one that is wanted is not among them."""
    remembered = _known.get(source, set()) if _can_be_remembered(source) else set()
    if needed and needed <= remembered:
        return remembered
    try:
        fields, complete = read_fields(_metadata_rows(source), needed)
    except _NotKnownError:
        raise
    except Exception as error:
        _log.debug("The fields of %s cannot be listed: %s", type(source).__name__, type(error).__name__)
        raise _NotKnownError from error
    if not complete:
        fields |= remembered
    if _can_be_remembered(source):
        _known[source] = fields
    return fields


def _can_be_remembered(source: Any) -> bool:
    return not isinstance(source, (list, tuple))


def _metadata_rows(source: Any) -> Iterator[Mapping[str, Any]]:
    """The metadata of each document of a source; Chroma is read by pages.

    Raises ``_NotKnownError`` for a collection of more than ``_MAX_ROWS`` documents.
    """
    if hasattr(source, "metadata_rows"):
        yield from source.metadata_rows()
    elif isinstance(source, InMemoryVectorStore):
        yield from [row["metadata"] for row in list(source.store.values())]
    elif not _can_be_remembered(source):
        yield from (document.metadata for document in source)
    else:
        for start in range(0, _MAX_ROWS + 1, _PAGE):
            page = source.get(limit=_PAGE, offset=start, include=["metadatas"])["metadatas"]
            yield from [row or {} for row in page]
            if len(page) < _PAGE:
                return
        raise _NotKnownError
