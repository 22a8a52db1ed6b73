"""Keyword search with weighted terms, and feedback: terms of the first results weigh in, without any model (RM3)."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from langchain_core.documents import Document

from rag_kit.documents import add_note
from rag_kit.documents.provenance import first_stage
from rag_kit.errors import InvalidInputError
from rag_kit.indexing.bm25.index import BM25Index
from rag_kit.indexing.document_index.index import DocumentIndex
from rag_kit.indexing.document_index.keyword import KeywordView
from rag_kit.retrieval.base import RagKitRetriever, Request, check_count, check_number
from rag_kit.retrieval.bm25 import BM25Retriever
from rag_kit.retrieval.indexed import KeywordIndexRetriever

if TYPE_CHECKING:
    from rag_kit.documents import Filter

_SHORTEST, _LONGEST = 2, 20  # characters of a term that may be added
KeywordIndex = BM25Index | DocumentIndex
KeywordRetriever = BM25Retriever | KeywordIndexRetriever


def reader_of(index: KeywordIndex) -> BM25Index | KeywordView:
    """What terms are read by, and weighted terms searched; reads the store if the index is a stored one."""
    return index if isinstance(index, BM25Index) else index.keyword_view()


def keyword_retriever(given: Any) -> KeywordRetriever:
    """A retriever over an index, or the one that was given."""
    if isinstance(given, KeywordRetriever):
        return given
    if isinstance(given, DocumentIndex):
        return KeywordIndexRetriever(index=given, name="bm25")
    return BM25Retriever(index=check_index(given))


def check_index(index: Any) -> Any:
    """Refuse what has no keyword leg."""
    if not isinstance(index, KeywordIndex):
        raise InvalidInputError(
            f"index is {type(index).__name__}; feedback needs a BM25Index or a DocumentIndex, "
            "or a retriever by keywords over one."
        )
    return index


class WeightedTermsRetriever(RagKitRetriever):
    """Search a keyword index for given terms with weights; the query is only shown in the provenance."""

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


def relevance_model(
    documents: Sequence[tuple[Mapping[str, int], float]],
    terms: int,
    allowed: Callable[[str], bool] = lambda term: True,
) -> dict[str, float]:
    """RM1: how likely each term is in documents, given as counts of terms and score, by how well these fit the query.

    ``P(w|R) ~ sum over D of P(w|D) * score(D)`` with ``P(w|D) = tf(w, D) / |D|`` over the terms that are allowed.
    Paper: Lavrenko and Croft, Relevance-Based Language Models, SIGIR 2001; as in Anserini the score of the first
    search stands for the query likelihood.
    """
    model: dict[str, float] = {}
    for counts, score in documents:
        kept = {term: count for term, count in counts.items() if allowed(term)}
        length = sum(kept.values())
        for term, count in kept.items():
            model[term] = model.get(term, 0.0) + count / length * score
    best = heapq.nsmallest(terms, model.items(), key=lambda pair: (-pair[1], pair[0]))
    total = sum(weight for _, weight in best)
    return {term: weight / total for term, weight in best} if total > 0 else {}


def interpolate(
    query: Mapping[str, float], model: Mapping[str, float], original_weight: float
) -> dict[str, float]:
    """RM3: ``original_weight * P(w|Q) + (1 - original_weight) * P(w|R)``; the weights sum to 1.

    Paper: Abdul-Jaleel et al., UMass at TREC 2004: Novelty and HARD.
    """
    total = sum(query.values())
    mixed = {term: original_weight * weight / total for term, weight in query.items()}
    for term, weight in model.items():
        mixed[term] = mixed.get(term, 0.0) + (1 - original_weight) * weight
    return {term: weight for term, weight in mixed.items() if weight > 0}


class RelevanceFeedback:
    """RM3 over a keyword index: search once, take the terms of the best documents into the query.

    The defaults are Anserini's. A term is left out if it has fewer than 2 or more than 20 characters, or occurs in
    more than ``max_df`` of the documents (of a small index, in more than ``fb_docs``).

    Args:
        index: A ``BM25Index``, or a ``DocumentIndex``, of which the keyword leg is searched.
        fb_docs: Documents of the first search to learn from.
        fb_terms: Terms of the relevance model.
        original_weight: Share of the query itself, from 0 to 1.
        max_df: Share of the documents, above 0 up to 1, in more of which a term is too common.
    """

    def __init__(
        self,
        index: KeywordIndex,
        *,
        fb_docs: int = 10,
        fb_terms: int = 10,
        original_weight: float = 0.5,
        max_df: float = 0.1,
    ) -> None:
        self.index: KeywordIndex = check_index(index)
        self.fb_docs = check_count("fb_docs", fb_docs)
        self.fb_terms = check_count("fb_terms", fb_terms)
        self.original_weight = check_number("original_weight", original_weight, most=1.0)
        self.max_df = check_number("max_df", max_df, above=0.0, most=1.0)

    def weights(self, query: str, filter: Filter | None = None) -> dict[str, float]:
        """The terms to search for, the query's own first; learnt from documents that meet the filter.

        The weights sum to the number of the query's terms, so that scores stay on the scale of plain BM25.
        """
        index = reader_of(self.index)
        own = Counter(index.analyzer(query))
        most = max(self.max_df * len(index), self.fb_docs)
        found = index.feedback(query, self.fb_docs, filter, max_documents=most)
        if not own or not found:
            return dict(own)
        model = relevance_model(found, self.fb_terms, lambda term: _SHORTEST <= len(term) <= _LONGEST)
        mixed = interpolate(own, model, self.original_weight)
        return {term: weight * own.total() for term, weight in mixed.items()}
