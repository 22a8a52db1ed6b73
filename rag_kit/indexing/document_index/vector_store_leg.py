"""The vector leg over a LangChain vector store: the store names candidates, the index's own vectors score them.

The store may be behind, hold too much, or answer roughly: later changes and all scores come out of the index.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import VectorStore

from rag_kit._redact import error_text
from rag_kit.documents import Filter
from rag_kit.documents.filter_translations import made_by
from rag_kit.errors import DocumentIndexError, InvalidInputError
from rag_kit.indexing.document_index.file_leg import FileLeg
from rag_kit.indexing.document_index.folder import remove_parts
from rag_kit.indexing.document_index.postings_leg import KeywordLeg, Mask
from rag_kit.indexing.document_index.state import NO_GENERATION, Connection, IndexState, in_groups
from rag_kit.indexing.document_index.vector_leg import read_changed_numbers, read_numbers
from rag_kit.indexing.document_index.vectors import Numbers, Vectors, best_by_id, best_with_ties, read_blocks

if TYPE_CHECKING:
    from rag_kit.indexing.document_index.state import IndexReport

logger = logging.getLogger(__name__)

MakeStore = Callable[[Embeddings], VectorStore]

_REPLACING = ("langchain_chroma", "langchain_qdrant", "langchain_postgres")
_ROW = "rag_kit_row"  # metadata key of a row's id: not every store gives its own ids back
_EXTRA, _EXTRA_FILTERED = 10, 1000  # rows asked for beyond those wanted
_SAMPLE = 3  # rows that are looked up before a store is trusted
_SAME = 1 - 1e-4  # cosine of a vector to itself, at least


class KnownVectors(Embeddings):
    """Embedding model given to a vector store: its texts are ids of rows, whose vectors it looks up in `vectors`."""

    def __init__(self, model: Embeddings | None) -> None:
        self._model = model
        self.vectors: dict[str, list[float]] = {}  # of the rows that are being added, by id

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Return the vectors of the rows whose ids are the texts, while rows are added; else embed by the model."""
        if self.vectors:
            return [self.vectors[text] for text in texts]
        if self._model is None:
            raise InvalidInputError("The vector store needs the index's embedding model: give embeddings=.")
        return self._model.embed_documents(texts)

    def embed_query(self, text: str) -> list[float]:
        """Embed a text as `embed_documents` does; an index itself searches its store by vectors."""
        return self.embed_documents([text])[0]


class ConnectedVectorStore:
    """A vector store, connected to when it is first needed; whatever it raises comes out as one class of error."""

    def __init__(self, make: MakeStore, embeddings: Embeddings | None) -> None:
        if isinstance(make, VectorStore) or not callable(make):
            raise InvalidInputError(
                f"vector_store is {type(make).__name__}; give a function that makes the store with the embedding model "
                "that it is given: vector_store=lambda embeddings: Chroma('manual', embeddings, host=...)."
            )
        self.make = make
        self._known = KnownVectors(embeddings)
        self._lock = threading.RLock()
        self._store: VectorStore | None = None

    @contextlib.contextmanager
    def _open_store(self) -> Iterator[VectorStore]:
        """Yield the store, connected, to one thread at a time; turn errors of all classes into DocumentIndexError."""
        with self._lock:
            try:
                store = self.make(self._known) if self._store is None else self._store
                if not isinstance(store, VectorStore) or type(store).delete is VectorStore.delete:
                    raise InvalidInputError(
                        f"vector_store gave {type(store).__name__}, no VectorStore that can delete by id."
                    )
                self._store = store
                yield store
            except (InvalidInputError, DocumentIndexError):
                raise
            except Exception as error:
                reason = error_text(error, max_chars=300)
                raise DocumentIndexError(f"The index's vector store failed: {reason}") from error

    @property
    def name(self) -> str:
        """The name of its class; connects."""
        with self._open_store() as store:
            return type(store).__name__

    @property
    def replaces(self) -> bool:
        """Whether adding a row replaces the one with its id; if that was deleted first, Chroma lost 20 of 680 rows."""
        with self._open_store() as store:
            return any(made_by(store, package) for package in _REPLACING)

    def nearest(self, state: IndexState, vector: Vectors, k: int) -> Numbers:
        """Return the row numbers of the k hits nearest to a vector, without hits of other indexes in the same store."""
        with self._open_store() as store:
            hits = store.similarity_search_by_vector(vector.tolist(), k=k)
        # an id is a UUID: 16 hexadecimal digits of the index, and 16 of the row number; see `_id`
        ids = [str(document.metadata.get(_ROW)).replace("-", "") for document in hits]
        own_ids = [key for key in ids if key.startswith(state.uid[:16])]
        return np.array([int(key[16:], 16) for key in own_ids], np.int64)

    def delete(self, state: IndexState, numbers: Numbers) -> None:
        """Delete rows, whether they are there or not."""
        with self._open_store() as store:
            for group in in_groups(numbers.tolist()):
                store.delete([_id(state, n) for n in group])

    def add(self, connection: Connection, state: IndexState, numbers: Numbers) -> None:
        """Add rows by number, with their vectors scaled to length 1: then every metric orders them by cosine."""
        for group, vectors in read_blocks(connection, numbers, state.dimension or 0):
            ids = [_id(state, n) for n in group.tolist()]
            if not ids:
                continue
            with self._open_store() as store:
                self._known.vectors = dict(zip(ids, vectors.tolist(), strict=True))
                try:
                    store.add_texts(ids, [{_ROW: key} for key in ids], ids=ids)
                finally:
                    self._known.vectors = {}


