"""Search by other terms than words: sparse vectors, and n-grams of characters."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Self, Unpack

from langchain_core.documents import Document
from pydantic import Field, field_validator

from rag_kit.documents.provenance import add_first_stage
from rag_kit.errors import InvalidInputError
from rag_kit.indexing.bm25.index import BM25Index
from rag_kit.indexing.sparse.index import SparseEncoder, SparseIndex
from rag_kit.retrieval.bm25 import MemoryIndexRetriever
from rag_kit.retrieval.call import Call
from rag_kit.retrieval.settings import LeafSettings
from rag_kit.retrieval.vectors import encode_query
from rag_kit.text.analysis import CharacterNgrams


class SparseRetriever(MemoryIndexRetriever):
    """Find documents by the inner product of sparse vectors: SPLADE, bge-m3, or the built-in TF-IDF.

    An encoder is a function, async or not, from a list of texts to one dict of term -> weight for each; see
    :class:`~rag_kit.indexing.sparse.SparseIndex`. In async code, one that is not async runs on a thread. A document
    that shares no term with the query is never returned. Results are copies with provenance (stage ``"sparse"``).

    Papers: Formal et al.: SPLADE v2, arXiv 2109.10086; Chen et al.: BGE M3-Embedding, arXiv 2402.03216.

    Args:
        index: The index to search.
        **more: ``k``, ``filter``...: see ``RagKitRetriever``.

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
        **fields: Unpack[LeafSettings],
    ) -> Self:
        """Encode documents and search them.

        Args:
            documents: The documents.
            encoder: The encoder; ``None`` for TF-IDF, fitted on the documents.
            query_encoder: Another one for queries.
            ids: Ids in the index, see ``SparseIndex.add``.
            **fields: Fields of a retriever: ``k``, ``filter``, ``name``, ``tags``, ``metadata``...
        """
        index = SparseIndex.from_documents(documents, ids=ids, encoder=encoder, query_encoder=query_encoder)
        options: Any = fields  # Any, for not all keys are fields of this class
        return cls(index=index, **options)

    async def _search(self, query: str, call: Call) -> list[Document]:
        hits = self.index.search_vector(await encode_query(self.index, query), call.k, call.filter)
        return add_first_stage(hits, "sparse", self.get_name(), query, max_score=hits.maximum)


class TrigramRetriever(MemoryIndexRetriever):
    """Find documents by n-grams of characters, so that misspelled words and parts of words match too.

    BM25 over the trigrams and 4-grams of each word, and over single characters and pairs where a script has no
    spaces (Chinese, Japanese, Thai...): the sizes measured to be best (docs/benchmarks.md). "retreival" finds
    "retrieval" and "graph" finds "photographs", at the price of an index of up to ten times the size and of weak
    matches after the good ones; ``min_match`` cuts those. Beside word search in an ensemble it helps where people
    mistype. ``index`` is an ordinary ``BM25Index``. Results are copies with provenance (stage ``"trigram"``).

    Args:
        index: An index whose analyzer is ``rag_kit.text.analysis.CharacterNgrams``.
        min_match: Least share, from 0 to 1, of the score that a document full of the query would have.
        **more: ``k``, ``filter``...: see ``RagKitRetriever``.

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
    def _check_index(cls, value: BM25Index) -> BM25Index:
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
        min_match: float = 0.0,
        **fields: Unpack[LeafSettings],
    ) -> Self:
        """Index documents and search them.

        Args:
            documents: The documents.
            ids: Ids in the index, see ``BM25Index.add``.
            min_match: See the class.
            **fields: Fields of a retriever: ``k``, ``filter``, ``name``, ``tags``...
        """
        index = BM25Index.from_documents(documents, ids=ids, analyzer=CharacterNgrams())
        return cls(index=index, min_match=min_match, **fields)

    async def _search(self, query: str, call: Call) -> list[Document]:
        hits = await self._hits(query, call)
        good_hits = [(doc, score) for doc, score in hits if score >= self.min_match * hits.maximum]
        return add_first_stage(good_hits, "trigram", self.get_name(), query, max_score=hits.maximum)
