"""The cache of the kit: JSON values by key in one SQLite file, the oldest dropped first."""

from __future__ import annotations

import json
import os
import sqlite3
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from rag_kit.errors import ConfigurationError, InvalidInputError

_MAX_CHARS = 200_000
_APPLICATION = 0x52574331  # "RWC1", in the head of the file
_VERSION = 1
_BUSY_SECONDS = 10


class JsonCache:
    """JSON values in one SQLite file; nothing in it is ever executed.

    What models wrote, and vectors, are kept under hashes of prompt, model, endpoint and values, so the file holds
    neither keys to an endpoint nor questions, but the values stand in it as they are: it is readable for its owner
    alone (mode 0600). Threads, asyncio and several processes may share it. Hand it, or its path, to a retriever as
    ``cache=``.

    Args:
        path: The file; made if it is not there. A file that is something else, damaged or of another version is
            refused and left alone.
        max_entries: Most values; beyond that those go that were written first.

    Raises:
        InvalidInputError: If the file is something else, damaged or cannot be made, or if ``max_entries`` is not
            allowed.

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
        self.path = Path(path)
        self.max_entries = max_entries
        self._lock = threading.Lock()
        self._process = os.getpid()
        self._connection: sqlite3.Connection | None = _open(self.path)

    def get(self, keys: Sequence[str]) -> dict[str, Any]:
        """The values there are, by key.

        Raises:
            ConfigurationError: The file cannot be read.
        """
        with self._connected("read") as connection:
            found = connection.execute(
                "SELECT key, answer FROM answers WHERE key IN (SELECT value FROM json_each(?))",
                [json.dumps(list(keys))],
            )
            values = {key: json.loads(text) for key, text in found}
        return {key: values[key] for key in keys if key in values}

    def put(self, values: Mapping[str, Any]) -> None:
        """Keep values, which must be plain JSON; those over 200,000 characters are left out.

        Raises:
            ConfigurationError: The file cannot be written.
        """
        rows = [(key, json.dumps(value)) for key, value in values.items()]
        with self._connected("written") as connection:
            connection.executemany(
                "INSERT OR REPLACE INTO answers (key, answer, used) "
                "SELECT ?, ?, coalesce(max(used), 0) + 1 FROM answers",
                [(key, text) for key, text in rows if len(text) <= _MAX_CHARS],
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

    def __reduce__(self) -> Any:
        return partial(JsonCache, max_entries=self.max_entries), (str(self.path),)

    @contextmanager
    def _connected(self, what: str) -> Iterator[sqlite3.Connection]:
        """A transaction on the connection, which is not carried over a fork."""
        with self._lock:
            if self._connection is None or self._process != os.getpid():
                self._connection, self._process = _open(self.path), os.getpid()
            try:
                with self._connection:
                    yield self._connection
            except (sqlite3.Error, ValueError, RecursionError) as error:
                raise ConfigurationError(
                    f"The cache {self.path.name!r} could not be {what}: {error}. If it is damaged, delete it."
                ) from error


def _open(path: Path) -> sqlite3.Connection:
    """Open or make the file of a cache."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o600))
    except OSError as error:
        raise InvalidInputError(
            f"cache={path.name!r} cannot be opened for writing: {error.strerror or error}. Name a file (no link) "
            "in a folder that can be written to."
        ) from error
    connection = sqlite3.connect(path.absolute(), timeout=_BUSY_SECONDS, check_same_thread=False)
    try:
        # A crash of the machine may damage the file. Waiting for the disk is not worth it.
        connection.execute("PRAGMA synchronous=OFF")
        connection.execute("PRAGMA trusted_schema=OFF")
        with connection:
            _check_tables(connection)
        path.chmod(0o600)  # not before: somebody else's file keeps its mode
    except (sqlite3.Error, ValueError, OSError) as error:
        connection.close()
        raise InvalidInputError(
            f"cache={path.name!r} cannot be used: {error}. No cache of this version of rag_kit wrote it, or it is "
            "damaged; it is left alone. Name another file, or delete this one."
        ) from error
    return connection


def _check_tables(connection: sqlite3.Connection) -> None:
    """Make the table in an empty file; raise a DatabaseError where the file is something else."""
    connection.execute("BEGIN IMMEDIATE")
    if not connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
        connection.execute(f"PRAGMA application_id={_APPLICATION}")
        connection.execute(f"PRAGMA user_version={_VERSION}")
        connection.execute(
            "CREATE TABLE answers (key TEXT PRIMARY KEY, answer TEXT NOT NULL, used INTEGER NOT NULL) WITHOUT ROWID"
        )
        connection.execute("CREATE INDEX by_use ON answers (used)")
    for name, wanted in (("application_id", _APPLICATION), ("user_version", _VERSION)):
        found = connection.execute(f"PRAGMA {name}").fetchone()[0]
        if found != wanted:
            raise sqlite3.DatabaseError(f"its {name} is {found}, not {wanted}")
    connection.execute("SELECT key, answer, used FROM answers LIMIT 1")