class VectorStoreLeg(FileLeg):
    """The vectors of an index in a vector store; see ``Leg``.

    An empty file, named for a generation, says that the store holds all vectors as of then. A writer removes it before
    it changes the store: meanwhile, and after a kill, searches score all vectors of the index.
    """

    label, kind = "vectors", "store"
    tables = ("vectors", "removed")
    made_by = "embedding"

    def __init__(self, folder: Path, keyword: KeywordLeg, store: ConnectedVectorStore | None) -> None:
        super().__init__(folder)
        self._keyword, self._store = keyword, store
        self.waits_for = "the vector store (vector_store=...)" if store is None else ""

    def _forget(self) -> None:
        self._sample_found: dict[Path, bool] = {}  # for the newest file: whether the store has a row of it

    def search(
        self, connection: Connection, state: IndexState, query: Vectors, k: int, where: Filter | None
    ) -> list[tuple[str, float]]:
        """Return ids and cosines of the k vectors nearest to a unit vector, among the rows that pass a filter."""
        if (store := self._store) is None:
            raise InvalidInputError(
                f"The vectors of the index {self._folder.name!r} are searched in a vector store "
                f"({state.vector_store}), which was not given: DocumentIndex.open(..., vector_store=...). Keyword "
                "search works without: index_retriever(index, 'bm25'), --pipeline bm25."
            )
        mask = None if where is None else self._keyword.mask(connection, state, where)
        generation, is_complete = self._usable_generation(connection, state, store), False
        if generation != NO_GENERATION:
            # the store gets no filter, and knows nothing of ties; it may lack what was written since
            count = k + _EXTRA if mask is None else 4 * k + _EXTRA_FILTERED
            changed = read_changed_numbers(connection, generation, "vectors")
            candidates = np.append(changed, store.nearest(state, query, count))
            numbers, scores = _score_candidates(connection, state, query, candidates, mask)
            # the file is gone if a writer has begun to change the store meanwhile
            is_complete = len(numbers) >= k and self._file(state, generation).exists()
        if not is_complete:  # score all rows
            candidates = read_changed_numbers(connection, NO_GENERATION, "vectors")
            numbers, scores = _score_candidates(connection, state, query, candidates, mask)
        return best_by_id(connection, *best_with_ties(numbers, scores, k), k)

    def _usable_generation(
        self, connection: Connection, state: IndexState, store: ConnectedVectorStore
    ) -> int:
        """Return the generation of the newest file, if the vector store holds what it says; else NO_GENERATION."""
        generation = self._saved_generation(state)
        if generation == NO_GENERATION:
            return NO_GENERATION
        file = self._file(state, generation)
        is_found = self._sample_found.get(file)
        if is_found is None:  # once for each file
            is_found = _holds_sample(connection, state, store, generation)
            self._sample_found = {file: is_found}
        return generation if is_found else NO_GENERATION

    def apply(self, connection: Connection, state: IndexState) -> int:
        """Write changed vectors to the store, if it was given; return the generation up to which it has them."""
        if self._store and self._usable_generation(connection, state, self._store) == NO_GENERATION:
            self.remove(state)  # the store is not as the file says: fill it anew
        return super().apply(connection, state)

    def _save(self, connection: Connection, state: IndexState, path: Path) -> None:
        """Write all changes since the newest file (all vectors, if there is none) to the store; make a new file."""
        assert self._store is not None
        generation = self._saved_generation(state)
        changed = read_changed_numbers(connection, generation, "vectors")
        removed = read_changed_numbers(connection, generation, "removed")
        self.remove(state)  # no file while the store is being changed
        # a store that replaces rows when they are added may lose those that are deleted just before
        unwanted = np.setdiff1d(removed, changed) if self._store.replaces else np.union1d(removed, changed)
        self._store.delete(state, unwanted)
        self._store.add(connection, state, changed)
        path.touch(mode=0o600)
        self._sample_found = {path: True}
        remove_parts(self._folder.glob("vectors-*"))  # from before the index had a vector store

    def rebuild(self, connection: Connection, state: IndexState) -> str:
        """Fill the store anew with all vectors of the index."""
        return super().rebuild(connection, state) and f"filled {state.vector_store} anew"

    def verify(self, connection: Connection, state: IndexState, report: IndexReport) -> None:
        """Report rows that the store does not find by their own vectors: it may count rows that it cannot find."""
        self.check_saved(connection, state, report)
        if self._store is None:
            report.notes.append(
                f"vectors: {state.vector_store} was not given, so it was neither looked at nor filled; that is done in "
                "Python, by DocumentIndex.open(folder, mode='w', embeddings=..., vector_store=...) and its repair()"
            )
            return
        try:
            self._report_lost_rows(connection, state, self._store, report)
        except (InvalidInputError, DocumentIndexError) as error:
            report.problems.append(f"vectors: {error}")

    def _report_lost_rows(
        self, connection: Connection, state: IndexState, store: ConnectedVectorStore, report: IndexReport
    ) -> None:
        """Report how many of the rows that the store was given are not among the nearest to their own vectors."""
        generation = self._saved_generation(state)
        if generation == NO_GENERATION:
            return
        alive, dimension = read_changed_numbers(connection, NO_GENERATION, "vectors"), state.dimension or 0
        handed_over = np.setdiff1d(alive, read_changed_numbers(connection, generation, "vectors"))
        # rows with equal vectors are equally near: all of them must fit into an answer
        vectors = (row for _, rows in read_blocks(connection, alive, dimension) for row in rows)
        equal_counts = Counter(hash(row.tobytes()) for row in vectors)
        lacking = 0
        for numbers, rows in read_blocks(connection, handed_over, dimension):
            for number, row in zip(numbers.tolist(), rows, strict=True):
                equal = equal_counts[hash(row.tobytes())]
                # lazily: the store is asked for many rows only if the row is not among a few
                answers = (store.nearest(state, row, equal + extra) for extra in (_EXTRA, _EXTRA_FILTERED))
                lacking += not any(number in answer for answer in answers)
        report.checked["vector rows"] = len(handed_over)
        if lacking:
            report.problems.append(f"vectors: {lacking} rows are missing from {store.name}")


