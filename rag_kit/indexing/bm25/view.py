"""A finished, read-only state of the index: what a search works on while writers go on."""

from __future__ import annotations

import copy
import threading
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import repeat
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rag_kit.documents import Filter
from rag_kit.documents.columns import MetadataColumns
from rag_kit.indexing.bm25.postings import Postings
from rag_kit.indexing.bm25.scoring import Variant, Weights, inverse_frequencies
from rag_kit.indexing.bm25.term_graph import TermGraph

if TYPE_CHECKING:
    from langchain_core.documents import Document

DENSE_SHARE = 8  # a term in more than 1/8 of the documents is kept as a full row: faster, but larger
# The score table is looked at as a grid; the best score of a column stands for all documents of the column.
_GRIDS = ((32768, 64), (8192, 32), (2048, 16), (0, 1))  # (more documents than this, rows)
_SCANNED = 16384  # up to this size looking through the whole table beats looking up columns

_BOTH = np.array([0, 1])
FEW = 64  # terms up to which counting repeats would cost more than it saves

Hits = tuple[NDArray[np.int64], NDArray[np.floating[Any]]]
Passes = Callable[[Mapping[str, Any]], bool]
Query = Sequence[str] | Mapping[str, float]  # terms, repeats counted; or the weight of each term, above 0


@dataclass(frozen=True)
class Columns:
    """The documents, in insertion order.

    Attributes:
        ids: Identity in the index.
        document_ids: What ``Document.id`` is in results: the id that was given, often ``None``.
        texts: ``page_content``.
        metadata: The index's own copies.
        lengths: Number of tokens.
    """

    ids: list[str] = field(default_factory=list)
    document_ids: list[str | None] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    metadata: list[dict[str, Any]] = field(default_factory=list)
    lengths: array[int] = field(default_factory=lambda: array("q"))

    def taken(self, positions: NDArray[np.int64]) -> tuple[Columns, list[int]]:
        """The documents at these positions, in this order, and the new positions of those whose position changed."""
        count = len(positions)
        away = np.flatnonzero(positions != np.arange(count))
        moves = list(zip(away.tolist(), positions[away].tolist(), strict=True))
        taken: list[Any] = []
        for old in (self.ids, self.document_ids, self.texts, self.metadata, self.lengths):
            new = old[:count]
            for place, before in moves:
                new[place] = old[before]
            taken.append(new)
        return Columns(*taken), away.tolist()


