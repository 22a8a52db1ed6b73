"""Legs over the postings of chunks, in a folder: keywords, trigrams of characters, and sparse vectors."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from rag_kit.documents import Filter
from rag_kit.errors import IndexFormatError, IndexMismatchError, InvalidInputError
from rag_kit.indexing.bm25.index import BM25Index
from rag_kit.indexing.bm25.inverted import InvertedIndex
from rag_kit.indexing.bm25.view import BM25View
from rag_kit.indexing.document_index.file_leg import LoadedLeg
from rag_kit.indexing.document_index.rows import read_changed_documents, text_hash
from rag_kit.indexing.document_index.state import Connection, IndexReport, IndexState
from rag_kit.indexing.document_index.views import KeywordView, SparseView
from rag_kit.indexing.searched import searched_text
from rag_kit.indexing.sparse.index import SparseEncoder, SparseIndex
from rag_kit.text.analysis import CharacterNgrams

Mask = NDArray[np.bool_]
I = TypeVar("I", bound=InvertedIndex)  # noqa: E741


class PostingsLeg(LoadedLeg[I]):
    """Base of the legs that keep an inverted index of the chunks' texts in memory and in a file; see ``Leg``."""

    tables = ("chunks", "removed")
    takes_newer = False

    def _follow(self, loaded: I, connection: Connection, since: int, state: IndexState) -> I:
        """Add the documents written after a generation to the loaded index, remove those removed, and return it."""
        changed = read_changed_documents(connection, since)
        query = "SELECT id FROM removed WHERE generation > ?"  # an index that was just made has none of them
        removed = [key for (key,) in connection.execute(query, (since,))] if len(loaded) else []
        searched = [searched_text(document.page_content, document.metadata) for document in changed]
        loaded._write(changed, None, replace=True, texts=searched, removed=removed)
        return loaded

    def _save(self, connection: Connection, state: IndexState, path: Path) -> None:
        self.current(connection, state).save(path)
        path.chmod(0o600)

    def verify(self, connection: Connection, state: IndexState, report: IndexReport) -> None:
        """Report documents that the file lacks, should not have, or has with another text than the store."""
        self.check_saved(connection, state, report)
        if self.waits_for and not self._is_recent(connection, state):
            return  # without the encoder, later texts cannot be followed
        with self._lock:
            try:
                self.load(state)
            except IndexFormatError as error:
                report.problems.append(f"{self.label}: {error}")
                return
            if self._loaded is None:
                return
            view = self.current(connection, state).current()
        indexed = {row.key: text_hash(row.text) for row in view.rows}
        stored = dict(connection.execute("SELECT id, hash FROM chunks").fetchall())
        different = {key for key in indexed.keys() & stored if indexed[key] != stored[key]}
        for keys, problem in (
            (stored.keys() - indexed.keys(), "are missing"),
            (indexed.keys() - stored.keys(), "should be gone"),
            (different, "are not what was written"),
        ):
            if keys:
                report.problems.append(f"{self.label}: {len(keys)} rows {problem}, for example {min(keys)}")
        report.checked[f"{self.label} rows"] = len(indexed)


class KeywordLeg(PostingsLeg[BM25Index]):
    """BM25 over the chunks of an index; see ``Leg``."""

    label, kind = "keyword", "bm25"

    def _forget(self) -> None:
        super()._forget()
        # view -> by row number the position in the view; for numbers without a row the one behind the last
        self._positions = WeakKeyDictionary[BM25View, NDArray[np.int64]]()

    def _read(self, path: Path) -> BM25Index:
        return BM25Index.load(path)

    def _empty(self, state: IndexState) -> BM25Index:
        return BM25Index()

    def view(self, connection: Connection, state: IndexState) -> KeywordView:
        """Return a view of the state that the connection sees."""
        return KeywordView(self.current(connection, state), state.derived)

    def mask(self, connection: Connection, state: IndexState, where: Filter) -> Mask:
        """Return a mask of the rows that pass a filter, by row number; numbers without a row do not pass."""
        with self._lock:
            index = self.current(connection, state)
            view = index.current()
            absent = len(view)  # the position of the False that is appended below
            positions = self._positions.get(view)
            if positions is None:  # once for a view
                number_of = dict(connection.execute("SELECT id, n FROM chunks").fetchall())
                positions = np.full(max(number_of.values(), default=0) + 1, absent, np.int64)
                positions[list(number_of.values())] = [view.position_of.get(key, absent) for key in number_of]
                self._positions[view] = positions
        return np.append(view.masks.mask(where), False)[positions]


class TrigramLeg(KeywordLeg):
    """BM25 over n-grams of characters, as `TrigramRetriever` searches by."""

    label = kind = "trigram"

    def _empty(self, state: IndexState) -> BM25Index:
        return BM25Index(analyzer=CharacterNgrams())


class SparseLeg(PostingsLeg[SparseIndex]):
    """Sparse vectors of an encoder. Without it, what is in the file is kept, and what was written since waits."""

    label = kind = "sparse"
    made_by = "sparse_encoder"

    def __init__(self, folder: Path, encoder: SparseEncoder | None) -> None:
        self._name = None if encoder is None else encoder_name(encoder)
        self._encoder = encoder or _refuse_to_encode
        self.waits_for = "the encoder (sparse_encoder=...)" if encoder is None else ""
        super().__init__(folder)

    def _read(self, path: Path) -> SparseIndex:
        return SparseIndex.load(path, encoder=self._encoder)

    def _empty(self, state: IndexState) -> SparseIndex:
        return SparseIndex(self._encoder)

    def _is_recent(self, connection: Connection, state: IndexState) -> bool:
        # readers would have to encode whatever is not in the file
        return self._saved_generation(state) == state.generation

    def view(self, connection: Connection, state: IndexState) -> SparseView:
        """Return a view of the state that the connection sees; IndexMismatchError if it is by another encoder now."""
        if self._name not in (None, state.sparse_encoder):
            raise IndexMismatchError(
                f"The index {self._folder.name!r} has sparse vectors by {state.sparse_encoder!r} now; it was opened "
                f"with {self._name!r}. Open it again with {state.sparse_encoder!r}."
            )
        return SparseView(self.current(connection, state), state.derived)


def encoder_name(encoder: SparseEncoder) -> str:
    """Return the name of an encoder: its ``name``, else that of its function, class, or method of a ``model``."""
    if isinstance(name := getattr(encoder, "name", None), str):
        return name
    named = encoder if hasattr(encoder, "__qualname__") else type(encoder)
    model = getattr(getattr(encoder, "__self__", None), "model", None)  # of a method's object
    return f"{named.__module__}.{named.__qualname__}{f' of {model}' if isinstance(model, str) else ''}"


def _refuse_to_encode(texts: Sequence[str]) -> Any:
    raise InvalidInputError(
        "The sparse leg of the index needs its encoder: DocumentIndex.open(folder, sparse_encoder=...)."
    )
