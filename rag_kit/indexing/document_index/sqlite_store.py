"""The store of an index in a folder: one SQLite file."""

from __future__ import annotations

import json
import logging
import os
import sqlite3
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rag_kit.errors import (
    DocumentIndexError,
    IndexFormatError,
    IndexMissingError,
    InvalidInputError,
    LockedError,
    RagKitError,
)
from rag_kit.indexing.document_index.sql import Connection
from rag_kit.indexing.document_index.store import Store

logger = logging.getLogger(__name__)

#: A table of chunks, or of documents with children; see ``rows.Row``.
_ROWS = """CREATE TABLE IF NOT EXISTS {} (
    n INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, source TEXT NOT NULL, ordinal INTEGER NOT NULL,
    text TEXT NOT NULL, metadata TEXT NOT NULL, hash BLOB NOT NULL, parent TEXT NOT NULL, place TEXT NOT NULL,
    generation INTEGER NOT NULL);"""
#: A table of vectors by row number.
_VECTORS = "CREATE TABLE IF NOT EXISTS {} (n INTEGER PRIMARY KEY, vector BLOB NOT NULL, generation INTEGER NOT NULL);"
_SCHEMA = f"""
CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS sources (
    source TEXT PRIMARY KEY, size INTEGER NOT NULL, mtime_ns INTEGER NOT NULL, checked_ns INTEGER NOT NULL,
    sha256 TEXT NOT NULL, settings TEXT NOT NULL, fingerprint BLOB NOT NULL, original TEXT NOT NULL);
{_ROWS.format("chunks")}
{_ROWS.format("parents")}
CREATE INDEX IF NOT EXISTS chunks_source ON chunks (source, ordinal);
CREATE INDEX IF NOT EXISTS parents_source ON parents (source, ordinal);
CREATE INDEX IF NOT EXISTS chunks_parent ON chunks (parent, ordinal) WHERE parent != '';
CREATE INDEX IF NOT EXISTS chunks_hash ON chunks (hash);
CREATE INDEX IF NOT EXISTS chunks_generation ON chunks (generation);
{_VECTORS.format("vectors")}
{_VECTORS.format("next_vectors")}
CREATE INDEX IF NOT EXISTS vectors_generation ON vectors (generation);
CREATE TABLE IF NOT EXISTS removed (id TEXT PRIMARY KEY, generation INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS gone (n INTEGER PRIMARY KEY, generation INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS corrections (
    id TEXT PRIMARY KEY, source TEXT NOT NULL, ordinal INTEGER NOT NULL, text TEXT NOT NULL, metadata TEXT NOT NULL,
    corrected TEXT);
"""

_ROOM = frozenset(
    {
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_READONLY,
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_PERM,
    }
)


