"""Keyword search with weighted terms, and feedback: terms of the first results weigh in, without any model (RM3)."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from langchain_core.documents import Document
from pydantic import BaseModel, ConfigDict, Field

from rag_kit.documents import add_note
from rag_kit.documents.provenance import add_first_stage
from rag_kit.errors import InvalidInputError
from rag_kit.indexing.bm25.index import BM25Index
from rag_kit.indexing.document_index.index import DocumentIndex
from rag_kit.indexing.document_index.keyword import KeywordView
from rag_kit.indexing.searched import searched_text
from rag_kit.retrieval.base import RagKitRetriever, blocking_step
from rag_kit.retrieval.bm25 import BM25Retriever
from rag_kit.retrieval.call import Call
from rag_kit.retrieval.fields import Count
from rag_kit.retrieval.indexed import KeywordIndexRetriever

if TYPE_CHECKING:
    from rag_kit.documents import Filter

_SHORTEST, _LONGEST = 2, 20  # characters of a term that may be added
KeywordIndex = BM25Index | DocumentIndex
KeywordRetriever = BM25Retriever | KeywordIndexRetriever


def reader_of(index: KeywordIndex) -> BM25Index | KeywordView:
    """What terms are read by, and weighted terms searched; reads the store if the index is a stored one."""
    return index if isinstance(index, BM25Index) else index.keyword_view()


def keyword_retriever(retriever: Any) -> KeywordRetriever:
    """A retriever over an index, or the one that was given."""
    if isinstance(retriever, KeywordRetriever):
        return retriever
    if isinstance(retriever, DocumentIndex):
        return KeywordIndexRetriever(index=retriever, name="bm25")
    return BM25Retriever(index=check_index(retriever))


def check_index(index: Any) -> Any:
    """Refuse what has no keyword leg."""
    if not isinstance(index, KeywordIndex):
        raise InvalidInputError(
            f"index is {type(index).__name__}; feedback needs a BM25Index or a DocumentIndex, "
            "or a retriever by keywords over one."
        )
    return index


class WeightedTermsRetriever(RagKitRetriever):
    """Search a keyword index for given terms with weights; the query and ``note`` only stand in the provenance."""

    index: KeywordIndex
    terms: Mapping[str, float]
    note: str | None = None

    def searched(self) -> Sequence[Any]:
        """The index."""
        return [self.index]

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


class RelevanceFeedback(BaseModel):
    """RM3: take the terms of the best documents of a first search into the query.

    ``original_weight * P(w|Q) + (1 - original_weight) * P(w|R)``, where the relevance model ``P(w|R)`` is the sum over
    the ``fb_docs`` best documents of ``P(w|D) * score(D)``, with ``P(w|D) = tf(w, D) / |D|``, and its ``fb_terms`` best
    terms are taken. The defaults are Anserini's. A term is left out if it has fewer than 2 or more than 20 characters,
    or occurs in more than a tenth of the documents (of a small index, in more than ``fb_docs``).

    Papers: Lavrenko and Croft, Relevance-Based Language Models, SIGIR 2001; Abdul-Jaleel et al., UMass at TREC 2004.
    """

    model_config = ConfigDict(frozen=True)

    fb_docs: Count = 10
    fb_terms: Count = 10
    original_weight: float = Field(default=0.5, ge=0, le=1)

    def weights(self, index: KeywordIndex, query: str, filter: Filter | None = None) -> dict[str, float]:
        """The terms to search for, the query's own first; learnt from documents that meet the filter.

        The weights sum to the number of the query's terms, so that scores stay on the scale of plain BM25.
        """
        reader = reader_of(index)
        query_terms = Counter(reader.query_terms(query))
        hits = reader.search(query, self.fb_docs, filter) if query_terms else []
        if not hits:
            return dict(query_terms)
        counted = [(_counts(reader, document), score) for document, score in hits]
        frequencies = reader.document_frequencies({term for counts, _ in counted for term in counts})
        max_df = max(len(reader) / 10, self.fb_docs)
        model: dict[str, float] = {}
        for counts, score in counted:
            rare = {term: count for term, count in counts.items() if frequencies[term] <= max_df}
            for term, count in rare.items():
                model[term] = model.get(term, 0.0) + count / sum(rare.values()) * score
        best = heapq.nsmallest(self.fb_terms, model.items(), key=lambda pair: (-pair[1], pair[0]))
        total = sum(weight for _, weight in best) or 1.0
        scale = (1 - self.original_weight) * query_terms.total() / total
        mixed = {term: self.original_weight * count for term, count in query_terms.items()}
        for term, weight in best:
            mixed[term] = mixed.get(term, 0.0) + scale * weight
        return {term: weight for term, weight in mixed.items() if weight > 0}


def _counts(reader: BM25Index | KeywordView, document: Document) -> Counter[str]:
    """How often each term that may be added occurs in a document."""
    text = document.page_content
    if isinstance(reader, KeywordView):
        text = searched_text(text, document.metadata)
    return Counter(term for term in reader.analyzer(text) if _SHORTEST <= len(term) <= _LONGEST)
