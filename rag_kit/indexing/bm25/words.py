"""The postings of texts by an analyzer: which term occurs how often."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rag_kit.indexing.bm25.parameters import check_terms
from rag_kit.indexing.bm25.postings import Run, Vocabulary, count_terms


class WordCounts:
    """Counts what an analyzer finds in each text.

    Args:
        analyzer: Turns a text into terms.
        searched: The texts to analyse in place of those of one write.
    """

    def __init__(self, analyzer: Callable[[str], list[str]], searched: Sequence[str] | None = None) -> None:
        self._analyzer = analyzer
        self._searched = searched

    def analyse(self, texts: Sequence[str], first: int) -> list[list[str]]:
        """The terms of each text."""
        if self._searched is not None:
            texts = self._searched[first : first + len(texts)]
        return [check_terms(self._analyzer(text)) for text in texts]

    def count(self, analysed: list[list[str]], vocabulary: Vocabulary, first: int) -> tuple[Run, list[int]]:
        """Their counts, and the number of terms of each text."""
        return count_terms(analysed, vocabulary, first), [len(terms) for terms in analysed]
