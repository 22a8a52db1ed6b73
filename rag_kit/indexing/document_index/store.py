"""The store: one SQLite file that holds the truth; keyword and vector search are derived from it.

Every row carries the generation (a counter of write transactions) that last changed it, so that whatever is
derived can be brought up to date from the generation it stands at.
"""

from __future__ import annotations

import json
import logging
import os
import sqlite3
import threading
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rag_kit.errors import IndexError_, IndexFormatError, IndexLockedError, InvalidInputError
from rag_kit.indexing.document_index.meta import State, read_state

logger = logging.getLogger(__name__)

#: A table of vectors by row number.
VECTORS = "CREATE TABLE IF NOT EXISTS {} (n INTEGER PRIMARY KEY, vector BLOB NOT NULL, generation INTEGER NOT NULL);"
#: Columns of ``sources`` that folders of before lack.
COPIES = ("fingerprint BLOB NOT NULL DEFAULT x''", "original TEXT NOT NULL DEFAULT ''")
_SCHEMA = f"""
CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS sources (
    source TEXT PRIMARY KEY, size INTEGER NOT NULL, mtime_ns INTEGER NOT NULL, checked_ns INTEGER NOT NULL,
    sha256 TEXT NOT NULL, settings TEXT NOT NULL, {", ".join(COPIES)});
CREATE TABLE IF NOT EXISTS chunks (
    n INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, source TEXT NOT NULL, ordinal INTEGER NOT NULL,
    text TEXT NOT NULL, metadata TEXT NOT NULL, hash BLOB NOT NULL, generation INTEGER NOT NULL);
CREATE INDEX IF NOT EXISTS chunks_source ON chunks (source, ordinal);
CREATE INDEX IF NOT EXISTS chunks_hash ON chunks (hash);
CREATE INDEX IF NOT EXISTS chunks_generation ON chunks (generation);
{VECTORS.format("vectors")}
CREATE INDEX IF NOT EXISTS vectors_generation ON vectors (generation);
CREATE TABLE IF NOT EXISTS removed (id TEXT PRIMARY KEY, generation INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS gone (n INTEGER PRIMARY KEY, generation INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS parents (
    n INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, source TEXT NOT NULL, ordinal INTEGER NOT NULL,
    text TEXT NOT NULL, metadata TEXT NOT NULL, hash BLOB NOT NULL, size INTEGER NOT NULL);
CREATE INDEX IF NOT EXISTS parents_source ON parents (source, ordinal);
CREATE TABLE IF NOT EXISTS children (
    id TEXT PRIMARY KEY, parent INTEGER NOT NULL, ordinal INTEGER NOT NULL,
    start INTEGER, "end" INTEGER, path TEXT NOT NULL) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS children_parent ON children (parent, ordinal);
CREATE TABLE IF NOT EXISTS corrections (
    id TEXT PRIMARY KEY, source TEXT NOT NULL, ordinal INTEGER NOT NULL, text TEXT NOT NULL, metadata TEXT NOT NULL,
    corrected TEXT);
"""
_MANY = 500  # placeholders in one statement


