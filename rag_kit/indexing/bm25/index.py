"""BM25Index: keyword search over documents that come and go."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rag_kit.documents import compile_filter
from rag_kit.errors import IndexFormatError, InvalidInputError
from rag_kit.indexing.bm25 import parameters as check
from rag_kit.indexing.bm25 import scoring, storage
from rag_kit.indexing.bm25.base import InvertedIndex
from rag_kit.indexing.bm25.parameters import DEFAULT_B, DEFAULT_K1
from rag_kit.indexing.bm25.postings import count_terms
from rag_kit.indexing.bm25.scoring import Variant
from rag_kit.indexing.bm25.store import Store
from rag_kit.indexing.bm25.view import Query
from rag_kit.text import default_analyzer

if TYPE_CHECKING:
    from langchain_core.documents import Document

    from rag_kit.documents import Filter

Hits = list[tuple["Document", float]]
_FILE = storage.Kind(b"RAGKBM25", "BM25 index", "counts")


class BM25Index(InvertedIndex):
    """An exact BM25 index in memory that can be added to, deleted from, filtered, saved and loaded.

    What a term adds to each score is computed when the term is first searched for, kept, and summed by numpy; a
    search of 100,000 documents takes a fraction of a millisecond. After a write this begins again from the kept
    counts (no text is analysed again), so the scores are always those of an index built afresh from the same
    documents.

    Any number of threads may search while one writes: a search sees all of an ``add``, ``delete`` or ``update``
    that returned before it began, and all or nothing of one that runs meanwhile. Results are copies. Nothing here
    does I/O but :meth:`save` and :meth:`load`.

    Args:
        k1: How slowly repeats of a term stop counting; 0 or more.
        b: How much long documents are penalised, from 0 to 1.
        variant: ``"lucene"``, or ``"okapi"`` for the scores of rank_bm25's ``BM25Okapi`` (a document whose score is
            not above zero is not returned either way).
        analyzer: Turns a text into terms; ``None`` for the default :class:`~rag_kit.text.Analyzer`. Any function
            from str to a list of str will do, but then :meth:`load` must be given it again.

    Raises:
        InvalidInputError: A parameter is out of its range.

    Example:
        >>> index = BM25Index.from_texts(["a cat sat", "two dogs ran", "猫和狗"])
        >>> [(doc.page_content, round(score, 2)) for doc, score in index.search("cats")]
        [('a cat sat', 0.57)]
        >>> index.search("zebra")
        []
    """

    def __init__(
        self,
        *,
        k1: float = DEFAULT_K1,
        b: float = DEFAULT_B,
        variant: Variant = "lucene",
        analyzer: Callable[[str], list[str]] | None = None,
    ) -> None:
        formula = check.formula_of(k1, b, variant)
        self.k1, self.b, self.variant = formula
        self.analyzer = default_analyzer() if analyzer is None else check.check_analyzer(analyzer)
        super().__init__(Store(partial(scoring.weights, formula=formula), count_terms))

    def _write(
        self,
        documents: Iterable[Document],
        ids: Iterable[str] | None,
        *,
        replace: bool,
        searched: Sequence[str] | None = None,
    ) -> list[str]:
        """Add or replace documents; ``searched`` are the texts to analyse in place of theirs."""
        given = check.documents_of(documents)
        texts = [document.page_content for document in given] if searched is None else searched

        def analyse(part: slice) -> list[list[str]]:
            return [check.check_terms(self.analyzer(text)) for text in texts[part]]

        return self._store.write(given, ids, analyse, replace=replace)

    # Reading

    def search(self, query: str, k: int = 4, filter: Filter | None = None) -> Hits:
        """The best documents for a query.

        Args:
            query: The question or keywords.
            k: How many at most; 1 or more.
            filter: Condition on the metadata (see ``rag_kit.documents.filters``); it is met by all results.

        Returns:
            ``(document, score)`` by falling score, equal scores in insertion order; every score is above zero,
            so there may be fewer than ``k`` or none.

        Raises:
            InvalidInputError: ``k`` below 1, or the query is not a string.
            FilterError: The filter is malformed.
        """
        return self._search(self._terms(query), k, filter)

    def search_weighted(self, terms: Mapping[str, float], k: int = 4, filter: Filter | None = None) -> Hits:
        """As :meth:`search`, for terms of which each has a weight: what it adds to a score is multiplied by it.

        Args:
            terms: Weight of each term, a finite number of 0 or more. Terms are those that the ``analyzer``
                makes (``index.analyzer("running") == ["run"]``); one that no document holds adds nothing.
            k: How many at most; 1 or more.
            filter: Condition on the metadata.

        Returns:
            As for :meth:`search`. With the weight 1 for each term of a query, the same.

        Raises:
            InvalidInputError: ``k`` below 1, or ``terms`` is no dict of such weights.
            FilterError: The filter is malformed.

        Example:
            >>> index = BM25Index.from_texts(["a car", "a truck"])
            >>> [(doc.page_content, round(score, 2)) for doc, score in index.search_weighted({"car": 1, "truck": .5})]
            [('a car', 0.36), ('a truck', 0.18)]
        """
        return self._search(check.check_weights(terms), k, filter)

    def feedback(
        self, query: str, k: int = 10, filter: Filter | None = None, *, max_documents: float = math.inf
    ) -> list[tuple[dict[str, int], float]]:
        """The best documents as the counts of their terms, for relevance feedback.

        Returns:
            ``({term: count}, score)`` of each, in the order of :meth:`search`; without the terms that occur in
            more than ``max_documents``.
        """
        passes = compile_filter(filter) if filter else None
        return self._store.best_counts(self._terms(query), check.check_k(k), passes, max_documents)

    def spread(
        self,
        seeds: Mapping[str, float],
        k: int = 4,
        filter: Filter | None = None,
        *,
        damping: float = 0.5,
        max_df: int = 100,
    ) -> list[tuple[Document, float, list[str]]]:
        """The documents that share rare terms with some documents, by personalised PageRank (see ``GraphRetriever``).

        Args:
            seeds: Weight of each document, by its id in the index, where the walk begins; others are passed over.
            k: How many at most; 1 or more.
            filter: Condition on the metadata; the walk touches no other document.
            damping: Chance to go on from a document to its neighbours, from 0 to 1.
            max_df: Most documents that a term may be in to join them.

        Returns:
            ``(document, mass, terms)``, the greatest mass first, the seeds among them; ``terms`` are those by
            which the walk came there most often.

        Example:
            >>> index = BM25Index.from_texts(["Ada met Babbage", "Babbage built engines", "tea"], ids=["1", "2", "3"])
            >>> [(doc.id, terms) for doc, _, terms in index.spread({"1": 1.0})]
            [('1', ['babbag']), ('2', ['babbag'])]
        """
        return self._store.spread(seeds, check.check_k(k), filter, damping, max_df)

    def _search(self, terms: Query, k: int, filter: Filter | None) -> Hits:
        k = k if type(k) is int and k > 0 else check.check_k(k)
        view = self._store.view
        view = self._store.current() if view is None else view
        return view.search(terms, k, compile_filter(filter) if filter else None)

    def _terms(self, query: str) -> list[str]:
        terms = self.analyzer(query if isinstance(query, str) else check.check_query(query))
        return terms if isinstance(terms, list) else check.check_terms(terms)

    def scores(self, query: str) -> NDArray[np.floating[Any]]:
        """The score of every document, in insertion order, as a new array of shape (documents,).

        float32 for ``lucene``, float64 for ``okapi``, whose scores may be below zero.
        """
        return self._store.current().scores(self._terms(query))

    def maximum(self, query: str | Mapping[str, float]) -> float:
        """What no document's score for the query can exceed: each of its terms at full weight.

        A term that no document holds counts as rarest, so that the best score divided by this tells how much
        of the question the index can match. 0 for a query without terms.

        Args:
            query: A query, or weighted terms as for :meth:`search_weighted`.
        """
        terms = check.check_weights(query) if isinstance(query, Mapping) else self._terms(query)
        return self._store.current().maximum(terms, self.k1, self.variant)

    def document_frequency(self, term: str) -> int:
        """In how many documents a term, as the ``analyzer`` makes it, occurs."""
        return self._store.current().frequency(term)

    # Storing

    def save(self, path: str | Path) -> None:
        """Write the index to one file, atomically: a crash leaves the old file or the new one.

        Args:
            path: The file; its folder must exist.

        Raises:
            InvalidInputError: Some metadata is not JSON (a set, a date...), or the path is a folder's; nothing is
                written then.
            OSError: The file cannot be written.
        """
        header = {
            "settings": {"k1": self.k1, "b": self.b, "variant": self.variant},
            "analyzer": storage.settings_of(self.analyzer),
        }
        storage.save(path, _FILE, header, self._store.snapshot())

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
        formula, stored = storage.load(path, _FILE, _formula_of)
        chosen = _pick_analyzer(path, stored.header["analyzer"], analyzer)
        index = cls(**formula._asdict(), analyzer=chosen)
        index._store.restore(stored.columns, stored.postings, stored.vocabulary)
        index.prepare()
        return index

    def __repr__(self) -> str:
        return f"BM25Index({len(self)} documents, k1={self.k1:g}, b={self.b:g}, variant={self.variant!r})"


def _formula_of(file: storage.Sections) -> scoring.Formula:
    """The parameters in the header of a file."""
    settings = file.header["settings"]
    if not isinstance(settings, dict) or set(settings) != {"k1", "b", "variant"}:
        raise ValueError(f"the settings are {settings!r}")
    if not isinstance(file.header["analyzer"], (dict, type(None))):
        raise ValueError(f"the analyzer is {file.header['analyzer']!r}")
    return check.formula_of(**settings)


def _pick_analyzer(
    path: str | Path, settings: Mapping[str, Any] | None, given: Callable[[str], list[str]] | None
) -> Callable[[str], list[str]]:
    """The analyzer for a loaded index: the stored one, or the caller's where none could be stored."""
    if settings is None:
        if given is None:
            raise InvalidInputError(
                f"{path} was built with an analyzer function of its own; give it again: load(path, analyzer=...)."
            )
        return given
    try:
        stored = storage.analyzer_from(settings)
    except (InvalidInputError, TypeError) as error:
        raise IndexFormatError(f"{path} holds analyzer settings that are not allowed: {error}") from error
    if given is not None and given != stored:
        raise InvalidInputError(
            f"{path} was built with {stored!r}, not with {given!r}. Leave analyzer out, or build the index again."
        )
    return stored
