"""Whether the documents behind a retriever have the fields that a filter asks for."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from typing import Any
from weakref import WeakKeyDictionary

from langchain_core.runnables import RunnableConfig
from langchain_core.vectorstores import InMemoryVectorStore, VectorStore

from rag_kit.documents.fields import Fields, fields_of_filter, lacking, read_fields, unknown_field
from rag_kit.indexing.store_filters import made_by
from rag_kit.retrieval.own_filter import MAX_DEPTH, are_documents, inside, own_filter

_log = logging.getLogger(__name__)
_known: WeakKeyDictionary[Any, Fields] = WeakKeyDictionary()
_PAGE = 1_000
_MAX_ROWS = 20_000  # rows of a foreign store that are read to find a field; with more it is not known


class _NotKnownError(Exception):
    """The rows of a source cannot be listed."""


def known_already(retriever: Any, wanted: Fields, config: RunnableConfig | None) -> bool:
    """Whether all fields that are wanted were seen in earlier calls, so that no source need be read."""
    try:
        seen = [_known.get(source, {}) for source in _sources(retriever, config, 0) if _kept(source)]
    except _NotKnownError:
        return True
    return not lacking(wanted, {name: any(each.get(name) for each in seen) for each in seen for name in each})


def check_fields(retriever: Any, wanted: Fields, config: RunnableConfig | None = None) -> None:
    """Refuse a filter on a field that no document has.

    Nothing is refused where the documents cannot be listed (a foreign store, a retriever that is a function), and
    where there are none.

    Raises:
        InvalidInputError: No document has one of the fields; the message lists the fields there are, unless the
            retriever has a filter that keeps the caller from some of the documents.
    """
    known: Fields = {}
    try:
        for source in list(_sources(retriever, config, 0)):
            for name, many in _fields(source, lacking(wanted, known)).items():
                known[name] = known.get(name, False) or many
            if not lacking(wanted, known):
                return
    except _NotKnownError:
        return
    if known:
        missing = lacking(wanted, known)
        own = own_filter(retriever, config)
        raise unknown_field(
            missing, known, listed=own is None or not missing.keys().isdisjoint(fields_of_filter(own))
        )


def _sources(retriever: Any, config: RunnableConfig | None, depth: int) -> Iterator[Any]:
    """The indexes, stores and lists of documents that a retriever searches; raises if one cannot be listed."""
    if depth > MAX_DEPTH:
        raise _NotKnownError
    if (
        are_documents(retriever)
        or hasattr(retriever, "metadata_rows")
        or isinstance(retriever, InMemoryVectorStore)
    ):
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


def _fields(source: Any, wanted: Fields) -> Fields:
    """The known fields of a source, read again if one that is wanted is not among them."""
    kept = _known.get(source, {}) if _kept(source) else {}
    if wanted and not lacking(wanted, kept):
        return kept
    try:
        found, whole = read_fields(_rows(source), wanted)
    except _NotKnownError:
        raise
    except Exception as error:
        _log.debug("The fields of %s cannot be listed: %s", type(source).__name__, type(error).__name__)
        raise _NotKnownError from error
    if not whole:
        found = {name: found.get(name, False) or kept.get(name, False) for name in {**kept, **found}}
    if _kept(source):
        _known[source] = found
    return found


def _kept(source: Any) -> bool:
    return not isinstance(source, (list, tuple))


def _rows(source: Any) -> Iterator[Mapping[str, Any]]:
    if hasattr(source, "metadata_rows"):
        yield from source.metadata_rows()
    elif isinstance(source, InMemoryVectorStore):
        yield from [row["metadata"] for row in list(source.store.values())]
    elif not _kept(source):
        yield from (document.metadata for document in source)
    else:
        for start in range(0, _MAX_ROWS + 1, _PAGE):
            page = source.get(limit=_PAGE, offset=start, include=["metadatas"])["metadatas"]
            yield from [row or {} for row in page]
            if len(page) < _PAGE:
                return
        raise _NotKnownError
