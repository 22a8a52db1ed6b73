"""The cache of the kit: JSON values by key in one SQLite file, the least recently used dropped first."""

from __future__ import annotations

import json
import logging
import os
import sqlite3
import stat
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from filelock import FileLock

from rag_kit.errors import ConfigurationError, InvalidInputError

_MAX_CHARS = 200_000
_APPLICATION = 0x52574331  # "RWC1", at a fixed place in the head of the file
_VERSION = 1
_BUSY_SECONDS = 10
_log = logging.getLogger(__name__)


class JsonCache:
    """JSON values in one SQLite file; nothing in it is ever executed.

    What models wrote, and vectors, are kept under hashes of prompt, model, endpoint and values, so the file holds
    neither keys to an endpoint nor questions, but the values stand in it as they are: it is readable for its owner
    alone (mode 0600). Threads, asyncio and several processes may share it. Hand it, or its path, to a retriever as
    ``cache=``.

    Args:
        path: The file; made if it is not there. A file that is something else is refused and left alone. A
            cache that is damaged, or of another version, is put aside under ``.damaged`` and begun anew, with a
            warning.
        max_entries: Most values; beyond that the least recently used go.

    Raises:
        InvalidInputError: If the file is something else, belongs to another user or cannot be made, or if
            ``max_entries`` is not allowed.

    Example:
        >>> import tempfile
        >>> folder = tempfile.TemporaryDirectory()
        >>> cache = JsonCache(Path(folder.name) / "replies.sqlite", max_entries=2)
        >>> cache.put({"a": {"query": "x"}, "b": ["y"], "c": "z"})
        >>> cache.get(["a", "b", "c"]), len(cache)
        ({'b': ['y'], 'c': 'z'}, 2)
        >>> cache.close(); folder.cleanup()
    """

    def __init__(self, path: str | os.PathLike[str], *, max_entries: int = 10_000) -> None:
        if type(max_entries) is not int or max_entries < 1:
            raise InvalidInputError(f"max_entries={max_entries!r} was given; it must be a whole number >= 1.")
        if not isinstance(path, (str, os.PathLike)):
            raise InvalidInputError(f"path is {type(path).__name__}; give the path of a file as str or Path.")
        if os.fspath(path) in ("", ":memory:") or str(path).startswith("file:"):
            raise InvalidInputError(
                f"path={str(path)!r} was given; a cache is a file that outlives the process, so give a path such as "
                "'replies.sqlite'. Leave cache out (None) for none."
            )
        self.path = Path(path)
        self.max_entries = max_entries
        self._lock = threading.Lock()
        self._process = os.getpid()
        self._connection: sqlite3.Connection | None = _open(self.path)

    def get(self, keys: Sequence[str]) -> dict[str, Any]:
        """The values there are, by key; they count as used now.

        Raises:
            ConfigurationError: The file cannot be read.
        """
        wanted = list(dict.fromkeys(keys))
        with self._connected("read") as connection:
            found = connection.execute(
                "SELECT key, answer, used FROM answers WHERE key IN (SELECT value FROM json_each(?))",
                [json.dumps(wanted)],
            ).fetchall()
            newest = _newest(connection) if found else 0
            # The newest eighth is not marked again: reading what is in use needs no writing.
            old = [key for key, _, used in found if used <= newest - self.max_entries // 8 and used < newest]
            if old:
                with _transaction(connection):
                    newest = _newest(connection)
                    connection.executemany(
                        "UPDATE answers SET used = ? WHERE key = ?",
                        [(newest + place, key) for place, key in enumerate(old, start=1)],
                    )
        values = {}
        for key, text, _ in found:
            with suppress(
                ValueError, TypeError, RecursionError
            ):  # not written by this class: as if it were not there
                values[key] = json.loads(text)
        return {key: values[key] for key in wanted if key in values}

    def put(self, values: Mapping[str, Any]) -> None:
        """Keep values, which must be plain JSON; those over 200,000 characters are left out.

        Raises:
            ConfigurationError: The file cannot be written.
        """
        texts = {key: json.dumps(value) for key, value in values.items()}
        rows = [(key, text) for key, text in texts.items() if len(text) <= _MAX_CHARS]
        with self._connected("written") as connection, _transaction(connection):
            newest = _newest(connection)
            connection.executemany(
                "INSERT OR REPLACE INTO answers (key, answer, used) VALUES (?, ?, ?)",
                [(key, text, newest + place) for place, (key, text) in enumerate(rows, start=1)],
            )
            connection.execute(
                "DELETE FROM answers WHERE key IN (SELECT key FROM answers ORDER BY used DESC LIMIT -1 OFFSET ?)",
                (self.max_entries,),
            )

    def clear(self) -> None:
        """Forget all values.

        Raises:
            ConfigurationError: The file cannot be written.
        """
        with self._connected("written") as connection:
            connection.execute("DELETE FROM answers")

    def close(self) -> None:
        """Close the file; a later call opens it again."""
        with self._lock:
            if self._connection is not None and self._process == os.getpid():
                self._connection.close()
            self._connection = None

    def __len__(self) -> int:
        with self._connected("read") as connection:
            return int(connection.execute("SELECT count(*) FROM answers").fetchone()[0])

    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        return f"JsonCache({self.path.name!r}, max_entries={self.max_entries})"

    def __deepcopy__(self, memo: dict[int, Any]) -> JsonCache:
        return self

    def __reduce__(self) -> Any:
        return _reopened, (str(self.path), self.max_entries)

    @contextmanager
    def _connected(self, what: str) -> Iterator[sqlite3.Connection]:
        with self._lock:
            if self._connection is None or self._process != os.getpid():
                # A connection must not be carried over a fork.
                self._connection, self._process = _open(self.path), os.getpid()
            try:
                yield self._connection
            except (sqlite3.Error, UnicodeDecodeError) as error:
                raise ConfigurationError(
                    f"The cache {self.path.name!r} could not be {what}: {error}. If it is damaged, the next start "
                    "begins it anew."
                ) from error


def _reopened(path: str, max_entries: int) -> JsonCache:
    return JsonCache(path, max_entries=max_entries)


def _newest(connection: sqlite3.Connection) -> int:
    return int(connection.execute("SELECT coalesce(max(used), 0) FROM answers").fetchone()[0])


@contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[None]:
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _open(path: Path) -> sqlite3.Connection:
    """Open or make the file of a cache; a damaged one is put aside, by one process alone."""
    _make(path)
    with FileLock(f"{path}.lock", timeout=_BUSY_SECONDS, mode=0o600):
        try:
            return _connect(path)
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
            # a locked file or a full disk has a code of its own
            code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
            if isinstance(error, sqlite3.OperationalError) and code != sqlite3.SQLITE_ERROR:
                raise InvalidInputError(f"cache={path.name!r} cannot be opened: {error}.") from error
            if not _has_mark(path):
                raise InvalidInputError(
                    f"cache={path.name!r} is a file that no cache of rag_kit wrote, or its head is damaged; it is left "
                    "alone. Name another file, or delete this one."
                ) from error
            _put_aside(path, str(error))
        _make(path)
        return _connect(path)


def _make(path: Path) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o600))
        state = path.lstat()
    except OSError as error:
        raise InvalidInputError(
            f"cache={path.name!r} cannot be opened for writing: {error.strerror or error}. Name a file (no link) "
            "in a folder that can be written to."
        ) from error
    if not stat.S_ISREG(state.st_mode) or (hasattr(os, "getuid") and state.st_uid != os.getuid()):
        raise InvalidInputError(
            f"cache={path.name!r} is no regular file of yours; name a file in a folder of your own."
        )


