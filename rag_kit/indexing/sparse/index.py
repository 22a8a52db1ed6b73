"""SparseIndex: search by the inner product of sparse vectors, whoever makes them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from rag_kit.concurrency.bridge import acall_function, call_function
from rag_kit.documents import Filter
from rag_kit.errors import InvalidInputError
from rag_kit.indexing.bm25 import storage
from rag_kit.indexing.bm25.inverted import InvertedIndex
from rag_kit.indexing.bm25.postings import PostingRun, Postings, Weights, weighted_terms
from rag_kit.indexing.bm25.view import Hits, check_k, check_query, check_weights, passes_of
from rag_kit.text import default_analyzer

Vector = dict[str, float]
TermWeights = Mapping[str, float] | Mapping[int, float] | Mapping[str | int, float]
SparseEncoder = Callable[[list[str]], Sequence[TermWeights] | Awaitable[Sequence[TermWeights]]]

_BATCH_SIZE = 64  # texts that an encoder is given at a time
_TFIDF = "counts"  # in a file: the weights are counts of terms, for TF-IDF


def encode(encoder: SparseEncoder, texts: Sequence[str]) -> list[Vector]:
    """Encode texts in batches, and return one checked vector each; an async encoder runs in its own event loop."""
    batches = (list(texts[start : start + _BATCH_SIZE]) for start in range(0, len(texts), _BATCH_SIZE))
    answers = (check_vectors(call_function(encoder, batch), len(batch)) for batch in batches)
    return [vector for vectors in answers for vector in vectors]


def check_vectors(answer: Any, count: int) -> list[Vector]:
    """Return the vectors that an encoder gave for ``count`` texts; raise InvalidInputError for anything else."""
    if isinstance(answer, (str, bytes)) or not isinstance(answer, Sequence) or len(answer) != count:
        raise InvalidInputError(
            f"The encoder returned {type(answer).__name__}; it must return a list with one dict of term -> weight "
            f"for each of {count} texts."
        )
    return list(map(check_weights, answer))


class SparseIndex(InvertedIndex):
    """An index in memory over the sparse vectors of any encoder: SPLADE, bge-m3, or TF-IDF, which is built in.

    An encoder is a function, async or not, from up to 64 texts to a list of one dict of term -> weight each. Terms are
    strings or whole numbers (7 and "7" are the same), weights finite numbers of 0 or more. A document's score is the
    inner product of its vector and the query's; without a common term it is not found, ties come in insertion order.

    Writing, searching from many threads, copies and ids are as in :class:`~rag_kit.indexing.bm25.BM25Index`. An async
    encoder serves these blocking methods, too. In an event loop call :meth:`aencode_query`, then :meth:`search_vector`.

    Args:
        encoder: The encoder; ``None`` for TF-IDF over the words of the documents that are there, with the formula of
            scikit-learn's ``TfidfVectorizer``: ``tf * (ln((1 + N) / (1 + df)) + 1)``, divided by the vector's length.
        query_encoder: Another one for queries.

    Example:
        >>> def shape(texts): return [{word: 1.0 for word in text.split()} for text in texts]
        >>> index = SparseIndex.from_texts(["red fox", "red dog"], encoder=shape)
        >>> [(doc.page_content, score) for doc, score in index.search("dog red")]
        [('red dog', 2.0), ('red fox', 1.0)]
    """

    kind = storage.IndexKind(b"RAGKSPRS", "sparse index", "weights")

    def __init__(
        self, encoder: SparseEncoder | None = None, *, query_encoder: SparseEncoder | None = None
    ) -> None:
        super().__init__()
        self.encoder = encoder
        self.query_encoder = query_encoder or encoder

    def _analyse(self, texts: Sequence[str]) -> list[Vector]:
        if self.encoder is None:
            analyse = default_analyzer()
            return [dict(Counter(analyse(text))) for text in texts]
        return encode(self.encoder, texts)

    def _make_run(self, analysed: Sequence[Vector], first: int) -> PostingRun:
        return weighted_terms(analysed, self._vocabulary, first)

    def _weights(self, postings: Postings, lengths: NDArray[np.int64]) -> Weights:
        """Return what each posting adds to scores: the encoder's weight, or TF-IDF in document vectors of length 1."""
        pointers, frequencies = postings.pointers, postings.frequencies()
        weights: NDArray[Any] = postings.counts  # the encoder's weights; without an encoder counts of terms
        if self.encoder is None:
            weights = weights * np.repeat(_idf(len(lengths), frequencies), frequencies)
            norms = np.sqrt(np.bincount(postings.documents, weights**2, minlength=len(lengths)))
            weights = weights / norms[postings.documents]
        scores = weights.astype(np.float32, copy=False)
        highest = np.zeros(len(pointers))  # by term; the last one, for all unknown terms, remains 0
        np.maximum.at(highest, np.repeat(np.arange(postings.terms), frequencies), scores)
        return Weights(scores.dtype, highest, lambda term: scores[pointers[term] : pointers[term + 1]])

    def search(self, query: str, k: int = 4, filter: Filter | None = None) -> Hits:
        """Return the best documents for a query.

        Args:
            query: The question or keywords.
            k: How many at most; 1 or more.
            filter: Condition on the metadata; it is met by all results.

        Returns:
            ``(document, score)`` by falling score, equal scores in insertion order; every score is above zero.

        Raises:
            InvalidInputError: An argument, or what the encoder gave, is not allowed.
            FilterError: The filter is malformed.
        """
        return self.search_vector(self.encode_query(query), k, filter)

    def search_vector(self, vector: TermWeights, k: int = 4, filter: Filter | None = None) -> Hits:
        """Search as :meth:`search`, by a query's vector."""
        return self.current().search(check_weights(vector), check_k(k), passes_of(filter))

    def encode_query(self, query: str) -> Vector:
        """Return the vector of a query: that of the query encoder, checked, or its TF-IDF."""
        if self.query_encoder is None:
            return self._tfidf(query)
        return encode(self.query_encoder, [check_query(query)])[0]

    async def aencode_query(self, query: str) -> Vector:
        """Return the vector of a query as :meth:`encode_query`; an encoder that is not async runs on a thread."""
        if self.query_encoder is None:
            return self._tfidf(query)
        return check_vectors(await acall_function(self.query_encoder, [check_query(query)]), 1)[0]

    def _tfidf(self, query: str) -> Vector:
        """Return the TF-IDF vector of a query, of length 1; a term in no document has the weight of the rarest."""
        counts, view = Counter(default_analyzer().query_terms(check_query(query))), self.current()
        frequencies = np.array([view.frequency(term) for term in counts])
        weights = np.array(list(counts.values())) * _idf(len(view), frequencies)
        return dict(zip(counts, (weights / math.hypot(*weights)).tolist(), strict=True))

    def _header(self) -> dict[str, Any]:
        return {
            "encoder": _TFIDF if self.encoder is None else None,
            "query_encoder": self.query_encoder is not self.encoder,
        }

    @classmethod
    def load(
        cls,
        path: str | Path,
        *,
        encoder: SparseEncoder | None = None,
        query_encoder: SparseEncoder | None = None,
    ) -> Self:
        """Read an index that :meth:`save` wrote, with the encoders that it was built with, if any.

        Args:
            path: The file.
            encoder: The encoder of its documents.
            query_encoder: The one for queries, if it is another.

        Raises:
            IndexMissingError: There is no such file.
            IndexFormatError: It is damaged, cut short, of a newer format, or no index; the message names it.
            InvalidInputError: It needs its encoder.
        """
        header, state = storage.load(path, cls.kind)
        is_tfidf = header["encoder"] == _TFIDF  # None: its weights are an encoder's
        if (encoder is None) != is_tfidf:
            preposition = "without" if is_tfidf else "with"
            raise InvalidInputError(f"{path} was built {preposition} encoder=; give the same to load(path).")
        if header["query_encoder"] and query_encoder is None:
            raise InvalidInputError(f"{path} was built with query_encoder=; give it again to load(path).")
        index = cls(encoder, query_encoder=query_encoder)
        index._restore(state)
        return index

    def __repr__(self) -> str:
        return f"SparseIndex({len(self)} documents, {'TF-IDF' if self.encoder is None else self.encoder!r})"


def _idf(total: int, frequencies: NDArray[Any]) -> NDArray[np.float64]:
    """Return the smoothed idf of terms, from their document frequencies and the total of documents."""
    return np.log((1 + total) / (1 + frequencies)) + 1
