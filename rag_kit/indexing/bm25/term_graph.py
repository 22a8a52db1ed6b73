"""Documents and the rare terms they share, as a graph that a random walk spreads over."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rag_kit.indexing.bm25.postings import Postings, inverse_frequencies

_ROUNDS = 2  # what further ones would add does not change the order of the first results
_SHOWN_TERMS = 3  # terms that explain a result


class Visit(NamedTuple):
    """A document, how often the walk is there, and the terms by which it came most often."""

    document: int
    mass: float
    terms: list[str]


class TermGraph:
    """The two-sided graph of documents and terms.

    A document leads to each of its terms by the term's rarity; a term leads to all its documents alike. A term
    in one document leads nowhere, one in more than `max_df` everywhere: both are left out.
    """

    def __init__(self, postings: Postings, size: int, names: Sequence[str], max_df: int) -> None:
        self._of = postings, max_df
        frequencies = postings.frequencies()
        joins = (frequencies > 1) & (frequencies <= max_df)
        df = frequencies[joins]
        self._size, self._terms = size, len(df)
        self._names = [names[number] for number in np.flatnonzero(joins).tolist()]
        self._documents = postings.documents[np.repeat(joins, frequencies)]
        self._numbers = np.repeat(np.arange(len(df), dtype=np.int32), df)
        rarity = np.repeat(inverse_frequencies(df, size, "lucene"), df)
        of_document = np.bincount(self._documents, rarity, minlength=size)
        self._to_terms = (rarity / of_document[self._documents]).astype(np.float32)
        self._to_documents = np.repeat(1 / df, df).astype(np.float32)

    def fits(self, postings: Postings, max_df: int) -> bool:
        """Tell whether the graph was made from these postings."""
        return self._of[0] is postings and self._of[1] == max_df

    def visits(
        self, seeds: Mapping[int, float], k: int, damping: float, allowed: NDArray[np.bool_] | None
    ) -> list[Visit]:
        """The k best documents by personalised PageRank, in two rounds of documents, terms and documents again.

        The walk begins at the seeds by their weights, again with chance 1 - `damping`; ``None`` allows all documents.
        """
        start = np.zeros(self._size)
        start[list(seeds)] = list(seeds.values())
        if allowed is not None:
            start[~allowed] = 0
        if not start.any():
            return []
        mass = start = start / start.sum()
        for _ in range(_ROUNDS):
            terms = np.bincount(self._numbers, mass[self._documents] * self._to_terms, minlength=self._terms)
            back = np.bincount(
                self._documents, terms[self._numbers] * self._to_documents, minlength=self._size
            )
            mass = (1 - damping) * start + damping**2 * back
            if allowed is not None:
                mass = np.where(allowed, mass, 0.0)
        best = np.argsort(-mass, kind="stable")[:k]
        return [
            Visit(place, float(mass[place]), self._terms_to(place, terms))
            for place in best[mass[best] > 0].tolist()
        ]

    def _terms_to(self, document: int, mass: NDArray[Any]) -> list[str]:
        """The terms by which the walk came to a document most often."""
        edges = np.flatnonzero(self._documents == document)
        numbers = self._numbers[edges]
        best = np.argsort(-(mass[numbers] * self._to_documents[edges]), kind="stable")[:_SHOWN_TERMS]
        return [self._names[number] for number in numbers[best].tolist() if mass[number] > 0]