class View:
    """Scores documents and picks the best; never changes.

    Args:
        columns: The documents.
        postings: Their postings; document numbers are positions in ``columns``.
        weights: Scores of the postings of each term; each term is asked for once, when it is first searched for.
        vocabulary: Term numbers. May grow meanwhile: terms beyond ``postings.terms`` are unknown here.
    """

    def __init__(
        self,
        columns: Columns,
        postings: Postings,
        weights: Weights,
        vocabulary: Mapping[str, int],
    ) -> None:
        self.columns = columns
        self.postings = postings
        self._known_terms = postings.terms
        self._vocabulary = vocabulary
        self._size = len(columns.ids)
        self._height = next((rows for least, rows in _GRIDS if self._size > least), 1)
        self._width = -(-self._size // self._height)
        self._padded = self._width * self._height
        self._type = weights.kind
        self._weigh = weights.of
        self._weights: dict[int, NDArray[np.floating[Any]]] = {}
        self._local = threading.local()
        self._idf: array[float] | None = None  # made when first asked for
        self._by_document: tuple[NDArray[np.int64], NDArray[np.int32], Any, list[str]] | None = (
            None  # likewise
        )
        self._graph: TermGraph | None = None
        self._fields: MetadataColumns | None = None
        # Seen through a memoryview an element is a Python int at once.
        self._pointers = np.ascontiguousarray(postings.pointers).data

    def __len__(self) -> int:
        return self._size

    def scores(self, terms: Query) -> NDArray[np.floating[Any]]:
        """Score of every document, as a new array of shape (documents,)."""
        return self._accumulate(terms)[: self._size].copy()

    def maximum(self, terms: Query, k1: float, variant: Variant) -> float:
        """The score that a document nears as each of the terms fills it; unknown terms count as rarest."""
        if self._idf is None:
            # One value more than there are terms: that of a term in no document. No ndarray: queries are short.
            frequency = np.append(self.postings.frequencies(), 0)
            self._idf = array(
                "d", np.maximum(inverse_frequencies(frequency, self._size, variant), 0).tobytes()
            )
        known, idf, find = self._known_terms, self._idf, self._vocabulary.get
        weights = terms.values() if isinstance(terms, Mapping) else repeat(1.0)
        highest = sum(
            weight * idf[min(find(term, known), known)] for term, weight in zip(terms, weights, strict=False)
        )
        scale = k1 + 1 if variant == "okapi" else 1
        return float(highest * scale) if self._size else 0.0

    def reached(self, terms: Mapping[str, float]) -> float:
        """The score of a document that had of each term the highest weight that any has."""
        total = 0.0
        for number, weight in self._known(terms):
            part = self._weighed(number)
            total += weight * float(part.max()) if len(part) else 0.0
        return total

    def frequency(self, term: str) -> int:
        """In how many documents a term occurs."""
        number = self._vocabulary.get(term, self._known_terms)
        if number >= self._known_terms:
            return 0
        return self._pointers[number + 1] - self._pointers[number]

    def open_documents(self) -> None:
        """Prepare :meth:`counts`: the postings by document. The vocabulary must not grow meanwhile."""
        if self._by_document is None:
            postings = self.postings
            order = np.argsort(postings.documents, kind="stable")
            numbers = np.repeat(np.arange(postings.terms, dtype=np.int32), postings.frequencies())[order]
            lengths = np.bincount(postings.documents, minlength=self._size)
            starts = np.concatenate([[0], np.cumsum(lengths)])
            self._by_document = starts, numbers, postings.counts[order], list(self._vocabulary)

    def term_graph(self, max_df: int) -> TermGraph:
        """The graph of documents and terms; the last one is kept. The vocabulary must not grow meanwhile."""
        if self._graph is None or self._graph.max_df != max_df:
            self._graph = TermGraph(self.postings, self._size, list(self._vocabulary), max_df)
        return self._graph

    def passing(self, where: Filter) -> NDArray[np.bool_]:
        """Which documents meet a filter."""
        if self._fields is None:
            self._fields = MetadataColumns(self.columns.metadata[: self._size])
        return self._fields.mask(where)

    def counts(self, positions: NDArray[np.int64], most: float) -> list[dict[str, int]]:
        """How often each term occurs in some documents; terms in more than ``most`` documents are left out."""
        assert self._by_document is not None
        starts, numbers, counts, names = self._by_document
        found = []
        for position in positions.tolist():
            part = slice(starts[position], starts[position + 1])
            few = np.diff(self.postings.pointers[numbers[part, None] + _BOTH]).ravel() <= most
            terms, occurs = numbers[part][few].tolist(), counts[part][few].tolist()
            found.append({names[term]: count for term, count in zip(terms, occurs, strict=True)})
        return found

    def search(self, terms: Query, k: int, passes: Passes | None = None) -> list[tuple[Document, float]]:
        """Copies of the best documents for the terms of a query, and their scores; see :meth:`top`."""
        positions, scores = self.top(terms, k, passes)
        return list(zip(documents_at(self.columns, positions.tolist()), scores.tolist(), strict=True))

    def top(self, terms: Query, k: int, passes: Passes | None = None) -> Hits:
        """The best documents with a score above zero whose metadata pass: by score, equals by insertion.

        Candidates are tested in the order of their scores, so a filter costs what it rejects.

        Returns:
            Positions and scores, each of shape (hits,).
        """
        table = self._accumulate(terms)
        if passes is None:
            return self._best(table, k)
        metadata = self.columns.metadata
        wanted, seen = max(4 * k, 64), 0
        found: list[int] = []
        while True:
            positions, _ = self._best(table, wanted)
            for position in positions[seen:].tolist():
                if passes(metadata[position]):
                    found.append(position)
                    if len(found) == k:
                        break
            if len(found) == k or len(positions) < wanted:
                chosen = np.array(found, np.int64)
                return chosen, table[chosen]
            seen, wanted = len(positions), wanted * 4

    def _accumulate(self, terms: Query) -> NDArray[np.floating[Any]]:
        """Sum the query's weights in this thread's own table, shape (padded documents,)."""
        table: NDArray[np.floating[Any]] | None = getattr(self._local, "table", None)
        if table is None:
            table = self._local.table = np.zeros(self._padded, self._type)
        else:
            table.fill(0)
        if not isinstance(terms, Mapping) and len(terms) > FEW:
            terms = Counter(terms)
        if isinstance(terms, Mapping):
            for number, weight in self._known(terms):
                self._add(table, number, self._weighed(number) * self._type.type(weight))
            return table
        known, find = self._known_terms, self._vocabulary.get
        for term in terms:
            if (number := find(term, known)) < known:
                self._add(table, number, self._weighed(number))
        return table

    def _add(self, table: NDArray[np.floating[Any]], number: int, weights: NDArray[np.floating[Any]]) -> None:
        """Add the weights of a term to the scores."""
        if len(weights) == self._padded:
            np.add(table, weights, out=table)
        elif len(weights):
            start = self._pointers[number]
            documents = self.postings.documents[start : start + len(weights)]
            np.add.at(table, documents.astype(np.intp), weights)

    def _known(self, terms: Mapping[str, float]) -> Iterator[tuple[int, float]]:
        """Numbers and weights of the terms that are in the index."""
        known, find = self._known_terms, self._vocabulary.get
        for term, weight in terms.items():
            if (number := find(term, known)) < known:
                yield number, weight

    def _weighed(self, number: int) -> NDArray[np.floating[Any]]:
        """The weights of a term: of all documents where it is in many, else of those it occurs in."""
        weights = self._weights.get(number)
        if weights is None:
            weights = self._weigh(number)
            if len(weights) * DENSE_SHARE > self._size:
                row = np.zeros(self._padded, self._type)
                start = self._pointers[number]
                row[self.postings.documents[start : start + len(weights)]] = weights
                weights = row
            self._weights[number] = weights
        return weights

    def _best(self, table: NDArray[np.floating[Any]], k: int) -> Hits:
        width = self._width
        if k < width:
            grid = table.reshape(self._height, width)
            best = grid.max(axis=0) if self._height > 1 else table
            limit = np.partition(best, width - k)[width - k]
            # k columns reach the limit, so the k-th best document does too.
            if self._size <= _SCANNED:
                positions = (table >= limit if limit > 0 else table > 0).nonzero()[0]
            else:
                columns = (best >= limit if limit > 0 else best > 0).nonzero()[0]
                part = grid.take(columns, axis=1).ravel()
                chosen = (part >= limit if limit > 0 else part > 0).nonzero()[0]
                row = chosen // max(1, len(columns))  # with the product, quicker than divmod
                positions = row * width + columns[chosen - row * len(columns)]
        else:
            positions = (table > 0).nonzero()[0]
        scores = table[positions]
        order = np.lexsort((positions, -scores))[:k]
        return positions[order], scores[order]


def documents_at(columns: Columns, positions: Iterable[int]) -> list[Document]:
    """Copies of the documents at some positions."""
    from langchain_core.documents import Document

    texts, metadata, ids = columns.texts, columns.metadata, columns.document_ids
    return [Document(page_content=texts[i], metadata=copied(metadata[i]), id=ids[i]) for i in positions]


_PLAIN = frozenset({str, int, float, bool, type(None)})


def copied(metadata: Mapping[str, Any], without: str | None = None) -> dict[str, Any]:
    """A deep copy, quick for the flat metadata that nearly all documents have."""
    result = dict(metadata)
    if without is not None:
        result.pop(without, None)
    for value in result.values():
        if type(value) not in _PLAIN:
            return copy.deepcopy(result)
    return result
