"""What the SQL of an index needs to run on SQLite and PostgreSQL alike."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Protocol

_MANY = 500  # placeholders in one statement


class Connection(Protocol):
    """A connection inside a transaction: sqlite3's own, or PostgreSQL's behind an adapter; placeholders are ``?``."""

    def execute(self, sql: str, parameters: Sequence[Any] = ..., /) -> Any: ...  # noqa: D102
    def executemany(self, sql: str, parameters: Iterable[Sequence[Any]], /) -> Any: ...  # noqa: D102


def scan(connection: Connection, query: str) -> Iterable[Any]:
    """The rows of a large answer, which is never in memory as a whole."""
    read: Callable[[str], Iterable[Any]] = getattr(connection, "scan", connection.execute)
    return read(query)


def replacing(table: str, key: str, *columns: str) -> str:
    """The statement that adds a row, or replaces the one with the same key, which comes first."""
    values = ", ".join(f"{column} = excluded.{column}" for column in columns)
    names = (key, *columns)
    return (
        f"INSERT INTO {table} ({', '.join(names)}) VALUES ({marks(names)}) "
        f"ON CONFLICT ({key}) DO UPDATE SET {values}"
    )


def select_in(connection: Connection, query: str, values: Iterable[Any]) -> Iterator[Any]:
    """The rows of a query for any number of values, which stand where ``{}`` does.

    Example:
        >>> import sqlite3
        >>> list(select_in(sqlite3.connect(":memory:"), "SELECT 3 WHERE 3 IN ({})", [2, 3]))
        [(3,)]
    """
    for group in in_groups(values):
        yield from connection.execute(query.format(marks(group)), group)


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
