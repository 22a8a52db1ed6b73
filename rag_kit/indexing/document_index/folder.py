"""The folder of an index: names of the files, writer lock, and the SQLite file that holds the truth."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import sqlite3
import uuid
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rag_kit.documents.files import replace_file
from rag_kit.errors import DocumentIndexError, IndexFormatError, InvalidInputError, LockedError, RagKitError
from rag_kit.indexing.document_index.state import locked_index, missing_index

if TYPE_CHECKING:
    from filelock import FileLock

STORE = "store.sqlite3"
LOCK = "writer.lock"
PICTURES = "pictures"  # of documents, which passages name in their metadata
REPLIES = "replies.sqlite"  # of the model that made representations; they were paid for, and stay
_PART = re.compile(
    r"store\.sqlite3(-wal|-shm|-journal)?|writer\.(lock|pid)|replies\.sqlite(-journal|\.lock|\.damaged)?"
    r"|(bm25|trigram)-[0-9a-f]{8}-[0-9]+\.index|(sparse|tokens|vectors|store)-[0-9a-f]{8}-[0-9a-f]{8}-[0-9]+\.index"
    r"|\.(bm25|trigram|sparse|tokens|vectors)[^/]*\.tmp|pictures"
)
_PICTURE = re.compile(r"[0-9a-f]{32}\.(png|jpg)")
_DRAFT = re.compile(rf"\.(picture-[^/]*|{_PICTURE.pattern}\.[0-9a-f]+)\.tmp")  # of a picture


def is_part(name: str) -> bool:
    """Tell whether a file of this name in an index folder is the index's own.

    Example:
        >>> [is_part(name) for name in ("store.sqlite3-wal", "bm25-0123abcd-12.index", "letter.txt", "bm25-old")]
        [True, True, False, False]
    """
    return _PART.fullmatch(name) is not None


def _is_own(path: Path) -> bool:
    """Tell whether a path in the folder of an index is the index's own; a folder of pictures has nothing else in it."""
    if path.name != PICTURES:
        return is_part(path.name)
    if path.is_symlink() or not path.is_dir():
        return False
    return all(_DRAFT.fullmatch(file.name) or _PICTURE.fullmatch(file.name) for file in path.iterdir())


def remove_parts(paths: Iterable[Path], keep: Collection[str] = ()) -> None:
    """Remove those of some paths that are files of an index, except those with a name in ``keep``."""
    for path in paths:
        if path.name not in keep and is_part(path.name):
            with contextlib.suppress(OSError):
                path.unlink()


def picture_name(data: bytes) -> str:
    """Return the name of a picture below the folder of its index, by its hash."""
    suffix = "png" if data.startswith(b"\x89PNG") else "jpg"
    return f"{PICTURES}/{hashlib.sha256(data).hexdigest()[:32]}.{suffix}"


def is_picture(name: Any) -> bool:
    """Tell whether a value is a name that `picture_name` gives; a user's reader may have a field of the same name."""
    folder, _, file = name.rpartition("/") if isinstance(name, str) else ("", "", "")
    return folder == PICTURES and _PICTURE.fullmatch(file) is not None


def keep_picture(folder: Path, data: bytes) -> str:
    """Write a picture beside an index, whole or not at all, readable by its owner only; return its name."""
    path = folder / (name := picture_name(data))
    if not path.exists():
        if path.parent.is_symlink():
            raise InvalidInputError(f"{path.parent} is a link; an index keeps pictures in its own folder.")
        path.parent.mkdir(mode=0o700, exist_ok=True)
        replace_file(path, lambda file: file.write(data), mode=0o600)
    return name


def remove_pictures(folder: Path, keep: Collection[str]) -> None:
    """Remove the pictures beside an index whose names are not in ``keep``, and drafts that a killed write left."""
    if (folder / PICTURES).is_symlink():
        return
    for path in (folder / PICTURES).glob("*"):
        is_unused = _PICTURE.fullmatch(path.name) and f"{PICTURES}/{path.name}" not in keep
        if is_unused or _DRAFT.fullmatch(path.name):
            with contextlib.suppress(OSError):
                path.unlink()


def repair_advice(folder: Path) -> str:
    """Say what to do about damage."""
    return f"Try: rag-kit repair --index {folder}; or put a backup in its place."


def prepare_new(folder: Path) -> None:
    """Make the folder for a new index, readable by its owner only."""
    if folder.exists() and not folder.is_dir():
        raise InvalidInputError(f"{folder} is a file; an index needs a folder. Name a new or empty one.")
    paths = folder.iterdir() if folder.is_dir() else ()
    if other_files := sorted(path.name for path in paths if not _is_own(path)):
        raise InvalidInputError(
            f"{folder} is not an index and holds other files ({', '.join(other_files[:3])}"
            f"{', ...' if len(other_files) > 3 else ''}). Name a new or empty folder."
        )
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)


