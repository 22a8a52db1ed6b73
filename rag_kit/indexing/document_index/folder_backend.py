"""An index in a folder: a SQLite file, files of the legs, one writer at a time."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rag_kit.errors import DocumentIndexError, IndexFormatError, IndexMissingError, InvalidInputError
from rag_kit.indexing.document_index.backend import Backend
from rag_kit.indexing.document_index.embedding import check_model
from rag_kit.indexing.document_index.folder import (
    REPLIES,
    STORE,
    is_part,
    lock_for_writing,
    prepare_new,
    refuse_links,
    remove_parts,
)
from rag_kit.indexing.document_index.keyword import KeywordLeg, KeywordView
from rag_kit.indexing.document_index.sql import Connection
from rag_kit.indexing.document_index.sqlite_store import SqliteStore, missing
from rag_kit.indexing.document_index.store import VERSION, State
from rag_kit.indexing.document_index.store_leg import StoreLeg
from rag_kit.indexing.document_index.vector_leg import VectorLeg

if TYPE_CHECKING:
    from filelock import FileLock
    from langchain_core.documents import Document

    from rag_kit.documents import Filter
    from rag_kit.indexing.document_index.connected_store import ConnectedStore


class FolderBackend(Backend):
    """See `Backend`."""

    location: Path
    vectors: VectorLeg | StoreLeg

    def __init__(
        self, folder: Path, store: SqliteStore, lock: FileLock | None, chosen: ConnectedStore | None
    ) -> None:
        self.location = folder
        self.store = store
        self.keyword = KeywordLeg(folder)
        self._lock = lock
        self.writable = lock is not None
        state = store.state()
        if chosen is None and state.vector_store is None:
            self.vectors = VectorLeg(folder, self.keyword)
        elif state.vector_store is not None or self.writable:
            self.vectors = StoreLeg(folder, self.keyword, chosen)
            if state.vector_store is None and chosen is not None:
                store.set_meta(vector_store=chosen.name)
            if self.writable:
                self.vectors.take_over(state)
        else:
            raise InvalidInputError(
                f"The vectors of the index in {folder} are searched in its files. To have them in a vector store, open "
                "it for writing once: DocumentIndex.open(folder, mode='w', embeddings=..., vector_store=...)."
            )
        self.legs = (self.keyword, self.vectors)

    @classmethod
    def create(
        cls,
        folder: Path,
        embedding: str | None,
        settings: Mapping[str, Any],
        wait: float,
        chosen: ConnectedStore | None,
    ) -> FolderBackend:
        """Make an index; see ``DocumentIndex.create``."""
        name = None if chosen is None else chosen.name  # connects, before there is a folder
        prepare_new(folder)
        refuse_links(folder)
        with ExitStack() as undone:
            lock = _locked(folder, wait, undone)
            # what a kill during an earlier create left is taken over
            store = SqliteStore(folder / STORE, writable=True)
            undone.callback(store.close)
            with suppress(IndexMissingError):
                store.state()
                raise InvalidInputError(
                    f"There is an index in {folder} already. Open it: DocumentIndex.open(folder, mode='w')."
                )
            facts = {"embedding": embedding, "settings": dict(settings), "vector_store": name}
            store.set_meta(version=VERSION, derived=False, **facts)
            backend = cls(folder, store, lock, chosen)
            undone.pop_all()
            return backend

    @classmethod
    def open(
        cls,
        folder: Path,
        embedding: str | None,
        chosen: ConnectedStore | None,
        *,
        writable: bool,
        wait: float,
        check: bool,
    ) -> FolderBackend:
        """Open an index; see ``DocumentIndex.open``."""
        refuse_links(folder)
        with ExitStack() as undone:
            store = _opened(folder, undone, writable=False)
            lock = None
            if writable:
                store.close()
                lock = _locked(folder, wait, undone)
                store = _opened(folder, undone, writable=True)  # the writer before may have taken it away
            state = store.state()
            if state.embedding is not None:
                check_model(folder, state.embedding, embedding, writing=check and writable)
            if writable:
                _remove_later_files(folder, state)
            backend = cls(folder, store, lock, chosen)
            if check:
                backend.keyword.load(state)
            undone.pop_all()
            return backend

    def keyword_view(self) -> KeywordView:
        """See `Backend`."""
        with self.store.reading() as connection:
            state = self.store.state(connection)
            return KeywordView(self.keyword.follow(connection, state), state.derived)

    def passes(self, connection: Connection, state: State, where: Filter) -> Callable[[int], bool]:
        """See `Backend`."""
        mask = self.keyword.mask(connection, state, where)
        return lambda n: bool(mask[n])

    def documents(self, connection: Connection, state: State, ids: Sequence[str]) -> dict[str, Document]:
        """See `Backend`; out of memory where the keyword leg holds them: no reading and no parsing."""
        return self.keyword.loaded_documents(ids, state.generation) or super().documents(
            connection, state, ids
        )

    def size(self, connection: Connection) -> int:
        """See `Backend`."""
        return sum(path.stat().st_size for path in self.location.rglob("*") if path.is_file())

    @property
    def replies(self) -> Path:
        """See `Backend`."""
        return self.location / REPLIES

    def flush(self) -> None:
        """See `Backend`; the record of removals that every saved part has followed is dropped."""
        with self.store.reading() as connection:
            state = self.store.state(connection)
            try:
                saved = min(leg.apply(connection, state) for leg in self.legs)
            except IndexFormatError:
                raise
            except (OSError, DocumentIndexError) as error:
                raise DocumentIndexError(
                    f"What the index in {self.location} derives from its store cannot be saved ({error}). Nothing is "
                    "lost, and searches find all that was written, slower. Make room, or mend what the error says; the "
                    "next ingest or rag-kit repair saves it."
                ) from error
        if saved > state.floor:
            with self.store.writing() as connection:
                for table in ("removed", "gone"):
                    connection.execute(f"DELETE FROM {table} WHERE generation <= ?", (saved,))
                self.store.set_meta(floor=saved)

    def close(self, keep: Collection[str] | None = None) -> None:
        """See `Backend`."""
        try:
            self.store.close()
            if keep is not None and self._lock is not None:
                remove_parts(list(self.location.iterdir()), keep)
        finally:
            if self._lock is not None:
                self._lock.release()


def _opened(folder: Path, undone: ExitStack, *, writable: bool) -> SqliteStore:
    """The store of an index that was made."""
    if not (path := folder / STORE).exists():
        raise missing(folder)
    store = SqliteStore(path, writable=writable)
    undone.callback(store.close)
    store.state()
    return store


def _locked(folder: Path, wait: float, undone: ExitStack) -> FileLock:
    lock = lock_for_writing(folder, wait)
    undone.callback(lock.release)
    return lock


def _remove_later_files(folder: Path, state: State) -> None:
    """Remove what was derived from a later state than the store's, which is a backup then."""
    for path in folder.glob(f"*-{state.uid[:8]}-*.index"):
        if is_part(path.name) and int(path.stem.rpartition("-")[2]) > state.generation:
            path.unlink(missing_ok=True)
