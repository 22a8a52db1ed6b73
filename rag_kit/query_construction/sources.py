"""The rows behind a retriever or store: for finding out its fields, and for listing by metadata alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import count, islice
from typing import Any

from langchain_core.documents import Document
from langchain_core.runnables import Runnable, RunnableSequence
from langchain_core.vectorstores import InMemoryVectorStore, VectorStore

from rag_kit.documents import Filter, compile_filter, copy_document
from rag_kit.errors import InvalidInputError
from rag_kit.indexing import BM25Index, DocumentIndex
from rag_kit.indexing.store_filters import made_by
from rag_kit.retrieval import BM25Retriever, VectorRetriever, index_retriever
from rag_kit.retrieval.own_filter import inside
from rag_kit.retrieval.stores import native_filter

_GROUP = 500
# not the sources of a router: one of them has a part of the rows only
_LISTED = ("index", "vectorstore", "documents", "retriever", "base_retriever", "retrievers")


class Source:
    """The rows of an index, a store or a list of documents."""

    def __init__(self, value: Any) -> None:
        self._value = value

    def documents(self, where: Filter | None, limit: int) -> list[Document]:
        """Copies of the first `limit` documents that pass; pages are read only until there are as many."""
        passes = compile_filter(where)
        passing = (doc for page in self._pages(where) for doc in page if passes(doc.metadata))
        return [copy_document(doc) for doc in islice(passing, limit)]

    def _pages(self, where: Filter | None) -> Iterable[Sequence[Document]]:
        """The rows in the collection's order, at least those that pass a filter."""
        value = self._value
        if isinstance(value, (BM25Index, DocumentIndex)):
            ids = value.ids if isinstance(value, BM25Index) else value.passage_ids()
            return (value.get(ids[start : start + _GROUP]) for start in range(0, len(ids), _GROUP))
        if isinstance(value, InMemoryVectorStore):
            rows = list(value.store.values())
            return [[Document(row["text"], id=row["id"], metadata=row["metadata"]) for row in rows]]
        if isinstance(value, VectorStore):
            native = native_filter(value, where) if where else None
            return (
                _of_qdrant(value, native) if made_by(value, "langchain_qdrant") else _of_store(value, native)
            )
        return [value]


def source_of(value: Any) -> Source | None:
    """The rows behind a store, an index, documents, or a retriever over one of them, whatever filter it has.

    Returns:
        The source; ``None`` where the rows cannot be listed.

    Example:
        >>> source = source_of([Document("a", metadata={"year": 1}), Document("b", metadata={"year": 2})])
        >>> [doc.page_content for doc in source.documents({"year": 2}, 10)]
        ['b']
        >>> source_of("nothing") is None
        True
    """
    if isinstance(value, Source):
        return value
    if isinstance(value, RunnableSequence):  # its later steps may hide rows
        return None
    if isinstance(value, Runnable):
        return next((source for part in inside(value, names=_LISTED) if (source := source_of(part))), None)
    if isinstance(value, VectorStore):
        chroma = made_by(value, "langchain_chroma") or (
            made_by(value, "langchain_postgres") and hasattr(value, "get")
        )
        listed = chroma or isinstance(value, InMemoryVectorStore) or made_by(value, "langchain_qdrant")
    elif isinstance(value, (list, tuple)):
        listed = all(isinstance(item, Document) for item in value)
    else:
        listed = isinstance(value, (BM25Index, DocumentIndex))
    return Source(value) if listed else None


def as_retriever(value: Any) -> Runnable[str, list[Document]]:
    """The retriever over a store, an index or documents; a retriever is itself.

    Raises:
        InvalidInputError: It is none of them.
    """
    if isinstance(value, Runnable):
        return value
    if isinstance(value, BM25Index):
        return BM25Retriever(index=value)
    if isinstance(value, DocumentIndex):
        return index_retriever(value)
    if isinstance(value, VectorStore):
        return VectorRetriever(vectorstore=value)
    if isinstance(value, Iterable) and not isinstance(value, (str, bytes)):
        documents = list(value)
        if all(isinstance(item, Document) for item in documents):
            return BM25Retriever.from_documents(documents)
    raise InvalidInputError(
        f"retriever is {type(value).__name__}; it must be a LangChain retriever, a vector store, a BM25Index, a "
        "DocumentIndex, or a list of documents."
    )


def _of_store(store: Any, native: Any) -> Iterator[list[Document]]:
    """The pages of a store whose ``get`` is like Chroma's."""
    for offset in count(0, _GROUP):
        page = store.get(where=native, limit=_GROUP, offset=offset, include=["documents", "metadatas"])
        rows = zip(page["ids"], page["documents"], page["metadatas"], strict=True)
        yield [
            Document(text or "", id=str(key), metadata=dict(metadata or {})) for key, text, metadata in rows
        ]
        if len(page["ids"]) < _GROUP:
            return


def _of_qdrant(store: Any, native: Any) -> Iterator[list[Document]]:
    """The documents of a collection of Qdrant that pass its filter, in groups."""
    offset: Any = None
    text, metadata = store.content_payload_key, store.metadata_payload_key
    while True:
        points, offset = store.client.scroll(
            store.collection_name, scroll_filter=native, limit=_GROUP, offset=offset, with_payload=True
        )
        payloads = [(str(point.id), point.payload or {}) for point in points]
        yield [
            Document(of.get(text) or "", id=key, metadata=dict(of.get(metadata) or {}))
            for key, of in payloads
        ]
        if offset is None:
            return
