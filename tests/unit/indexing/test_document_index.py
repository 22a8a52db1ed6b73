"""DocumentIndex: writing, reading, identity, crashes, locks, formats."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import stat
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from langchain_core.documents import Document
from support.embedding import WordEmbeddings

from rag_kit.documents import with_provenance
from rag_kit.errors import (
    IndexError_,
    IndexFormatError,
    IndexLockedError,
    IndexMismatchError,
    IndexMissingError,
    InvalidInputError,
    ModelOutputError,
)
from rag_kit.indexing import DocumentIndex
from rag_kit.indexing.document_index import lost_rows
from rag_kit.indexing.document_index import mirror as mirror_module

TEXTS = [f"alpha{i} common words number{i % 7} and beta{i % 3}" for i in range(30)]


def documents(source: str = "/docs/a.md") -> list[Document]:
    return [Document(text, metadata={"source": source, "n": i}) for i, text in enumerate(TEXTS)]


@pytest.fixture
def model() -> WordEmbeddings:
    return WordEmbeddings()


@pytest.fixture
def folder(tmp_path: Path, model: WordEmbeddings) -> Path:
    """A closed index of thirty documents with vectors."""
    with DocumentIndex.create(tmp_path / "index", embeddings=model) as index:
        index.upsert(documents())
    return tmp_path / "index"


def state_of(folder: Path, model: WordEmbeddings, **options: Any) -> Any:
    """All that an index holds and finds."""
    with DocumentIndex.open(folder, embeddings=model, **options) as index:
        ids = index.ids()
        queries = ["alpha7", "number3 beta1", "common words"]
        return (
            index.get(ids),
            index.vectors(ids),
            [index.search_keyword(query, 5) for query in queries],
            [index.search_dense(query, 5) for query in queries],
        )


def test_writing_twice_changes_nothing(folder: Path, model: WordEmbeddings) -> None:
    """The same documents again: no text embedded, no generation, no file rewritten."""
    before = state_of(folder, model)
    files = {p.name: p.stat().st_mtime_ns for p in folder.iterdir() if p.name.startswith("bm25")}
    embedded = len(model.texts)
    with DocumentIndex.open(folder, embeddings=model, mode="w") as index:
        report = index.upsert(documents())
    assert len(report.unchanged) == 30 and not report.added and not report.updated and report.embedded == 0
    assert len(model.texts) == embedded
    assert state_of(folder, model) == before
    assert {p.name: p.stat().st_mtime_ns for p in folder.iterdir() if p.name.startswith("bm25")} == files


def test_same_id_replaces_in_both_legs(folder: Path, model: WordEmbeddings) -> None:
    """After an upsert under the same id, neither leg finds the old text; Document.id is kept."""
    for exact_rows in (20_000, 0):
        with DocumentIndex.open(folder, embeddings=model, mode="w", exact_rows=exact_rows) as index:
            index.upsert([Document("walrus tusk", id="mine")])
            report = index.upsert([Document("ocelot spots", id="mine")])
            assert report.updated == ["mine"]
            assert index.search_keyword("walrus") == []
            assert [d.id for d, _ in index.search_keyword("ocelot")] == ["mine"]
            assert index.search_dense("ocelot spots", 1)[0][0].page_content == "ocelot spots"
            assert all(d.page_content != "walrus tusk" for d, _ in index.search_dense("walrus tusk", 31))
            assert index.delete(["mine", "unknown"]) == 1


def test_ids_are_stable_when_a_paragraph_is_put_in(folder: Path, model: WordEmbeddings) -> None:
    """A new first chunk renames nothing and embeds only itself; equal texts get ids of their own."""
    with DocumentIndex.open(folder, embeddings=model, mode="w") as index:
        before = set(index.ids())
        new = [Document("entirely fresh", metadata={"source": "/docs/a.md"}), *documents()]
        report = index.sync(new)
        assert len(report.added) == 1 and report.embedded == 1 and not report.removed
        assert before < set(index.ids())
        twins = [Document("twin", metadata={"source": "/docs/t.md"})] * 2
        assert len(index.upsert(twins).added) == 2


def test_delete_reaches_all_legs(folder: Path, model: WordEmbeddings) -> None:
    """A deleted document is in no leg, now or after opening again."""
    with DocumentIndex.open(folder, embeddings=model, mode="w") as index:
        victim = index.search_keyword("alpha7", 1)[0][0]
        assert index.delete([victim.id]) == 1 and index.delete([victim.id]) == 0
        assert index.get([victim.id]) == []
    for exact_rows in (20_000, 0):
        with DocumentIndex.open(folder, embeddings=model, exact_rows=exact_rows) as index:
            found = index.search_keyword("alpha7", 30) + index.search_dense(victim.page_content, 30)
            assert victim.id not in {document.id for document, _ in found} and len(index.ids()) == 29
            assert index.verify().ok


def test_sync_replaces_sources_and_prunes_in_scope(tmp_path: Path) -> None:
    """sync removes what a source no longer has; prune takes absent sources, but only below the scope."""
    with DocumentIndex.create(tmp_path / "index") as index:
        for source in ("/docs/a.md", "/docs/b.md", "/docsx/c.md"):
            index.upsert(documents(source)[:3])
        report = index.sync(documents("/docs/a.md")[:2], scope="/docs")
        assert len(report.removed) == 1 and len(report.unchanged) == 2
        report = index.sync(documents("/docs/a.md")[:2], scope="/docs", prune=True)
        assert len(report.removed) == 3 and index.sources() == ["/docs/a.md", "/docsx/c.md"]
        with pytest.raises(InvalidInputError, match="scope"):
            index.sync(documents("/elsewhere"), scope="/docs")


def test_metadata_come_back_as_json_can_say_them(folder: Path, model: WordEmbeddings) -> None:
    """Lists, nesting, None and Chinese come back equal from every way to read; provenance is not stored."""
    metadata = {
        "list": [1, None, "x"],
        "nested": {"a": {"b": [True, 1.5]}},
        "none": None,
        "zh": "中文",
        "source": "s",
    }
    document = with_provenance(
        Document("quokka", id="q", metadata=metadata), score=1.0, rank=1, stage="x", retriever="x", query="x"
    )
    with DocumentIndex.open(folder, embeddings=model, mode="w") as index:
        index.upsert([document])
        assert document.metadata["rag_kit"]
    with DocumentIndex.open(folder, embeddings=model) as index:
        for found in (
            index.get(["q"])[0],
            index.search_keyword("quokka")[0][0],
            index.search_dense("quokka", 1)[0][0],
        ):
            assert found.metadata == metadata and found.id == "q" and found.page_content == "quokka"
            found.metadata["list"].append("changed by the caller")
        assert index.get(["q"])[0].metadata == metadata == index.search_keyword("quokka")[0][0].metadata


FILTERS = [
    {"n": 3},
    {"n": {"$gte": 3, "$lt": 9}},
    {"$or": [{"n": 1}, {"n": {"$in": [4, 28]}}]},
    {"$and": [{"n": {"$gt": 5}}, {"source": "/docs/a.md"}]},
    {"n": {"$in": []}},
    {"$not": {"n": {"$lt": 25}}},
    {"missing": {"$exists": False}, "n": {"$nin": [0, 1]}},
    {"source": {"$gt": "/docs/"}},
    {"n": True},
]


@pytest.mark.parametrize("where", FILTERS)
def test_filters_mean_the_same_in_all_legs(
    folder: Path, model: WordEmbeddings, where: dict[str, Any]
) -> None:
    """Keyword, exact and Chroma search let exactly the same documents through."""
    with DocumentIndex.open(folder, embeddings=model) as exact:
        keyword = {d.id for d, _ in exact.search_keyword("common", 30, where)}
        dense = exact.search_dense("common words", 30, where)
        assert {d.id for d, _ in dense} == keyword
        with DocumentIndex.open(folder, embeddings=model, exact_rows=0) as chroma:
            assert chroma.search_dense("common words", 30, where) == dense
            assert chroma.search_dense("common words", 2, where) == dense[:2]


def test_exact_and_chroma_search_agree(folder: Path, model: WordEmbeddings) -> None:
    """The matrix and the Chroma collection give the same documents, scores and order."""
    assert state_of(folder, model) == state_of(folder, model, exact_rows=0)


def test_embedding_error_changes_nothing(folder: Path, model: WordEmbeddings) -> None:
    """When the model fails in the middle of an upsert, the old state stays, also after opening again."""
    before = state_of(folder, model)
    new = [Document(f"gamma{i}", metadata={"source": "/docs/a.md"}) for i in range(700)]
    failing = WordEmbeddings(fail_after=1)
    with DocumentIndex.open(folder, embeddings=failing, mode="w") as index, pytest.raises(ConnectionError):
        index.sync(new)
    assert failing.batches == 2
    assert state_of(folder, model) == before


def test_wrong_vectors_are_refused(folder: Path) -> None:
    """Vectors of another length, of no number, or too few of them never reach the store."""
    for answer, message in (
        ([[1.0] * 63], "63"),
        ([[float("nan")] * 64], "no numbers"),
        ([], "shape"),
        ([[1.0] * 64, [1.0] * 64], "shape"),
    ):
        model = WordEmbeddings()
        with DocumentIndex.open(folder, embeddings=model, mode="w") as index:
            model.embed_documents = lambda texts, answer=answer: answer  # type: ignore[method-assign]
            with pytest.raises(ModelOutputError, match=message):
                index.upsert([Document("new")])
            assert len(index.ids()) == 30


def test_full_disk_changes_nothing(folder: Path, model: WordEmbeddings) -> None:
    """When the disk is full in the middle of a write, the error says so and the old state stays."""
    before = state_of(folder, model)
    with DocumentIndex.open(folder, embeddings=model, mode="w") as index:
        connection = index._store._writer
        assert connection is not None
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count = {pages + 2}")
        with pytest.raises(IndexError_, match="No room"):
            index.upsert([Document(f"{i} " + "x" * 4000, id=str(i)) for i in range(100)])
        assert len(index.ids()) == 30
    assert state_of(folder, model) == before


def test_chroma_failing_leaves_the_new_state_searchable(
    folder: Path, model: WordEmbeddings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Chroma raising in a write costs no data: both searches see the new state, the next writer mends Chroma."""
    import chromadb

    def refuse(*_: Any, **__: Any) -> None:
        raise RuntimeError("Failed to apply logs to the hnsw segment writer")

    with monkeypatch.context() as patch:
        patch.setattr(chromadb.Collection, "add", refuse)
        with DocumentIndex.open(folder, embeddings=model, mode="w", exact_rows=0) as index:
            index.upsert([Document("wombat burrow", id="w")])
            index.flush()
            assert index.search_dense("wombat burrow", 1)[0][0].id == "w"
    with DocumentIndex.open(folder, embeddings=model, exact_rows=0) as index:
        assert index.search_dense("wombat burrow", 1)[0][0].id == "w"
        assert not index.verify().ok
    with DocumentIndex.open(folder, embeddings=model, mode="w"):
        pass
    with DocumentIndex.open(folder, embeddings=model, exact_rows=0) as index:
        assert index.verify().ok
        assert index.search_dense("wombat burrow", 1)[0][0].id == "w"


