"""A connection of psycopg that takes the SQL that an index shares with SQLite; schema, filtered rows, errors."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from importlib.resources import files
from itertools import count
from typing import Any

import psycopg
from psycopg import sql

from rag_kit.documents import Filter, compile_filter
from rag_kit.errors import (
    DocumentIndexError,
    IndexFormatError,
    IndexMissingError,
    InvalidInputError,
    RagKitError,
)
from rag_kit.indexing.document_index.state import VERSION, locked_index, missing_index
from rag_kit.indexing.postgres.location import PostgresLocation

_cursor_numbers = count()
_BLOB = re.compile(r"CAST\(([\w.]+) AS BLOB\)")

_NOTHING = "Nothing of this write was changed, and what was written before stays"
_VECTOR = (
    "An index needs pgvector 0.8 or newer: install it on the server, and let an administrator of the database run "
    "CREATE EXTENSION vector."
)
#: By the beginning of SQLSTATE.
_ADVICE = {
    "53": f"{_NOTHING}: make room on the server, or lower its load, then run the same again.",
    "25006": "The server takes no writes now (a standby, or default_transaction_read_only). Write to the primary.",
    "28": "Check user and password (PGPASSWORD, ~/.pgpass) and the server's pg_hba.conf.",
    "3D000": "Make the database (createdb), or name another one.",
    "42501": "The role needs rights on the schema: its owner grants them, or open the index as its owner.",
    "0A000": _VECTOR,
    "58P": _VECTOR,
    "58": f"{_NOTHING}: check the disk of the server.",
    "busy": "All connections of this process are in use: let fewer threads search and write at a time.",
    "57": f"{_NOTHING}, unless its end was just being committed: run the same again.",
}
#: SQLSTATE by words of what a server says that lets nobody in; libpq does not give its number.
_REFUSALS = {
    "couldn't get a connection": "busy",
    "too many": "53300",  # connections for a role or database, clients of the server
    "connection slots": "53300",
    'role "': "28000",
    "pg_hba": "28000",
    "password": "28000",
    'database "': "3D000",
}


def postgres_sql(sql: str) -> str:
    """Translate a statement from SQLite's to PostgreSQL's SQL: placeholders, and the few words that differ."""
    # keys are unique within a tenant, so conflicts are on (tenant, key)
    sql = sql.replace("%", "%%").replace("?", "%s").replace("ON CONFLICT (", "ON CONFLICT (tenant, ")
    # the shared SQL uses instr as a condition only; PostgreSQL wants a boolean there
    return _BLOB.sub(r"blob(\1)", sql).replace("instr(", "0 < strpos(")


class PostgresConnection:
    """A ``Connection`` of the stores in one transaction of psycopg's, which is ``native``."""

    def __init__(self, native: psycopg.Connection[Any]) -> None:
        self.native = native
        self.postings: dict[str, Any] = {}  # leg -> the postings of terms that were read in this transaction

    def execute(self, sql: str, parameters: Sequence[Any] = (), /) -> Any:
        """Run one statement."""
        return self.native.execute(postgres_sql(sql), parameters, binary=True)

    def scan(self, sql: str) -> Iterator[Any]:
        """Yield the rows of a large result, fetched in blocks."""
        with self.native.cursor(f"scan_{next(_cursor_numbers)}") as cursor:
            cursor.itersize = 2000
            yield from cursor.execute(postgres_sql(sql), (), binary=True)

    def executemany(self, sql: str, parameters: Iterable[Sequence[Any]], /) -> None:
        """Run one statement for each row of values, in one round trip."""
        with self.native.cursor() as cursor:
            cursor.executemany(postgres_sql(sql), parameters)


def filter_rows(
    native: psycopg.Connection[Any], numbers: Sequence[int], where: Filter | None
) -> dict[int, str]:
    """Return row number -> id for those of some rows that exist and pass a filter (``None`` lets all pass)."""
    columns = "n, id, metadata" if where else "n, id, NULL"  # metadata are not read without need
    query = f"SELECT {columns} FROM chunks WHERE n = ANY(%b::bigint[])"
    rows = native.execute(query, (list(numbers),))
    passes = compile_filter(where)
    return {n: key for n, key, metadata in rows if metadata is None or passes(json.loads(metadata))}


