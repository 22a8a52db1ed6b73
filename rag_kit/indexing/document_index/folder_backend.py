"""An index in a folder: a SQLite file, files of the legs, one writer at a time."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from rag_kit.errors import DocumentIndexError, IndexMissingError, InvalidInputError
from rag_kit.indexing.document_index.backend import Backend
from rag_kit.indexing.document_index.changes import forget_removals
from rag_kit.indexing.document_index.embedding import check_model
from rag_kit.indexing.document_index.folder import (
    MANIFEST,
    REPLIES,
    STORE,
    ManifestDamagedError,
    WriterLock,
    manifest_of,
    prepare_new,
    remove_parts,
    take_over,
    write_manifest,
)
from rag_kit.indexing.document_index.keyword import KeywordLeg
from rag_kit.indexing.document_index.keyword_view import KeywordView
from rag_kit.indexing.document_index.meta import State
from rag_kit.indexing.document_index.row_masks import RowMasks
from rag_kit.indexing.document_index.sql import Connection
from rag_kit.indexing.document_index.sqlite_store import SqliteStore
from rag_kit.indexing.document_index.store_leg import StoreLeg
from rag_kit.indexing.document_index.vector_leg import VectorLeg

if TYPE_CHECKING:
    from langchain_core.documents import Document

    from rag_kit.documents import Filter
    from rag_kit.indexing.document_index.connected_store import ConnectedStore

Chosen: TypeAlias = "ConnectedStore | None"

logger = logging.getLogger(__name__)

#: Vectors are written to their file when so many are waiting, and when the index is closed.
_WAITING_ROWS = 10_000


class FolderBackend(Backend):
    """See `Backend`."""

    location: Path
    vectors: VectorLeg | StoreLeg

    def __init__(self, folder: Path, store: SqliteStore, lock: WriterLock | None, chosen: Chosen) -> None:
        self.location = folder
        self.store = store
        self.keyword = KeywordLeg(folder)
        self._masks = RowMasks(self.keyword.loaded_metadata)
        self._lock = lock
        self.writable = lock is not None
        recorded = store.state().vector_store
        if chosen is None and recorded is None:
            self.vectors = VectorLeg(folder, self._masks)
        elif recorded is not None or (chosen is not None and self.writable):
            self.vectors = StoreLeg(folder, self._masks, chosen)
            if recorded is None and chosen is not None:
                store.set_meta(vector_store=chosen.name)
            if self.writable:
                self.vectors.take_over(store.state())
        else:
            raise InvalidInputError(
                f"The vectors of the index in {folder} are searched in its files. To have them in a vector store, open "
                "it for writing once: DocumentIndex.open(folder, mode='w', embeddings=..., vector_store=...)."
            )
        self.legs = (self.keyword, self.vectors)

    @classmethod
    def create(
        cls, folder: Path, embedding: str | None, settings: Mapping[str, Any], wait: float, chosen: Chosen
    ) -> FolderBackend:
        """Make an index; see ``DocumentIndex.create``."""
        name = None if chosen is None else chosen.name  # connects, before there is a folder
        prepare_new(folder)
        lock = WriterLock(folder)
        lock.acquire(wait)
        store = None
        try:
            if (folder / MANIFEST).exists():
                raise InvalidInputError(
                    f"There is an index in {folder} already. Open it: DocumentIndex.open(folder, mode='w')."
                )
            # what a kill during an earlier create left is taken over
            store = SqliteStore(folder / STORE, writable=True)
            state = store.state()
            if state.generation:
                check_model(folder, state.embedding, embedding, writing=True)
            else:
                facts = {"settings": dict(settings), "titles": True, "derived": False, "vector_store": name}
                store.set_meta(embedding=embedding, **facts)
            write_manifest(folder, state.uid)
            return cls(folder, store, lock, chosen)
        except BaseException:
            if store is not None:
                store.close()
            lock.release()
            raise

    @classmethod
    def open(
        cls, folder: Path, embedding: str | None, chosen: Chosen, *, writable: bool, wait: float, check: bool
    ) -> FolderBackend:
        """Open an index; see ``DocumentIndex.open``."""
        _check_manifest(folder, check)
        lock = WriterLock(folder) if writable else None
        store = None
        if lock is not None:
            lock.acquire(wait)
        try:
            if lock is not None:
                _check_manifest(folder, check)  # the writer before may have taken its new index away
            store = SqliteStore(folder / STORE, writable=writable)
            state = store.state()
            if state.embedding is not None:
                check_model(folder, state.embedding, embedding, writing=check and writable)
            if lock is not None:
                take_over(folder, state.uid, state.generation)
            backend = cls(folder, store, lock, chosen)
            if check:
                backend.keyword.load(state)
            return backend
        except BaseException:
            if store is not None:
                store.close()
            if lock is not None:
                lock.release()
            raise

    def keyword_view(self) -> KeywordView:
        """See `Backend`."""
        with self.store.reading() as connection:
            state = self.store.state(connection)
            return KeywordView(self.keyword.follow(connection, state), state.derived)

    def passes(self, connection: Connection, state: State, where: Filter) -> Callable[[int], bool]:
        """See `Backend`."""
        mask = self._masks.mask(connection, state, where)
        return lambda n: bool(mask[n])

    def documents(self, connection: Connection, state: State, ids: Sequence[str]) -> Iterable[Document]:
        """See `Backend`; out of memory where the keyword leg holds them: no reading and no parsing."""
        loaded = self.keyword.loaded_documents(ids, state.generation)
        return super().documents(connection, state, ids) if loaded is None else loaded

    def size(self, connection: Connection) -> int:
        """See `Backend`."""
        return sum(path.stat().st_size for path in self.location.rglob("*") if path.is_file())

    @property
    def replies(self) -> Path:
        """See `Backend`."""
        return self.location / REPLIES

    def problem(self) -> str:
        """See `Backend`."""
        try:
            manifest_of(self.location)
        except DocumentIndexError as error:
            return f"manifest: {error}"
        return ""

    def mend(self, state: State) -> str:
        """See `Backend`."""
        try:
            manifest_of(self.location)
        except (IndexMissingError, ManifestDamagedError) as error:
            write_manifest(self.location, state.uid)
            return f"wrote the manifest anew ({error})"
        return ""

    def flush(self, *, all_legs: bool) -> None:
        """See `Backend`."""
        with self.store.reading() as connection:
            state = self.store.state(connection)
            if not all_legs and self.vectors.waiting(connection, state) < _WAITING_ROWS:
                return
            try:
                saved = [leg.apply(connection, state) for leg in (self.legs if all_legs else [self.vectors])]
            except OSError as error:
                if not all_legs:
                    # the truth is written and is searched; a later call raises what is still so then
                    logger.warning(
                        "The vectors of the index in %s cannot be saved yet: %s", self.location, error
                    )
                    return
                raise DocumentIndexError(
                    f"What the index in {self.location} derives from its store cannot be saved ({error}). Nothing is "
                    "lost, and searches find all that was written, slower. Make room, or mend what the error says; the "
                    "next ingest or rag-kit repair saves it."
                ) from error
        if all_legs:
            forget_removals(self.store, min(saved))

    def close(self, keep: Collection[str] | None = None) -> None:
        """See `Backend`."""
        try:
            self.store.close()
            if keep is not None and self._lock is not None:
                remove_parts(list(self.location.iterdir()), keep)
        finally:
            if self._lock is not None:
                self._lock.release()


def _check_manifest(folder: Path, check: bool) -> None:
    try:
        manifest_of(folder)
    except (IndexMissingError, ManifestDamagedError):
        if check or not (folder / STORE).exists():
            raise


def recorded_embedding(folder: Path) -> str | None:
    """See ``DocumentIndex.recorded_embedding``."""
    _check_manifest(folder, True)
    store = SqliteStore(folder / STORE, writable=False)
    try:
        return store.state().embedding
    finally:
        store.close()
