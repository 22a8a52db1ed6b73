"""A finished, read-only state of the index: what a search works on while writers go on, and may be asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np
from langchain_core.documents import Document
from numpy.typing import NDArray

from rag_kit.documents import Filter, compile_filter
from rag_kit.documents.filters import FilterMasks
from rag_kit.documents.identity import copy_value
from rag_kit.errors import InvalidInputError
from rag_kit.indexing.bm25.postings import Floats, Postings, Weights
from rag_kit.indexing.bm25.term_graph import TermGraph

_DENSE_SHARE = 8  # a term in more than 1/8 of the documents is kept as a full row: faster, but larger
# To find the k best, the scores are laid out as a grid of at most 64 rows of 256 columns or more: the maximum of each
# column is quickly found, and the k-th best maximum is a lower bound of the k-th best score.
_MAX_HEIGHT, _MIN_WIDTH = 64, 256
_MAX_WEIGHT = 1e15  # sums of the products of 10**8 such weights stay finite in float32

Positions = NDArray[np.int64]
Passes = Callable[[Mapping[str, Any]], bool]
Terms = Mapping[str, float]  # the weight of each term of a query, above 0


class ScoreRow(NamedTuple):
    """A document of the index."""

    key: str  # identity in the index
    id: str | None  # of the document in results: the id that was given, often None
    text: str
    metadata: dict[str, Any]  # the index's own copy
    length: int  # in terms


class Hits(list["tuple[Document, float]"]):
    """Documents and scores, best first; no score for the query can exceed ``maximum``."""

    def __init__(self, hits: Iterable[tuple[Document, float]] = (), maximum: float = 0.0) -> None:
        super().__init__(hits)
        self.maximum = maximum


class BM25View:
    """Scores documents and picks the best; never changes.

    Document numbers of the postings are positions in the rows. The vocabulary may grow meanwhile: terms beyond
    ``postings.terms`` are unknown here. Weights are asked for once a term, when it is first searched for.
    """

    def __init__(
        self, rows: Sequence[ScoreRow], postings: Postings, weights: Weights, vocabulary: Mapping[str, int]
    ) -> None:
        self.rows = rows
        self.postings = postings
        self._weights = weights
        self._vocabulary = vocabulary
        self._size = len(rows)
        self._height = max(1, min(_MAX_HEIGHT, self._size // _MIN_WIDTH))
        self._width = -(-self._size // self._height)  # rounded up
        self._padded = self._width * self._height  # length of the scores, which zeros fill up
        self._weights_of: dict[int, Floats] = {}
        self._known_terms = postings.terms
        # an element of a memoryview (`.data`) is a Python number, not a numpy scalar, which is slower
        self._pointers = np.ascontiguousarray(postings.pointers).data
        self._highest = weights.highest.data

    def __len__(self) -> int:
        return self._size

    @cached_property
    def position_of(self) -> dict[str, int]:
        """The position of each document by its key."""
        return {row.key: position for position, row in enumerate(self.rows)}

    def scores(self, terms: Terms) -> Floats:
        """Return the score of every document, as a new array of shape (documents,)."""
        return self._accumulate(terms)[: self._size]

    def maximum(self, terms: Terms) -> float:
        """Return a bound that no document's score for the terms exceeds: the sum of the most that each term can add."""
        if not self._size:
            return 0.0
        return sum(weight * self._highest[self._number_of(term)] for term, weight in terms.items())

    def _number_of(self, term: str) -> int:
        """Return a term's number; for all unknown terms the one behind the last, which `_highest` has, too."""
        return min(self._vocabulary.get(term, self._known_terms), self._known_terms)

    def frequency(self, term: str) -> int:
        """Return the number of documents that have a term."""
        number = self._number_of(term)
        return self._pointers[number + 1] - self._pointers[number] if number < self._known_terms else 0

    def find_known(
        self, terms: Iterable[str], max_texts: int, passes: Passes | None = None
    ) -> Iterator[tuple[str, list[str]]]:
        """Yield the terms that passing documents have, most frequent first, each with ``max_texts`` of their texts."""
        present = filter(self.frequency, terms)  # those that occur
        for term in sorted(present, key=lambda term: (-self.frequency(term), term)):
            rows = (self.rows[position] for position in self._documents_with(self._vocabulary[term]))
            passing_texts = (row.text for row in rows if passes is None or passes(row.metadata))
            if texts := list(islice(passing_texts, max_texts)):
                yield term, texts

    @cached_property
    def graph(self) -> TermGraph:
        """The documents and the rare terms that they share."""
        return TermGraph(self.postings, self._size, list(self._vocabulary))

    @cached_property
    def masks(self) -> FilterMasks:
        """Which documents pass a filter, shape (documents,)."""
        return FilterMasks([row.metadata for row in self.rows])

    def search(self, terms: Terms, k: int, passes: Passes | None = None) -> Hits:
        """Return copies of the k best documents for the terms of a query, with their scores; see :meth:`top`."""
        positions, scores = self.top(terms, k, passes)
        documents = self.documents(positions.tolist())
        return Hits(zip(documents, scores.tolist(), strict=True), self.maximum(terms))

    def top(self, terms: Terms, k: int, passes: Passes | None = None) -> tuple[Positions, Floats]:
        """Return positions and scores (above zero) of the k best documents whose metadata pass; ties by position."""
        scores = self._accumulate(terms)
        if passes is None:
            positions = self._best(scores, k)
        else:
            ranked = self._best(scores, self._padded).tolist()  # all of them, for how many pass is not known
            passing = (position for position in ranked if passes(self.rows[position].metadata))
            positions = np.array(list(islice(passing, k)), np.int64)
        return positions, scores[positions]

    def documents(self, positions: Iterable[int]) -> list[Document]:
        """Return copies of the documents at some positions."""
        return documents_of_rows(self.rows[position] for position in positions)

    def _accumulate(self, terms: Terms) -> Floats:
        """Return the scores of all documents, then zeros that fill up the grid of `_best`: shape (height * width,)."""
        scores: Floats = np.zeros(self._padded, self._weights.dtype)
        for term, weight in terms.items():
            number = self._number_of(term)
            if number == self._known_terms:
                continue
            added = self._weights_of.get(number)
            if added is None:
                added = self._weights.of_term(number)
                if len(added) * _DENSE_SHARE > self._size:  # a value for each document, as many have the term
                    full_row = np.zeros(self._padded, self._weights.dtype)
                    full_row[self._documents_with(number)] = added
                    added = full_row
                self._weights_of[number] = added
            if weight != 1:
                added = added * self._weights.dtype.type(weight)
            if len(added) == self._padded:
                np.add(scores, added, out=scores)
            else:
                np.add.at(scores, self._documents_with(number).astype(np.intp), added)
        return scores

    def _documents_with(self, number: int) -> NDArray[np.int32]:
        """Return the positions of the documents that have a term, given by its number."""
        return self.postings.documents[self._pointers[number] : self._pointers[number + 1]]

    def _best(self, scores: Floats, k: int) -> Positions:
        """Return the positions of the k highest scores above zero, the best first; ties by position."""
        bound = 0.0  # a lower bound of the k-th best score, so that few scores need sorting
        if k < self._width:  # the k best columns have a score of at least the bound each, so k documents do
            column_maxima = scores.reshape(self._height, self._width).max(axis=0)
            bound = np.partition(column_maxima, self._width - k)[self._width - k]  # the k-th highest
        may_be_best = scores >= bound if bound > 0 else scores > 0
        positions = may_be_best.nonzero()[0]
        return positions[np.lexsort((positions, -scores[positions]))[:k]]