def explanation(error: psycopg.Error, location: PostgresLocation, wait: float) -> RagKitError:
    """Make the rag_kit error to raise instead of psycopg's: one line with advice, without a password."""
    text = " ".join(location.without_secrets(str(error)).split())
    sqlstate = error.sqlstate or next((code for words, code in _REFUSALS.items() if words in text), "")
    if sqlstate == "55P03":  # the lock was not available in time
        return locked_index(location, wait)
    if 'extension "vector"' in text:
        sqlstate = "0A000"  # feature not supported
    # 22: wrong data; 54: beyond a limit of the server, such as the size of a row
    if isinstance(error, psycopg.DataError) or sqlstate.startswith(("22", "54")):
        return InvalidInputError(f"{location} can neither hold nor look for what was given ({text}).")
    if isinstance(error, psycopg.ProgrammingError) and not sqlstate:
        return InvalidInputError(f"{location} is no URL that psycopg takes ({text}).")
    for code_beginning, advice in _ADVICE.items():
        if sqlstate.startswith(code_beginning):
            return DocumentIndexError(f"{location}: {text}. {advice}")
    if isinstance(error, psycopg.OperationalError | psycopg.InterfaceError):
        return DocumentIndexError(
            f"{location} cannot be reached ({text}). Start the server, or check host and port; then run the same "
            "again: what was written is kept."
        )
    return IndexFormatError(f"{location} is not what rag_kit wrote, or damaged ({text}).")


def check_schema(connection: psycopg.Connection[Any], location: PostgresLocation) -> None:
    """Raise IndexMissingError for a database without the tables of an index, IndexFormatError for another version."""
    name = f"{location.name}.migrations"
    exists = connection.execute("SELECT to_regclass(%s) IS NOT NULL", (name,)).fetchone()
    if exists == (False,):
        raise missing_index(location)
    query = sql.SQL("SELECT max(number) FROM {}").format(sql.Identifier(location.name, "migrations"))
    (version,) = connection.execute(query).fetchone() or (None,)
    if version != VERSION:
        raise IndexFormatError(
            f"The index in {location} has format version {version}; this rag_kit reads {VERSION}. Take the "
            "rag_kit that wrote it, or ingest again under another name."
        )


def make_schema(connection: psycopg.Connection[Any], location: PostgresLocation) -> None:
    """Make an index's schema and tables if they are lacking, inside the open transaction; other processes wait."""
    lock = f"rag_kit {location.name}"
    connection.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", (lock,))
    try:
        check_schema(connection, location)
        return
    except IndexMissingError:
        connection.execute(sql.SQL("CREATE SCHEMA IF NOT EXISTS {}").format(sql.Identifier(location.name)))
    # one lock for all indexes of the database: a second CREATE EXTENSION would fail with a duplicate key
    connection.execute("SELECT pg_advisory_xact_lock(hashtextextended('rag_kit extension', 0))")
    connection.execute("CREATE EXTENSION IF NOT EXISTS vector SCHEMA public")
    # tables without a schema in their name are made in the index's: it comes first in the search path
    connection.execute("CREATE TABLE migrations (number integer PRIMARY KEY)")
    connection.execute("INSERT INTO migrations VALUES (%s)", (VERSION,))
    folder = files(__package__) / "migrations"
    for file in sorted(folder.iterdir(), key=lambda file: file.name):
        connection.execute(file.read_text(encoding="utf-8"))


def make_trigram_tables(connection: psycopg.Connection[Any]) -> None:
    """Make the tables of the trigram index if the schema lacks them, inside the open transaction."""
    # the schema is in the name, for the search path also finds tables of an index in the schema of pgvector
    is_lacking = "SELECT to_regclass(current_schema || '.trigram_counts') IS NULL"
    if connection.execute(is_lacking).fetchone() == (False,):
        return  # before the lock, which a process that indexes many documents holds for long
    connection.execute("SELECT pg_advisory_xact_lock(hashtextextended('rag_kit trigram', 0))")
    if connection.execute(is_lacking).fetchone() == (True,):  # none were made while this one waited
        keyword_sql = (files(__package__) / "migrations" / "0002_keyword.sql").read_text(encoding="utf-8")
        connection.execute(keyword_sql.replace("keyword_", "trigram_"))


def vector_schema(connection: psycopg.Connection[Any]) -> str:
    """Return the name of the schema that pgvector is in; ``"public"``, where it will be made, if it is lacking."""
    query = "SELECT extnamespace::regnamespace::name FROM pg_extension WHERE extname = 'vector'"
    return str((connection.execute(query).fetchone() or ["public"])[0])
