"""A connection of psycopg that takes the SQL that an index shares with SQLite."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

import psycopg

from rag_kit.indexing.document_index.sql import Rows

_BLOB = re.compile(r"CAST\(([\w.]+) AS BLOB\)")


@lru_cache(maxsize=500)
def translated(sql: str) -> str:
    """A shared statement in PostgreSQL's words; a row's key is one among its tenant's."""
    sql = sql.replace("%", "%%").replace("?", "%s").replace("ON CONFLICT (", "ON CONFLICT (tenant, ")
    return _BLOB.sub(r"blob(\1)", sql).replace("instr(", "0 < strpos(")


class PostgresConnection:
    """See ``document_index.sql.Connection``.

    Attributes:
        native: The connection of psycopg, in the same transaction; for statements of PostgreSQL's own.
    """

    def __init__(self, native: psycopg.Connection[Any]) -> None:
        self.native = native

    def execute(self, sql: str, parameters: Sequence[Any] = (), /) -> Rows:
        """Run one statement."""
        return self.native.execute(translated(sql), parameters, binary=True)

    def executemany(self, sql: str, parameters: Iterable[Sequence[Any]], /) -> None:
        """Run one statement for each row of values, in one round trip."""
        with self.native.cursor() as cursor:
            cursor.executemany(translated(sql), parameters)
