"""The schema of an index in a database: its tables, its version, and how the role that connects is bound by it."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

import psycopg
from psycopg import sql

from rag_kit.errors import IndexFormatError, IndexMissingError
from rag_kit.indexing.document_index.state import VERSION, missing_index
from rag_kit.indexing.postgres.location import Location


def check_schema(connection: psycopg.Connection[Any], location: Location) -> None:
    """Refuse a database without tables of an index, or with those of another version."""
    name = f"{location.index}.migrations"
    [(there,)] = connection.execute("SELECT to_regclass(%s) IS NOT NULL", (name,)).fetchall()
    if not there:
        raise missing_index(location)
    query = sql.SQL("SELECT max(number) FROM {}").format(sql.Identifier(location.index, "migrations"))
    [(version,)] = connection.execute(query).fetchall()
    if version != VERSION:
        raise IndexFormatError(
            f"The index in {location} has format version {version}; this rag_kit reads {VERSION}. Take the "
            "rag_kit that wrote it, or ingest again under another name."
        )


def make_schema(connection: psycopg.Connection[Any], location: Location) -> None:
    """Make a schema if it is not there, inside the open transaction; other processes wait."""
    lock = f"rag_kit {location.index}"
    connection.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", (lock,))
    try:
        check_schema(connection, location)
        return
    except IndexMissingError:
        connection.execute(sql.SQL("CREATE SCHEMA IF NOT EXISTS {}").format(sql.Identifier(location.index)))
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
