"""SparseIndex: search by the inner product of sparse vectors, whoever makes them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from rag_kit.concurrency.bridge import acall_function
from rag_kit.documents import compile_filter
from rag_kit.errors import InvalidInputError
from rag_kit.indexing.bm25 import storage
from rag_kit.indexing.bm25.inverted import InvertedIndex
from rag_kit.indexing.bm25.parameters import check_k, check_query, documents_of
from rag_kit.indexing.bm25.postings import Postings, Run, weighted_terms
from rag_kit.indexing.bm25.scoring import Floats
from rag_kit.indexing.bm25.scoring import Weights as Scores
from rag_kit.indexing.sparse.encoding import (
    SparseEncoder,
    Vector,
    Weights,
    check_vector,
    check_vectors,
    encode,
)
from rag_kit.indexing.sparse.tfidf import TfidfEncoder

if TYPE_CHECKING:
    from langchain_core.documents import Document

    from rag_kit.documents import Filter

_BATCH = 64
_FILE = storage.Kind(b"RAGKSPRS", "sparse index", "weights")
_TFIDF = "tfidf"  # the encoder that a file holds; every other one is the caller's


class SparseIndex(InvertedIndex):
    """An index in memory over the sparse vectors of any encoder: SPLADE, bge-m3, or TF-IDF, which is built in.

    An encoder is a function, async or not, from a list of texts to one dict of term -> weight for each. Terms are
    strings or whole numbers (7 and "7" are the same term), weights finite numbers of 0 or more. The score of a
    document is the inner product of its vector and the query's; a document that shares no term with the query is
    never found, equal scores come in insertion order.

    Writing, searching from many threads, copies and ids are as in :class:`~rag_kit.indexing.bm25.BM25Index`. An async
    encoder also serves these blocking methods; call them on a thread from an event loop. To search there:
    :meth:`aencode_query`, then :meth:`search_vector`.

    Args:
        encoder: The encoder; ``None`` for a :class:`TfidfEncoder`, which is fitted on the first documents.
        query_encoder: Another one for queries.
        batch_size: Texts that the encoder is given at a time.

    Raises:
        InvalidInputError: An argument is not allowed.

    Example:
        >>> def shape(texts): return [{word: 1.0 for word in text.split()} for text in texts]
        >>> index = SparseIndex.from_texts(["red fox", "red dog"], encoder=shape)
        >>> [(doc.page_content, score) for doc, score in index.search("dog red")]
        [('red dog', 2.0), ('red fox', 1.0)]
    """

    def __init__(
        self,
        encoder: SparseEncoder | None = None,
        *,
        query_encoder: SparseEncoder | None = None,
        batch_size: int = _BATCH,
    ) -> None:
        super().__init__()
        self.encoder = TfidfEncoder() if encoder is None else encoder
        self.query_encoder = query_encoder or self.encoder
        self.batch_size = batch_size

    def _write(self, documents: Iterable[Document], ids: Iterable[str] | None, **how: Any) -> list[str]:
        documents = documents_of(documents)
        if isinstance(self.encoder, TfidfEncoder) and not self.encoder.fitted:
            self.encoder.fit([document.page_content for document in documents])
        return super()._write(documents, ids, **how)

    def _analyse(self, texts: Sequence[str]) -> list[Vector]:
        return encode(self.encoder, texts, self.batch_size)

    def _run(self, analysed: Sequence[Vector], first: int) -> Run:
        return weighted_terms(analysed, self._vocabulary, first)

    def _weights(self, postings: Postings, lengths: NDArray[np.int64]) -> Scores:
        return _VectorWeights(postings)

    # Reading

    def search(self, query: str, k: int = 4, filter: Filter | None = None) -> list[tuple[Document, float]]:
        """The best documents for a query.

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

    def search_vector(
        self, vector: Weights, k: int = 4, filter: Filter | None = None
    ) -> list[tuple[Document, float]]:
        """As :meth:`search`, for a vector that is there already."""
        passes = compile_filter(filter) if filter else None
        return self.current().search(check_vector(vector), check_k(k), passes)

    def encode_query(self, query: str) -> Vector:
        """The vector of a query, as the query encoder gives it, checked."""
        return encode(self._query_encoder(), [check_query(query)], 1)[0]

    async def aencode_query(self, query: str) -> Vector:
        """As :meth:`encode_query`, natively asynchronous; an encoder that is not async runs on a thread."""
        texts = [check_query(query)]
        return check_vectors(await acall_function(self._query_encoder(), texts), 1)[0]

    def _query_encoder(self) -> SparseEncoder:
        encoder = self.query_encoder
        if isinstance(encoder, TfidfEncoder) and not encoder.fitted and not len(self):
            return _nothing  # an index of no documents is searched without an error, and finds nothing
        return encoder

    def maximum(self, vector: Weights) -> float:
        """The score of a document that had of each term the highest weight that any document has."""
        return self.current().maximum(check_vector(vector))

    # Storing

    def save(self, path: str | Path) -> None:
        """Write the index to one file, atomically; a TF-IDF encoder is saved with it, others are not.

        Raises:
            InvalidInputError: Some metadata is not JSON, or the path is a folder's; nothing is written then.
            OSError: The file cannot be written.
        """
        settings = self.encoder.settings() if isinstance(self.encoder, TfidfEncoder) else None
        header = {
            "name": None,
            "encoder": None if settings is None else _TFIDF,
            "query_encoder": self.query_encoder is not self.encoder,
        }
        storage.save(path, _FILE, header, self._state(), {"encoder": storage.dumps(settings)})

    @classmethod
    def load(
        cls,
        path: str | Path,
        *,
        encoder: SparseEncoder | None = None,
        query_encoder: SparseEncoder | None = None,
        batch_size: int = _BATCH,
    ) -> Self:
        """Read an index that :meth:`save` wrote.

        Args:
            path: The file.
            encoder: The encoder that it was built with; not for the built-in TF-IDF, which is in the file.
            query_encoder: The one for queries, if it is another.
            batch_size: As for the constructor.

        Raises:
            IndexMissingError: There is no such file.
            IndexFormatError: It is damaged, cut short, of a newer format, or no index; the message names it.
            InvalidInputError: It needs its encoder.
        """
        (stored, has_query_encoder), state = storage.load(path, _FILE, _encoders_in)
        if has_query_encoder and query_encoder is None:
            raise InvalidInputError(
                f"{path} was built with another encoder for queries; give it again: load(path, query_encoder=...)."
            )
        if stored is None and encoder is None:
            raise InvalidInputError(
                f"{path} was built with an encoder of your own; give it again: load(path, encoder=...)."
            )
        if stored is not None and encoder is not None:
            raise InvalidInputError(
                f"{path} holds its TF-IDF encoder; leave encoder out, or build the index again."
            )
        index = cls(stored or encoder, query_encoder=query_encoder, batch_size=batch_size)
        index._restore(state)
        return index

    def __repr__(self) -> str:
        return f"SparseIndex({len(self)} documents, {type(self.encoder).__name__})"


def _nothing(texts: list[str]) -> Sequence[Vector]:
    return [{} for _ in texts]


def _encoders_in(file: storage.Sections) -> tuple[TfidfEncoder | None, bool]:
    """The encoder that a file holds, and whether queries have one of their own."""
    encoder, has_query_encoder = file.header["encoder"], file.header["query_encoder"]
    if encoder not in (None, _TFIDF) or not isinstance(has_query_encoder, bool):
        raise ValueError(f"the encoder is {encoder!r}, {has_query_encoder!r}")
    return TfidfEncoder.from_settings(file.json("encoder")) if encoder else None, has_query_encoder


class _VectorWeights(Scores):
    """The weights that the encoder gave, as scores."""

    kind = np.dtype(np.float32)

    def __init__(self, postings: Postings) -> None:
        self._pointers = postings.pointers
        self._weights = postings.counts.astype(np.float32, copy=False)
        self.highest = np.zeros(len(self._pointers))
        np.maximum.at(self.highest, postings.as_run().terms, self._weights)

    def of(self, term: int) -> Floats:
        """See ``Weights``."""
        return self._weights[self._pointers[term] : self._pointers[term + 1]]
