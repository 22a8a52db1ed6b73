"""An index in PostgreSQL: what is not the same as in a folder."""

from __future__ import annotations

import json
import multiprocessing
import os
import subprocess
import sys
from pathlib import Path

import pytest
from langchain_core.documents import Document
from support.embedding import WordEmbeddings

from rag_kit.cli.main import main
from rag_kit.errors import IndexFormatError, IndexMissingError, InvalidInputError
from rag_kit.indexing import DocumentIndex, IngestOptions, ingest
from rag_kit.indexing.document_index.index import location_of
from rag_kit.indexing.document_index.rows import Family

psycopg = pytest.importorskip("psycopg")


def test_a_password_is_not_shown() -> None:
    """The password of a URL stands in no text of the location, nor in its pickle; psycopg gets it."""
    location = location_of(
        "postgres://ann:s%40fe@db:5/docs?%70assword=geheim&index=a_1&tenant=x%26y&sslmode=require"
    )
    assert not isinstance(location, Path)
    assert str(location) == "postgresql://ann@db:5/docs?index=a_1&tenant=x%26y&sslmode=require"
    assert location.conninfo == "postgresql://ann:s%40fe@db:5/docs?%70assword=geheim&sslmode=require"
    assert (location.name, location.tenant) == ("a_1", "x&y")
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
        "postgresql://host/db?tenant=%FF",  # would be the same tenant as %FE
        "postgresql://host/db?tenant=a&tenant=b",
        " postgresql://u:pass@host/db",
        "postgresql:/u:pass@host/db",
        "host=db password=pass@",
        "host=db user=u:pass@",
        '"postgresql://u:pass@host/db"',
        "'postgres://u:pass@host/db'",
        "<postgresql://u:pass@host/db>",
        "jdbc:postgresql://u:pass@host/db",
        "URL=postgresql://u:pass@host/db",
        "u:pass@host:5432/db",
        Path("postgresql://u:pass@host/db"),
    ],
)
def test_urls_that_are_refused(url: str | Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A value that is no URL of an index is refused, without showing a password or writing it to disk."""
    monkeypatch.chdir(tmp_path)
    for call in (DocumentIndex.open, DocumentIndex.create):
        with pytest.raises(InvalidInputError) as raised:
            call(url)
        assert "ss@" not in str(raised.value)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["postgres", "my-postgresql", "user=ann/index", "a:b/c", "10:30@lab", "泵"])
def test_folders_that_are_not_urls(name: str) -> None:
    """A name is a folder's, unless a password may stand in it."""
    assert location_of(name) == Path(name)


def test_ingest_by_the_command_line(
    postgres_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Files go into a database by the same commands as into a folder; an unchanged one is not read again."""
    (tmp_path / "pump.md").write_text("# Pump\n\nThe pump starts at 40 degrees.")
    url = f"{postgres_url}&index=files"
    for unchanged in (0, 1):
        assert main(["ingest", str(tmp_path), "--index", url, "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["unchanged"] == unchanged
    for command in (["verify"], ["repair"], ["chunks", "export", str(tmp_path / "chunks.jsonl")]):
        assert main([*command, "--index", url]) == 0, capsys.readouterr().err
    main(["doctor", "--no-network", "--index", url])
    assert "chunks" in capsys.readouterr().out
    assert main(["ingest", str(tmp_path / "none"), "--index", f"{postgres_url}&index=none"]) != 0
    with pytest.raises(IndexMissingError):  # what could not be begun leaves nothing
        DocumentIndex.open(f"{postgres_url}&index=none")


def test_terms_of_an_older_version_are_named_and_made_again(
    postgres_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Searches and writes are refused with what to do; a repair makes the terms of the stored texts again."""
    url = f"{postgres_url}&index=older"
    with DocumentIndex.create(url) as index:
        index.upsert([Document("The XR20 pump", id="pump")])
    with psycopg.connect(postgres_url) as connection:
        connection.execute("DELETE FROM older.meta WHERE key = 'terms'")
        connection.execute("DELETE FROM older.keyword_postings WHERE term = 'xr'")
    with DocumentIndex.open(url, mode="w") as index:
        with pytest.raises(IndexFormatError, match=r"version 1.*rag-kit repair"):
            index.search_keyword("pump")
        with pytest.raises(IndexFormatError, match=r"version 1.*rag-kit repair"):
            index.upsert([Document("other", id="other")])
    assert main(["verify", "--index", url]) != 0
    assert "version 1" in capsys.readouterr().out
    assert main(["repair", "--index", url]) == 0
    with DocumentIndex.open(url, mode="w") as index:
        index.upsert([Document("other", id="other")])
        assert [doc.id for doc, _ in index.search_keyword("XR-30")] == ["pump"]


def test_nul_is_refused(postgres_url: str) -> None:
    """A text with NUL is refused before anything is written; in metadata NUL is kept."""
    with DocumentIndex.create(f"{postgres_url}&index=nul") as index:
        good = Document("good", metadata={"a": "x\0y"}, id="good")
        with pytest.raises(InvalidInputError, match="NUL"):
            index.upsert([good, Document("b\0d", id="bad")])
        with pytest.raises(InvalidInputError, match="NUL"):
            index.upsert([Family(Document("b\0d", id="bad"), [])])
        assert index.ids() == []
        index.upsert([good])
        assert index.get(["good"])[0].metadata == good.metadata


def test_a_file_that_a_database_cannot_hold(postgres_url: str, tmp_path: Path) -> None:
    """Text with NUL and a path that is too long are reported as not read; the other files are written."""
    docs, url = tmp_path / "docs", f"{postgres_url}&index=unfit"
    deep = docs.joinpath(*["d" * 250] * 12)
    docs.mkdir()
    (docs / "nul.own").write_text("x")
    (docs / "pump.md").write_text("The pump starts at 40 degrees.")
    (docs / "泵.md").write_text("水泵在四十度启动。", encoding="utf-8")
    for folder in reversed([deep, *deep.parents]):
        folder.mkdir(exist_ok=True)
    (deep / "deep.md").write_text("The pump is deep.")
    readers = {"*.own": lambda path: "The pump has a \0."}
    for added in (2, 0):
        report = ingest(docs, url, options=IngestOptions(readers=readers))
        assert report.added == added
        assert [("NUL" in why, "2500 bytes" in why) for _, why in report.failed] == [
            (False, True),
            (True, False),
        ]
    with DocumentIndex.open(url) as index:
        assert len(index.ids()) == 2
    assert ingest(docs, tmp_path / "folder", options=IngestOptions(readers=readers)).added == 4


@pytest.mark.slow
def test_many_ingests_at_the_same_time_are_as_one(postgres_url: str, tmp_path: Path) -> None:
    """Four processes ingest overlapping folders with copies: after one more, rows and originals are those of one."""
    words = ["pump", "valve", "hall", "night", "oil", "filter", "motor", "belt", "fan", "switch"]
    folders = [tmp_path / name for name in "abcd"]
    for place, folder in enumerate(folders):
        (folder / "sub").mkdir(parents=True)
        for number in range(12):
            text = " ".join(f"{word}{(number * 7 + at) % 13}" for at, word in enumerate(words * 12))
            name = folder / ("sub" if number % 2 else "") / f"{number:02}.txt"
            name.write_text(text if number % 3 else f"{text} only{place}x{number}.")
    once, together = f"{postgres_url}&index=once", f"{postgres_url}&index=together"
    ingest(tmp_path, once, embeddings=WordEmbeddings(), options=IngestOptions(keep_duplicates=False))
    code = (
        "import sys; from support.embedding import WordEmbeddings; from rag_kit.indexing import IngestOptions, ingest; "
        "ingest(sys.argv[2:], sys.argv[1], embeddings=WordEmbeddings(), options=IngestOptions(keep_duplicates=False))"
    )
    path = os.pathsep.join([str(Path(__file__).parents[2]), *filter(None, [os.environ.get("PYTHONPATH")])])
    running = [
        subprocess.Popen(
            [
                sys.executable,
                "-c",
                code,
                together,
                *map(str, [folder, folders[place - 1], folders[place - 2]]),
            ],
            env={**os.environ, "PYTHONPATH": path},
        )
        for place, folder in enumerate(folders)
    ]
    assert [process.wait(200) for process in running] == [0] * 4
    ingest(tmp_path, together, embeddings=WordEmbeddings())  # takes copies of one process in another out
    assert contents(together, tmp_path) == contents(once, tmp_path)


def contents(url: str, folder: Path) -> object:
    """How many files are kept, with which texts and vectors, and whether all is sound."""
    with DocumentIndex.open(url, embeddings=WordEmbeddings()) as index:
        kept = [source for source, record in index.source_records().items() if not record.original]
        rows = {source: index.get(index.ids(source)) for source in index.sources()}
        texts = {source: [document.page_content for document in its] for source, its in rows.items()}
        assert index.vectors(index.ids()).keys() == set(index.ids())
        assert index.verify().ok, str(index.verify())
        hits = [
            (hit.page_content, round(score, 5)) for hit, score in index.search_keyword("pump1 valve2", k=50)
        ]
        return len(kept), sorted(texts.values()), sorted(hits)  # which of several copies is kept may differ


def test_pgvector_in_a_schema_of_its_own(postgres_url: str) -> None:
    """An index finds the types of pgvector in whatever schema a hosted database has them, and no other table."""
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("CREATE DATABASE hosted")
    url = postgres_url.replace("/postgres?", "/hosted?")
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("DROP EXTENSION IF EXISTS vector")
        connection.execute("CREATE SCHEMA extensions")
        connection.execute("CREATE EXTENSION vector SCHEMA extensions")
        connection.execute("CREATE TABLE public.meta (own text)")
    with DocumentIndex.create(url, embeddings=WordEmbeddings()) as index:
        index.upsert([Document("a pump", id="pump"), Document("a valve", id="valve")])
        assert index.search_dense("pump", k=1)[0][0].id == "pump"
        assert index.verify().ok


@pytest.mark.timeout(120)
def test_forked_processes(postgres_url: str) -> None:
    """Processes forked from one that has an index open search side by side, and leave its connections alone."""
    with DocumentIndex.create(f"{postgres_url}&index=forked") as index:
        index.upsert([Document("A pump.", id="pump")])

        def search() -> None:
            for _ in range(50):
                assert [document.id for document, _ in index.search_keyword("pump")] == ["pump"]

        children = [multiprocessing.get_context("fork").Process(target=search, daemon=True) for _ in range(3)]
        for child in children:
            child.start()
        for child in children:
            child.join(30)
            child.kill()
        assert [child.exitcode for child in children] == [0, 0, 0]
        search()


def test_a_long_run_of_rare_characters(postgres_url: str) -> None:
    """A run of Chinese characters that no dictionary knows is stored and found, however long it is."""
    run = "".join(map(chr, range(0x20000, 0x25000)))
    with DocumentIndex.create(f"{postgres_url}&index=rare") as index:
        index.upsert([Document(run, id="rare")])
        assert index.search_keyword(run[700:703])[0][0].id == "rare"