class SqliteStore(Store):
    """Connections to the SQLite file: one to read, and for the writer one to write.

    Reads see the last committed state, even while a write transaction is open; other threads wait.
    """

    path: Path

    def __init__(self, path: Path, *, writable: bool) -> None:
        super().__init__(path)
        self._lock = threading.RLock()
        self._writer: sqlite3.Connection | None = None
        self._closed = False
        with self.explained():
            if writable:
                if not path.exists():
                    os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600))
                self._writer = self._connect(f"{path.resolve().as_uri()}?mode=rw")
                self._writer.execute("PRAGMA journal_mode=WAL")
                self._writer.execute("PRAGMA synchronous=FULL")
                self._writer.executescript(_SCHEMA)
                uid = json.dumps(uuid.uuid4().hex)
                self._writer.execute("INSERT OR IGNORE INTO meta VALUES ('uid', ?)", (uid,))
            self._reader = self._connect_reader()

    def _connect(self, uri: str) -> sqlite3.Connection:
        connection = sqlite3.connect(uri, uri=True, timeout=30, check_same_thread=False, isolation_level=None)
        # 4 MB of cache is too little for scans over vectors
        connection.execute("PRAGMA cache_size=-32000")
        return connection

    def _connect_reader(self) -> sqlite3.Connection:
        uri = self.path.resolve().as_uri()
        try:
            connection = self._connect(f"{uri}?mode=ro")
            connection.execute("SELECT count(*) FROM meta").fetchone()
        except sqlite3.OperationalError:
            # a copy on a read-only medium: SQLite cannot make its shared-memory file there
            if os.access(self.path.parent, os.W_OK) or self.path.with_name(self.path.name + "-wal").exists():
                raise
            connection = self._connect(f"{uri}?mode=ro&immutable=1")
            connection.execute("SELECT count(*) FROM meta").fetchone()
        return connection

    @contextmanager
    def explained(self) -> Iterator[None]:
        """Turn SQLite's errors into ours."""
        try:
            yield
        except sqlite3.Error as error:
            raise self._explain(error) from error

    def _explain(self, error: sqlite3.Error) -> RagKitError:
        text = str(error)
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
        if self._closed or "closed database" in text:
            return DocumentIndexError(f"The index in {self.path.parent} was closed. Open it again.")
        # a hot journal, which a reader cannot roll back, is of before the log: of a kill while the index was created
        begun = getattr(error, "sqlite_errorcode", 0) == sqlite3.SQLITE_READONLY_ROLLBACK
        if begun or "no such table: meta" in text:
            return missing(self.path.parent)
        if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            return LockedError(f"{self.path} is locked by another program ({text}). Try again later.")
        if code in (sqlite3.SQLITE_TOOBIG, sqlite3.SQLITE_MISMATCH):
            return InvalidInputError(f"A document is too large to be stored ({text}). Split it.")
        if code in _ROOM:
            return DocumentIndexError(
                f"{self.path} cannot be read or written ({text}): make room, or check the disk and its permissions, "
                "then run the same again. Nothing of this write was changed, and what was written before stays."
            )
        return IndexFormatError(
            f"{self.path} is damaged or unreadable ({text}). It holds the truth of the index, so nothing can "
            "rebuild it: put a backup in its place, or ingest again into a new folder."
        )

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """One consistent view of the committed state; other threads wait."""
        with self.explained(), self._lock:
            nested = self._reader.in_transaction
            if not nested:
                self._reader.execute("BEGIN")
            try:
                yield self._reader
            finally:
                if not nested:
                    self._reader.execute("COMMIT")

    def _begin(self) -> Connection:
        if self._writer is None:
            raise DocumentIndexError(
                f"The index in {self.path.parent} was opened for reading. "
                "Open it with DocumentIndex.open(folder, mode='w')."
            )
        self._writer.execute("BEGIN IMMEDIATE")
        return self._writer

    def _commit(self, connection: Connection) -> None:
        try:
            connection.execute("COMMIT")
        except sqlite3.Error:
            self._rollback(connection)
            raise

    def _rollback(self, connection: Connection) -> None:
        assert self._writer is not None
        if self._writer.in_transaction:
            connection.execute("ROLLBACK")

    def damage(self, connection: Connection) -> str:
        """See `Store`."""
        try:
            bad = [row[0] for row in connection.execute("PRAGMA quick_check(5)") if row[0] != "ok"]
        except sqlite3.DatabaseError as error:
            bad = [str(error)]
        return f"{self.path.name} is damaged: {'; '.join(bad)}" if bad else ""

    def close(self) -> None:
        """Close the connections; the writer folds the log into the file, so that the folder can be copied."""
        with self.write_lock, self._lock:
            if self._closed:
                return
            self._closed = True
            try:
                self._reader.close()
                if self._writer is not None:
                    self._writer.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            except sqlite3.Error as error:
                # nothing is lost: the log is folded in by the next writer
                logger.warning("%s keeps its log beside it (%s).", self.path, error)
            if self._writer is not None:
                self._writer.close()


def missing(folder: Path) -> IndexMissingError:
    """The error for a folder without an index."""
    return IndexMissingError(f"There is no index in {folder}. Make one: rag-kit ingest PATH --index {folder}")