def test_more_rows_than_one_chroma_batch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """More rows than Chroma takes at once (5,461) are written in batches, and each finds itself."""
    monkeypatch.setattr(mirror_module, "_BATCH", 10**9)
    model = WordEmbeddings(size=4)
    with DocumentIndex.create(tmp_path / "index", embeddings=model) as index:
        index.upsert([Document(f"row {i}", id=str(i)) for i in range(5_600)])
        index.flush()
        report = index.verify()
    assert report.ok, str(report)
    assert report.checked["chroma rows"] == 5_600


def test_a_second_writer_waits_or_is_refused(folder: Path, model: WordEmbeddings) -> None:
    """A second writer is refused by the holder's process id, or gets in once the first is done."""
    first = DocumentIndex.open(folder, embeddings=model, mode="w")
    with pytest.raises(IndexLockedError, match=str(os.getpid())):
        DocumentIndex.open(folder, embeddings=model, mode="w")
    timer = threading.Timer(0.3, first.close)
    timer.start()
    with DocumentIndex.open(folder, embeddings=model, mode="w", wait=20) as second:
        assert second.upsert([Document("late", id="late")]).added == ["late"]
    timer.join()
    code = (
        "import sys; from rag_kit.indexing import DocumentIndex; from rag_kit.errors import IndexLockedError\n"
        "try: DocumentIndex.open(sys.argv[1], mode='w', check=False)\n"
        "except IndexLockedError as error: print(error)"
    )
    with DocumentIndex.open(folder, embeddings=model, mode="w"):
        done = subprocess.run(
            [sys.executable, "-c", code, str(folder)], capture_output=True, text=True, check=True
        )
    assert f"Process {os.getpid()}" in done.stdout


