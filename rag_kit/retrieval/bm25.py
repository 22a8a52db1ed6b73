"""Search in an index in memory by words, and the base of retrievers over such an index."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, Self, Unpack

from langchain_core.documents import Document

from rag_kit.documents.provenance import add_first_stage
from rag_kit.errors import InvalidInputError
from rag_kit.indexing.bm25.index import BM25Index
from rag_kit.indexing.bm25.parameters import DEFAULT_B, DEFAULT_K1, documents_of_texts
from rag_kit.indexing.bm25.postings import Variant
from rag_kit.indexing.bm25.view import Hits
from rag_kit.retrieval.base import RagKitRetriever, blocking_step
from rag_kit.retrieval.call import Call
from rag_kit.retrieval.fields import unknown_arguments
from rag_kit.retrieval.settings import LeafSettings, TextSettings

_MAX_QUERY_CHARS = 20_000  # analysing a longer query would hold up an event loop


class MemoryIndexRetriever(RagKitRetriever):
    """Base of the retrievers over an index in memory, which search in the event loop unless a query is long."""

    index: Any

    def model_post_init(self, context: Any, /) -> None:
        """Build the score arrays now rather than in the first, perhaps asynchronous, call."""
        super().model_post_init(context)
        self.index.current()

    @classmethod
    @abstractmethod
    def from_documents(cls, documents: Iterable[Document], **settings: Any) -> Self:
        """Index documents and search them."""

    @classmethod
    def from_texts(
        cls,
        texts: Iterable[str],
        metadatas: Iterable[Mapping[str, Any]] | None = None,
        **settings: Unpack[TextSettings],
    ) -> Self:
        """Index texts, with the metadata of each, and search them; arguments as for ``from_documents``."""
        return cls.from_documents(documents_of_texts(texts, metadatas), **settings)

    async def _hits(self, query: str, call: Call) -> Hits:
        """Search the index; a long query is searched for on a thread if there is an event loop to hold up."""
        search: Callable[[], Hits] = partial(self.index.search, query, call.k, call.filter)
        return search() if len(query) <= _MAX_QUERY_CHARS else await blocking_step("search", search)


class BM25Retriever(MemoryIndexRetriever):
    """Find documents by their words, in English, Chinese and other languages.

    A document that shares no word with the query is never returned, so there may be fewer than ``k``. The results
    are copies with provenance (stage ``"bm25"``); the index may be added to and deleted from meanwhile. Searching
    does no I/O and takes a fraction of a millisecond, so ``ainvoke`` searches in the event loop.

    Args:
        index: The index to search.
        **more: ``k``, ``filter``...: see ``RagKitRetriever``.

    Example:
        >>> retriever = BM25Retriever.from_texts(["Cats sleep.", "Dogs bark.", "猫在睡觉。"], k=2)
        >>> [doc.page_content for doc in retriever.invoke("sleeping cat")]
        ['Cats sleep.']
        >>> [doc.page_content for doc in retriever.invoke("猫")]
        ['猫在睡觉。']
    """

    other_names: ClassVar[Mapping[str, str]] = {
        "vectorizer": "BM25Retriever.from_documents(documents)",
        "docs": "BM25Retriever.from_documents(documents)",
        "preprocess_func": "analyzer= of from_documents",
        "bm25_params": "k1= and b= of from_documents",
    }

    index: BM25Index

    @classmethod
    def from_documents(  # type: ignore[override]
        cls,
        documents: Iterable[Document],
        *,
        ids: Sequence[str] | None = None,
        k1: float = DEFAULT_K1,
        b: float = DEFAULT_B,
        variant: Variant = "lucene",
        analyzer: Callable[[str], list[str]] | None = None,
        preprocess_func: Callable[[str], list[str]] | None = None,
        bm25_params: Mapping[str, Any] | None = None,
        **fields: Unpack[LeafSettings],
    ) -> Self:
        """Index documents and search them.

        Args:
            documents: The documents.
            ids: Ids in the index, see :meth:`BM25Index.add`.
            k1: How slowly repeats of a term stop counting.
            b: How much long documents are penalised, 0 to 1.
            variant: ``"lucene"``, or ``"okapi"`` for rank_bm25's scores.
            analyzer: Turns a text into terms; ``None`` for the default.
            preprocess_func: The same, under the name that langchain_community gives it.
            bm25_params: ``k1`` and ``b`` as a dict, as langchain_community takes them.
            **fields: Fields of a retriever: ``k``, ``filter``, ``name``, ``tags``, ``metadata``...
        """
        if analyzer is not None and preprocess_func is not None:
            raise InvalidInputError("analyzer and preprocess_func were given, which are the same; give one.")
        settings: dict[str, Any] = {"k1": k1, "b": b, "variant": variant}
        if unknown := sorted(set(bm25_params or {}) - settings.keys()):
            instead = {"epsilon": "nothing: a term's weight is never negative"}
            problem = unknown_arguments(unknown, settings, instead)
            raise InvalidInputError(f"bm25_params cannot be used: {problem}.")
        settings |= {**(bm25_params or {}), "analyzer": analyzer or preprocess_func}
        options: Any = fields  # Any, for not all keys are fields of this class
        return cls(index=BM25Index.from_documents(documents, ids=ids, **settings), **options)

    async def _search(self, query: str, call: Call) -> list[Document]:
        hits = await self._hits(query, call)
        return add_first_stage(hits, "bm25", self.get_name(), query, max_score=hits.maximum)
