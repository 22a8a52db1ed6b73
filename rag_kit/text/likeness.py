"""How much of a question's words each of several candidates shares: routing without a model."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

from rag_kit.text.analysis import content_words


class WordLikeness:
    """Compares questions with candidates, each of which is described by some texts.

    A word that few candidates have counts more than one that many have; function words do not count. Chinese
    words of three or more characters count with their pairs of characters too.
    """

    def __init__(self, candidates: Sequence[Sequence[str]]) -> None:
        self._texts = [[_terms(text) for text in texts] for texts in candidates]
        self._all_terms = [frozenset[str]().union(*texts) for texts in self._texts]
        content_words("warm")  # loads what is read from files now, so that no call blocks on one

    def scores(self, question: str, among: Sequence[int] | None = None) -> list[float]:
        """Score all candidates, or those with the indices `among`, from 0 (no word in common) to 1 (all in one text).

        A score is the mean of the weighted share of the question's words that occur in any of the candidate's texts and
        of the share that occurs in the best one. Candidates that are not scored have no influence.
        """
        numbers = range(len(self._all_terms)) if among is None else among
        terms = sorted(_terms(question))
        candidate_counts = Counter(term for number in numbers for term in self._all_terms[number])
        weights = {term: math.log(1 + len(numbers) / max(1, candidate_counts[term])) for term in terms}
        total = math.fsum(weights.values()) or 1.0

        def share(text_terms: frozenset[str]) -> float:
            return math.fsum(weights[term] for term in terms if term in text_terms) / total

        scores = []
        for number in numbers:
            best = max(map(share, self._texts[number]), default=0.0)
            scores.append((share(self._all_terms[number]) + best) / 2)
        return scores

    def shared_words(self, question: str, number: int) -> list[str]:
        """Return the words that a question and a candidate share, in the order of the question."""
        return [word for word in dict.fromkeys(content_words(question)) if word in self._all_terms[number]]


def _terms(text: str) -> frozenset[str]:
    """Return the content words of a text, and the pairs of characters of Chinese words of three or more."""
    words = content_words(text)
    long = [word for word in words if len(word) > 2 and not word.isascii()]
    return frozenset([*words, *("".join(pair) for word in long for pair in pairwise(word))])
