"""Base of the indexes over postings: documents by id; writes are appended, then merged into a view."""

from __future__ import annotations

import copy
import threading
from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence, Sized
from itertools import compress
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from langchain_core.documents import Document
from numpy.typing import NDArray

from rag_kit.documents import PROVENANCE_KEY, content_hash
from rag_kit.documents.identity import copy_metadata
from rag_kit.errors import InvalidInputError
from rag_kit.indexing.bm25 import storage
from rag_kit.indexing.bm25.parameters import check_ids, documents_of, documents_of_texts
from rag_kit.indexing.bm25.postings import PostingRun, Postings, Vocabulary, Weights, merge
from rag_kit.indexing.bm25.storage import StorageState
from rag_kit.indexing.bm25.view import BM25View, ScoreRow, documents_of_rows

_BATCH_SIZE = 2048  # documents analysed between two turns of the lock


class InvertedIndex(ABC):
    """Base of the indexes that keep documents and postings in memory.

    The postings of what is written, and of what is deleted or replaced, are taken over when :meth:`current` builds the
    next :class:`BM25View`. One lock guards everything but the analysis of texts and the searches on a view.
    """

    kind: ClassVar[storage.IndexKind]  # of the file that it is saved to

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._vocabulary = Vocabulary()
        self._rows: dict[str, ScoreRow] = {}  # all documents by id, in insertion order
        self._postings = Postings.empty()  # of the merged documents
        self._merged_rows: Sequence[ScoreRow] = ()  # by document number; some may be deleted since
        self._merged_lengths = np.zeros(0, np.int64)  # in terms
        self._added_rows: list[ScoreRow] = []  # since the last merge, numbered after the merged ones
        self._added_runs: list[PostingRun] = []  # their postings
        self._view: BM25View | None = None  # the state after all finished writes, once it is built

    @abstractmethod
    def _analyse(self, texts: Sequence[str]) -> Sequence[Sized]:
        """Return the terms of each text: a list of them, or a dict of their weights."""

    @abstractmethod
    def _make_run(self, analysed: Sequence[Any], first: int) -> PostingRun:
        """Return the postings of analysed texts, whose document numbers begin at ``first``."""

    @abstractmethod
    def _weights(self, postings: Postings, lengths: NDArray[np.int64]) -> Weights:
        """Return what each posting adds to scores; ``lengths`` are the documents' numbers of terms, (documents,)."""

    @abstractmethod
    def _header(self) -> dict[str, Any]:
        """Return the settings that a file keeps beside documents and postings, as plain JSON."""

    @classmethod
    def from_documents(
        cls, documents: Iterable[Document], *, ids: Iterable[str] | None = None, **settings: Any
    ) -> Self:
        """Build an index of documents; ``ids`` as for :meth:`add`, ``settings`` as for the constructor."""
        index = cls(**settings)
        index.add(documents, ids)
        index.current()  # else the first search merges what was added
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
        """Build an index of texts and, in the same order, their metadata; other arguments as `from_documents` takes."""
        return cls.from_documents(documents_of_texts(texts, metadatas), ids=ids, **settings)

    def __len__(self) -> int:
        with self._lock:
            return len(self._rows)

    def __contains__(self, key: object) -> bool:
        with self._lock:
            return key in self._rows

    def __getstate__(self) -> dict[str, Any]:
        """Return the state to pickle or copy, without the lock and the view, which the copy builds anew."""
        with self._lock:
            state = {name: value for name, value in vars(self).items() if name not in ("_lock", "_view")}
            return {name: copy.copy(value) for name, value in state.items()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _lock=threading.RLock(), _view=None)

    @property
    def ids(self) -> list[str]:
        """The ids in insertion order, as a new list."""
        with self._lock:
            return list(self._rows)

    def metadata_rows(self) -> Iterator[Mapping[str, Any]]:
        """Return the metadata of all documents, in insertion order; only to be read."""
        return (row.metadata for row in self.current().rows)

    def get(self, ids: Iterable[str]) -> list[Document]:
        """Return copies of the documents with these ids, in that order; an id that is not there is passed over."""
        with self._lock:
            return documents_of_rows(self._rows[key] for key in check_ids(ids) if key in self._rows)

    def add(self, documents: Iterable[Document], ids: Iterable[str] | None = None) -> list[str]:
        """Add documents at the end, and return their ids, in order.

        Args:
            documents: The documents; copies are kept, without provenance.
            ids: Their ids; default: ``Document.id``, else the text's hash (with ``#2``, ``#3``... for repeats).

        Raises:
            InvalidInputError: An id is there already or comes twice (nothing is added then), or is not a string.

        Example:
            >>> from rag_kit.indexing import BM25Index
            >>> index = BM25Index()
            >>> index.add([Document("a cat", id="1")]), index.add([Document("a dog")], ids=["2"]), len(index)
            (['1'], ['2'], 2)
        """
        return self._write(documents, ids, replace=False)

    def update(self, documents: Iterable[Document], ids: Iterable[str] | None = None) -> list[str]:
        """Add documents at the end, and remove those that had their ids; arguments and result as for :meth:`add`.

        Raises:
            InvalidInputError: An id comes twice (nothing is changed then), or is not a string.

        Example:
            >>> from rag_kit.indexing import BM25Index
            >>> index = BM25Index.from_texts(["a cat", "a dog"], ids=["1", "2"])
            >>> index.update([Document("a bird", id="1")]), index.ids, index.search("cat")
            (['1'], ['2', '1'], [])
        """
        return self._write(documents, ids, replace=True)

    def delete(self, ids: Iterable[str]) -> int:
        """Remove documents by id, and return how many there were; an id that is not there is passed over.

        Example:
            >>> from rag_kit.indexing import BM25Index
            >>> index = BM25Index.from_texts(["a cat", "a dog"], ids=["1", "2"])
            >>> index.delete(["1", "9"]), len(index)
            (1, 1)
        """
        with self._lock:
            removed = [key for key in check_ids(ids) if self._rows.pop(key, None) is not None]
            if removed:
                self._view = None
        return len(removed)

    def current(self) -> BM25View:
        """Return a view of the state after all finished writes, which no later write changes."""
        if (view := self._view) is not None:
            return view
        with self._lock:
            if self._view is None:
                self._view = self._merge()
            return self._view

    def _merge(self) -> BM25View:
        """Add the postings of the last writes, drop those of deleted documents, and return a view. Needs the lock."""
        rows = list(self._rows.values())
        numbered = [*self._merged_rows, *self._added_rows]  # by document number, with the deleted ones
        added_lengths = np.array([row.length for row in self._added_rows], np.int64)
        lengths = np.append(self._merged_lengths, added_lengths)
        new_numbers = None
        if len(rows) < len(numbered):
            is_kept = np.ones(len(numbered), bool)
            is_kept[_missing_positions(numbered, rows)] = False
            # kept documents are counted from 0, deleted ones get -1: [kept, deleted, kept] becomes [0, -1, 1]
            new_numbers = np.where(is_kept, np.cumsum(is_kept) - 1, -1).astype(np.int32)
            lengths = lengths[is_kept]
        self._postings = merge(self._postings, self._added_runs, len(self._vocabulary), new_numbers)
        self._merged_rows, self._merged_lengths = rows, lengths
        self._added_rows, self._added_runs = [], []
        return BM25View(rows, self._postings, self._weights(self._postings, lengths), self._vocabulary)

    def save(self, path: str | Path) -> None:
        """Write the index to one file, atomically: a crash leaves the old file or the new one.

        Raises:
            InvalidInputError: Some metadata is not JSON (a set, a date...), or the path is a folder's.
            OSError: The file cannot be written, or its folder does not exist.
        """
        with self._lock:
            view = self.current()
            terms = list(self._vocabulary)[: view.postings.terms]
        storage.save(path, self.kind, self._header(), StorageState(view.rows, view.postings, terms))

    def _restore(self, state: StorageState) -> None:
        """Fill a new index with the state of a file, without the terms that only deleted documents had."""
        rows, postings, vocabulary = state
        is_used = postings.frequencies() > 0
        terms = compress(vocabulary, is_used.tolist())
        self._vocabulary = Vocabulary((term, number) for number, term in enumerate(terms))
        # where the postings of each used term begin, and the end of all
        pointers = np.append(postings.pointers[:-1][is_used], postings.pointers[-1:])
        self._postings = Postings(pointers, postings.documents, postings.counts)
        self._rows, self._merged_rows = {row.key: row for row in rows}, rows
        self._merged_lengths = np.array([row.length for row in rows], np.int64)
        self.current()

    def _write(
        self,
        documents: Iterable[Document],
        ids: Iterable[str] | None,
        *,
        replace: bool,
        texts: Sequence[str] | None = None,
        removed: Sequence[str] = (),
    ) -> list[str]:
        """Add or replace documents, and remove the ids in ``removed``; return the ids of the written documents.

        An error changes nothing. ``texts`` are analysed in place of the documents' own; searches go on meanwhile.
        """
        documents = documents_of(documents)
        document_ids = [doc.id for doc in documents] if ids is None else check_ids(ids, len(documents))
        texts = [doc.page_content for doc in documents] if texts is None else texts
        copies = [copy_metadata(doc, without=PROVENANCE_KEY) for doc in documents]
        runs, lengths = list[PostingRun](), list[int]()
        for start in range(0, len(documents), _BATCH_SIZE):
            analysed = self._analyse(texts[start : start + _BATCH_SIZE])
            lengths += map(len, analysed)
            with self._lock:  # counting changes the vocabulary
                runs.append(self._make_run(analysed, start))
        # from here on under the lock: nothing before has changed a row, so that an error leaves the index as it was
        with self._lock:
            keys = self._keys(document_ids, documents, replace)
            self.delete(removed)
            first_number = len(self._merged_rows) + len(self._added_rows)  # the new rows follow all others
            columns = zip(keys, document_ids, documents, copies, lengths, strict=True)
            for key, document_id, doc, metadata, length in columns:
                row = ScoreRow(key, document_id, doc.page_content, metadata, length)
                self._rows.pop(key, None)  # else the new row would have the position of the replaced one
                self._rows[key] = row
                self._added_rows.append(row)
            for run in runs:  # each counts its documents from the first of this write
                self._added_runs.append(run._replace(documents=run.documents + np.int32(first_number)))
            if keys:
                self._view = None  # the next search builds one
        return keys

    def _keys(self, ids: Sequence[Any], documents: Sequence[Document], replace: bool) -> list[str]:
        """Return the keys of documents to write: their ids, else hashes of their texts (repeats: ``#2``, ``#3``...)."""
        keys: dict[str, None] = {}
        last_numbers: dict[str, int] = {}  # by hash; the search for a free number begins at its last one
        for key, document in zip(ids, documents, strict=True):
            if key is None:
                key = digest = content_hash(document.page_content)
                number = last_numbers.get(digest, 1)
                while key in keys or (not replace and key in self._rows):
                    number += 1
                    key = f"{digest}#{number}"
                last_numbers[digest] = number
            elif not isinstance(key, str) or not key:
                raise InvalidInputError(f"id {key!r} is not allowed; ids are non-empty strings.")
            elif key in keys:
                raise InvalidInputError(f"id {key!r} comes twice; ids must differ.")
            elif not replace and key in self._rows:
                raise InvalidInputError(f"id {key!r} is in the index already; use update() to replace it.")
            keys[key] = None
        return list(keys)


def _missing_positions(rows: Sequence[ScoreRow], present: Sequence[ScoreRow]) -> list[int]:
    """Return the positions of the rows that ``present`` lacks: [A, B, C, D] and [A, D] give [1, 2].

    ``present`` has all others in the same order. When m missing rows are found, ``present[i]`` is ``rows[i + m]`` up to
    the next missing row, and no longer behind it: bisection finds that i, much faster than a look at every row.
    """
    missing, start = list[int](), 0

    def is_behind_next_missing(position: int) -> bool:
        return present[position] is not rows[position + len(missing)]

    while len(missing) < len(rows) - len(present):
        start = bisect_left(range(len(present)), True, start, key=is_behind_next_missing)
        missing.append(start + len(missing))
    return missing
