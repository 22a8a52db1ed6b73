"""An index in a folder: a SQLite file, files of the legs, one writer at a time."""

from __future__ import annotations

import logging
import os
import sqlite3
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from rag_kit.documents import Filter
from rag_kit.errors import (
    DocumentIndexError,
    IndexFormatError,
    IndexMismatchError,
    IndexMissingError,
    InvalidInputError,
    RagKitError,
)
from rag_kit.indexing.document_index import folder as index_folder
from rag_kit.indexing.document_index.embedding import check_model
from rag_kit.indexing.document_index.postings_leg import KeywordLeg, SparseLeg, TrigramLeg, encoder_name
from rag_kit.indexing.document_index.state import VERSION, Connection, IndexState, missing_index, read_state
from rag_kit.indexing.document_index.store import Access, Leg, Store
from rag_kit.indexing.document_index.token_leg import TokenLeg, token_model
from rag_kit.indexing.document_index.vector_leg import VectorLeg
from rag_kit.indexing.document_index.vector_store_leg import ConnectedVectorStore, VectorStoreLeg
from rag_kit.indexing.document_index.views import PostingsView

if TYPE_CHECKING:
    from filelock import FileLock

logger = logging.getLogger(__name__)

_open_stores: WeakSet[FolderStore] = WeakSet()
_inherited: list[Any] = []  # of the parent of this process, never closed here


def _leave_to_parent() -> None:
    for store in list(_open_stores):
        store.leave_to_parent()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_to_parent)


