"""Several writers of one index in PostgreSQL: what one has read, another may change before the first one writes."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from langchain_core.documents import Document
from support.embedding import WordEmbeddings

from rag_kit.errors import DocumentIndexError, LockedError
from rag_kit.indexing import DocumentIndex, ingest

psycopg = pytest.importorskip("psycopg")
pytest.importorskip("psycopg_pool")
postgres_store = pytest.importorskip("rag_kit.indexing.postgres.store")


@pytest.fixture
def url(postgres_url: str, request: pytest.FixtureRequest) -> str:
    """The URL of an index of the test's own."""
    name = "".join(letter if letter.isalnum() else "_" for letter in request.node.name.lower())
    return f"{postgres_url}&index=w_{name[:50]}"


def after_each_read(
    monkeypatch: pytest.MonkeyPatch, index: DocumentIndex, write: Callable[[int], object], times: int
) -> None:
    """Let another process write after each of the next reads of an index, which are counted from 0."""
    read, done = index._store.reading, 0

    @contextmanager
    def reading() -> Iterator[Any]:
        nonlocal done
        with read() as connection:
            yield connection
        if done < times:
            done += 1
            write(done - 1)

    monkeypatch.setattr(index._store, "reading", reading)


@pytest.mark.parametrize("former", [WordEmbeddings(16), None])
def test_vectors_are_those_of_the_present_texts(
    url: str, monkeypatch: pytest.MonkeyPatch, former: WordEmbeddings | None
) -> None:
    """Vectors are made while another process changes texts, between any two reads: each is that of its text."""
    monkeypatch.setattr("rag_kit.indexing.document_index.embedding.EMBED_BATCH", 1)
    model = WordEmbeddings(3001)
    with DocumentIndex.create(url, embeddings=former) as other:
        other.upsert([Document(f"first {key}", id=key) for key in "abcd"])
        with DocumentIndex.open(url, mode="w", check=False) as index:

            def write(number: int) -> None:
                if number % 2 == 0:
                    other.upsert([Document(f"later {number}", id=key) for key in "abcd"])

            after_each_read(monkeypatch, index, write, times=7)
            index.reembed(model)
            monkeypatch.undo()
            assert index.get(["d"])[0].page_content == "later 6"
            for document in index.get(list("abcd")):
                found = index.vectors([document.id])[document.id]
                assert np.allclose(found, model.vector(document.page_content))
            assert index.verify().ok


def test_a_write_waits_no_longer_than_it_is_told_to(url: str, tmp_path: Path) -> None:
    """A writer whose turn does not end is named after ``wait`` seconds, in the words of a folder; then others write."""
    (tmp_path / "a.txt").write_text("A pump.")
    DocumentIndex.create(url).close()
    with (
        DocumentIndex.open(url, mode="w", wait=0.05) as index,
        DocumentIndex.open(url, mode="w") as other,
    ):
        with other.transaction():
            with pytest.raises(LockedError, match=r"writing to the index in .* \(waited 0\.05 s\)"):
                index.upsert([Document("a valve", id="valve")])
            for create in (False, True):
                with pytest.raises(LockedError, match=r"waited 0\.05 s"):
                    DocumentIndex.create(url, wait=0.05) if create else ingest(tmp_path, url, wait=0.05)
            assert index.ids() == []
        assert index.upsert([Document("a valve", id="valve")]).added == ["valve"]


def test_busy_connections_are_named(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where all connections of the process are in use, the message says so, and not that there is no server."""
    monkeypatch.setattr(postgres_store, "_MAX_CONNECTIONS", 1)
    monkeypatch.setattr(postgres_store, "_TIMEOUT", 0.05)
    with DocumentIndex.create(url) as index, index.families():
        with pytest.raises(DocumentIndexError, match="connections of this process are in use"):
            index.upsert([Document("a pump", id="pump")])


def test_indexes_that_are_made_at_the_same_time(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An index that is made while another one makes the extension of a new database waits for that."""
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("CREATE DATABASE fresh TEMPLATE template0")
    url = postgres_url.replace("/postgres?", "/fresh?")
    second = threading.Thread(target=lambda: DocumentIndex.create(f"{url}&index=second").close())
    make_schema = postgres_store.make_schema

    def make(native: Any, location: Any) -> None:
        make_schema(native, location)
        if location.index == "first":
            second.start()
            with psycopg.connect(url, autocommit=True) as connection:
                until = time.monotonic() + 20
                while not connection.execute("SELECT 1 FROM pg_locks WHERE NOT granted").fetchall():
                    assert time.monotonic() < until
                    time.sleep(0.01)

    monkeypatch.setattr(postgres_store, "make_schema", make)
    DocumentIndex.create(f"{url}&index=first").close()
    second.join(20)
    for name in ("first", "second"):
        DocumentIndex.open(f"{url}&index={name}").close()
