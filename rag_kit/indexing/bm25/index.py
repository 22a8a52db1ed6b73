"""BM25Index: keyword search over documents that come and go."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from langchain_core.documents import Document
from numpy.typing import NDArray

from rag_kit.documents import Filter
from rag_kit.errors import InvalidInputError
from rag_kit.indexing.bm25 import storage
from rag_kit.indexing.bm25.inverted import InvertedIndex
from rag_kit.indexing.bm25.parameters import DEFAULT_B, DEFAULT_K1, formula_of
from rag_kit.indexing.bm25.postings import PostingRun, Postings, Variant, Weights, bm25_weights, count_terms
from rag_kit.indexing.bm25.spelling import MAX_TEXTS, correct_spelling
from rag_kit.indexing.bm25.view import BM25View, Hits, Passes, check_k, check_query, check_weights, passes_of
from rag_kit.text import default_analyzer


class BM25Index(InvertedIndex):
    """An exact BM25 index in memory that can be added to, deleted from, filtered, saved and loaded.

    What a term adds to each score is computed when the term is first searched for, kept, and summed by numpy; a search
    of 100,000 documents takes a fraction of a millisecond. After a write this begins again from the kept counts (no
    text is analysed again), so the scores are always those of an index built afresh from the same documents.

    Any number of threads may search while one writes: a search sees all of a write that returned before it began, and
    all or nothing of one that runs meanwhile. Results are copies. Only :meth:`save` and :meth:`load` do I/O.

    Args:
        k1: How slowly repeats of a term stop counting; 0 or more.
        b: How much long documents are penalised, from 0 to 1.
        variant: ``"lucene"``, or ``"okapi"`` for the scores of rank_bm25's ``BM25Okapi``; 0 or less is not a hit.
        analyzer: Turns a text into terms; ``None`` for the default :class:`~rag_kit.text.Analyzer`. Any function from
            str to a list of str will do, but then :meth:`load` must be given it again.

    Raises:
        InvalidInputError: A parameter is out of its range.

    Example:
        >>> index = BM25Index.from_texts(["a cat sat", "two dogs ran", "猫和狗"])
        >>> [(doc.page_content, round(score, 2)) for doc, score in index.search("cats")]
        [('a cat sat', 0.57)]
        >>> index.search("zebra")
        []
    """

    kind = storage.IndexKind(b"RAGKBM25", "BM25 index", "counts")

    def __init__(
        self,
        *,
        k1: float = DEFAULT_K1,
        b: float = DEFAULT_B,
        variant: Variant = "lucene",
        analyzer: Callable[[str], list[str]] | None = None,
    ) -> None:
        super().__init__()
        self._formula = formula_of(k1, b, variant)
        self.k1, self.b, self.variant = self._formula
        self.analyzer = default_analyzer() if analyzer is None else analyzer

    def _analyse(self, texts: Sequence[str]) -> list[Sequence[str]]:
        return [_check_terms(self.analyzer(text)) for text in texts]

    def _make_run(self, analysed: Sequence[Sequence[str]], first: int) -> PostingRun:
        return count_terms(analysed, self._vocabulary, first)

    def _weights(self, postings: Postings, lengths: NDArray[np.int64]) -> Weights:
        return bm25_weights(postings, lengths, self._formula)

    def search(self, query: str, k: int = 4, filter: Filter | None = None) -> Hits:
        """Return the k best documents for a query.

        Args:
            query: The question or keywords.
            k: How many at most; 1 or more.
            filter: Condition on the metadata (see ``rag_kit.documents.filters``); it is met by all results.

        Returns:
            ``(document, score)`` by falling score, all above 0, so maybe fewer than ``k``; ties in insertion order. The
            list's attribute ``maximum`` is what no score for the query can exceed; a term that no document has counts
            there as rarest, so the best score divided by it tells how much of the question the index can match. A word
            that no document has is searched by the nearest word that some have, with a note
            (``rag_kit.concurrency.notes``).

        Raises:
            InvalidInputError: ``k`` below 1, or the query is not a string.
            FilterError: The filter is malformed.
        """
        k, passes, view = check_k(k), passes_of(filter), self.current()
        terms = self.spell(query, Counter(self.query_terms(query)), view, passes)
        return view.search(terms, k, passes)

    def search_weighted(self, terms: Mapping[str, float], k: int = 4, filter: Filter | None = None) -> Hits:
        """Search as :meth:`search`, by terms with weights: what a term adds to a score is multiplied by its weight.

        With the weight 1 for each term of a query, the result is that of :meth:`search`.

        Args:
            terms: Weight of each term, a finite number of 0 or more. Terms are those that the ``analyzer``
                makes (``index.analyzer("running") == ["run"]``); one that no document holds adds nothing.
            k: How many at most; 1 or more.
            filter: Condition on the metadata.

        Raises:
            InvalidInputError: ``k`` below 1, or ``terms`` is not a dict of such weights.
            FilterError: The filter is malformed.

        Example:
            >>> index = BM25Index.from_texts(["a car", "a truck"])
            >>> [(doc.page_content, round(score, 2)) for doc, score in index.search_weighted({"car": 1, "truck": .5})]
            [('a car', 0.36), ('a truck', 0.18)]
        """
        weights, k = check_weights(terms), check_k(k)
        return self.current().search(weights, k, passes_of(filter))

    def spread(
        self, seeds: Mapping[str, float], k: int = 4, filter: Filter | None = None
    ) -> list[tuple[Document, float, list[str]]]:
        """Return the documents that share rare terms with the seeds, by personalised PageRank (see ``GraphRetriever``).

        Args:
            seeds: Weight of each document, by its id in the index, where the walk begins; others are passed over.
            k: How many at most; 1 or more.
            filter: Condition on the metadata; the walk touches no other document.

        Returns:
            ``(document, mass, terms)`` by falling mass, seeds included; ``terms`` led the walk there most often.

        Example:
            >>> index = BM25Index.from_texts(["Ada met Babbage", "Babbage built engines", "tea"], ids=["1", "2", "3"])
            >>> [(doc.id, terms) for doc, _, terms in index.spread({"1": 1.0})]
            [('1', ['babbag']), ('2', ['babbag'])]
        """
        k = check_k(k)
        with self._lock:
            view = self.current()
            graph, position_of = view.graph, view.position_of  # meanwhile the vocabulary must not grow
            weights = {position_of[key]: weight for key, weight in seeds.items() if key in position_of}
        allowed = None if passes_of(filter) is None else view.masks.mask(filter)
        visits = graph.visits(weights, k, allowed)
        documents = view.documents(visit.document for visit in visits)
        return [(doc, visit.mass, visit.terms) for doc, visit in zip(documents, visits, strict=True)]

    def spell(
        self, query: str, terms: Mapping[str, float], view: BM25View, passes: Passes | None
    ) -> Mapping[str, float]:
        """Replace terms that no document of the view has by the nearest, with a note, if the analyzer allows it."""
        find_known = partial(view.find_known, max_texts=MAX_TEXTS, passes=passes)
        return correct_spelling(query, terms, self.analyzer, view.frequency, find_known)

    def query_terms(self, query: str) -> Sequence[str]:
        """Return the terms of a query by the analyzer's ``query_terms``, or by the analyzer itself if it has none.

        Example:
            >>> BM25Index().query_terms("How do I cap the calls?")
            ['cap', 'call']
        """
        analyse = getattr(self.analyzer, "query_terms", self.analyzer)
        return _check_terms(analyse(check_query(query)))

    def scores(self, query: str) -> NDArray[Any]:
        """Return the score of every document, in insertion order, as a new array of shape (documents,).

        float32 for ``lucene``, float64 for ``okapi``, whose scores may be below zero.
        """
        return self.current().scores(Counter(self.query_terms(query)))

    def _header(self) -> dict[str, Any]:
        return {"settings": self._formula._asdict(), "analyzer": storage.settings_of(self.analyzer)}

    @classmethod
    def load(cls, path: str | Path, *, analyzer: Callable[[str], list[str]] | None = None) -> BM25Index:
        """Read an index that :meth:`save` wrote; queries are analysed as its documents were.

        Args:
            path: The file.
            analyzer: Needed only where the index was built with a function of your own.

        Raises:
            IndexMissingError: There is no such file.
            IndexFormatError: It is damaged, cut short, of a newer format, or no index; the message names it.
            InvalidInputError: The index needs its ``analyzer``, or has one and was given another.
        """
        header, state = storage.load(path, cls.kind)
        stored = storage.analyzer_from(path, header["analyzer"])
        if stored is None and analyzer is None:
            raise InvalidInputError(
                f"{path} was built with an analyzer function of its own; give it again: load(path, analyzer=...)."
            )
        if stored is not None and analyzer not in (None, stored):
            raise InvalidInputError(
                f"{path} was built with {stored!r}, not with {analyzer!r}; leave analyzer out, or build it again."
            )
        index = cls(**header["settings"], analyzer=stored or analyzer)
        index._restore(state)
        return index

    def __repr__(self) -> str:
        return f"BM25Index({len(self)} documents, k1={self.k1:g}, b={self.b:g}, variant={self.variant!r})"


def _check_terms(terms: Any) -> Sequence[str]:
    """Return an analyzer's result; raise InvalidInputError unless it is a list (a string would be single letters)."""
    if not isinstance(terms, (list, tuple)):
        raise InvalidInputError(f"An analyzer must return a list of terms, not {type(terms).__name__}.")
    return terms
