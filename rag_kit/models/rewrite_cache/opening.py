"""Opening the file of a cache: made for its owner alone, refused if it is not ours, begun anew if damaged."""

from __future__ import annotations

import logging
import os
import sqlite3
import stat
from pathlib import Path

from filelock import FileLock

from rag_kit.errors import InvalidInputError

_log = logging.getLogger(__name__)
_APPLICATION = 0x52574331  # "RWC1", at a fixed place in the head of the file
_VERSION = 1
_BUSY_SECONDS = 10
_HEAD = b"SQLite format 3\x00"


class _DamagedError(Exception):
    """The file is a cache of ours that cannot be used."""


def open_cache(path: Path) -> sqlite3.Connection:
    """Open or make the file of a cache.

    Raises:
        InvalidInputError: If it is something else than a cache, not one's own, or cannot be made.
    """
    _make(path)
    try:
        return _connect(path)
    except _DamagedError as error:
        reason = str(error)
    # Two processes may come to the same conclusion; only one may put the file aside.
    with FileLock(f"{path}.lock", timeout=_BUSY_SECONDS, mode=0o600):
        try:
            return _connect(path)
        except _DamagedError:
            _put_aside(path, reason)
            _make(path)
            return _connect(path)


def _make(path: Path) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o600))
        state = path.lstat()
        own = not hasattr(os, "getuid") or state.st_uid == os.getuid()
        if not stat.S_ISREG(state.st_mode) or not own:
            raise InvalidInputError(
                f"cache={path.name!r} is no regular file of yours; name a file in a folder of your own."
            )
    except OSError as error:
        raise InvalidInputError(
            f"cache={path.name!r} cannot be opened for writing: {error.strerror or error}. Name a file (no link) "
            "in a folder that can be written to."
        ) from error


def _connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=_BUSY_SECONDS, check_same_thread=False, isolation_level=None)
    try:
        # A crash of the machine may damage the file; then it is begun anew. Waiting for the disk is not worth it.
        connection.execute("PRAGMA synchronous=OFF")
        connection.execute("PRAGMA trusted_schema=OFF")
        _see_that_it_is_ours(connection, path)
        _for_the_owner_alone(path)  # not before: somebody else's file keeps its mode
        return connection
    except sqlite3.OperationalError as error:
        connection.close()
        # a locked file or a full disk has a code of its own
        general = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) == sqlite3.SQLITE_ERROR
        if general and _marked(path):
            raise _DamagedError(str(error)) from error
        raise InvalidInputError(f"cache={path.name!r} cannot be opened: {error}.") from error
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
        connection.close()
        if _marked(path):
            raise _DamagedError(str(error)) from error
        raise _foreign(path) from error
    except BaseException:
        connection.close()
        raise


def _see_that_it_is_ours(connection: sqlite3.Connection, path: Path) -> None:
    connection.execute("BEGIN IMMEDIATE")
    try:
        application = connection.execute("PRAGMA application_id").fetchone()[0]
        empty = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0
        if application == 0 and empty:
            connection.execute(f"PRAGMA application_id={_APPLICATION}")
            connection.execute(f"PRAGMA user_version={_VERSION}")
            connection.execute(
                "CREATE TABLE answers (key TEXT PRIMARY KEY, answer TEXT NOT NULL, used INTEGER NOT NULL) WITHOUT ROWID"
            )
            connection.execute("CREATE INDEX by_use ON answers (used)")
        elif application != _APPLICATION:
            raise _foreign(path)
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if version != _VERSION:
        raise _DamagedError(f"it has format {version}, this version of rag_kit writes {_VERSION}")
    check = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    columns = [row[1] for row in connection.execute("PRAGMA table_info(answers)")]
    odd = "typeof(used) <> 'integer' OR used NOT BETWEEN 0 AND 4611686018427387904"
    if (
        columns == ["key", "answer", "used"]
        and connection.execute(f"SELECT 1 FROM answers WHERE {odd} LIMIT 1").fetchone()
    ):
        raise _DamagedError("its entries are not in an order of use")
    if check != "ok" or columns != ["key", "answer", "used"]:
        raise _DamagedError(check if check != "ok" else "its table is another")


def _for_the_owner_alone(path: Path) -> None:
    if stat.S_IMODE(path.lstat().st_mode) != 0o600:
        path.chmod(0o600)


def _marked(path: Path) -> bool:
    """Whether the head of the file says that it is a cache of ours."""
    with path.open("rb") as file:
        head = file.read(72)
    return head.startswith(_HEAD) and head[68:72] == _APPLICATION.to_bytes(4, "big")


def _foreign(path: Path) -> InvalidInputError:
    return InvalidInputError(
        f"cache={path.name!r} is a file that no rewrite cache wrote, or its head is damaged; it is left alone. Name "
        "another file, or delete this one."
    )


def _put_aside(path: Path, reason: str) -> None:
    aside = path.with_name(f"{path.name}.damaged")
    _log.warning(
        "The cache %r is damaged (%s); it is put aside as %r and begun anew.", path.name, reason, aside.name
    )
    path.replace(aside)
    _for_the_owner_alone(aside)
    # A journal that is left behind would be played back into the new file.
    for suffix in ("-journal", "-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)
