"""TF-IDF as a sparse encoder: no model, no network."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from rag_kit.errors import InvalidInputError
from rag_kit.indexing.bm25.parameters import check_query, check_terms
from rag_kit.indexing.bm25.storage import analyzer_from, settings_of
from rag_kit.text import default_analyzer


class TfidfEncoder:
    """Turns texts into TF-IDF vectors; fitted on a corpus once, for documents and queries alike.

    The weight of a term in a text is ``tf * idf``, with ``idf = ln((1 + N) / (1 + df)) + 1`` for a term that
    ``df`` of the ``N`` texts hold, and ``tf`` the number of times it occurs; the vector is then divided by its
    length, so that the inner product of two is their cosine. This is what scikit-learn's ``TfidfVectorizer`` computes
    by default, but for a term that the corpus lacked: it weighs as one with ``df = 0``, so that documents added later
    are found by their new words.

    Args:
        analyzer: Turns a text into terms; ``None`` for the kit's default.

    Example:
        >>> encode = TfidfEncoder().fit(["red fox", "red dog"])
        >>> {term: round(weight, 3) for term, weight in encode(["red fox"])[0].items()}
        {'red': 0.58, 'fox': 0.815}
    """

    def __init__(self, analyzer: Callable[[str], list[str]] | None = None) -> None:
        self.analyzer = default_analyzer() if analyzer is None else analyzer
        self._documents: int | None = None
        self._idf: dict[str, float] = {}

    @property
    def fitted(self) -> bool:
        """Whether it has seen a corpus."""
        return self._documents is not None

    def fit(self, texts: Iterable[str]) -> TfidfEncoder:
        """Count in how many texts each term occurs; forgets an earlier corpus.

        Returns:
            The encoder itself.

        Raises:
            InvalidInputError: Not a collection of strings.
        """
        counts = [self._counts(text) for text in _listed(texts)]
        frequency = Counter(term for terms in counts for term in terms)
        self._idf = {term: _idf(len(counts), count) for term, count in frequency.items()}
        self._documents = len(counts)
        return self

    def __call__(self, texts: list[str]) -> list[dict[str, float]]:
        """The vectors of texts, term -> weight.

        Raises:
            InvalidInputError: Not fitted, or not a list of strings.
        """
        if self._documents is None:
            raise InvalidInputError(
                "The TF-IDF encoder is not fitted; call fit(texts) with your corpus first."
            )
        unknown = _idf(self._documents, 0)
        return [self._vector(text, unknown) for text in _listed(texts)]

    def _vector(self, text: str, unknown: float) -> dict[str, float]:
        weights = {term: n * self._idf.get(term, unknown) for term, n in self._counts(text).items()}
        length = math.sqrt(math.fsum(weight * weight for weight in weights.values()))
        return {term: weight / length for term, weight in weights.items()}

    def _counts(self, text: str) -> Counter[str]:
        return Counter(check_terms(self.analyzer, check_query(text)))

    def settings(self) -> dict[str, Any] | None:
        """All that it is, as plain JSON; ``None`` where its analyzer is a function of the user's."""
        analyzer = settings_of(self.analyzer)
        if analyzer is None:
            return None
        return {"analyzer": analyzer, "documents": self._documents, "idf": self._idf}

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> TfidfEncoder:
        """Make the encoder that :meth:`settings` described.

        Raises:
            InvalidInputError: They are not such settings.
        """
        encoder = cls(analyzer_from(settings["analyzer"]))
        encoder._documents, encoder._idf = settings["documents"], settings["idf"]
        if not all(isinstance(value, float) and value > 0 for value in encoder._idf.values()):
            raise InvalidInputError("The TF-IDF settings hold idf values that are no numbers above 0.")
        return encoder

    def __repr__(self) -> str:
        state = f"{len(self._idf)} terms of {self._documents} texts" if self.fitted else "not fitted"
        return f"TfidfEncoder({state})"


def _idf(documents: int, frequency: int) -> float:
    return math.log((1 + documents) / (1 + frequency)) + 1


def _listed(texts: Iterable[str]) -> Iterable[str]:
    """Texts in a collection; one text alone is a likely slip."""
    if isinstance(texts, (str, bytes)):
        raise InvalidInputError(f"texts is {type(texts).__name__}; give a list of strings.")
    return texts
