"""A finished, read-only state of the index: what a search works on while writers go on."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rag_kit.documents import Filter
from rag_kit.documents.columns import MetadataColumns
from rag_kit.documents.identity import copy_value
from rag_kit.indexing.bm25.postings import Floats, Postings, Weights

if TYPE_CHECKING:
    from langchain_core.documents import Document

_DENSE_SHARE = 8  # a term in more than 1/8 of the documents is kept as a full row: faster, but larger
# The score table is looked at as a grid; the best score of a column stands for all documents of the column.
_MAX_HEIGHT, _ROW_SIZE = 64, 256

Positions = NDArray[np.int64]
Passes = Callable[[Mapping[str, Any]], bool]
Query = Sequence[str] | Mapping[str, float]  # terms, repeats counted; or the weight of each term, above 0


class ScoreRow(NamedTuple):
    """A document of the index."""

    key: str  # identity in the index
    id: str | None  # of the document in results: the id that was given, often None
    text: str
    metadata: dict[str, Any]  # the index's own copy
    length: int  # in terms


class Hits(list["tuple[Document, float]"]):
    """Documents and scores, best first; no score for the query can exceed ``maximum``."""

    maximum: float = 0.0


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
        self._height = max(1, min(_MAX_HEIGHT, self._size // _ROW_SIZE))
        self._width = -(-self._size // self._height)
        self._padded = self._width * self._height
        self._weights_of: dict[int, Floats] = {}
        self._local = threading.local()
        self._fields: MetadataColumns | None = None
        self._known_terms = postings.terms
        # Seen through a memoryview an element is a Python number at once.
        self._pointers = np.ascontiguousarray(postings.pointers).data
        self._highest = weights.highest.data

    def __len__(self) -> int:
        return self._size

    @cached_property
    def place_of(self) -> dict[str, int]:
        """The position of each document by its key."""
        return {row.key: place for place, row in enumerate(self.rows)}

    def scores(self, terms: Query) -> Floats:
        """Score of every document, as a new array of shape (documents,)."""
        return self._accumulate(terms)[: self._size].copy()

    def maximum(self, terms: Query) -> float:
        """Give a bound that no document's score for the terms exceeds."""
        if not self._size:
            return 0.0
        highest, unknown, find = self._highest, self._known_terms, self._vocabulary.get
        pairs = term_weights(terms).items()
        return sum(weight * highest[min(find(term, unknown), unknown)] for term, weight in pairs)

    def frequency(self, term: str) -> int:
        """In how many documents a term occurs."""
        number = self._vocabulary.get(term, self._known_terms)
        return self._pointers[number + 1] - self._pointers[number] if number < self._known_terms else 0

    def knows(self, term: str) -> bool:
        """Whether some document has a term."""
        return self.frequency(term) > 0

    def find_known(self, terms: Iterable[str], passes: Passes | None = None) -> Iterator[tuple[str, str]]:
        """Terms that documents have whose metadata pass, the most frequent first, each with the text of one of them."""
        for term in sorted(filter(self.knows, terms), key=lambda term: (-self.frequency(term), term)):
            number = self._vocabulary[term]
            for place in self.postings.documents[self._pointers[number] : self._pointers[number + 1]]:
                if passes is None or passes(self.rows[place].metadata):
                    yield term, self.rows[place].text
                    break

    def mask(self, where: Filter) -> NDArray[np.bool_]:
        """Which documents meet a filter."""
        if self._fields is None:
            self._fields = MetadataColumns([row.metadata for row in self.rows])
        return self._fields.mask(where)

    def search(self, terms: Query, k: int, passes: Passes | None = None) -> Hits:
        """Copies of the best documents for the terms of a query, and their scores; see :meth:`top`."""
        weights = term_weights(terms)
        positions, scores = self.top(weights, k, passes)
        hits = Hits(zip(self.documents(positions.tolist()), scores.tolist(), strict=True))
        hits.maximum = self.maximum(weights)
        return hits

    def top(self, terms: Query, k: int, passes: Passes | None = None) -> tuple[Positions, Floats]:
        """Positions and scores of the best documents above zero whose metadata pass: by score, equals by insertion.

        Candidates are tested in the order of their scores, until k pass.
        """
        table = self._accumulate(terms)
        positions = self._best(table, k if passes is None else self._padded)
        if passes is not None:
            matching = (place for place in positions.tolist() if passes(self.rows[place].metadata))
            positions = np.array(list(islice(matching, k)), np.int64)
        return positions, table[positions]

    def documents(self, positions: Iterable[int]) -> list[Document]:
        """Copies of the documents at some positions."""
        return documents_of_rows(self.rows[place] for place in positions)

    def _accumulate(self, terms: Query) -> Floats:
        """Sum the query's weights in this thread's own table, shape (padded documents,)."""
        table: Floats | None = getattr(self._local, "table", None)
        if table is None:
            table = self._local.table = np.zeros(self._padded, self._weights.kind)
        else:
            table.fill(0)
        for number, weight in self._known(terms):
            values = self._values(number)
            if weight != 1:
                values = values * self._weights.kind.type(weight)
            if len(values) == self._padded:
                np.add(table, values, out=table)
            elif len(values):
                start = self._pointers[number]
                documents = self.postings.documents[start : start + len(values)]
                np.add.at(table, documents.astype(np.intp), values)
        return table

    def _known(self, terms: Query) -> Iterator[tuple[int, float]]:
        """Numbers and weights of the terms that are in the index."""
        known, find = self._known_terms, self._vocabulary.get
        for term, weight in term_weights(terms).items():
            if (number := find(term, known)) < known:
                yield number, weight

    def _values(self, number: int) -> Floats:
        """Give what a term adds: to all documents where it is in many, else to those it occurs in."""
        values = self._weights_of.get(number)
        if values is None:
            values = self._weights.of(number)
            if len(values) * _DENSE_SHARE > self._size:
                row = np.zeros(self._padded, self._weights.kind)
                start = self._pointers[number]
                row[self.postings.documents[start : start + len(values)]] = values
                values = row
            self._weights_of[number] = values
        return values

    def _best(self, table: Floats, k: int) -> Positions:
        """Positions of the k highest scores above zero, the best first."""
        limit = 0.0
        if k < self._width:  # k columns reach the limit, so the k-th best document does too
            best = table.reshape(self._height, self._width).max(axis=0)
            limit = np.partition(best, self._width - k)[self._width - k]
        positions = (table >= limit if limit > 0 else table > 0).nonzero()[0]
        return positions[np.lexsort((positions, -table[positions]))[:k]]


def term_weights(terms: Query) -> Mapping[str, float]:
    """The weight of each term, which is the number of its repeats if it has none."""
    return terms if isinstance(terms, Mapping) else Counter(terms)


def documents_of_rows(rows: Iterable[ScoreRow]) -> list[Document]:
    """Copies of documents of the index."""
    from langchain_core.documents import Document

    return [Document(page_content=row.text, metadata=copy_value(row.metadata), id=row.id) for row in rows]
