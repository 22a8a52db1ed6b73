"""The rows behind a retriever or store: for finding out its fields, and for listing by metadata alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import count, islice
from typing import Any

from langchain_core.documents import Document
from langchain_core.runnables import Runnable
from langchain_core.runnables.base import RunnableBindingBase
from langchain_core.vectorstores import InMemoryVectorStore, VectorStore

from rag_kit.concurrency.bridge import run_in_thread
from rag_kit.documents import Filter, combine_filters, compile_filter, copy_document
from rag_kit.errors import InvalidInputError
from rag_kit.indexing import BM25Index, DocumentIndex
from rag_kit.retrieval import BM25Retriever, VectorRetriever, index_retriever
from rag_kit.retrieval.exact.store import ExactVectorStore
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
        return Source(partial(_from_ids, value.passage_ids, value.get), "DocumentIndex")
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


def _passing(pages: Iterable[Iterable[Document]], where: Filter | None, limit: int) -> list[Document]:
    """The first `limit` documents that pass; pages are read only until there are as many."""
    passes = compile_filter(where)
    return list(islice((doc for page in pages for doc in page if passes(doc.metadata)), limit))


def _from_documents(documents: Sequence[Document], where: Filter | None, limit: int) -> list[Document]:
    return [copy_document(doc) for doc in _passing([documents], where, limit)]


def _from_ids(
    ids: Callable[[], Sequence[str]],
    get: Callable[[Sequence[str]], list[Document]],
    where: Filter | None,
    limit: int,
) -> list[Document]:
    names = list(ids())
    pages = (get(names[start : start + _GROUP]) for start in range(0, len(names), _GROUP))
    return _passing(pages, where, limit)


def _from_memory(store: InMemoryVectorStore, where: Filter | None, limit: int) -> list[Document]:
    rows = store.store.values()
    documents = [Document(row["text"], id=row["id"], metadata=row["metadata"]) for row in rows]
    return _from_documents(documents, where, limit)


def _of_store(store: VectorStore) -> Source | None:
    if isinstance(store, ExactVectorStore):
        return rows_behind(store.vectorstore)
    module = {base.__module__.split(".")[0] for base in type(store).__mro__}
    if "langchain_chroma" in module:
        return Source(partial(_from_store, _pages, store), "Chroma")
    if "langchain_qdrant" in module:
        return Source(partial(_from_store, _pages_of_qdrant, store), "Qdrant")
    if "langchain_postgres" in module and hasattr(store, "get"):
        return Source(partial(_from_store, _pages, store), "PGVectorStore")
    return None


def _from_store(
    pages: Callable[[Any, Any], Iterator[list[Document]]], store: Any, where: Filter | None, limit: int
) -> list[Document]:
    """The documents of a store that pass; it filters by what it can, and its pages are tested for the rest."""
    return _passing(pages(store, native_filter(store, where) if where else None), where, limit)


def _pages(store: Any, native: Any) -> Iterator[list[Document]]:
    """The pages of a store whose ``get`` is like Chroma's."""
    for offset in count(0, _GROUP):
        got = store.get(where=native, limit=_GROUP, offset=offset, include=["documents", "metadatas"])
        rows = zip(got["ids"], got["documents"], got["metadatas"], strict=True)
        yield [Document(text or "", id=str(key), metadata=dict(known or {})) for key, text, known in rows]
        if len(got["ids"]) < _GROUP:
            return


def _pages_of_qdrant(store: Any, native: Any) -> Iterator[list[Document]]:
    offset: Any = None
    while True:
        points, offset = store.client.scroll(
            store.collection_name, scroll_filter=native, limit=_GROUP, offset=offset, with_payload=True
        )
        payloads = [(point.id, point.payload or {}) for point in points]
        yield [
            Document(
                payload.get(store.content_payload_key) or "",
                id=str(key),
                metadata=dict(payload.get(store.metadata_payload_key) or {}),
            )
            for key, payload in payloads
        ]
        if offset is None:
            return