def test_readers_see_each_write_whole(folder: Path, model: WordEmbeddings) -> None:
    """A reader that was open before sees a later write in all legs; during an open transaction, nothing of it."""
    for exact_rows in (20_000, 0):
        with DocumentIndex.open(folder, embeddings=model, exact_rows=exact_rows) as reader:
            reader.search_dense("alpha1", 1)
            with DocumentIndex.open(folder, embeddings=model, mode="w", exact_rows=exact_rows) as writer:
                with writer.transaction():
                    writer.upsert([Document("narwhal horn", id="nar")])
                    assert reader.search_keyword("narwhal") == [] == writer.search_keyword("narwhal")
                    assert reader.search_dense("narwhal horn", 1)[0][0].id != "nar"
                for index in (reader, writer):
                    assert index.search_keyword("narwhal")[0][0].id == "nar"
                    assert index.search_dense("narwhal horn", 1)[0][0].id == "nar"
                writer.delete(["nar"])
                assert reader.search_keyword("narwhal") == []
                assert reader.search_dense("narwhal horn", 1)[0][0].id != "nar"
            assert reader.search_dense("narwhal horn", 1)[0][0].id != "nar"


def test_a_failing_transaction_is_undone(folder: Path, model: WordEmbeddings) -> None:
    """Several writes in one transaction are all undone when anything is raised."""
    before = state_of(folder, model)
    with DocumentIndex.open(folder, embeddings=model, mode="w") as index:

        def write_and_fail() -> None:
            with index.transaction():
                index.upsert([Document("one", id="1")])
                index.delete(index.ids()[:3])
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            write_and_fail()
        assert index.search_keyword("one") == []
    assert state_of(folder, model) == before


