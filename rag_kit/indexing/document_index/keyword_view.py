"""The keyword leg of an index as others may read it: terms, weights, feedback; nothing to write with."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rag_kit.documents import Filter, validate_filter
from rag_kit.errors import InvalidInputError
from rag_kit.indexing.bm25.parameters import check_k
from rag_kit.indexing.document_index.keyword import best_documents
from rag_kit.indexing.searched import passages

if TYPE_CHECKING:
    from langchain_core.documents import Document

    from rag_kit.indexing.bm25.index import BM25Index


class KeywordView:
    """What a ``DocumentIndex`` lets others read of its keyword leg; see ``DocumentIndex.keyword_view``.

    The methods mean what they mean for a ``BM25Index``. Take a new view for each search: a view does not look
    into the store for what was committed after it was made.

    Args:
        index: The BM25 index that follows the store.
        derived: Whether it may hold what was made of passages, which only a filter that names it lets through.

    Example:
        >>> import tempfile
        >>> from langchain_core.documents import Document
        >>> from rag_kit.indexing import DocumentIndex
        >>> with DocumentIndex.create(tempfile.mkdtemp()) as index:
        ...     _ = index.upsert([Document("a car", id="1"), Document("a truck", id="2")])
        ...     view = index.keyword_view()
        ...     print(view.analyzer("Trucks"), [doc.id for doc, _ in view.search_weighted({"truck": 2, "car": 1})])
        ['truck'] ['2', '1']
    """

    def __init__(self, index: BM25Index, derived: bool) -> None:
        self._index = index
        self._derived = derived

    def __len__(self) -> int:
        return len(self._index)

    def __contains__(self, key: object) -> bool:
        return key in self._index

    def analyzer(self, text: str) -> list[str]:
        """The terms of a text, as the index makes them."""
        return list(self._index.analyzer(text))

    def search(
        self, query: str | Mapping[str, float], k: int = 4, filter: Filter | None = None
    ) -> list[tuple[Document, float]]:
        """The best documents for a query, ties by id; see ``DocumentIndex.search_keyword``."""
        check_k(k)
        if not isinstance(query, (str, Mapping)):
            raise InvalidInputError(f"The query must be a text, not {type(query).__name__}.")
        return self._best(query, k, self._where(filter))

    def search_weighted(
        self, terms: Mapping[str, float], k: int = 4, filter: Filter | None = None
    ) -> list[tuple[Document, float]]:
        """The best documents for weighted terms, ties by id.

        Raises:
            InvalidInputError: ``k`` is no whole number above 0, or ``terms`` no dict of weights.
            FilterError: The filter is malformed.
        """
        return self.search(terms, k, filter)

    def feedback(
        self, query: str, k: int = 10, filter: Filter | None = None, *, max_documents: float = math.inf
    ) -> list[tuple[dict[str, int], float]]:
        """The best documents as the counts of their terms (see ``BM25Index.feedback``)."""
        return self._index.feedback(query, k, self._where(filter), max_documents=max_documents)

    def spread(
        self, seeds: Mapping[str, float], k: int = 4, filter: Filter | None = None, **settings: Any
    ) -> list[tuple[Document, float, list[str]]]:
        """The documents that share rare terms with some documents (see ``BM25Index.spread``)."""
        return self._index.spread(seeds, k, self._where(filter), **settings)

    def maximum(self, query: str | Mapping[str, float]) -> float:
        """What no score for the query, or for weighted terms, can exceed."""
        return self._index.maximum(query)

    def _best(
        self, query: str | Mapping[str, float], k: int, where: Filter | None
    ) -> list[tuple[Document, float]]:
        return best_documents(self._index, query, k, where)

    def _where(self, where: Filter | None) -> Filter | None:
        validate_filter(where)
        return passages(where) if self._derived else where or None
