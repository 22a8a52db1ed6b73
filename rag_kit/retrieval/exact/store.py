"""A Chroma collection searched exactly, in memory; never as it was before a change."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import partial
from typing import Any, Literal

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import VectorStore

from rag_kit.concurrency.bridge import run_in_thread
from rag_kit.documents import Filter, compile_filter, validate_filter
from rag_kit.errors import InvalidInputError, RagKitError
from rag_kit.models.clients import aembed_query, embed_query
from rag_kit.retrieval.base import check_count
from rag_kit.retrieval.exact.chroma import ChromaReader, Snapshot
from rag_kit.retrieval.stores import native_filter
from rag_kit.retrieval.vectors import embedded

Hits = list[tuple[Document, float]]
_ATTEMPTS = 3
_DEFAULT_BYTES = 2**30


class ExactVectorStore(VectorStore):
    """Another way to search a Chroma collection: all vectors in memory, every distance computed.

    Same documents, ids and distances as Chroma's own query where that is exact, and the right ones where its
    graph (HNSW) misses some. Filters are decided over all rows at once, which is where Chroma is slow. It is a
    vector store, so it goes wherever one does: ``VectorRetriever(vectorstore=ExactVectorStore(chroma))``.

    The collection is read by the first search, and again when it has changed. What was read before a change is
    never used after it: an embedded collection on disk is checked at each search, and while it is being written
    to (until about 0.1 s after a write) Chroma itself is asked. A collection in memory or on a server does not
    tell; it needs ``changes="manual"``.

    Args:
        vectorstore: LangChain's ``Chroma``, with its embedding model.
        changes: ``"detect"``, or ``"manual"``: read again after ``refresh()``, after writes through this object,
            and when the number of rows has changed. Other writes elsewhere are then not seen until ``refresh()``.
        max_bytes: Most memory for vectors, texts and metadata; a collection that takes more is refused on search.

    Attributes:
        answered: How many queries were answered from memory, and how many by the store itself.
        loads: How often the collection was read.

    Example:
        >>> import tempfile
        >>> from langchain_chroma import Chroma
        >>> from langchain_core.embeddings import DeterministicFakeEmbedding
        >>> from rag_kit.retrieval import VectorRetriever
        >>> chroma = Chroma("letters", DeterministicFakeEmbedding(size=8), persist_directory=tempfile.mkdtemp())
        >>> _ = chroma.add_documents([Document(c, id=c, metadata={"even": c in "bd"}) for c in "abcd"])
        >>> retriever = VectorRetriever(vectorstore=ExactVectorStore(chroma), k=1)
        >>> [doc.id for doc in retriever.invoke("b", filter={"even": True})]
        ['b']
    """

    #: ``filter`` is the kit's own language (``rag_kit.documents``), in full.
    takes_kit_filters = True

    def __init__(
        self,
        vectorstore: VectorStore,
        *,
        changes: Literal["detect", "manual"] = "detect",
        max_bytes: int = _DEFAULT_BYTES,
    ) -> None:
        self._reader = ChromaReader(vectorstore)
        if changes not in ("detect", "manual"):
            raise InvalidInputError(f"changes={changes!r} was given; allowed: 'detect', 'manual'.")
        if changes == "detect" and not self._reader.tells_changes:
            raise InvalidInputError(
                "This Chroma collection is in memory or on a server and does not tell when it changes. Give "
                "changes='manual' and call refresh() after writes, or use a persist_directory."
            )
        if vectorstore.embeddings is None:
            raise InvalidInputError("The vector store names no embedding model; give it embedding_function=.")
        self.vectorstore = vectorstore
        self.changes = changes
        self.max_bytes = check_count("max_bytes", max_bytes)
        self.answered = {"memory": 0, "store": 0}
        self.loads = 0
        self._writes = 0
        self._lock = threading.Lock()
        self._counting = threading.Lock()
        self._read: tuple[Hashable, Snapshot] | None = None

    @property
    def embeddings(self) -> Embeddings | None:
        """The store's embedding model."""
        return self.vectorstore.embeddings

    def refresh(self) -> None:
        """Read the collection now; waits until a further write would be seen (about 0.1 s after the last one)."""
        with self._lock:
            self._read = None
            for _ in range(10):
                if self._load() is not None:
                    return
                time.sleep(self._wait(self._version()))
        raise RagKitError(
            "The collection changed while it was read, each time. Refresh it when nobody writes."
        )

    def search_many(
        self, vectors: Sequence[Sequence[float]], k: int = 4, filter: Filter | None = None
    ) -> list[Hits]:
        """The k nearest documents of each vector, with distances, lower is nearer; one pass over the collection."""
        return self._search_many(vectors, k, filter)

    def _search_many(
        self,
        vectors: Sequence[Sequence[float]],
        k: int,
        filter: Filter | None,
        model: Embeddings | None = None,
    ) -> list[Hits]:
        """As ``search_many``; the vectors are a model's, which is named if they do not fit."""
        check_count("k", k)
        validate_filter(filter)
        snapshot = self._current()
        if model is not None:
            size = snapshot.nearest.dimension if snapshot is not None and snapshot.ids else None
            embedded(vectors, len(vectors), model, dimension=size)
        with self._counting:
            self.answered["memory" if snapshot else "store"] += len(vectors)
        if snapshot is not None:
            return snapshot.search(vectors, k, filter)
        return [self._ask_store(list(vector), k, filter) for vector in vectors]

    def _current(self) -> Snapshot | None:
        """What the collection holds now; ``None`` while that cannot be said."""
        if (read := self._read) is not None and read[0] == self._version():
            return read[1]
        # Another thread is reading: ask the store meanwhile.
        if not self._lock.acquire(blocking=self.changes == "manual"):
            return None
        try:
            return self._load()
        finally:
            self._lock.release()

    def _load(self) -> Snapshot | None:
        for _ in range(_ATTEMPTS):
            version = self._version()
            if self._read is not None and self._read[0] == version:
                return self._read[1]
            if self._wait(version):
                return None
            self._read = None  # before the new one is read: not both in memory
            snapshot = self._reader.read(self.max_bytes)
            self.loads += 1
            if self._version() == version:
                self._read = (version, snapshot)
                return snapshot
        return None

    def _version(self) -> Any:
        if self.changes == "detect":
            return self._reader.version()
        return (self._reader.identity(), self._reader.count(), self._writes)

    def _wait(self, version: Any) -> float:
        return self._reader.unsettled_seconds(version) if self.changes == "detect" else 0.0

    def _ask_store(self, vector: list[float], k: int, where: Filter | None) -> Hits:
        search: Callable[..., Hits]
        search = self.vectorstore.similarity_search_by_vector_with_relevance_scores  # type: ignore[attr-defined]
        native = native_filter(self.vectorstore, where) if where else None
        if not where or native is not None:
            return search(vector, k=k, filter=native)
        # Chroma cannot say it: fetch deeper, at last everything.
        passes, count = compile_filter(where), max(1, self._reader.count())
        kept: Hits = []
        for fetch in (4 * k, 64 * k, count):
            kept = [pair for pair in search(vector, k=min(fetch, count)) if passes(pair[0].metadata)]
            if len(kept) >= k or fetch >= count:
                break
        return kept[:k]

    def similarity_search_by_vector_with_relevance_scores(
        self, embedding: list[float], k: int = 4, filter: Filter | None = None
    ) -> Hits:
        """The k nearest documents of a vector, with distances; the name is Chroma's."""
        return self.search_many([embedding], k, filter)[0]

    def similarity_search_with_score(self, query: str, k: int = 4, filter: Filter | None = None) -> Hits:
        """The k nearest documents of a text, with distances."""
        assert self.embeddings is not None
        return self._search_many([embed_query(self.embeddings, query)], k, filter, self.embeddings)[0]

    async def asimilarity_search_with_score(
        self, query: str, k: int = 4, filter: Filter | None = None
    ) -> Hits:
        """As ``similarity_search_with_score``; embedded by the model's own async method."""
        assert self.embeddings is not None
        vector = await aembed_query(self.embeddings, query)
        return (await run_in_thread(partial(self._search_many, [vector], k, filter, self.embeddings)))[0]

    def similarity_search(  # type: ignore[override]
        self, query: str, k: int = 4, filter: Filter | None = None
    ) -> list[Document]:
        """The k nearest documents of a text."""
        return [doc for doc, _ in self.similarity_search_with_score(query, k, filter)]

    async def asimilarity_search(  # type: ignore[override]
        self, query: str, k: int = 4, filter: Filter | None = None
    ) -> list[Document]:
        """As ``similarity_search``, natively asynchronous."""
        return [doc for doc, _ in await self.asimilarity_search_with_score(query, k, filter)]

    def similarity_search_by_vector(  # type: ignore[override]
        self, embedding: list[float], k: int = 4, filter: Filter | None = None
    ) -> list[Document]:
        """The k nearest documents of a vector."""
        return [doc for doc, _ in self.search_many([embedding], k, filter)[0]]

    def add_texts(
        self, texts: Iterable[str], metadatas: list[dict[Any, Any]] | None = None, **kwargs: Any
    ) -> list[str]:
        """Add texts to the store."""
        ids: list[str] = self._writing(partial(self.vectorstore.add_texts, texts, metadatas, **kwargs))
        return ids

    def delete(self, ids: list[str] | None = None, **kwargs: Any) -> bool | None:
        """Delete from the store."""
        deleted: bool | None = self._writing(partial(self.vectorstore.delete, ids, **kwargs))
        return deleted

    def get_by_ids(self, ids: Sequence[str], /) -> list[Document]:
        """Documents of the store by id."""
        return self.vectorstore.get_by_ids(ids)

    def _writing(self, write: Callable[[], Any]) -> Any:
        try:
            return write()
        finally:
            with self._counting:
                self._writes += 1

    def _select_relevance_score_fn(self) -> Callable[[float], float]:
        return self.vectorstore._select_relevance_score_fn()

    @classmethod
    def from_texts(cls, *args: Any, **kwargs: Any) -> ExactVectorStore:
        """Not to be had: make a ``Chroma``, and this over it."""
        raise InvalidInputError(
            "ExactVectorStore searches a Chroma that is there: ExactVectorStore(Chroma(...))."
        )
