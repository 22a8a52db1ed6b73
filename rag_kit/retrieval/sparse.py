"""Search by sparse vectors."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Self, Unpack

from langchain_core.documents import Document

from rag_kit.concurrency.steps import Step
from rag_kit.documents.provenance import add_first_stage
from rag_kit.indexing.sparse.index import SparseEncoder, SparseIndex, Weights
from rag_kit.retrieval.bm25 import MemoryIndexRetriever
from rag_kit.retrieval.call import Call
from rag_kit.retrieval.settings import LeafSettings


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
