"""The schema of an index in a database: its tables, its version, and how the role that connects is bound by it."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

import psycopg
from psycopg import sql

from rag_kit.indexing.document_index.state import VERSION


def schema_version(connection: psycopg.Connection[Any], schema: str) -> int:
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
    if schema_version(connection, schema) >= 0:
        return
    connection.execute(sql.SQL("CREATE SCHEMA IF NOT EXISTS {}").format(sql.Identifier(schema)))
    if not connection.execute("SELECT 1 FROM pg_extension WHERE extname = 'vector'").fetchone():
        connection.execute("CREATE EXTENSION vector SCHEMA public")
    connection.execute("CREATE TABLE migrations (number integer PRIMARY KEY)")
    connection.execute("INSERT INTO migrations VALUES (%s)", (VERSION,))
    folder = files(__package__) / "migrations"
    for file in sorted(folder.iterdir(), key=lambda file: file.name):
        connection.execute(file.read_text(encoding="utf-8"))


def skips_policies(connection: psycopg.Connection[Any]) -> bool:
    """Whether the role of a connection skips row-level security."""
    query = "SELECT rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = current_user"
    return connection.execute(query).fetchone() != (False,)


def schema_of_types(connection: psycopg.Connection[Any]) -> str:
    """The schema that pgvector is in, or will be."""
    query = "SELECT extnamespace::regnamespace::name FROM pg_extension WHERE extname = 'vector'"
    row = connection.execute(query).fetchone()
    return "public" if row is None else str(row[0])
