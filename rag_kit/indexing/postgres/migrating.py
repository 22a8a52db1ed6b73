"""The schema of an index: made by numbered files of SQL."""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING, Any

from psycopg import sql

if TYPE_CHECKING:
    import psycopg

VERSION = 3  # the number of the last file


def version(connection: psycopg.Connection[Any], schema: str) -> int:
    """The number of the last file that was run in a schema; -1 where there is no index."""
    there = connection.execute("SELECT to_regclass(%s)", (f"{schema}.migrations",)).fetchone()
    if there is None or there[0] is None:
        return -1
    query = sql.SQL("SELECT coalesce(max(number), -1) FROM {}").format(sql.Identifier(schema, "migrations"))
    row = connection.execute(query).fetchone()
    return -1 if row is None else int(row[0])


def make_schema(connection: psycopg.Connection[Any], schema: str) -> None:
    """Make a schema if it is not there, inside the open transaction; other processes wait."""
    connection.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", (f"rag_kit {schema}",))
    before = version(connection, schema)
    connection.execute(sql.SQL("CREATE SCHEMA IF NOT EXISTS {}").format(sql.Identifier(schema)))
    if not connection.execute("SELECT 1 FROM pg_extension WHERE extname = 'vector'").fetchone():
        connection.execute("CREATE EXTENSION vector SCHEMA public")
    connection.execute("CREATE TABLE IF NOT EXISTS migrations (number integer PRIMARY KEY)")
    folder = files(__package__) / "migrations"
    for file in sorted(folder.iterdir(), key=lambda file: file.name):
        number = int(file.name[:4]) if file.name.endswith(".sql") else -1
        if number > before:
            connection.execute(file.read_text(encoding="utf-8"))
            connection.execute("INSERT INTO migrations VALUES (%s)", (number,))