def test_backup_by_copying_the_closed_folder(folder: Path, model: WordEmbeddings, tmp_path: Path) -> None:
    """A copy, put elsewhere, gives the same results, can be written to, and leaves the original alone."""
    shutil.copytree(folder, tmp_path / "moved" / "copy")
    copy = tmp_path / "moved" / "copy"
    assert not (folder / "store.sqlite3-wal").exists()
    assert state_of(copy, model) == state_of(folder, model) == state_of(copy, model, exact_rows=0)
    with DocumentIndex.open(copy, embeddings=model, mode="w", exact_rows=0) as index:
        index.upsert([Document("only in the copy", id="c")])
    with DocumentIndex.open(copy, embeddings=model) as index:
        assert index.verify().ok
    with DocumentIndex.open(folder, embeddings=model) as index:
        assert index.get(["c"]) == [] and index.verify().ok


def test_files_are_private(folder: Path, model: WordEmbeddings) -> None:
    """Folders are 0700 and files 0600, while writing and after."""
    with DocumentIndex.open(folder, embeddings=model, mode="w") as index:
        index.upsert([Document("secret")])
        index.flush()
        for path in [folder, *folder.rglob("*")]:
            assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path


def test_missing_index_names_the_command(tmp_path: Path) -> None:
    """No index: the error says how to make one, for every way to open."""
    (tmp_path / "file").write_text("x")
    for folder in (tmp_path / "none", tmp_path, tmp_path / "file"):
        for opening in (DocumentIndex.open, DocumentIndex.recorded_embedding):
            with pytest.raises(IndexMissingError, match="rag-kit ingest"):
                opening(folder)


