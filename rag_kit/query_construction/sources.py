"""The rows behind a retriever or store: for finding out its fields, and for listing by metadata alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import islice
from typing import Any

from langchain_core.documents import Document
from langchain_core.runnables import Runnable
from langchain_core.runnables.base import RunnableBindingBase
from langchain_core.vectorstores import InMemoryVectorStore, VectorStore

from rag_kit.concurrency import run_in_thread
from rag_kit.documents import Filter, combine_filters, compile_filter, copy_document
from rag_kit.errors import InvalidInputError
from rag_kit.indexing import BM25Index, DocumentIndex
from rag_kit.retrieval import BM25Retriever, ExactVectorStore, VectorRetriever, index_retriever
from rag_kit.retrieval.own_filter import own_filter
from rag_kit.retrieval.stores import native_filter

Read = Callable[[Filter | None, int], list[Document]]
_GROUP = 500


class Source:
    """The rows of a collection.

    Args:
        read: Gives at most so many documents that pass a filter.
        kind: What it is, for messages.
    """

    def __init__(self, read: Read, kind: str) -> None:
        self._read = read
        self.kind = kind

    def documents(self, where: Filter | None, limit: int) -> list[Document]:
        """Copies of the documents that pass, in the collection's own order."""
        return self._read(where, limit)

    async def adocuments(self, where: Filter | None, limit: int) -> list[Document]:
        """As ``documents``, on the shared pool of threads."""
        return await run_in_thread(partial(self._read, where, limit))

    def narrowed(self, own: Filter) -> Source:
        """Those of the rows that pass a filter besides."""
        return Source(partial(_narrowed, self._read, own), self.kind)


def _narrowed(read: Read, own: Filter, where: Filter | None, limit: int) -> list[Document]:
    return read(combine_filters(own, where), limit)


def source_of(value: Any) -> Source | None:
    """The rows behind a store, an index, documents, or a retriever over one of them.

    Of a retriever only those rows are listed that pass its own filter.

    Returns:
        The source; ``None`` where the rows cannot be listed.

    Raises:
        FilterError: The retriever has a filter of its own that cannot be read.

    Example:
        >>> source = source_of([Document("a", metadata={"year": 1}), Document("b", metadata={"year": 2})])
        >>> [doc.page_content for doc in source.documents({"year": 2}, 10)]
        ['b']
        >>> source_of("nothing") is None
        True
    """
    found = rows_behind(value)
    where = None if found is None or not isinstance(value, Runnable) else own_filter(value, strict=True)
    return found if found is None or where is None else found.narrowed(where)


def rows_behind(value: Any) -> Source | None:
    """As ``source_of``, without regard to the filter of a retriever."""
    if isinstance(value, Source):
        return value
    if isinstance(value, BM25Index):
        return Source(partial(_from_ids, partial(getattr, value, "ids"), value.get), "BM25Index")
    if isinstance(value, DocumentIndex):
        return Source(partial(_from_ids, value.ids, value.get), "DocumentIndex")
    if isinstance(value, InMemoryVectorStore):
        return Source(partial(_from_memory, value), "InMemoryVectorStore")
    if isinstance(value, VectorStore):
        return _of_store(value)
    if isinstance(value, RunnableBindingBase):
        return rows_behind(value.bound)
    if isinstance(value, Runnable):
        return _of_retriever(value)
    if (
        isinstance(value, Sequence)
        and not isinstance(value, str)
        and all(isinstance(item, Document) for item in value)
    ):
        return Source(partial(_from_documents, tuple(value)), "documents")
    return None


def _of_retriever(value: Any) -> Source | None:
    for name in ("index", "vectorstore", "retriever", "base_retriever", "retrievers"):
        part = getattr(value, name, None)
        for one in part if isinstance(part, (list, tuple)) else [part]:
            if one is not None and (found := rows_behind(one)) is not None:
                return found
    return None


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


def _from_documents(documents: Sequence[Document], where: Filter | None, limit: int) -> list[Document]:
    passes = compile_filter(where)
    return [copy_document(doc) for doc in islice((doc for doc in documents if passes(doc.metadata)), limit)]


def _from_ids(
    ids: Callable[[], Sequence[str]],
    get: Callable[[Sequence[str]], list[Document]],
    where: Filter | None,
    limit: int,
) -> list[Document]:
    passes = compile_filter(where)
    found: list[Document] = []
    names = list(ids())
    for start in range(0, len(names), _GROUP):
        found += [doc for doc in get(names[start : start + _GROUP]) if passes(doc.metadata)]
        if len(found) >= limit:
            break
    return found[:limit]


def _from_memory(store: InMemoryVectorStore, where: Filter | None, limit: int) -> list[Document]:
    documents = [
        Document(row["text"], id=row["id"], metadata=row["metadata"]) for row in store.store.values()
    ]
    return _from_documents(documents, where, limit)


def _of_store(store: VectorStore) -> Source | None:
    if isinstance(store, ExactVectorStore):
        return rows_behind(store.vectorstore)
    module = {base.__module__.split(".")[0] for base in type(store).__mro__}
    if "langchain_chroma" in module:
        return Source(partial(_from_chroma, store), "Chroma")
    if "langchain_qdrant" in module:
        return Source(partial(_from_qdrant, store), "Qdrant")
    if "langchain_postgres" in module and hasattr(store, "get"):
        return Source(partial(_from_postgres, store), "PGVectorStore")
    return None


def _paged(
    store: VectorStore, where: Filter | None, limit: int, page: Callable[[Any, int, int], list[Document]]
) -> list[Document]:
    """Read page after page; what the store cannot filter by is filtered here."""
    native = native_filter(store, where) if where else None
    passes = compile_filter(where)
    found: list[Document] = []
    offset = 0
    while len(found) < limit:
        rows = page(native, offset, _GROUP)
        found += [doc for doc in rows if passes(doc.metadata)]
        offset += _GROUP
        if len(rows) < _GROUP:
            break
    return found[:limit]


def _from_chroma(store: Any, where: Filter | None, limit: int) -> list[Document]:
    def page(native: Any, offset: int, count: int) -> list[Document]:
        got = store.get(where=native, limit=count, offset=offset, include=["documents", "metadatas"])
        rows = zip(got["ids"], got["documents"], got["metadatas"], strict=True)
        return [Document(text or "", id=key, metadata=dict(metadata or {})) for key, text, metadata in rows]

    return _paged(store, where, limit, page)


def _from_postgres(store: Any, where: Filter | None, limit: int) -> list[Document]:
    def page(native: Any, offset: int, count: int) -> list[Document]:
        got = store.get(where=native, limit=count, offset=offset, include=["documents", "metadatas"])
        rows = zip(got["ids"], got["documents"], got["metadatas"], strict=True)
        return [Document(text or "", id=str(key), metadata=dict(meta or {})) for key, text, meta in rows]

    return _paged(store, where, limit, page)


def _from_qdrant(store: Any, where: Filter | None, limit: int) -> list[Document]:
    passes = compile_filter(where)
    native = native_filter(store, where) if where else None
    found: list[Document] = []
    offset: Any = None
    while len(found) < limit:
        points, offset = store.client.scroll(
            store.collection_name, scroll_filter=native, limit=_GROUP, offset=offset, with_payload=True
        )
        for point in points:
            payload = point.payload or {}
            metadata = dict(payload.get(store.metadata_payload_key) or {})
            if passes(metadata):
                text = payload.get(store.content_payload_key) or ""
                found.append(Document(text, id=str(point.id), metadata=metadata))
        if offset is None:
            break
    return found[:limit]