def passes_of(where: Filter | None) -> Passes | None:
    """Return a function that tells whether metadata pass a filter, ``None`` where all do; raises FilterError."""
    return None if where is None or where == {} else compile_filter(where)


def documents_of_rows(rows: Iterable[ScoreRow]) -> list[Document]:
    """Make a Document of each row, with a copy of its metadata."""
    return [Document(page_content=row.text, metadata=copy_value(row.metadata), id=row.id) for row in rows]


def check_query(query: Any) -> str:
    """Return a query; raise InvalidInputError unless it is a string."""
    if not isinstance(query, str):
        raise InvalidInputError(f"A query must be a str, not {type(query).__name__}.")
    return query


def check_k(k: Any) -> int:
    """Return a number of results as an int; raise InvalidInputError unless it is a whole number of 1 or more."""
    if isinstance(k, bool) or not isinstance(k, (int, np.integer)) or k < 1:
        raise InvalidInputError(f"k={k!r} is not allowed; give a whole number of 1 or more.")
    return int(k)


def check_weights(terms: Any) -> dict[str, float]:
    """Return terms with weights above 0; raise InvalidInputError for anything but a dict of allowed weights.

    Terms are strings or whole numbers, each once: 7 and "7" are the same.

    Example:
        >>> check_weights({"cat": 0.5, 7: 2, "dog": 0})
        {'cat': 0.5, '7': 2.0}
    """
    if not isinstance(terms, Mapping):
        raise InvalidInputError(f"Weights are {type(terms).__name__}; give a dict from term to weight.")
    checked: dict[str, float] = {}
    for term, weight in terms.items():
        if not is_number(weight) or not 0 <= weight <= _MAX_WEIGHT:
            raise InvalidInputError(
                f"The weight of {term!r} is {weight!r}; give numbers from 0 to {_MAX_WEIGHT:g}."
            )
        if isinstance(term, bool) or not isinstance(term, str | Integral) or str(term) in checked:
            raise InvalidInputError(f"The term {term!r} has a weight; give strings or integers, each once.")
        if np.float32(weight) > 0:  # a weight too small for float32 could only make hits of score 0
            checked[str(term)] = float(weight)
    return checked


def is_number(value: Any) -> bool:
    """Tell whether a value is a real number, and no boolean."""
    return isinstance(value, Real) and not isinstance(value, bool)
