"""Views of the legs over postings, for searches: of the terms of an analyzer, and of sparse vectors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from langchain_core.documents import Document

from rag_kit.documents import Filter
from rag_kit.indexing.bm25.index import BM25Index
from rag_kit.indexing.bm25.view import Hits, Terms, check_k, check_query, check_weights, passes_of
from rag_kit.indexing.document_index.vectors import TIE, RankedIds, order_of
from rag_kit.indexing.searched import passage_filter
from rag_kit.indexing.sparse.index import SparseIndex

Scored: TypeAlias = list[tuple[Any, float]]  # documents, or their ids, with scores
TIES = 20  # further hits to look at, so that equal scores are ordered by id and not by who came first


class PostingsView:
    """Read-only view of a leg over postings, which is searched by weighted terms.

    Take a new view for each search: a view does not look into the store for what was committed after it was made.
    """

    def __init__(self, index: BM25Index | SparseIndex, derived: bool) -> None:
        self._index = index
        self._derived = derived  # whether there may be rows that were made of passages

    def __contains__(self, key: object) -> bool:
        return key in self._index

    def search_weighted(self, terms: Mapping[str, float], k: int = 4, filter: Filter | None = None) -> Hits:
        """Return the best documents for weighted terms, ties by id; see ``DocumentIndex.search_keyword``."""
        check_k(k)
        return Hits(*self._scored(check_weights(terms), k, self._passages(filter)))

    def _scored(
        self, weights: Terms, k: int, where: Filter | None, *, ids_only: bool = False
    ) -> tuple[Scored, float]:
        """Return the best documents for checked terms, or their ids, and the bound of their scores."""
        best = self._best(weights, k, where, ids_only)
        return best, self._maximum(weights) if best else 0.0

    def _maximum(self, terms: Terms) -> float:
        """Return a number that no score for weighted terms exceeds."""
        return self._index.current().maximum(terms)

    def _passages(self, filter: Filter | None) -> Filter | None:
        """Return a filter that also leaves out what was made of passages."""
        return passage_filter(filter, self._derived)

    def _best(self, terms: Terms, k: int, where: Filter | None, ids_only: bool) -> Scored:
        """Return the k best documents for some terms, ties by id; with ``ids_only`` their ids."""
        view = self._index.current()  # a finished state, which no writer changes
        passes = passes_of(where)
        fetch = k + TIES
        while True:
            positions, scores = view.top(terms, fetch, passes)
            # done if these are all, or if the last one scores too low for a tie with the k-th
            if len(scores) < fetch or scores[-1] < scores[k - 1] - 2 * TIE:
                break
            fetch *= 4
        ids = [view.rows[position].key for position in positions.tolist()]
        best = order_of(ids, scores)[:k]
        results = [ids[hit] for hit in best] if ids_only else view.documents(positions[best].tolist())
        return list(zip(results, scores[best].tolist(), strict=True))


class KeywordView(PostingsView):
    """View of a leg over the terms of an analyzer; its methods mean what those of ``BM25Index`` do."""

    _index: BM25Index
    analyzer: Callable[[str], list[str]]  # gives the terms of a text, as the index makes them
    query_terms: Callable[[str], Sequence[str]]  # those that a query is searched by, without question words

    def __init__(self, index: BM25Index, derived: bool) -> None:
        super().__init__(index, derived)
        self.analyzer, self.query_terms = index.analyzer, index.query_terms

    def search(self, query: str, k: int = 4, filter: Filter | None = None) -> Hits:
        """Return the best documents for a query, ties by id; see ``DocumentIndex.search_keyword``."""
        return Hits(*self._search(query, k, filter, ids_only=False))

    def search_ids(self, query: str, k: int = 4, filter: Filter | None = None) -> tuple[RankedIds, float]:
        """Return ids and scores of what `search` finds, and the bound of the scores; no text is read."""
        return self._search(query, k, filter, ids_only=True)

    def _search(self, query: str, k: int, filter: Filter | None, *, ids_only: bool) -> tuple[Scored, float]:
        """Correct the spelling of a query's terms and search for them."""
        check_k(k)
        where = self._passages(filter)
        weights = Counter(self.query_terms(check_query(query)))
        return self._scored(self._spell(query, weights, where), k, where, ids_only=ids_only)

    def spread(
        self, seeds: Mapping[str, float], k: int, filter: Filter | None
    ) -> list[tuple[Document, float, list[str]]]:
        """Return the documents that share rare terms with ``seeds``, weights by id (see ``BM25Index.spread``)."""
        return self._index.spread(seeds, k, self._passages(filter))

    def _spell(self, query: str, weights: Mapping[str, float], where: Filter | None) -> Mapping[str, float]:
        """Return the weighted terms of a query, those that no document has replaced by the nearest ones."""
        return self._index.spell(query, weights, self._index.current(), passes_of(where))


class SparseView(PostingsView):
    """View of the sparse leg, searched by the vectors that its encoder gives for questions."""

    _index: SparseIndex

    def encode_query(self, query: str) -> dict[str, float]:
        """Return the vector of a question."""
        return self._index.encode_query(query)

    async def aencode_query(self, query: str) -> dict[str, float]:
        """Return the vector of a question, natively asynchronous."""
        return await self._index.aencode_query(query)

    def search(self, query: str, k: int = 4, filter: Filter | None = None) -> Hits:
        """Return the best documents for a question by inner product, ties by id."""
        return self.search_weighted(self.encode_query(query), k, filter)
