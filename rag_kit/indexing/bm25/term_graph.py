"""Documents and the rare terms they share, as a graph that a random walk spreads over."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from rag_kit.indexing.bm25.postings import Postings
from rag_kit.indexing.bm25.scoring import inverse_frequencies

Mass = NDArray[np.float64]

_ROUNDS = 2  # what further ones would add does not change the order of the first results
_NAMED = 3  # terms that explain a result


class TermGraph:
    """The two-sided graph of documents and terms.

    A document leads to each of its terms by the term's rarity; a term leads to all its documents alike. A term
    in one document leads nowhere, one in very many everywhere: both are left out.

    Args:
        postings: Of an index.
        size: Number of documents.
        names: The terms, by their numbers.
        max_df: Most documents that a term may be in.
    """

    def __init__(self, postings: Postings, size: int, names: Sequence[str], max_df: int) -> None:
        frequencies = postings.frequencies()
        kept = (frequencies > 1) & (frequencies <= max_df)
        own = frequencies[kept]
        self.max_df = max_df
        self._size, self._terms = size, len(own)
        self._names = [names[number] for number in np.flatnonzero(kept).tolist()]
        self._documents = postings.documents[np.repeat(kept, frequencies)]
        self._numbers = np.repeat(np.arange(len(own), dtype=np.int32), own)
        rarity = np.repeat(inverse_frequencies(own, size, "lucene"), own)
        of_document = np.bincount(self._documents, rarity, minlength=size)
        self._to_terms = (rarity / of_document[self._documents]).astype(np.float32)
        self._to_documents = np.repeat(1 / own, own).astype(np.float32)

    def spread(self, seeds: Mass, damping: float, allowed: NDArray[np.bool_] | None) -> tuple[Mass, Mass]:
        """Personalised PageRank from some documents, to two rounds of documents, terms and documents again.

        Args:
            seeds: Where the walk begins and begins again, shape (documents,), summing to 1.
            damping: Chance to go on rather than to begin again.
            allowed: Documents that the walk may touch; ``None`` for all.

        Returns:
            How often the walk is at each document, and at each term.
        """
        mass = seeds
        for _ in range(_ROUNDS):
            terms = np.bincount(self._numbers, mass[self._documents] * self._to_terms, minlength=self._terms)
            back = np.bincount(
                self._documents, terms[self._numbers] * self._to_documents, minlength=self._size
            )
            mass = (1 - damping) * seeds + damping**2 * back
            if allowed is not None:
                mass = np.where(allowed, mass, 0.0)
        return mass, terms.astype(np.float64)

    def through(self, document: int, terms: Mass) -> list[str]:
        """The terms by which the walk came to a document most often."""
        edges = np.flatnonzero(self._documents == document)
        numbers = self._numbers[edges]
        best = np.argsort(-(terms[numbers] * self._to_documents[edges]), kind="stable")[:_NAMED]
        return [self._names[number] for number in numbers[best].tolist() if terms[number] > 0]
