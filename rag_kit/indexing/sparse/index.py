"""SparseIndex: search by the inner product of sparse vectors, whoever makes them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from rag_kit.documents import compile_filter
from rag_kit.errors import IndexMismatchError, InvalidInputError
from rag_kit.indexing.bm25 import container, scoring
from rag_kit.indexing.bm25 import parameters as check
from rag_kit.indexing.bm25.base import InvertedIndex
from rag_kit.indexing.bm25.postings import Postings
from rag_kit.indexing.bm25.store import Store
from rag_kit.indexing.sparse import storage
from rag_kit.indexing.sparse.encoding import (
    SparseEncoder,
    Vector,
    Weights,
    aencode,
    check_encoder,
    checked_vector,
    encode,
)
from rag_kit.indexing.sparse.tfidf import TfidfEncoder
from rag_kit.indexing.sparse.vectors import Encoded

if TYPE_CHECKING:
    from langchain_core.documents import Document

    from rag_kit.documents import Filter

_BATCH = 64


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
        name: Name of the encoder, stored with the index, so that :meth:`load` can notice another one.
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
        name: str | None = None,
        batch_size: int = _BATCH,
    ) -> None:
        super().__init__(Store(_as_they_are))
        self.encoder = TfidfEncoder() if encoder is None else check_encoder("encoder", encoder)
        self.query_encoder = self.encoder
        if query_encoder is not None:
            self.query_encoder = check_encoder("query_encoder", query_encoder)
        if not isinstance(name, (str, type(None))):
            raise InvalidInputError(f"name is {type(name).__name__}; give a str or None.")
        self.name = name
        if isinstance(batch_size, bool) or not isinstance(batch_size, int) or batch_size < 1:
            raise InvalidInputError(
                f"batch_size={batch_size!r} is not allowed; give a whole number of 1 or more."
            )
        self.batch_size = batch_size

    @classmethod
    def from_documents(
        cls, documents: Iterable[Document], *, ids: Iterable[str] | None = None, **settings: Any
    ) -> Self:
        """Build an index of documents.

        Args:
            documents: The documents.
            ids: As for :meth:`add`.
            **settings: As for the constructor.
        """
        index = cls(**settings)
        index.add(documents, ids)
        index.prepare()
        return index

    @classmethod
    def from_texts(
        cls,
        texts: Iterable[str],
        metadatas: Iterable[Mapping[str, Any]] | None = None,
        *,
        ids: Iterable[str] | None = None,
        **settings: Any,
    ) -> Self:
        """Build an index of texts; as :meth:`from_documents`, with one metadata for each text."""
        return cls.from_documents(check.documents_of_texts(texts, metadatas), ids=ids, **settings)

    # Writing

    def add(self, documents: Iterable[Document], ids: Iterable[str] | None = None) -> list[str]:
        """Encode documents and add them at the end.

        Args:
            documents: The documents; copies are kept, without provenance.
            ids: Their ids in the index; as for ``BM25Index.add``.

        Returns:
            The ids, in order.

        Raises:
            InvalidInputError: An id is there already or comes twice, or the encoder's vectors are not allowed;
                nothing is added then.
        """
        return self._write(documents, ids, replace=False)

    def update(self, documents: Iterable[Document], ids: Iterable[str] | None = None) -> list[str]:
        """Replace the documents that have these ids, in their places; add those whose id is new at the end."""
        return self._write(documents, ids, replace=True)

    def _write(self, documents: Iterable[Document], ids: Iterable[str] | None, *, replace: bool) -> list[str]:
        given = check.documents_of(documents)
        texts = [document.page_content for document in given]
        if isinstance(self.encoder, TfidfEncoder) and not self.encoder.fitted:
            self.encoder.fit(texts)
        vectors = encode(self.encoder, texts, self.batch_size)
        return self._store.write(given, ids, Encoded(vectors), replace=replace)

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
        return self._store.current().search(checked_vector(vector), check.check_k(k), passes)

    def encode_query(self, query: str) -> Vector:
        """The vector of a query, as the query encoder gives it, checked."""
        return encode(self._query_encoder(), [check.check_query(query)], 1)[0]

    async def aencode_query(self, query: str) -> Vector:
        """As :meth:`encode_query`, natively asynchronous."""
        return (await aencode(self._query_encoder(), [check.check_query(query)], 1))[0]

    def _query_encoder(self) -> SparseEncoder:
        encoder = self.query_encoder
        if isinstance(encoder, TfidfEncoder) and not encoder.fitted and not len(self):
            return _nothing  # an index of no documents is searched without an error, and finds nothing
        return encoder

    def maximum(self, vector: Weights) -> float:
        """The score of a document that had of each term the highest weight that any document has."""
        return self._store.current().reached(checked_vector(vector))

    # Storing

    def save(self, path: str | Path) -> None:
        """Write the index to one file, atomically; a TF-IDF encoder is saved with it, others are not.

        Raises:
            InvalidInputError: Some metadata is not JSON, or the path is a folder's; nothing is written then.
            OSError: The file cannot be written.
        """
        place = container.check_path(path)
        view, vocabulary = self._store.snapshot()
        columns, _ = view.columns.taken(np.arange(len(view)))
        two = self.query_encoder is not self.encoder
        storage.save(place, self.name, self.encoder, two, columns, view.postings, vocabulary)

    @classmethod
    def load(
        cls,
        path: str | Path,
        *,
        encoder: SparseEncoder | None = None,
        query_encoder: SparseEncoder | None = None,
        name: str | None = None,
        batch_size: int = _BATCH,
    ) -> Self:
        """Read an index that :meth:`save` wrote.

        Args:
            path: The file.
            encoder: The encoder that it was built with; not for the built-in TF-IDF, which is in the file.
            query_encoder: The one for queries, if it is another.
            name: Name of the encoder; must be the one it was built with, if that had one.
            batch_size: As for the constructor.

        Raises:
            IndexMissingError: There is no such file.
            IndexFormatError: It is damaged, cut short, of a newer format, or no index; the message names it.
            IndexMismatchError: It was built with an encoder of another name.
            InvalidInputError: It needs its encoder.
        """
        place = container.check_path(path)
        stored = storage.load(place)
        if name is not None and name != stored.name:
            raise IndexMismatchError(
                f"{place} was built with the encoder {stored.name!r}, not {name!r}. Use that one, or build the index "
                "again."
            )
        chosen = storage.pick_encoder(place, stored, encoder, query_encoder)
        index = cls(chosen, query_encoder=query_encoder, name=stored.name, batch_size=batch_size)
        index._store.restore(stored.columns, stored.postings, stored.vocabulary)
        index.prepare()
        return index

    def __repr__(self) -> str:
        return f"SparseIndex({len(self)} documents, {self.name or type(self.encoder).__name__})"


def _nothing(texts: list[str]) -> Sequence[Vector]:
    return [{} for _ in texts]


def _as_they_are(postings: Postings, lengths: Any) -> scoring.Weights:
    """The weights that the encoder gave, as scores."""
    pointers, counts = postings.pointers, postings.counts.astype(np.float32, copy=False)
    return scoring.Weights(counts.dtype, lambda term: counts[pointers[term] : pointers[term + 1]])
