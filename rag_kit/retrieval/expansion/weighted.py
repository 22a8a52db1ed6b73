"""One search with weighted terms, as a retriever."""

from __future__ import annotations

from collections.abc import Mapping

from langchain_core.documents import Document

from rag_kit.documents import add_note
from rag_kit.documents.provenance import first_stage
from rag_kit.indexing.bm25.index import BM25Index
from rag_kit.retrieval.base import RagKitRetriever, Request
from rag_kit.retrieval.expansion.legs import KeywordIndex, reader_of


class WeightedTermsRetriever(RagKitRetriever):
    """Search a keyword index for given terms; the query is only shown in the provenance.

    Args:
        index: The index.
        terms: Weight of each of its terms.
        k: Most documents to return.
        filter: Metadata filter.
        note: Put into the provenance of every document.
    """

    index: KeywordIndex
    terms: Mapping[str, float]
    note: str | None = None

    def _retrieve(self, query: str, request: Request) -> list[Document]:
        index = reader_of(self.index)
        hits = index.search_weighted(self.terms, request.k, request.filter)
        found = first_stage(hits, "bm25", self.get_name(), query, max_score=index.maximum(self.terms))
        return found if self.note is None else [add_note(document, self.note) for document in found]

    async def _aretrieve(self, query: str, request: Request) -> list[Document]:
        if isinstance(self.index, BM25Index):
            return self._retrieve(query, request)
        return await super()._aretrieve(query, request)  # on a thread: it reads the store
