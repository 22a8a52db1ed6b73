"""Documents and the rare terms they share, as a graph that a random walk spreads over."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rag_kit.indexing.bm25.postings import Postings, inverse_frequencies

MAX_DF = 100  # documents with a term, at most, for it to join them
_DAMPING = 0.5  # chance to go on from a document to its neighbours
_ROUNDS = 2  # of documents to terms to documents; further ones do not change the order of the first results
_SHOWN_TERMS = 3  # terms that explain a result


class Visit(NamedTuple):
    """A document, how often the walk is there, and the terms by which it came most often."""

    document: int
    mass: float
    terms: list[str]


class TermGraph:
    """The bipartite graph of ``size`` documents and the terms in them, which have ``names``.

    A document leads to each of its terms by the term's rarity; a term leads to all its documents alike. A term
    in one document leads nowhere, one in more than `MAX_DF` everywhere: both are left out.
    """

    def __init__(self, postings: Postings, size: int, names: Sequence[str]) -> None:
        frequencies = postings.frequencies()
        is_used = (frequencies > 1) & (frequencies <= MAX_DF)
        df = frequencies[is_used]
        self._size, self._term_count = size, len(df)
        self._names = [names[number] for number in np.flatnonzero(is_used).tolist()]
        # the edges, in arrays of shape (edges,): document, term, and the chance to go along it in each direction
        self._documents = postings.documents[np.repeat(is_used, frequencies)]
        self._terms = np.repeat(np.arange(len(df), dtype=np.int32), df)
        rarity = np.repeat(inverse_frequencies(df, size, "lucene"), df)
        rarity_sums = np.bincount(self._documents, rarity, minlength=size)
        self._to_terms = (rarity / rarity_sums[self._documents]).astype(np.float32)
        self._to_documents = np.repeat(1 / df, df).astype(np.float32)

    def visits(self, seeds: Mapping[int, float], k: int, allowed: NDArray[np.bool_] | None) -> list[Visit]:
        """Return the k documents that the walk visits most, by personalised PageRank (a power iteration).

        ``seeds`` are weights by document number: the walk begins there, and at each step begins anew with the chance
        1 - `_DAMPING`. It stays in the ``allowed`` documents, a mask of shape (documents,); ``None`` allows all.
        """
        start = np.zeros(self._size)
        start[list(seeds)] = list(seeds.values())
        if allowed is not None:
            start[~allowed] = 0
        if not start.any():
            return []
        mass = start = start / start.sum()
        for _ in range(_ROUNDS):
            mass_of_edges = mass[self._documents] * self._to_terms
            term_mass = np.bincount(self._terms, mass_of_edges, minlength=self._term_count)  # sums by term
            mass_of_edges = term_mass[self._terms] * self._to_documents
            mass = (1 - _DAMPING) * start
            # squared, for a round has two steps: to terms and back
            mass += _DAMPING**2 * np.bincount(self._documents, mass_of_edges, minlength=self._size)
            if allowed is not None:
                mass = np.where(allowed, mass, 0.0)
        best = np.argsort(-mass, kind="stable")[:k]
        return [
            Visit(document, float(mass[document]), self._terms_to(document, term_mass))
            for document in best[mass[best] > 0].tolist()
        ]

    def _terms_to(self, document: int, term_mass: NDArray[Any]) -> list[str]:
        """Return the names of the terms by which the walk came to a document most often."""
        edges = np.flatnonzero(self._documents == document)
        terms = self._terms[edges]
        best = np.argsort(-term_mass[terms] * self._to_documents[edges], kind="stable")[:_SHOWN_TERMS]
        return [self._names[term] for term in terms[best].tolist() if term_mass[term] > 0]
