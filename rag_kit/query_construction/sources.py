"""The rows behind a retriever or store: for finding out its fields, and for listing by metadata alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import count, islice
from typing import Any

from langchain_core.documents import Document
from langchain_core.runnables import Runnable, RunnableSequence
from langchain_core.vectorstores import InMemoryVectorStore, VectorStore

from rag_kit.documents import Filter, combine_filters, compile_filter, copy_document
from rag_kit.errors import InvalidInputError
from rag_kit.indexing import BM25Index, DocumentIndex
from rag_kit.indexing.store_filters import made_by
from rag_kit.retrieval import BM25Retriever, VectorRetriever, index_retriever
from rag_kit.retrieval.own_filter import inside, own_filter
from rag_kit.retrieval.stores import native_filter

Pages = Callable[[Filter | None], Iterable[Iterable[Document]]]
_GROUP = 500
# not the sources of a router: one of them has a part of the rows only
_LISTED = ("index", "vectorstore", "documents", "retriever", "base_retriever", "retrievers")


class Source:
    """The rows of a collection.

    Args:
        pages: Gives the rows in the collection's order, at least those that pass a filter.
        own: A filter that all rows have to pass.
    """

    def __init__(self, pages: Pages, own: Filter | None = None) -> None:
        self._pages = pages
        self._own = own

    def documents(self, where: Filter | None, limit: int) -> list[Document]:
        """Copies of the first `limit` documents that pass; pages are read only until there are as many."""
        both = combine_filters(self._own, where)
        passes = compile_filter(both)
        found = (doc for page in self._pages(both) for doc in page if passes(doc.metadata))
        return [copy_document(doc) for doc in islice(found, limit)]

    def narrowed(self, own: Filter | None) -> Source:
        """Those of the rows that pass a filter besides."""
        return Source(self._pages, combine_filters(self._own, own))


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
    if found is None or not isinstance(value, Runnable):
        return found
    return found.narrowed(own_filter(value, strict=True))


def rows_behind(value: Any) -> Source | None:
    """As ``source_of``, without regard to the filter of a retriever."""
    if isinstance(value, Source):
        return value
    if isinstance(value, (BM25Index, DocumentIndex)):
        return Source(partial(_rows_of_index, value))
    if isinstance(value, VectorStore):
        return _of_store(value)
    if isinstance(value, RunnableSequence):  # its later steps may hide rows
        return None
    if isinstance(value, Runnable):
        return next((found for part in inside(value, names=_LISTED) if (found := rows_behind(part))), None)
    if isinstance(value, (list, tuple)) and all(isinstance(item, Document) for item in value):
        return Source(partial(_rows_of_list, value))
    return None


# Functions, and no lambdas, so that a retriever over such a source can be pickled.
def _rows_of_index(index: BM25Index | DocumentIndex, where: Any) -> Iterator[Sequence[Document]]:
    return _by_ids(index.ids if isinstance(index, BM25Index) else index.passage_ids(), index.get)


def _rows_of_list(documents: Sequence[Document], where: Any) -> list[Sequence[Document]]:
    return [documents]


def _rows_in_memory(store: Any, where: Any) -> list[Sequence[Document]]:
    return [_in_memory(store)]


def _rows_of_store(read: Callable[[Any, Any], Any], store: Any, where: Any) -> Any:
    return read(store, native_filter(store, where) if where else None)


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


def _by_ids(ids: Sequence[str], get: Callable[[Sequence[str]], list[Document]]) -> Iterator[list[Document]]:
    return (get(ids[start : start + _GROUP]) for start in range(0, len(ids), _GROUP))


def _of_store(store: Any) -> Source | None:
    """The rows of a store, which filters by what it can."""
    if isinstance(store, InMemoryVectorStore):
        return Source(partial(_rows_in_memory, store))
    if made_by(store, "langchain_qdrant"):
        return Source(partial(_rows_of_store, _pages_of_qdrant, store))
    if made_by(store, "langchain_chroma") or (made_by(store, "langchain_postgres") and hasattr(store, "get")):
        return Source(partial(_rows_of_store, _pages, store))
    return None


def _in_memory(store: InMemoryVectorStore) -> list[Document]:
    return [
        Document(row["text"], id=row["id"], metadata=row["metadata"]) for row in list(store.store.values())
    ]


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