class FolderStore(Store):
    """Store of an index in a folder: a SQLite file, and beside it the files of the search indexes.

    Reads and writes have a connection each: a read sees the last committed state, also while a write is in progress.
    """

    location: Path
    vectors: VectorLeg | VectorStoreLeg

    def __init__(self, folder: Path, wait: float | None = None) -> None:
        """Open an index for reading; for writing if ``wait``, the seconds to wait for another writer, is given."""
        super().__init__(writable=False)
        self.location, self._file = folder, folder / index_folder.STORE
        self._writer_lock: FileLock | None = None
        self._writer: sqlite3.Connection | None = None
        self._reader: sqlite3.Connection | None = None
        self._frozen: tuple[int, int] | None = None  # the `stamp` of a store that is read as if nobody wrote
        self._opened: tuple[int, int] | None = None  # the `_identity` of the file that is open
        self._embedding: str | None = None  # name of the model when it was opened
        self._read_lock, self._closed = threading.RLock(), False
        self.keyword = KeywordLeg(folder)
        self.vectors = VectorLeg(folder, self.keyword)
        self._optional: dict[str, TrigramLeg | SparseLeg | TokenLeg] = {}
        with self.close_on_error(), self.translate_errors():
            if wait is not None:
                self._become_writer(wait)
            self._connect()
        _open_stores.add(self)

    def _connect(self) -> sqlite3.Connection:
        self._opened = _identity(self._file)
        self._reader, self._frozen = index_folder.connect_reader(self._file)
        return self._reader

    def _become_writer(self, wait: float) -> None:
        self._writer_lock = index_folder.lock_for_writing(self.location, wait)
        with self.translate_errors():
            self._writer = index_folder.connect_writer(self._file)
        self.writable = True

    @classmethod
    def create(cls, folder: Path, access: Access, settings: Mapping[str, Any]) -> FolderStore:
        """Make an index in a folder; raise InvalidInputError if it has one."""
        vector_store = access.connected and access.connected.name  # connects, before there is a folder
        token_model(access, None)  # raises if it is not installed
        index_folder.prepare_new(folder)
        index_folder.refuse_links(folder)
        store = cls(folder, access.wait)
        with store.close_on_error():
            with suppress(IndexMissingError):  # raised for a new store, and for one whose creation was killed
                store.state()
                raise InvalidInputError(
                    f"There is an index in {folder} already. Open it: DocumentIndex.open(folder, mode='w')."
                )
            facts = {"embedding": access.embedding, "settings": dict(settings), "vector_store": vector_store}
            store.set_meta(version=VERSION, derived=False, **facts)
            store._choose_vector_leg(access.connected)
            store._choose_other_legs(access)
        return store

    @classmethod
    def open(cls, folder: Path, access: Access) -> FolderStore:
        """Open the index in a folder; raise IndexMissingError if it has none."""
        index_folder.refuse_links(folder)
        if not (folder / index_folder.STORE).exists():
            raise missing_index(folder)
        store = cls(folder)
        with store.close_on_error():
            state = store.state()  # raises for a folder that is no index, before a lock is made in it
            if access.writable:
                store._become_writer(access.wait)
                state = store.state()  # again: before the lock was taken, another writer may have changed it
                store._remove_leftovers(state)
            writing = access.check and access.writable  # without the check, a writer only repairs
            check_model(folder, state.embedding, access.embedding, writing=writing)
            store._embedding = state.embedding
            store._choose_vector_leg(access.connected)
            store._choose_other_legs(access)
            if access.check:
                store.keyword.load(state)
        return store

    def _remove_leftovers(self, state: IndexState) -> None:
        """Remove drafts of killed writers, and files newer than the store, which was then replaced by a backup."""
        index_folder.remove_parts(self.location.glob(".*.tmp"))
        for path in self.location.glob(f"*-{state.uid[:8]}-*.index"):
            # a name ends in its generation: bm25-0123abcd-12.index
            if index_folder.is_part(path.name) and int(path.stem.rpartition("-")[2]) > state.generation:
                index_folder.remove_parts([path])

    def _choose_vector_leg(self, connected: ConnectedVectorStore | None) -> None:
        """Choose where vectors are searched: in files, or in a vector store, which a writer may add to an index."""
        has_store = self.state().vector_store is not None
        if connected is None and not has_store:
            return
        if not has_store and not self.writable:
            raise InvalidInputError(
                f"The vectors of the index in {self.location} are searched in its files. To have them in a vector "
                "store, open it for writing once: DocumentIndex.open(folder, mode='w', embeddings=..., "
                "vector_store=...)."
            )
        self.vectors = VectorStoreLeg(self.location, self.keyword, connected)
        if connected is not None and not has_store:
            self.set_meta(vector_store=connected.name)

    def _choose_other_legs(self, access: Access) -> None:
        """Set up the optional legs: those that a writer asks for, else those on record; remove others."""
        state, encoder = self.state(), access.encoder
        model = token_model(access, state.token_model)
        legs = state.legs if access.legs is None else access.legs
        facts: dict[str, Any] = {"legs": legs, "legs_since": state.generation}
        for leg, field, name in (
            ("sparse", "sparse_encoder", None if encoder is None else encoder_name(encoder)),
            ("tokens", "token_model", None if model is None else model.name),
        ):
            recorded = getattr(state, field)
            if name is not None and access.legs is None:
                self.check_leg(leg, state)  # an encoder is of no use to an index without the leg
            if name and recorded and name != recorded:
                raise IndexMismatchError(
                    f"The {leg} leg of the index in {self.location} is by {recorded!r}, but {name!r} was given. Give "
                    f"{recorded!r}, or drop the leg first: DocumentIndex.open(folder, mode='w', legs=[...]) without "
                    f"{leg!r}."
                )
            facts[field] = (name or recorded) if leg in legs else None
        self._optional = {
            "trigram": TrigramLeg(self.location),
            "sparse": SparseLeg(self.location, encoder),
            "tokens": TokenLeg(self.location, model, facts["token_model"]),
        }
        if legs != state.legs:
            self.set_meta(**facts)
        if self.writable:  # removes files that a kill has left, too
            for name in self._optional.keys() - legs:
                self._optional[name].remove(state)

    def legs(self, state: IndexState) -> list[Leg]:
        """Return keyword, vectors and the optional legs that the index has in a state."""
        return [self.keyword, self.vectors, *(self._optional[name] for name in state.legs)]

    def leg_view(self, name: str) -> PostingsView:
        """Return a view of a leg over postings, whose data are in memory: a search does not read the store."""
        with self.reading() as connection:
            state = self.state(connection)
            self.check_leg(name, state)
            return self._optional.get(name, self.keyword).view(connection, state)

    @contextmanager
    def translate_errors(self) -> Iterator[None]:
        """Turn SQLite's errors into those of the kit."""
        try:
            yield
        except sqlite3.Error as error:
            raise index_folder.explanation(error, self._file) from error

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Open one view of the committed state, or use the open one; other threads wait."""
        with self.translate_errors(), self._read_lock:
            reader = self._current_reader()
            is_nested = reader.in_transaction
            if not is_nested:
                reader.execute("BEGIN")
            try:
                yield reader
            finally:
                if not is_nested:
                    reader.execute("COMMIT")

    def _current_reader(self) -> sqlite3.Connection:
        """Return the connection to read by; make a new one after a fork, or if another index is in the folder now."""
        if self._reader is not None and not self._reader.in_transaction and self._is_outdated():
            self._reader.close()
            self._reader = None
        if self._reader is not None:
            return self._reader
        if self._closed:
            raise sqlite3.ProgrammingError("closed database")
        opened_before, reader = self._opened, self._connect()
        if self._opened == opened_before:  # the same file
            return reader
        # another file: its vectors must be by the same model, and the search indexes be loaded again
        try:
            embedding = read_state(reader, self.location).embedding
            check_model(self.location, embedding, self._embedding, writing=False)
        except RagKitError:
            self._reader, self._opened = None, opened_before  # so that the next read is refused, too
            reader.close()
            raise
        self._renew_legs()  # a backup may have other rows under the same generations
        return reader

    def _is_outdated(self) -> bool:
        """Tell whether another index is in the folder now, or a store opened as unchanging (frozen) has changed."""
        if self._frozen is not None:
            return index_folder.stamp(self._file) != self._frozen
        return not self.writable and _identity(self._file) != self._opened

    def leave_to_parent(self) -> None:
        """Leave connections and the writer's lock to the process that this one was forked from.

        SQLite forbids using a connection in two processes, or closing it in the second. This process connects again at
        its next read; it cannot write.
        """
        _inherited.append((self._reader, self._writer, self._writer_lock))
        self._reader = self._writer = self._writer_lock = self._open = None
        if self.writable:
            self.writable = False
            self.readonly_because = "was opened for writing in the process that this one was forked from"
        # new locks: another thread of the parent may have held these at the fork
        self.write_lock, self._read_lock = threading.RLock(), threading.RLock()
        self._renew_legs()

    def _renew_legs(self) -> None:
        for leg in (self.keyword, self.vectors, *self._optional.values()):
            leg.renew()

    @contextmanager
    def _transaction(self) -> Iterator[Connection]:
        """Begin a write transaction; commit after the block, or roll back if it raises an error."""
        assert self._writer is not None
        self._refuse_replaced()
        self._writer.execute("BEGIN IMMEDIATE")
        try:
            yield self._writer
            self._writer.execute("COMMIT")
        finally:
            if self._writer.in_transaction:
                self._writer.execute("ROLLBACK")

    def _refuse_replaced(self) -> None:
        """Refuse to write where another index is in the folder now: nobody could open what is written."""
        if _identity(self._file) != self._opened:
            raise DocumentIndexError(
                f"The index in {self.location} was replaced by another one while it was open for writing. Nothing is "
                "written any more; open it again."
            )

    def damage(self, connection: Connection) -> str:
        """Return what SQLite finds damaged; nothing for a sound file."""
        try:
            bad = [row[0] for row in connection.execute("PRAGMA integrity_check(5)") if row[0] != "ok"]
        except sqlite3.DatabaseError as error:
            bad = [str(error)]
        return f"{index_folder.STORE} is damaged: {'; '.join(bad)}" if bad else ""

    def mend(self, connection: Connection) -> str:
        """Rebuild SQLite's own indexes if something is damaged, and say so; raise an error if that does not help."""
        if not self.damage(connection):
            return ""
        connection.execute("REINDEX")
        if bad := self.damage(connection):
            raise sqlite3.DatabaseError(bad)
        return f"rebuilt the indexes within {index_folder.STORE}"

    def passes(self, connection: Connection, state: IndexState, where: Filter) -> Callable[[int], bool]:
        """Return a function that tells by a row's number whether the row passes a filter."""
        mask = self.keyword.mask(connection, state, where)
        return lambda n: bool(mask[n])

    @property
    def replies(self) -> Path:
        """Return the file of a model's replies in the folder."""
        return self.location / index_folder.REPLIES

    def flush(self) -> None:
        """Save the files of the search indexes; forget the removed rows that all of them have taken over."""
        self._refuse_replaced()
        with self.reading() as connection:
            state = self.state(connection)
            try:
                saved = min(leg.apply(connection, state) for leg in self.legs(state))
            except IndexFormatError:  # damage, of which its own text says what to do
                raise
            except (OSError, DocumentIndexError) as error:
                raise DocumentIndexError(
                    f"What the index in {self.location} derives from its store cannot be saved ({error}). Nothing is "
                    "lost, and searches find all that was written, slower. Make room, or mend what the error says; the "
                    "next ingest or rag-kit repair saves it."
                ) from error
        if saved > state.floor:
            with self.writing() as connection:
                connection.execute("DELETE FROM removed WHERE generation <= ?", (saved,))
                self.set_meta(floor=saved)

    def _remove_pictures(self) -> None:
        """Remove pictures that no row names any more; none if the store cannot be read."""
        if not self.writable or not (self.location / index_folder.PICTURES).is_dir():
            return
        # LIKE leaves out most rows before their JSON is parsed
        picture, where = "json_extract(metadata, '$.picture')", "metadata LIKE '%\"picture\"%'"
        queries = [f"SELECT {picture} FROM {table} WHERE {where}" for table in ("chunks", "parents")]
        with suppress(RagKitError), self.reading() as connection:
            self._refuse_replaced()
            named = {name for (name,) in connection.execute(" UNION ".join(queries))}
            index_folder.remove_pictures(self.location, named)

    def close(self) -> None:
        """Close the connections; the writer folds the log into the file, so that the folder can be copied."""
        with self.write_lock, self._read_lock:
            if self._closed:
                return
            self._remove_pictures()
            self._closed = True
            try:
                if self._reader is not None:
                    self._reader.close()
                if self._writer is not None:
                    self._writer.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            except sqlite3.Error as error:
                # nothing is lost: the log is folded in by the next writer
                logger.warning("%s keeps its log beside it (%s).", self._file, error)
            if self._writer is not None:
                self._writer.close()
            if self._writer_lock is not None:
                self._writer_lock.release()


def _identity(file: Path) -> tuple[int, int]:
    """Return device and inode of a file, which change if another file takes its place; IndexMissingError if lost."""
    try:
        status = file.stat()
    except FileNotFoundError:
        raise missing_index(file.parent) from None
    return status.st_dev, status.st_ino