def _holds_sample(
    connection: Connection, state: IndexState, store: ConnectedVectorStore, generation: int
) -> bool:
    """Tell whether the store finds one of the last rows that the index wrote; one that was emptied does not."""
    query = f"SELECT n FROM vectors WHERE generation <= ? ORDER BY generation DESC LIMIT {_SAMPLE}"
    sample = read_numbers(connection, query, generation)
    if not len(sample):
        return True  # any store is right for an index without vectors
    for _, rows in read_blocks(connection, sample, state.dimension or 0):
        for row in rows:
            near = store.nearest(state, row, _EXTRA)
            _, cosines = _score_candidates(connection, state, row, near, None)
            if cosines.max(initial=-1) > _SAME or not row.any():  # a vector of zeros has no nearest
                return True
    message = "%s lacks what the index wrote to it; it is not asked until a writer has filled it."
    logger.warning(message, store.name)
    return False


def _score_candidates(
    connection: Connection, state: IndexState, query: Vectors, candidates: Numbers, mask: Mask | None
) -> tuple[Numbers, Vectors]:
    """Return the candidates that are in the index and pass the mask, with their cosines to the query."""
    candidates = np.unique(candidates)
    if mask is not None:
        candidates = candidates[np.take(mask, candidates, mode="clip")]  # clipped ones have no vector
    numbers: list[Numbers] = [np.empty(0, np.int64)]
    scores: list[Any] = [np.empty(0, np.float32)]
    for group, rows in read_blocks(connection, candidates, state.dimension or 0):
        numbers.append(group)
        scores.append(rows.astype(np.float64) @ query)  # in double precision, so that equal vectors tie
    return np.concatenate(numbers), np.concatenate(scores)


def _id(state: IndexState, number: int) -> str:
    """Return the id of a row, the same each time: a UUID, which every store takes."""
    return str(uuid.UUID(state.uid[:16] + f"{number:016x}"))
