"""The cache: texts by key, the least recently used dropped first."""

from __future__ import annotations

import json
import os
import sqlite3
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rag_kit.errors import CacheError, InvalidInputError
from rag_kit.models.rewrite_cache.opening import open_cache

_MAX_CHARS = 200_000
_MAX_KEYS = 500


class RewriteCache:
    """Answers of models in one SQLite file, as JSON text and nothing else; nothing in it is ever executed.

    Keys are hashes of prompt, model, endpoint and values, so the file holds neither keys to an endpoint nor
    questions, but the answers stand in it as they are: it is readable for its owner alone (mode 0600). Threads,
    asyncio and several processes may share it. Hand it, or its path, to a retriever as ``cache=``.

    Args:
        path: The file; made if it is not there. A file that is something else is refused and left alone. A
            cache that is damaged, or of another version, is put aside under ``.damaged`` and begun anew, with a
            warning.
        max_entries: Most answers; beyond that the least recently used go.

    Raises:
        InvalidInputError: If the file is something else, belongs to another user or cannot be made, or if
            ``max_entries`` is not allowed.

    Example:
        >>> import tempfile
        >>> folder = tempfile.TemporaryDirectory()
        >>> cache = RewriteCache(Path(folder.name) / "rewrites.sqlite", max_entries=2)
        >>> cache.put({"a": {"query": "x"}, "b": ["y"], "c": "z"})
        >>> cache.get(["a", "b", "c"]), len(cache)
        ({'b': ['y'], 'c': 'z'}, 2)
        >>> cache.close(); folder.cleanup()
    """

    def __init__(self, path: str | os.PathLike[str], *, max_entries: int = 10_000) -> None:
        if isinstance(max_entries, bool) or not isinstance(max_entries, int) or max_entries < 1:
            raise InvalidInputError(f"max_entries={max_entries!r} was given; it must be a whole number >= 1.")
        if not isinstance(path, (str, os.PathLike)):
            raise InvalidInputError(f"path is {type(path).__name__}; give the path of a file as str or Path.")
        if os.fspath(path) in ("", ":memory:") or str(path).startswith("file:"):
            raise InvalidInputError(
                f"path={str(path)!r} was given; a cache is a file that outlives the process, so give a path such as "
                "'rewrites.sqlite'. Leave cache out (None) for none."
            )
        self.path = Path(path)
        self.max_entries = max_entries
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self._process = 0
        self._open()

    def get(self, keys: Sequence[str]) -> dict[str, Any]:
        """The answers there are, by key; they count as used now.

        Raises:
            CacheError: The file cannot be read.
        """
        wanted = list(dict.fromkeys(keys))[:_MAX_KEYS]
        marks = ",".join("?" * len(wanted))
        with self._connected("read") as connection:
            found = connection.execute(
                f"SELECT key, CAST(answer AS BLOB), used FROM answers WHERE key IN ({marks}) "
                "AND typeof(answer) = 'text' AND length(answer) <= ?",  # nothing else is ever put
                [*wanted, _MAX_CHARS],
            ).fetchall()
            newest = self._newest(connection) if found else 0
            # The newest eighth is not marked again: reading what is in use needs no writing.
            old = [key for key, _, used in found if used <= newest - self.max_entries // 8 and used < newest]
            if old:
                with _transaction(connection):
                    newest = self._newest(connection)
                    connection.executemany(
                        "UPDATE answers SET used = ? WHERE key = ?",
                        [(newest + place, key) for place, key in enumerate(old, start=1)],
                    )
        answers = {}
        for key, text, _ in found:
            try:
                answers[key] = json.loads(text.decode())
            except (ValueError, RecursionError):
                continue  # not written by this class; the next put mends it
        return {key: answers[key] for key in wanted if key in answers}

    def put(self, answers: Mapping[str, Any]) -> None:
        """Keep answers, which must be plain JSON; those over 200,000 characters are left out.

        Raises:
            CacheError: The file cannot be written.
        """
        texts = {key: json.dumps(answer) for key, answer in answers.items()}
        rows = [(key, text) for key, text in texts.items() if len(text) <= _MAX_CHARS]
        if not rows:
            return
        with self._connected("written") as connection, _transaction(connection):
            newest = self._newest(connection)
            connection.executemany(
                "INSERT OR REPLACE INTO answers (key, answer, used) VALUES (?, ?, ?)",
                [(key, text, newest + place) for place, (key, text) in enumerate(rows, start=1)],
            )
            connection.execute(
                "DELETE FROM answers WHERE key IN (SELECT key FROM answers ORDER BY used DESC LIMIT -1 OFFSET ?)",
                (self.max_entries,),
            )

    def clear(self) -> None:
        """Forget all answers.

        Raises:
            CacheError: The file cannot be written.
        """
        with self._connected("written") as connection, _transaction(connection):
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
        return f"RewriteCache({self.path.name!r}, max_entries={self.max_entries})"

    def __deepcopy__(self, memo: dict[int, Any]) -> RewriteCache:
        return self

    def __reduce__(self) -> Any:
        return _again, (str(self.path), self.max_entries)

    def _open(self) -> sqlite3.Connection:
        # A connection must not be carried over a fork.
        connection = open_cache(self.path)
        self._connection, self._process = connection, os.getpid()
        return connection

    @contextmanager
    def _connected(self, what: str) -> Iterator[sqlite3.Connection]:
        with self._lock:
            connection = self._connection
            if connection is None or self._process != os.getpid():
                connection = self._open()
            try:
                yield connection
            except (sqlite3.Error, ValueError, OverflowError) as error:  # the last two: counts that are none
                raise CacheError(
                    f"The cache {self.path.name!r} could not be {what}: {error}. If it is damaged, the next start "
                    "begins it anew."
                ) from error

    @staticmethod
    def _newest(connection: sqlite3.Connection) -> int:
        return int(connection.execute("SELECT coalesce(max(used), 0) FROM answers").fetchone()[0])


def _again(path: str, max_entries: int) -> RewriteCache:
    return RewriteCache(path, max_entries=max_entries)


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