def test_create_refuses_a_folder_with_other_files(tmp_path: Path, folder: Path) -> None:
    """A folder of documents is not taken for an index folder, and an index is not made twice."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "letter.txt").write_text("dear")
    with pytest.raises(InvalidInputError, match=r"letter\.txt"):
        DocumentIndex.create(tmp_path / "docs")
    with pytest.raises(InvalidInputError, match="already"):
        DocumentIndex.create(folder)
    assert (tmp_path / "docs" / "letter.txt").exists()


def test_another_embedding_model_is_refused_by_both_names(folder: Path) -> None:
    """Another model, or none for writing, is refused and both names are in the message."""
    with pytest.raises(IndexMismatchError, match=r"WordEmbeddings\[64\].*WordEmbeddings\[32\]"):
        DocumentIndex.open(folder, embeddings=WordEmbeddings(size=32))
    with pytest.raises(IndexMismatchError, match=r"WordEmbeddings\[64\].*none"):
        DocumentIndex.open(folder, mode="w")
    recorded = DocumentIndex.recorded_embedding(folder)
    assert recorded is not None and recorded.endswith("WordEmbeddings[64]")
    with DocumentIndex.open(folder) as index:
        with pytest.raises(InvalidInputError, match="needs the embedding model"):
            index.search_dense("alpha1")
        assert index.search_dense(WordEmbeddings().vector("alpha1 common"), 1)
        with pytest.raises(InvalidInputError, match="length 64"):
            index.search_dense([1.0, 2.0])
        with pytest.raises(IndexError_, match="mode='w'"):
            index.delete(["x"])


def test_vectors_can_be_added_later(tmp_path: Path, model: WordEmbeddings) -> None:
    """A keyword index has no Chroma folder; opened with a model it gets all its vectors, once, whatever fails."""
    folder = tmp_path / "index"
    with DocumentIndex.create(folder) as index:
        index.upsert(documents())
        index.upsert([Document(f"delta{i}", id=f"d{i}") for i in range(600)])
        with pytest.raises(InvalidInputError, match="no vectors"):
            index.search_dense("alpha1")
    assert not (folder / "chroma").exists() and DocumentIndex.recorded_embedding(folder) is None
    failing = WordEmbeddings(fail_after=1)
    with DocumentIndex.open(folder, embeddings=failing, mode="w") as index, pytest.raises(ConnectionError):
        index.add_vectors()
    assert DocumentIndex.recorded_embedding(folder) is None
    with DocumentIndex.open(folder, mode="w") as index:
        index.upsert([Document("changed meanwhile", id="d1")])
    with DocumentIndex.open(folder, embeddings=model, mode="w") as index:
        assert index.add_vectors() == 630 - 512 + 1 and index.add_vectors() == 0
        assert index.vectors(["d1"])["d1"] == pytest.approx(model.vector("changed meanwhile"))
    with DocumentIndex.open(folder, embeddings=model, exact_rows=0) as index:
        assert "d77" in {document.id for document, _ in index.search_dense("delta77", 30)}
        assert index.verify().ok and len(index.vectors(index.ids())) == 630


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("manifest.json", b"{not json", "manifest.json is damaged"),
        ("manifest.json", b'{"format": "other", "version": 1}', "other"),
        (
            "manifest.json",
            json.dumps({"format": "rag_kit.DocumentIndex", "version": 99}).encode(),
            "version 99",
        ),
        ("store.sqlite3", b"this is no database" * 100, "store.sqlite3 is damaged"),
        ("bm25", b"RAGKBM25 nonsense", "bm25-"),
    ],
)
def test_damage_is_named(
    folder: Path, model: WordEmbeddings, name: str, content: bytes, message: str
) -> None:
    """A damaged or newer file is refused by name, for reading and for writing."""
    path = next(folder.glob(f"{name}*"))
    path.write_bytes(content)
    for mode in ("r", "w"):
        with pytest.raises(IndexFormatError, match=message):
            DocumentIndex.open(folder, embeddings=model, mode=mode)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["manifest.json", "bm25-*", "chroma/chroma.sqlite3", "chroma"])
def test_repair_rebuilds_what_is_derived(folder: Path, model: WordEmbeddings, name: str) -> None:
    """Whatever but the store is damaged: verify names it, repair mends it without embedding anything."""
    before = state_of(folder, model)
    embedded = len(model.texts)
    path = next(folder.glob(name))
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.write_bytes(b"damage" * 1000)
    with DocumentIndex.open(folder, check=False) as index:
        assert name.split("-")[0].split("/")[0].split(".")[0] in str(index.verify()).replace(
            "keyword", "bm25"
        )
        assert not index.verify().ok
    with DocumentIndex.open(folder, mode="w", check=False) as index:
        report = index.repair()
        assert report.ok and report.repaired, str(report)
    assert len(model.texts) == embedded
    assert state_of(folder, model) == before == state_of(folder, model, exact_rows=0)


def test_a_lost_graph_is_found_though_chroma_counts_all(tmp_path: Path) -> None:
    """Without its graph folder Chroma counts all rows but finds few: verify says so, searches are right."""
    model = WordEmbeddings(size=16)
    folder = tmp_path / "index"
    with DocumentIndex.create(folder, embeddings=model) as index:
        index.upsert([Document(f"row {i} of {i * i} and {i % 97}", id=str(i)) for i in range(2_200)])
    [graph] = [path for path in (folder / "chroma").iterdir() if path.is_dir()]
    shutil.rmtree(graph)
    with DocumentIndex.open(folder, embeddings=model) as index:
        assert "do not find themselves" in str(index.verify()) or "Chroma failed" in str(index.verify())
    with DocumentIndex.open(folder, embeddings=model, mode="w") as index:
        assert index.repair().ok


def test_verify_finds_single_rows(folder: Path, model: WordEmbeddings) -> None:
    """A changed text, a lost vector and a row missing from Chroma are each found; repair makes what it can."""
    connection = sqlite3.connect(folder / "store.sqlite3")
    connection.execute("UPDATE chunks SET text = 'bit rot' WHERE n = 3")
    connection.execute("DELETE FROM vectors WHERE n = 5")
    connection.commit()
    connection.close()
    with DocumentIndex.open(folder, embeddings=model, mode="w", exact_rows=0) as index:
        collection = index._mirror._open("chroma", index._store.state().chroma["epoch"], create=False)
        collection.delete(ids=index.ids()[7:8])
        problems = str(index.verify())
        assert "1 rows are not what was written" in problems
        assert "1 rows have none" in problems
        assert "chroma: 1 rows are missing" in problems
        after = index.repair()
        assert [p for p in after.problems if "not what was written" not in p] == []
        assert len(index.vectors(index.ids())) == 30


def test_wedged_chroma_is_searched_around(folder: Path, model: WordEmbeddings) -> None:
    """With a broken Chroma collection dense search gives the same results from the stored vectors."""
    expected = state_of(folder, model)[3]
    (folder / "chroma" / "chroma.sqlite3").write_bytes(b"not a database" * 500)
    assert state_of(folder, model, exact_rows=0)[3] == expected


def test_bm25_file_behind_or_lost(folder: Path, model: WordEmbeddings, tmp_path: Path) -> None:
    """A reader follows the store where the keyword file is older, gone, or ahead of it."""
    old = next(folder.glob("bm25-*"))
    kept = tmp_path / old.name
    shutil.copy(old, kept)
    with DocumentIndex.open(folder, embeddings=model, mode="w") as index:
        index.delete(index.ids()[:5])
        index.upsert([Document("numbat", id="n")])
    expected = state_of(folder, model)
    new = next(folder.glob("bm25-*"))
    ahead = new.with_name(new.name.replace(f"-{new.stem.split('-')[2]}.", "-999."))
    shutil.copy(new, ahead)
    new.unlink()
    shutil.copy(kept, old)
    assert state_of(folder, model) == expected
    old.unlink()
    assert state_of(folder, model) == expected
    with DocumentIndex.open(folder, embeddings=model, mode="w"):
        pass
    assert [p.name for p in folder.glob("bm25-*")] == [new.name]


def test_bad_documents_are_refused(folder: Path, model: WordEmbeddings) -> None:
    """Clashing or empty ids, half surrogates and wrong k are refused before anything is written."""
    with DocumentIndex.open(folder, embeddings=model, mode="w") as index:
        for bad, ids in (
            ([Document("a", id="x"), Document("b", id="x")], None),
            ([Document("a")], ["1", "2"]),
            ([Document("a")], [""]),
            ([Document("half \ud800 pair")], None),
            ([Document("a", metadata={"source": "\udfff"})], None),
        ):
            with pytest.raises(InvalidInputError):
                index.upsert(bad, ids=ids)
        for k in (0, -1, True, 2.5):
            with pytest.raises(InvalidInputError, match="k must be"):
                index.search_keyword("alpha1", k)  # type: ignore[arg-type]
        with pytest.raises(InvalidInputError, match="list of ids"):
            index.delete("abc")
        assert len(index.ids()) == 30
    with pytest.raises(IndexError_, match="closed"):
        index.search_keyword("alpha1")


def test_empty_index_and_empty_calls(tmp_path: Path, model: WordEmbeddings) -> None:
    """An index without documents, and calls without any, are fine in both legs."""
    with DocumentIndex.create(tmp_path / "index", embeddings=model) as index:
        assert not index.upsert([]).added and index.delete([]) == 0 and index.get([]) == []
        assert index.search_keyword("x") == [] and index.search_dense("x") == []
    for exact_rows in (20_000, 0):
        with DocumentIndex.open(tmp_path / "index", embeddings=model, exact_rows=exact_rows) as index:
            assert index.search_dense("x") == [] and index.verify().ok and index.stats()["chunks"] == 0


async def test_async_twins(folder: Path, model: WordEmbeddings) -> None:
    """The async methods give what the sync ones give."""
    with DocumentIndex.open(folder, embeddings=model, mode="w") as index:
        assert (await index.aupsert([Document("tapir", id="t")])).added == ["t"]
        assert await index.asearch_keyword("tapir") == index.search_keyword("tapir")
        assert await index.asearch_dense("tapir", 3) == index.search_dense("tapir", 3)
        assert await index.aget(["t"]) == index.get(["t"])


def test_searching_from_threads_while_writing(folder: Path, model: WordEmbeddings) -> None:
    """Threads that search one open index during writes never fail nor see half of a write."""
    wrong: list[Any] = []
    stop = threading.Event()
    with DocumentIndex.open(folder, embeddings=model, mode="w") as index:

        def search() -> None:
            while not stop.is_set():
                try:
                    found = {d.metadata["round"] for d, _ in index.search_keyword("pangolin", 10)}
                    found |= {
                        d.metadata["round"]
                        for d, _ in index.search_dense("pangolin", 4)[:4]
                        if "round" in d.metadata
                    }
                    # two calls may stand on both sides of one write, one call may not
                    if len(found) > 2:
                        wrong.append(found)
                except Exception as error:  # noqa: BLE001 - reported below
                    wrong.append(error)

        index.upsert([Document(f"pangolin {i}", id=f"p{i}", metadata={"round": 0}) for i in range(4)])
        threads = [threading.Thread(target=search) for _ in range(3)]
        for thread in threads:
            thread.start()
        for number in range(1, 15):
            index.upsert(
                [Document(f"pangolin {i} {number}", id=f"p{i}", metadata={"round": number}) for i in range(4)]
            )
        stop.set()
        for thread in threads:
            thread.join()
    assert wrong == []


def test_killed_inside_a_chroma_write(folder: Path, model: WordEmbeddings) -> None:
    """A process that dies while Chroma writes leaves a collection that is not trusted, and then replaced."""
    code = (
        "import sys, os, chromadb\n"
        "from langchain_core.documents import Document\n"
        "from support.embedding import WordEmbeddings\n"
        "from rag_kit.indexing import DocumentIndex\n"
        "index = DocumentIndex.open(sys.argv[1], embeddings=WordEmbeddings(), mode='w')\n"
        "index.upsert([Document('kestrel nest', id='k')])\n"
        "chromadb.Collection.add = lambda *a, **k: os._exit(9)\n"
        "index.flush()\n"
    )
    tests = str(Path(__file__).resolve().parents[2])
    done = subprocess.run([sys.executable, "-c", code, str(folder)], env={**os.environ, "PYTHONPATH": tests})
    assert done.returncode == 9
    for exact_rows in (20_000, 0):
        with DocumentIndex.open(folder, embeddings=model, exact_rows=exact_rows) as index:
            assert index.search_keyword("kestrel")[0][0].id == "k"
            assert index.search_dense("kestrel nest", 1)[0][0].id == "k"
    with DocumentIndex.open(folder, embeddings=model) as index:
        assert "killed" in str(index.verify())
    with DocumentIndex.open(folder, embeddings=model, mode="w"):
        pass
    with DocumentIndex.open(folder, embeddings=model, exact_rows=0) as index:
        assert index.verify().ok and index.search_dense("kestrel nest", 1)[0][0].id == "k"


def test_rows_out_of_reach_of_the_graph(
    folder: Path, model: WordEmbeddings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Single rows that Chroma's graph misses are a note for verify; repair records them and search finds them."""
    import chromadb

    original = chromadb.Collection.query
    hidden = "to be set"

    def query(self: Any, **options: Any) -> Any:
        answer = dict(original(self, **options))
        for number, ids in enumerate(answer["ids"]):
            kept = [place for place, key in enumerate(ids) if key != hidden]
            for name in ("ids", "distances"):
                if answer.get(name):
                    answer[name][number] = [answer[name][number][place] for place in kept]
        return answer

    monkeypatch.setattr(chromadb.Collection, "query", query)
    with DocumentIndex.open(folder, embeddings=model, mode="w", exact_rows=0) as index:
        target = index.search_dense(TEXTS[7], 1)[0][0]
        hidden = str(target.id)
        assert index.search_dense(TEXTS[7], 1)[0][0].id != hidden
        report = index.verify()
        assert report.ok and "1 of 30 rows are out of reach" in report.notes[0]
        assert index.repair().notes == []
        assert index.search_dense(TEXTS[7], 1)[0][0].id == hidden


