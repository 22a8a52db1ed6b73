"""A connection of psycopg that takes the SQL that an index shares with SQLite."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import count
from typing import Any

import psycopg

_NUMBERS = count()
_BLOB = re.compile(r"CAST\(([\w.]+) AS BLOB\)")


@lru_cache(maxsize=500)
def postgres_sql(sql: str) -> str:
    """The PostgreSQL form of a statement that is written for SQLite: placeholders and the few words that differ."""
    # keys are unique within a tenant, so conflicts are on (tenant, key)
    sql = sql.replace("%", "%%").replace("?", "%s").replace("ON CONFLICT (", "ON CONFLICT (tenant, ")
    # the shared SQL uses instr as a condition only; PostgreSQL wants a boolean there
    return _BLOB.sub(r"blob(\1)", sql).replace("instr(", "0 < strpos(")


class PostgresConnection:
    """See ``document_index.sql.Connection``.

    Attributes:
        native: The connection of psycopg, in the same transaction; for statements of PostgreSQL's own.
    """

    def __init__(self, native: psycopg.Connection[Any]) -> None:
        self.native = native

    def execute(self, sql: str, parameters: Sequence[Any] = (), /) -> Any:
        """Run one statement."""
        return self.native.execute(postgres_sql(sql), parameters, binary=True)

    def scan(self, sql: str) -> Iterator[Any]:
        """The rows of a large answer, fetched in blocks."""
        with self.native.cursor(f"scan_{next(_NUMBERS)}") as cursor:
            cursor.itersize = 2000
            yield from cursor.execute(postgres_sql(sql), (), binary=True)

    def executemany(self, sql: str, parameters: Iterable[Sequence[Any]], /) -> None:
        """Run one statement for each row of values, in one round trip."""
        with self.native.cursor() as cursor:
            cursor.executemany(postgres_sql(sql), parameters)