class Store:
    """Connections to the SQLite file: one to read, and for the writer one to write.

    Reads see the last committed state, even while a write transaction is open.
    """

    def __init__(self, path: Path, *, writable: bool) -> None:
        self.path = path
        self._lock = threading.RLock()
        self.write_lock = threading.RLock()
        self._writer: sqlite3.Connection | None = None
        self._depth = 0
        self._closed = False
        _refuse_links(path)
        with self.explained():
            if writable:
                if not path.exists():
                    os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600))
                self._writer = self._connect(f"{path.resolve().as_uri()}?mode=rw")
                self._writer.execute("PRAGMA journal_mode=WAL")
                self._writer.execute("PRAGMA synchronous=FULL")
                self._writer.executescript(_SCHEMA)
                if not knows_copies(self._writer):
                    for column in COPIES:
                        self._writer.execute(f"ALTER TABLE sources ADD COLUMN {column}")
                self._first_time()
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

    def _first_time(self) -> None:
        assert self._writer is not None
        for key, value in {
            "uid": uuid.uuid4().hex,
            "generation": 0,
            "floor": 0,
            "embedding": None,
            "dimension": None,
            "settings": {},
        }.items():
            self._writer.execute("INSERT OR IGNORE INTO meta VALUES (?, ?)", (key, json.dumps(value)))

    @contextmanager
    def explained(self) -> Iterator[None]:
        """Turn SQLite's errors into ours."""
        try:
            yield
        except sqlite3.Error as error:
            raise self._explain(error) from error

    def _explain(self, error: sqlite3.Error) -> IndexError_ | InvalidInputError:
        folder, text = self.path.parent, str(error)
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
        if self._closed or "closed database" in text:
            return IndexError_(f"The index in {folder} was closed. Open it again.")
        if code == sqlite3.SQLITE_FULL:
            return IndexError_(
                f"No room is left to write to {self.path} ({text}). Nothing of this write was changed, and what was "
                "written before stays: make room, then run the same again."
            )
        if code == sqlite3.SQLITE_IOERR:
            return IndexError_(
                f"{self.path} cannot be read or written ({text}). Nothing of this write was changed, and what was "
                "written before stays: check the disk, then run the same again."
            )
        if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            return IndexLockedError(f"{self.path} is locked by another program ({text}). Try again later.")
        if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM):
            return IndexError_(f"{self.path} cannot be opened or written ({text}). Check its permissions.")
        if code in (sqlite3.SQLITE_TOOBIG, sqlite3.SQLITE_MISMATCH):
            return InvalidInputError(f"A document is too large to be stored ({text}). Split it.")
        return IndexFormatError(
            f"{self.path} is damaged or unreadable ({text}). It holds the truth of the index, so nothing can "
            "rebuild it: put a backup in its place, or ingest again into a new folder."
        )

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
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

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """One write transaction; nested ones join the outermost. Rolled back when anything is raised.

        Raises:
            IndexError_: The index was opened for reading, or SQLite cannot write.
        """
        if self._writer is None:
            raise IndexError_(
                f"The index in {self.path.parent} was opened for reading. "
                "Open it with DocumentIndex.open(folder, mode='w')."
            )
        with self.write_lock, self.explained():
            if self._depth == 0:
                self._writer.execute("BEGIN IMMEDIATE")
            self._depth += 1
            try:
                yield self._writer
            except BaseException:
                self._depth -= 1
                if self._depth == 0 and self._writer.in_transaction:
                    self._writer.execute("ROLLBACK")
                raise
            self._depth -= 1
            if self._depth == 0:
                try:
                    self._writer.execute("COMMIT")
                except sqlite3.Error:
                    if self._writer.in_transaction:
                        self._writer.execute("ROLLBACK")
                    raise

    @property
    def in_transaction(self) -> bool:
        """Whether a write transaction is open."""
        return self._depth > 0

    @contextmanager
    def looking(self) -> Iterator[sqlite3.Connection]:
        """As ``reading``, but inside an open write transaction with what it has written so far."""
        with self.write_lock:
            if self._depth and self._writer is not None:
                yield self._writer
                return
            with self.reading() as connection:
                yield connection

    def state(self, connection: sqlite3.Connection | None = None) -> State:
        """The small facts, by default as last committed."""
        if connection is None:
            with self.reading() as reader:
                return self.state(reader)
        return read_state(connection, self.path)

    def set_meta(self, **values: Any) -> None:
        """Set small facts, in the open write transaction or one of its own."""
        with self.writing() as connection:
            connection.executemany(
                "INSERT OR REPLACE INTO meta VALUES (?, ?)",
                [(key, json.dumps(value)) for key, value in values.items()],
            )

    def close(self) -> None:
        """Close the connections; the writer folds the log into the file, so that the folder can be copied."""
        with self.write_lock, self._lock:
            if self._closed:
                return
            self._closed = True
            self._close(self._reader)
            if self._writer is not None:
                try:
                    self._writer.execute("PRAGMA wal_checkpoint(TRUNCATE)")
                except sqlite3.Error as error:
                    # nothing is lost: the log is folded in by the next writer
                    logger.warning("%s keeps its log beside it (%s).", self.path, error)
                self._close(self._writer)

    def _close(self, connection: sqlite3.Connection) -> None:
        try:
            connection.close()
        except sqlite3.Error as error:
            logger.warning("%s was not closed properly (%s).", self.path, error)


def _refuse_links(path: Path) -> None:
    """A store is never looked for elsewhere: SQLite would follow a link, and write there."""
    for name in (path.name, *(f"{path.name}-{part}" for part in ("wal", "shm", "journal"))):
        if path.with_name(name).is_symlink():
            raise IndexFormatError(
                f"{path.with_name(name)} is a link, which is not followed. Put the file itself in its place."
            )


def knows_copies(connection: sqlite3.Connection) -> bool:
    """Whether the store can say which files are copies; one of before cannot until it is opened for writing."""
    return any(column[1] == "original" for column in connection.execute("PRAGMA table_info(sources)"))


def in_groups(values: Iterable[Any], size: int = _MANY) -> Iterator[list[Any]]:
    """Lists of at most ``size`` values."""
    group: list[Any] = []
    for value in values:
        group.append(value)
        if len(group) >= size:
            yield group
            group = []
    if group:
        yield group


def marks(values: Sequence[Any]) -> str:
    """Placeholders for a list of values."""
    return ",".join("?" * len(values))
