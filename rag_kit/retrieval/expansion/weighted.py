"""One search with weighted terms, as a retriever."""

from __future__ import annotations

from collections.abc import Mapping

from langchain_core.documents import Document

from rag_kit.indexing.bm25 import BM25Index
from rag_kit.retrieval.base import RagKitRetriever, Request
from rag_kit.retrieval.bm25 import first_stage


class WeightedTermsRetriever(RagKitRetriever):
    """Search a keyword index for given terms; the query is only shown in the provenance.

    Args:
        index: The index.
        terms: Weight of each of its terms.
        k: Most documents to return.
        filter: Metadata filter.
    """

    index: BM25Index
    terms: Mapping[str, float]

    def _retrieve(self, query: str, request: Request) -> list[Document]:
        hits = self.index.search_weighted(self.terms, request.k, request.filter)
        return first_stage(hits, "bm25", self.get_name(), query, max_score=self.index.maximum(self.terms))

    async def _aretrieve(self, query: str, request: Request) -> list[Document]:
        return self._retrieve(query, request)
