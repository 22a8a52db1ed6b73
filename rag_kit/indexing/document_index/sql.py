"""What the SQL of an index needs to run on SQLite and PostgreSQL alike."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Protocol

_MANY = 500  # placeholders in one statement


class Rows(Protocol):
    """The answer to a statement, as of a cursor of DB-API."""

    def fetchone(self) -> Any: ...  # noqa: D102
    def fetchmany(self, size: int = ..., /) -> list[Any]: ...  # noqa: D102
    def fetchall(self) -> list[Any]: ...  # noqa: D102
    def __iter__(self) -> Iterator[Any]: ...


class Connection(Protocol):
    """A connection inside a transaction: sqlite3's own, or PostgreSQL's behind an adapter; placeholders are ``?``."""

    def execute(self, sql: str, parameters: Sequence[Any] = ..., /) -> Rows: ...  # noqa: D102
    def executemany(self, sql: str, parameters: Iterable[Sequence[Any]], /) -> Any: ...  # noqa: D102


def scan(connection: Connection, query: str) -> Iterable[Any]:
    """The rows of a large answer, which is never in memory as a whole."""
    read: Callable[[str], Iterable[Any]] = getattr(connection, "scan", connection.execute)
    return read(query)


def has_table(connection: Connection, *names: str) -> bool:
    """Whether a store has tables; a folder of before may lack them until a writer opens it."""
    if not isinstance(connection, sqlite3.Connection):
        return True
    query = f"SELECT count(*) FROM sqlite_master WHERE name IN ({marks(names)})"
    return bool(connection.execute(query, names).fetchone()[0] == len(names))


def knows_copies(connection: Connection) -> bool:
    """Whether the store can say which files are copies; one of before cannot until it is opened for writing."""
    if not isinstance(connection, sqlite3.Connection):
        return True
    return any(column[1] == "original" for column in connection.execute("PRAGMA table_info(sources)"))


def replacing(table: str, key: str, *columns: str) -> str:
    """The statement that adds a row, or replaces the one with the same key, which comes first.

    Example:
        >>> replacing("meta", "key", "value")
        'INSERT INTO meta (key, value) VALUES (?,?) ON CONFLICT (key) DO UPDATE SET value = excluded.value'
    """
    values = ", ".join(f"{column} = excluded.{column}" for column in columns)
    names = (key, *columns)
    return (
        f"INSERT INTO {table} ({', '.join(names)}) VALUES ({marks(names)}) "
        f"ON CONFLICT ({key}) DO UPDATE SET {values}"
    )


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
