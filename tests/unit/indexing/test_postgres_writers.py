"""Several writers of one index in PostgreSQL: what one has read, another may change before the first one writes."""

from __future__ import annotations

import hashlib
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

from rag_kit.errors import DocumentIndexError, InvalidInputError, LockedError, ReadError
from rag_kit.indexing import DocumentIndex, IngestOptions, ingest
from rag_kit.indexing.correcting import export_chunks, import_chunks
from rag_kit.indexing.ingestion import run as ingestion
from rag_kit.indexing.ingestion.converting import Converter

psycopg = pytest.importorskip("psycopg")
pytest.importorskip("psycopg_pool")
postgres_store = pytest.importorskip("rag_kit.indexing.postgres.store")


@pytest.fixture
def url(postgres_url: str, request: pytest.FixtureRequest) -> str:
    """The URL of an index of the test's own."""
    return f"{postgres_url}&index=w{hashlib.sha256(request.node.nodeid.encode()).hexdigest()[:16]}"


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
                    DocumentIndex.create(url, wait=0.05) if create else ingest(
                        tmp_path, url, options=IngestOptions(wait=0.05)
                    )
            assert index.ids() == []
        assert index.upsert([Document("a valve", id="valve")]).added == ["valve"]


def test_busy_connections_are_named(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The message says that all connections of the process are in use, not that there is no server."""
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
        if location.name == "first":
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


def texts(url: str) -> list[str]:
    with DocumentIndex.open(url) as index:
        assert index.verify().ok
        return [document.page_content for document in index.get(index.ids())]


def test_a_correction_that_is_imported_during_an_ingest_stays(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that is corrected while it is read is reported, and not written: the next ingest reads it again."""
    (docs := tmp_path / "docs").mkdir()
    (docs / "a.md").write_text("# Pump\n\nIt starts at 4O degrees.\n\n# Other\n\nOther text.")
    (docs / "b.md").write_text("A valve.")
    ingest(docs, url)
    (docs / "a.md").write_text("# Pump\n\nIt starts at 4O degrees.\n\n# Other\n\nAnother text.")
    (docs / "b.md").write_text("Another valve.")
    convert = Converter.convert

    def correct(self: Converter, file: Any) -> Any:
        if file.file == "a.md":
            with DocumentIndex.open(url, mode="w") as index:
                export_chunks(index, lines := tmp_path / "chunks.jsonl")
                lines.write_text(lines.read_text().replace("4O degrees", "40 degrees"))
                assert import_chunks(index, lines).corrected == 1
        return convert(self, file)

    monkeypatch.setattr(Converter, "convert", correct)
    report = ingest(docs, url)
    monkeypatch.undo()
    assert [file for file, _ in report.failed] == ["a.md"] and "just corrected it" in report.failed[0][1]
    assert (report.updated, report.changes) == (1, [("b.md", "updated")])
    assert texts(url) == ["# Pump\n\nIt starts at 40 degrees.", "# Other\n\nOther text.", "Another valve."]
    assert ingest(docs, url).changes == [("a.md", "updated")]
    assert texts(url) == ["# Pump\n\nIt starts at 40 degrees.", "# Other\n\nAnother text.", "Another valve."]


@pytest.mark.parametrize("strict", [False, True])
def test_a_copy_whose_original_goes_during_an_ingest(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, strict: bool
) -> None:
    """A copy of what another process has just removed is reported, and its original is not remembered again."""
    (docs := tmp_path / "docs").mkdir()
    for name in "xy":
        (docs / f"{name}.md").write_text("The valve is blue.")
    ingest(docs / "x.md", url)
    list_files = ingestion.list_files

    def remove(*arguments: Any, **options: Any) -> Any:
        with DocumentIndex.open(url, mode="w") as index:
            index.delete_sources(index.sources())
        return list_files(*arguments, **options)

    monkeypatch.setattr(ingestion, "list_files", remove)
    if strict:
        with pytest.raises(ReadError, match="removed its original"):
            ingest(docs, url, options=IngestOptions(strict=True))
    else:
        report = ingest(docs, url)
        assert [file for file, _ in report.failed] == ["y.md"] and report.duplicates == []
    monkeypatch.undo()
    with DocumentIndex.open(url) as index:
        assert index.source_records() == {}
    assert ingest(docs, url).duplicates == [("y.md", "x.md")]
    assert texts(url) == ["The valve is blue."]


@pytest.mark.parametrize("taken_out", [False, True])
def test_a_chunk_of_a_file_that_is_replaced_meanwhile_does_not_come_back(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, taken_out: bool
) -> None:
    """Corrections are refused where another process has changed the chunks, or removed the file, in the meantime."""
    embed, lines = WordEmbeddings.embed_documents, tmp_path / "chunks.jsonl"
    with (
        DocumentIndex.create(url, embeddings=WordEmbeddings()) as index,
        DocumentIndex.open(url, embeddings=WordEmbeddings(), mode="w") as other,
    ):
        index.upsert([Document("It starts at 4O degrees.", id="pump", metadata={"source": "a.md"})])
        export_chunks(index, lines)
        exported = lines.read_text()
        if taken_out:
            lines.write_text('{"id": "pump", "text": null}')
            assert import_chunks(index, lines).removed == 1

        def replace(self: WordEmbeddings, given: list[str]) -> list[list[float]]:
            monkeypatch.undo()
            if taken_out:
                other.delete_sources(["a.md"])
            else:
                other.sync([Document("It was dismantled.", id="new", metadata={"source": "a.md"})])
            return embed(self, given)

        monkeypatch.setattr(WordEmbeddings, "embed_documents", replace)
        lines.write_text(exported if taken_out else exported.replace("4O", "40"))
        with pytest.raises(InvalidInputError, match=r"Nothing was changed; export again\."):
            import_chunks(index, lines)
        assert index.ids() == ([] if taken_out else ["new"]) and index.corrections() == []
