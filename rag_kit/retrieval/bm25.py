"""Keyword search as a LangChain retriever."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from langchain_core.documents import Document

from rag_kit.concurrency import run_in_thread
from rag_kit.documents import PROVENANCE_KEY, Filter
from rag_kit.indexing.bm25 import BM25Index
from rag_kit.indexing.bm25.parameters import DEFAULT_B, DEFAULT_K1
from rag_kit.indexing.bm25.scoring import Variant
from rag_kit.indexing.bm25.store import Hits
from rag_kit.retrieval.base import RagKitRetriever, Request

LONG = 20_000  # characters; analysing a longer query would hold up an event loop


class BM25Retriever(RagKitRetriever):
    """Find documents by their words, in English, Chinese and other languages.

    A document that shares no word with the query is never returned, so there may be fewer than ``k``. The results
    are copies with provenance (stage ``"bm25"``); the index may be added to and deleted from meanwhile. Searching
    does no I/O and takes a fraction of a millisecond, so ``ainvoke`` searches in the event loop; what is slow, the
    dictionary and the score arrays, is prepared on construction.

    Args:
        index: The index to search.
        k: Most documents to return.
        filter: Metadata filter for every call.

    Example:
        >>> retriever = BM25Retriever.from_texts(["Cats sleep.", "Dogs bark.", "猫在睡觉。"], k=2)
        >>> [doc.page_content for doc in retriever.invoke("sleeping cat")]
        ['Cats sleep.']
        >>> [doc.page_content for doc in retriever.invoke("猫")]
        ['猫在睡觉。']
    """

    index: BM25Index

    def model_post_init(self, context: Any, /) -> None:
        """Build the score arrays now rather than in the first, perhaps asynchronous, call."""
        super().model_post_init(context)
        self.index.prepare()

    @classmethod
    def from_documents(
        cls,
        documents: Iterable[Document],
        *,
        k: int = 4,
        filter: Filter | None = None,
        ids: Sequence[str] | None = None,
        k1: float = DEFAULT_K1,
        b: float = DEFAULT_B,
        variant: Variant = "lucene",
        analyzer: Callable[[str], list[str]] | None = None,
        **fields: Any,
    ) -> BM25Retriever:
        """Index documents and search them.

        Args:
            documents: The documents.
            k: Most documents to return.
            filter: Metadata filter for every call.
            ids: Ids in the index, see :meth:`BM25Index.add`.
            k1: How slowly repeats of a term stop counting.
            b: How much longer documents are held back, 0 to 1.
            variant: ``"lucene"``, or ``"okapi"`` for rank_bm25's scores.
            analyzer: Turns a text into terms; ``None`` for the default.
            **fields: Further fields of a retriever: ``name``, ``tags``, ``metadata``...

        Raises:
            InvalidInputError: An argument is not allowed.
        """
        index = BM25Index.from_documents(documents, ids=ids, k1=k1, b=b, variant=variant, analyzer=analyzer)
        return cls(index=index, k=k, filter=filter, **fields)

    @classmethod
    def from_texts(
        cls,
        texts: Iterable[str],
        metadatas: Iterable[Mapping[str, Any]] | None = None,
        *,
        k: int = 4,
        filter: Filter | None = None,
        ids: Sequence[str] | None = None,
        k1: float = DEFAULT_K1,
        b: float = DEFAULT_B,
        variant: Variant = "lucene",
        analyzer: Callable[[str], list[str]] | None = None,
        **fields: Any,
    ) -> BM25Retriever:
        """Index texts and search them.

        Args:
            texts: The texts.
            metadatas: Metadata of each text.
            k: Most documents to return.
            filter: Metadata filter for every call.
            ids: Ids in the index, see :meth:`BM25Index.add`.
            k1: How slowly repeats of a term stop counting.
            b: How much longer documents are held back, 0 to 1.
            variant: ``"lucene"``, or ``"okapi"`` for rank_bm25's scores.
            analyzer: Turns a text into terms; ``None`` for the default.
            **fields: Further fields of a retriever: ``name``, ``tags``, ``metadata``...

        Raises:
            InvalidInputError: An argument is not allowed.
        """
        index = BM25Index.from_texts(
            texts, metadatas, ids=ids, k1=k1, b=b, variant=variant, analyzer=analyzer
        )
        return cls(index=index, k=k, filter=filter, **fields)

    def _retrieve(self, query: str, request: Request) -> list[Document]:
        hits = self.index.search(query, request.k, request.filter)
        return first_stage(hits, "bm25", self.get_name(), query, max_score=self.index.maximum(query))

    async def _aretrieve(self, query: str, request: Request) -> list[Document]:
        if len(query) > LONG:
            return await run_in_thread(self._retrieve, query, request)
        return self._retrieve(query, request)


def first_stage(hits: Hits, stage: str, name: str, query: str, **extra: Any) -> list[Document]:
    """Hits of an index, which are copies without provenance, with their first stage: at no further copy."""
    found = []
    for rank, (doc, score) in enumerate(hits, start=1):
        entry = {
            "stage": stage,
            "retriever": name,
            "query": query,
            "rank": rank,
            "score": score,
            "weight": None,
            **extra,
        }
        doc.metadata[PROVENANCE_KEY] = {"score": score, "rank": rank, "stages": [entry], "notes": []}
        found.append(doc)
    return found
