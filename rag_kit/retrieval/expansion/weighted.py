"""Search of a keyword index for terms of which each has a weight."""

from __future__ import annotations

from collections.abc import Mapping

from langchain_core.documents import Document

from rag_kit.documents import add_note
from rag_kit.documents.provenance import add_first_stage
from rag_kit.indexing.bm25.index import BM25Index
from rag_kit.indexing.document_index.index import DocumentIndex
from rag_kit.indexing.document_index.keyword import KeywordView
from rag_kit.retrieval.base import RagKitRetriever, blocking_step
from rag_kit.retrieval.bm25 import BM25Retriever
from rag_kit.retrieval.call import Call
from rag_kit.retrieval.indexed import KeywordIndexRetriever

KeywordIndex = BM25Index | DocumentIndex
KeywordRetriever = BM25Retriever | KeywordIndexRetriever


def reader_of(index: KeywordIndex) -> BM25Index | KeywordView:
    """The object by which terms are read and searched; reads the store if the index is a stored one."""
    return index if isinstance(index, BM25Index) else index.keyword_view()


class WeightedTermsRetriever(RagKitRetriever):
    """Search a keyword index for given terms with weights; the query and ``note`` are for the provenance alone."""

    index: KeywordIndex
    terms: Mapping[str, float]
    note: str | None = None

    async def _search(self, query: str, call: Call) -> list[Document]:
        if isinstance(self.index, BM25Index):
            return self._find(query, call)
        # it reads the store
        documents: list[Document] = await blocking_step("search", self._find, query, call)
        return documents

    def _find(self, query: str, call: Call) -> list[Document]:
        hits = reader_of(self.index).search_weighted(self.terms, call.k, call.filter)
        documents = add_first_stage(hits, "bm25", self.get_name(), query, max_score=hits.maximum)
        return documents if self.note is None else [add_note(document, self.note) for document in documents]