def _connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=_BUSY_SECONDS, check_same_thread=False, isolation_level=None)
    try:
        # A crash of the machine may damage the file; then it is begun anew. Waiting for the disk is not worth it.
        connection.execute("PRAGMA synchronous=OFF")
        connection.execute("PRAGMA trusted_schema=OFF")
        _check_tables(connection)
    except BaseException:
        connection.close()
        raise
    path.chmod(0o600)  # not before: somebody else's file keeps its mode
    return connection


def _check_tables(connection: sqlite3.Connection) -> None:
    """Make the table in an empty file; raise a DatabaseError where the file is damaged or something else."""
    with _transaction(connection):
        application = connection.execute("PRAGMA application_id").fetchone()[0]
        if application == 0 and not connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            connection.execute(f"PRAGMA application_id={_APPLICATION}")
            connection.execute(f"PRAGMA user_version={_VERSION}")
            connection.execute(
                "CREATE TABLE answers (key TEXT PRIMARY KEY, answer TEXT NOT NULL, used INTEGER NOT NULL) WITHOUT ROWID"
            )
            connection.execute("CREATE INDEX by_use ON answers (used)")
        elif application != _APPLICATION:
            raise sqlite3.DatabaseError("it is another program's")
    if (version := connection.execute("PRAGMA user_version").fetchone()[0]) != _VERSION:
        raise sqlite3.DatabaseError(f"it has format {version}, this version of rag_kit writes {_VERSION}")
    connection.execute("SELECT key, answer, used FROM answers LIMIT 1")
    if (check := connection.execute("PRAGMA quick_check(1)").fetchone()[0]) != "ok":
        raise sqlite3.DatabaseError(check)


def _has_mark(path: Path) -> bool:
    """Whether the head of the file says that it is a cache of ours."""
    with path.open("rb") as file:
        head = file.read(72)
    return head.startswith(b"SQLite format 3\x00") and head[68:72] == _APPLICATION.to_bytes(4, "big")


def _put_aside(path: Path, reason: str) -> None:
    aside = path.with_name(f"{path.name}.damaged")
    _log.warning(
        "The cache %r is damaged (%s); it is put aside as %r and begun anew.", path.name, reason, aside.name
    )
    path.replace(aside)
    aside.chmod(0o600)
    # A journal that is left behind would be played back into the new file.
    for suffix in ("-journal", "-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)
