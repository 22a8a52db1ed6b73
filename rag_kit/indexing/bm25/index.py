"""BM25Index: keyword search over documents that come and go."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rag_kit.documents import compile_filter
from rag_kit.errors import InvalidInputError
from rag_kit.indexing.bm25 import storage
from rag_kit.indexing.bm25.scoring import VARIANTS, Formula, Variant
from rag_kit.indexing.bm25.store import Store, copied
from rag_kit.indexing.bm25.view import Columns
from rag_kit.text import Analyzer, default_analyzer

if TYPE_CHECKING:
    from langchain_core.documents import Document

    from rag_kit.documents import Filter

DEFAULT_K1 = 0.9
DEFAULT_B = 0.5


class BM25Index:
    """An exact BM25 index in memory that can be added to, deleted from, filtered, saved and loaded.

    Scores are computed once per posting and summed by numpy; a search of 100,000 documents takes a fraction of a
    millisecond. Every write makes the next search rebuild the score arrays from the kept counts (no text is
    analysed again), so the scores are always those of an index built afresh from the same documents.

    Any number of threads may search while one writes: a search sees all of an ``add``, ``delete`` or ``update``
    that returned before it began, and all or nothing of one that runs meanwhile. Results are copies. Nothing here
    does I/O but :meth:`save` and :meth:`load`.

    Args:
        k1: How slowly repeats of a term stop counting; 0 or more.
        b: How much longer documents are held back, from 0 to 1.
        variant: ``"lucene"``, or ``"okapi"`` for the scores of rank_bm25's ``BM25Okapi`` (a document whose score is
            not above zero is not returned either way).
        analyzer: Turns a text into terms; ``None`` for the default :class:`~rag_kit.text.Analyzer`. Any function
            from str to a list of str will do, but then :meth:`load` must be given it again.

    Raises:
        InvalidInputError: A parameter is out of its range.

    Example:
        >>> index = BM25Index.from_texts(["a cat sat", "two dogs ran", "猫和狗"])
        >>> [(doc.page_content, round(score, 2)) for doc, score in index.search("cats")]
        [('a cat sat', 0.57)]
        >>> index.search("zebra")
        []
    """

    def __init__(
        self,
        *,
        k1: float = DEFAULT_K1,
        b: float = DEFAULT_B,
        variant: Variant = "lucene",
        analyzer: Callable[[str], list[str]] | None = None,
    ) -> None:
        if not (isinstance(k1, (int, float)) and math.isfinite(k1) and k1 >= 0):
            raise InvalidInputError(f"k1={k1!r} is not allowed; give a number of 0 or more (1.2 is common).")
        if not (isinstance(b, (int, float)) and 0 <= b <= 1):
            raise InvalidInputError(f"b={b!r} is not allowed; give a number from 0 to 1 (0.75 is common).")
        if variant not in VARIANTS:
            raise InvalidInputError(f"variant={variant!r} is not known; use one of {', '.join(VARIANTS)}.")
        self.k1 = float(k1)
        self.b = float(b)
        self.variant: Variant = variant
        self.analyzer: Callable[[str], list[str]] = analyzer or default_analyzer()
        self._store = Store(self.analyzer, Formula(self.k1, self.b, variant))

    @classmethod
    def from_documents(
        cls, documents: Iterable[Document], *, ids: Sequence[str] | None = None, **settings: Any
    ) -> BM25Index:
        """Build an index of documents.

        Args:
            documents: The documents.
            ids: As for :meth:`add`.
            **settings: As for the constructor.
        """
        index = cls(**settings)
        index.add(documents, ids=ids)
        index.prepare()
        return index

    @classmethod
    def from_texts(
        cls,
        texts: Iterable[str],
        metadatas: Iterable[Mapping[str, Any]] | None = None,
        *,
        ids: Sequence[str] | None = None,
        **settings: Any,
    ) -> BM25Index:
        """Build an index of texts.

        Args:
            texts: The texts.
            metadatas: Metadata of each text, in the same order.
            ids: As for :meth:`add`.
            **settings: As for the constructor.

        Raises:
            InvalidInputError: ``metadatas`` or ``ids`` are not as many as ``texts``.
        """
        from langchain_core.documents import Document

        texts = list(texts)
        given = [{}] * len(texts) if metadatas is None else [dict(metadata or {}) for metadata in metadatas]
        if len(given) != len(texts):
            raise InvalidInputError(f"{len(texts)} texts but {len(given)} metadatas; give one each.")
        documents = [Document(page_content=t, metadata=m) for t, m in zip(texts, given, strict=True)]
        return cls.from_documents(documents, ids=ids, **settings)

    # Writing

    def add(self, documents: Iterable[Document], ids: Sequence[str] | None = None) -> list[str]:
        """Add documents at the end.

        Args:
            documents: The documents; copies are kept, without provenance.
            ids: Their ids in the index. Without them ``Document.id`` counts, and without that the hash of the
                text (a repeated text gets ``#2``, ``#3``... at the end of it).

        Returns:
            The ids, in order.

        Raises:
            InvalidInputError: An id is there already or comes twice (nothing is added then), or is not a string.

        Example:
            >>> from langchain_core.documents import Document
            >>> index = BM25Index()
            >>> index.add([Document("a cat", id="1")]), index.add([Document("a dog")], ids=["2"]), len(index)
            (['1'], ['2'], 2)
        """
        return self._store.write(documents, ids, replace=False)

    def update(self, documents: Iterable[Document], ids: Sequence[str] | None = None) -> list[str]:
        """Replace the documents that have these ids, in their places; add those whose id is new at the end.

        Args:
            documents: The new state of the documents.
            ids: As for :meth:`add`.

        Returns:
            The ids, in order.

        Raises:
            InvalidInputError: An id comes twice (nothing is changed then), or is not a string.

        Example:
            >>> from langchain_core.documents import Document
            >>> index = BM25Index.from_texts(["a cat", "a dog"], ids=["1", "2"])
            >>> index.update([Document("a bird", id="1")]), index.ids, index.search("cat")
            (['1'], ['1', '2'], [])
        """
        return self._store.write(documents, ids, replace=True)

    def delete(self, ids: Iterable[str]) -> int:
        """Remove documents.

        Args:
            ids: Their ids; an id that is not there is passed over.

        Returns:
            How many were removed.

        Example:
            >>> index = BM25Index.from_texts(["a cat", "a dog"], ids=["1", "2"])
            >>> index.delete(["1", "9"]), len(index)
            (1, 1)
        """
        if isinstance(ids, str):
            raise InvalidInputError(f"ids is the string {ids!r}; give a list of ids.")
        return self._store.delete(ids)

    # Reading

    def __len__(self) -> int:
        return len(self._store)

    def __contains__(self, key: object) -> bool:
        return key in self._store

    @property
    def ids(self) -> list[str]:
        """The ids in insertion order, as a new list."""
        view = self._store.current()
        return view.columns.ids[: len(view)]

    def get(self, ids: Iterable[str]) -> list[Document]:
        """Copies of the documents with these ids, in that order; an id that is not there is passed over."""
        columns, positions = self._store.find(ids)
        return _documents(columns, positions)

    def prepare(self) -> None:
        """Do now what the first search after a write would do: rebuild the score arrays."""
        self._store.current()

    def search(self, query: str, k: int = 4, filter: Filter | None = None) -> list[tuple[Document, float]]:
        """The best documents for a query.

        Args:
            query: The question or keywords.
            k: How many at most; 1 or more.
            filter: Condition on the metadata (see ``rag_kit.documents.filters``); it is met by all results.

        Returns:
            ``(document, score)`` by falling score, equal scores in insertion order; every score is above zero,
            so there may be fewer than ``k`` or none.

        Raises:
            InvalidInputError: ``k`` below 1, or the query is not a string.
            FilterError: The filter is malformed.
        """
        return self.search_batch([query], k, filter)[0]

    def search_batch(
        self,
        queries: Sequence[str],
        k: int = 4,
        filter: Filter | None = None,
    ) -> list[list[tuple[Document, float]]]:
        """As :meth:`search`, for several queries on one state of the index.

        Returns:
            The results of each query, in order.
        """
        if isinstance(queries, str):
            raise InvalidInputError("search_batch takes a list of queries, not one string; use search().")
        if isinstance(k, bool) or not isinstance(k, (int, np.integer)) or k < 1:
            raise InvalidInputError(f"k={k!r} is not allowed; give a whole number of 1 or more.")
        passes = compile_filter(filter) if filter else None
        view = self._store.current()
        results = []
        for query in queries:
            terms = self.analyzer(query)
            hits = view.top(terms, int(k)) if passes is None else view.top_filtered(terms, int(k), passes)
            documents = _documents(view.columns, hits[0].tolist())
            results.append(list(zip(documents, hits[1].tolist(), strict=True)))
        return results

    def scores(self, query: str) -> NDArray[np.floating[Any]]:
        """The score of every document, in insertion order, as a new array of shape (documents,).

        float32 for ``lucene``, float64 for ``okapi``, whose scores may be below zero.
        """
        return self._store.current().scores(self.analyzer(query))

    def maximum(self, query: str) -> float:
        """What no document's score for the query can exceed: each of its terms at full weight.

        A term that no document holds counts as rarest, so that the best score divided by this tells how much
        of the question the index can match. 0 for a query without terms.
        """
        return self._store.current().maximum(self.analyzer(query), self.k1, self.variant)

    # Storing

    def save(self, path: str | Path) -> None:
        """Write the index to one file, atomically: a crash leaves the old file or the new one.

        Args:
            path: The file; its folder must exist.

        Raises:
            InvalidInputError: Some metadata is not JSON (a set, a date...); nothing is written then.
            OSError: The file cannot be written.
        """
        view, vocabulary = self._store.snapshot()
        settings = {"k1": self.k1, "b": self.b, "variant": self.variant}
        analyzer = self.analyzer.settings() if isinstance(self.analyzer, Analyzer) else None
        storage.save(
            Path(path), settings, analyzer, view.columns.taken(range(len(view))), view.postings, vocabulary
        )

    @classmethod
    def load(cls, path: str | Path, *, analyzer: Callable[[str], list[str]] | None = None) -> BM25Index:
        """Read an index that :meth:`save` wrote; queries are analysed as its documents were.

        Args:
            path: The file.
            analyzer: Needed only where the index was built with a function of your own.

        Raises:
            IndexMissingError: There is no such file.
            IndexFormatError: It is damaged, cut short, of a newer format, or no index; the message names it.
            InvalidInputError: The index needs its ``analyzer``, or has one and was given another.
        """
        stored = storage.load(Path(path))
        index = cls(**stored.settings, analyzer=storage.pick_analyzer(Path(path), stored.analyzer, analyzer))
        index._store.restore(stored.columns, stored.postings, stored.vocabulary)
        index.prepare()
        return index

    def __repr__(self) -> str:
        return f"BM25Index({len(self)} documents, k1={self.k1:g}, b={self.b:g}, variant={self.variant!r})"


def _documents(columns: Columns, positions: Iterable[int]) -> list[Document]:
    from langchain_core.documents import Document

    texts, metadata, ids = columns.texts, columns.metadata, columns.document_ids
    return [Document(page_content=texts[i], metadata=copied(metadata[i]), id=ids[i]) for i in positions]
