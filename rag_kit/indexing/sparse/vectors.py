"""The postings of texts whose vectors are there."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

import numpy as np

from rag_kit.indexing.bm25.postings import Run, Vocabulary
from rag_kit.indexing.sparse.encoding import Vector


class Encoded:
    """Gives each text of one write its vector.

    Args:
        vectors: One a text.
    """

    def __init__(self, vectors: Sequence[Vector]) -> None:
        self._vectors = vectors

    def analyse(self, texts: Sequence[str], first: int) -> Sequence[Vector]:
        """The vectors of some of the texts."""
        return self._vectors[first : first + len(texts)]

    def count(self, analysed: Sequence[Vector], vocabulary: Vocabulary, first: int) -> tuple[Run, list[int]]:
        """Their weights as postings, and the number of terms of each."""
        lengths = [len(vector) for vector in analysed]
        total = sum(lengths)
        terms = np.fromiter(map(vocabulary.__getitem__, chain.from_iterable(analysed)), np.int32, total)
        weights = np.fromiter(chain.from_iterable(v.values() for v in analysed), np.float32, total)
        documents = np.repeat(np.arange(first, first + len(lengths), dtype=np.int32), lengths)
        order = np.argsort(terms, kind="stable")
        return Run(terms[order], documents[order], weights[order]), lengths
