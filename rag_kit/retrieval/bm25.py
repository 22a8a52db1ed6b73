"""Search in an index in memory: by words, by n-grams of their characters, or by sparse vectors."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, Self, Unpack

from langchain_core.documents import Document
from pydantic import Field, field_validator

from rag_kit.concurrency.steps import Step
from rag_kit.documents.provenance import add_first_stage
from rag_kit.errors import InvalidInputError
from rag_kit.indexing.bm25.index import BM25Index
from rag_kit.indexing.bm25.parameters import DEFAULT_B, DEFAULT_K1, documents_of_texts
from rag_kit.indexing.bm25.postings import Variant
from rag_kit.indexing.bm25.view import Hits
from rag_kit.indexing.sparse.index import SparseEncoder, SparseIndex, Weights
from rag_kit.retrieval.base import RagKitRetriever, blocking_step
from rag_kit.retrieval.call import Call
from rag_kit.retrieval.fields import unknown_arguments
from rag_kit.retrieval.settings import LeafSettings, TextSettings
from rag_kit.text.ngrams import CharacterNgrams

_LONG = 20_000  # characters; analysing a longer query would hold up an event loop


class MemoryIndexRetriever(RagKitRetriever):
    """Base of the retrievers over an index in memory, which search in the event loop unless a query is long."""

    index: Any

    def model_post_init(self, context: Any, /) -> None:
        """Build the score arrays now rather than in the first, perhaps asynchronous, call."""
        super().model_post_init(context)
        self.index.prepare()

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
        """Search; on an event loop on a thread where the query is long."""
        search: Callable[..., Hits] = self.index.search
        asked = query, call.k, call.filter
        return search(*asked) if len(query) <= _LONG else await blocking_step("search", search, *asked)


class BM25Retriever(MemoryIndexRetriever):
    """Find documents by their words, in English, Chinese and other languages.

    A document that shares no word with the query is never returned, so there may be fewer than ``k``. The results
    are copies with provenance (stage ``"bm25"``); the index may be added to and deleted from meanwhile. Searching
    does no I/O and takes a fraction of a millisecond, so ``ainvoke`` searches in the event loop.

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
        options: Any = fields
        return cls(index=BM25Index.from_documents(documents, ids=ids, **settings), **options)

    async def _search(self, query: str, call: Call) -> list[Document]:
        hits = await self._hits(query, call)
        return add_first_stage(hits, "bm25", self.get_name(), query, max_score=hits.maximum)


class TrigramRetriever(MemoryIndexRetriever):
    """Find documents by n-grams of characters, so that misspelled words and parts of words match too.

    BM25 over the trigrams and 4-grams of each word, and over single characters and pairs where a script has no
    spaces (Chinese, Japanese, Thai...): the sizes measured to be best (docs/benchmarks.md). "retreival" finds
    "retrieval" and "graph" finds "photographs", at the price of an index of up to ten times the size and of weak
    matches after the good ones; ``min_match`` cuts those. Beside word search in an ensemble it helps where people
    mistype. ``index`` is an ordinary ``BM25Index``. Results are copies with provenance (stage ``"trigram"``).

    Args:
        index: An index whose analyzer is ``rag_kit.text.ngrams.CharacterNgrams``.
        min_match: Least share, from 0 to 1, of the score that a document full of the query would have.
        k: Most documents to return.
        filter: Metadata filter for every call.

    Raises:
        InvalidInputError: The index is one of words.

    Example:
        >>> retriever = TrigramRetriever.from_texts(["Retrieval by vectors", "Cats sleep", "北京大学"], k=1)
        >>> [doc.page_content for doc in retriever.invoke("retreival")]
        ['Retrieval by vectors']
    """

    index: BM25Index
    min_match: float = Field(default=0.0, ge=0, le=1)

    @field_validator("index")
    @classmethod
    def _index_is_of_characters(cls, value: BM25Index) -> BM25Index:
        if not isinstance(value.analyzer, CharacterNgrams):
            raise InvalidInputError(
                f"index analyses texts by {type(value.analyzer).__name__}; build it with "
                "BM25Index(analyzer=CharacterNgrams()), or use TrigramRetriever.from_documents."
            )
        return value

    @classmethod
    def from_documents(  # type: ignore[override]
        cls,
        documents: Iterable[Document],
        *,
        ids: Iterable[str] | None = None,
        **fields: Unpack[LeafSettings],
    ) -> Self:
        """Index documents and search them.

        Args:
            documents: The documents.
            ids: Ids in the index, see ``BM25Index.add``.
            **fields: Fields of a retriever: ``min_match``, ``k``, ``filter``, ``name``, ``tags``...
        """
        index = BM25Index.from_documents(documents, ids=ids, analyzer=CharacterNgrams())
        return cls(index=index, **fields)

    async def _search(self, query: str, call: Call) -> list[Document]:
        hits = await self._hits(query, call)
        good = [hit for hit in hits if hit[1] >= self.min_match * hits.maximum]
        return add_first_stage(good, "trigram", self.get_name(), query, max_score=hits.maximum)


class SparseRetriever(MemoryIndexRetriever):
    """Find documents by the inner product of sparse vectors: SPLADE, bge-m3, or the built-in TF-IDF.

    An encoder is a function, async or not, from a list of texts to one dict of term -> weight for each; see
    :class:`~rag_kit.indexing.sparse.SparseIndex`. In async code, one that is not async runs on a thread. A document
    that shares no term with the query is never returned. Results are copies with provenance (stage ``"sparse"``).

    Papers: Formal et al.: SPLADE v2, arXiv 2109.10086; Chen et al.: BGE M3-Embedding, arXiv 2402.03216.

    Args:
        index: The index to search.
        k: Most documents to return.
        filter: Metadata filter for every call.

    Example:
        >>> retriever = SparseRetriever.from_texts(["Cats sleep.", "Dogs bark.", "猫在睡觉。"], k=1)
        >>> [doc.page_content for doc in retriever.invoke("sleeping cat")]
        ['Cats sleep.']
    """

    index: SparseIndex

    @classmethod
    def from_documents(  # type: ignore[override]
        cls,
        documents: Iterable[Document],
        *,
        encoder: SparseEncoder | None = None,
        query_encoder: SparseEncoder | None = None,
        ids: Iterable[str] | None = None,
        batch_size: int = 64,
        **fields: Unpack[LeafSettings],
    ) -> Self:
        """Encode documents and search them.

        Args:
            documents: The documents.
            encoder: The encoder; ``None`` for TF-IDF, fitted on the documents.
            query_encoder: Another one for queries.
            ids: Ids in the index, see ``SparseIndex.add``.
            batch_size: Texts that the encoder is given at a time.
            **fields: Fields of a retriever: ``k``, ``filter``, ``name``, ``tags``, ``metadata``...
        """
        index = SparseIndex.from_documents(
            documents, ids=ids, encoder=encoder, query_encoder=query_encoder, batch_size=batch_size
        )
        options: Any = fields
        return cls(index=index, **options)

    async def _search(self, query: str, call: Call) -> list[Document]:
        vector: Weights = await Step(
            "encode", lambda _: self.index.encode_query(query), lambda _: self.index.aencode_query(query)
        )
        hits = self.index.search_vector(vector, call.k, call.filter)
        return add_first_stage(hits, "sparse", self.get_name(), query, max_score=self.index.maximum(vector))