def test_one_other_vector_in_chroma_is_damage(folder: Path, model: WordEmbeddings) -> None:
    """A row that does not find itself because Chroma holds another vector for it is no matter of reach."""
    program = (
        "import sys, chromadb\n"
        "found = chromadb.PersistentClient(sys.argv[1]).get_collection('chunks', embedding_function=None)\n"
        "kept = found.get(limit=1, include=['embeddings'])\n"
        "found.update(ids=kept['ids'], embeddings=-kept['embeddings'])\n"
    )
    subprocess.run([sys.executable, "-c", program, str(folder / "chroma")], check=True)
    with DocumentIndex.open(folder, embeddings=model, mode="w") as index:
        assert "1 rows have other vectors than were written" in str(index.verify())
        assert index.repair().ok


@pytest.mark.parametrize(("rows", "most"), [(0, 0), (9, 0), (10, 1), (30, 3), (140, 3), (20_000, 100)])
def test_how_many_rows_may_be_out_of_reach(rows: int, most: int) -> None:
    """A share of a large collection, a few rows of a small one, none of a handful."""
    assert lost_rows.most_unreached(rows) == most


def test_what_the_live_writer_has_not_saved_is_a_note(tmp_path: Path) -> None:
    """Before ``flush`` the writer's own ``verify`` is sound; a reader, and the next process, see a problem."""
    with DocumentIndex.create(tmp_path / "i") as index:
        index.upsert(documents())
        report = index.verify()
        assert report.ok and any("until flush()" in note for note in report.notes)
        with DocumentIndex.open(tmp_path / "i") as reader:
            assert "the saved file is behind the store" in " ".join(reader.verify().problems)
        index.flush()
        assert index.verify().ok and not index.verify().notes
