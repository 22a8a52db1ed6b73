"""The schema of an index: made, and brought up to date, by numbered files of SQL."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from psycopg import sql

if TYPE_CHECKING:
    import psycopg


def steps() -> Iterator[tuple[int, str]]:
    """Number and text of each migration, in order."""
    folder = files(__package__) / "migrations"
    for file in sorted(folder.iterdir(), key=lambda file: file.name):
        if file.name.endswith(".sql"):
            yield int(file.name[:4]), file.read_text(encoding="utf-8")


def newest() -> int:
    """The number of the last migration that this version knows."""
    return max(number for number, _ in steps())


def version(connection: psycopg.Connection[Any], schema: str) -> int:
    """The number of the last migration that was run in a schema; -1 where there is no index."""
    there = connection.execute("SELECT to_regclass(%s)", (f"{schema}.migrations",)).fetchone()
    if there is None or there[0] is None:
        return -1
    query = sql.SQL("SELECT coalesce(max(number), -1) FROM {}").format(sql.Identifier(schema, "migrations"))
    row = connection.execute(query).fetchone()
    return -1 if row is None else int(row[0])


def migrate(connection: psycopg.Connection[Any], schema: str) -> None:
    """Make a schema, or bring it up to date, inside the open transaction; other processes wait."""
    connection.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", (f"rag_kit {schema}",))
    before = version(connection, schema)
    name = sql.Identifier(schema)
    connection.execute(sql.SQL("CREATE SCHEMA IF NOT EXISTS {}").format(name))
    if not connection.execute("SELECT 1 FROM pg_extension WHERE extname = 'vector'").fetchone():
        connection.execute("CREATE EXTENSION vector SCHEMA public")
    connection.execute("CREATE TABLE IF NOT EXISTS migrations (number integer PRIMARY KEY)")
    for number, text in steps():
        if number > before:
            connection.execute(text)
            connection.execute("INSERT INTO migrations VALUES (%s)", (number,))
