"""The SQLite file of an index in a folder: tables, connections, and what its errors mean."""

from __future__ import annotations

import json
import os
import sqlite3
import uuid
from pathlib import Path

from rag_kit.errors import DocumentIndexError, IndexFormatError, InvalidInputError, LockedError, RagKitError
from rag_kit.indexing.document_index.state import missing_index

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
CREATE TABLE IF NOT EXISTS removed (id TEXT NOT NULL, n INTEGER NOT NULL, generation INTEGER NOT NULL);
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


def connect_writer(path: Path) -> sqlite3.Connection:
    """A connection that writes; makes the file and its tables where they are lacking."""
    if not path.exists():
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600))
    connection = _connect(path, "mode=rw")
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    connection.executescript(_SCHEMA)
    connection.execute("INSERT OR IGNORE INTO meta VALUES ('uid', ?)", (json.dumps(uuid.uuid4().hex),))
    return connection


def connect_reader(path: Path) -> sqlite3.Connection:
    """A connection that reads."""
    try:
        connection = _connect(path, "mode=ro")
        connection.execute("SELECT count(*) FROM meta").fetchone()
    except sqlite3.OperationalError:
        # a copy on a read-only medium: SQLite cannot make its shared-memory file there
        if os.access(path.parent, os.W_OK) or path.with_name(path.name + "-wal").exists():
            raise
        connection = _connect(path, "mode=ro&immutable=1")
        connection.execute("SELECT count(*) FROM meta").fetchone()
    return connection


def _connect(path: Path, mode: str) -> sqlite3.Connection:
    uri = f"{path.resolve().as_uri()}?{mode}"
    connection = sqlite3.connect(uri, uri=True, timeout=30, check_same_thread=False, isolation_level=None)
    # 4 MB of cache is too little for scans over vectors
    connection.execute("PRAGMA cache_size=-32000")
    return connection


def explanation(error: sqlite3.Error, path: Path) -> RagKitError:
    """The error to raise in its place, with what to do."""
    text, full_code = str(error), getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
    code = full_code & 0xFF
    if "closed database" in text:
        return DocumentIndexError(f"The index in {path.parent} was closed. Open it again.")
    # a hot journal, which a reader cannot roll back, is of before the log: of a kill while the index was created
    if full_code == sqlite3.SQLITE_READONLY_ROLLBACK or "no such table: meta" in text:
        return missing_index(path.parent)
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return LockedError(f"{path} is locked by another program ({text}). Try again later.")
    if code in (sqlite3.SQLITE_TOOBIG, sqlite3.SQLITE_MISMATCH):
        return InvalidInputError(f"A document is too large to be stored ({text}). Split it.")
    if code in _ROOM:
        return DocumentIndexError(
            f"{path} cannot be read or written ({text}): make room, or check the disk and its permissions, "
            "then run the same again. Nothing of this write was changed, and what was written before stays."
        )
    return IndexFormatError(
        f"{path} is damaged or unreadable ({text}). It holds the truth of the index, so nothing can "
        "rebuild it: put a backup in its place, or ingest again into a new folder."
    )