def refuse_links(folder: Path) -> None:
    """Refuse an index whose store or lock is a link: what it points to would be written."""
    for name in (LOCK, STORE, *(f"{STORE}-{log}" for log in ("wal", "shm", "journal"))):
        if (folder / name).is_symlink():
            raise InvalidInputError(f"{folder / name} is a link, which is not followed. Copy the file.")


def lock_for_writing(folder: Path, wait: float) -> FileLock:
    """Take the lock of the one writer of a folder, which the system drops when the process dies."""
    from filelock import FileLock, Timeout

    # not thread-local: an index may be closed by another thread than the one that opened it
    lock = FileLock(folder / LOCK, mode=0o600, thread_local=False)
    try:
        lock.acquire(timeout=max(0.0, wait))
    except Timeout:
        raise locked_index(folder, wait) from None
    except OSError as error:
        raise InvalidInputError(f"Nothing can be written to {folder} ({error}).") from error
    return lock


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

_DISK_ERRORS = (
    *(sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY),
    *(sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM),
)


def connect_writer(path: Path) -> sqlite3.Connection:
    """Return a connection that writes; make the file and its tables if they are lacking."""
    if not path.exists():  # made here, so that nobody but its owner can read it
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600))
    connection = _connect(path, "mode=rw")
    connection.execute("PRAGMA journal_mode=WAL")  # so that others can read while this writes
    connection.execute("PRAGMA synchronous=FULL")  # what was committed survives a power failure
    connection.executescript(_SCHEMA)
    connection.execute("INSERT OR IGNORE INTO meta VALUES ('uid', ?)", (json.dumps(uuid.uuid4().hex),))
    return connection


def connect_reader(path: Path) -> tuple[sqlite3.Connection, tuple[int, int] | None]:
    """Return a connection that reads, and the file's `stamp` if it will not see later writes; else ``None``."""
    try:
        connection = _connect(path, "mode=ro")
        connection.execute("SELECT count(*) FROM meta").fetchone()  # only now is the file read
        return connection, None
    except sqlite3.OperationalError as error:
        # On a full or read-only disk SQLite cannot make its shared-memory file, which it needs for a store with a log.
        # A store that was closed has none, and is opened as `immutable`: SQLite then takes no notice of writers.
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF  # without the detailed code
        stamp_before = stamp(path) if code in _DISK_ERRORS else None
        if stamp_before is None or path.with_name(f"{path.name}-journal").exists():
            raise
        connection = _connect(path, "mode=ro&immutable=1")
        connection.execute("SELECT count(*) FROM meta").fetchone()  # raises for a file that cannot be read
        return connection, stamp_before


def stamp(path: Path) -> tuple[int, int] | None:
    """Return time and size of a store's file, or ``None`` if its write-ahead log holds later writes."""
    log = path.with_name(f"{path.name}-wal")
    if log.exists() and log.stat().st_size:
        return None
    status = path.stat()
    return status.st_mtime_ns, status.st_size


def _connect(path: Path, mode: str) -> sqlite3.Connection:
    uri = f"{path.resolve().as_uri()}?{mode}"
    # without an isolation level, a transaction begins with a BEGIN of the kit's
    connection = sqlite3.connect(uri, uri=True, timeout=30, check_same_thread=False, isolation_level=None)
    connection.execute("PRAGMA cache_size=-32000")  # in KB; the default is too little for scans over vectors
    return connection


def explanation(error: sqlite3.Error, path: Path) -> RagKitError:
    """Return the kit's error to raise in place of one of SQLite's, with what to do."""
    text, full_code = str(error), getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
    code = full_code & 0xFF  # the general code, without the details in the higher bytes
    if "closed database" in text:
        return DocumentIndexError(f"The index in {path.parent} was closed. Open it again.")
    # a rollback journal, used only until there is a write-ahead log, is left by a kill while the index was created
    if full_code == sqlite3.SQLITE_READONLY_ROLLBACK or "no such table: meta" in text:
        return missing_index(path.parent)
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return LockedError(f"{path} is locked by another program ({text}). Try again later.")
    if "no such column" in text or "no such table" in text or "has no column named" in text:
        return IndexFormatError(
            f"{path} has the tables of another format ({text}). Take the rag_kit that wrote it, or ingest again into "
            "another folder."
        )
    if code in (sqlite3.SQLITE_TOOBIG, sqlite3.SQLITE_MISMATCH):
        return InvalidInputError(f"A document is too large to be stored ({text}). Split it.")
    if code in _DISK_ERRORS:
        return DocumentIndexError(
            f"{path} cannot be read or written ({text}): make room, or check the disk and its permissions, "
            "then run the same again. Nothing of this write was changed, and what was written before stays."
        )
    return IndexFormatError(
        f"{path} is damaged or unreadable ({text}). It holds the truth of the index, so nothing can "
        "rebuild it: put a backup in its place, or ingest again into a new folder."
    )
