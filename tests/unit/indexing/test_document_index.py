"""DocumentIndex: writing, reading, identity, crashes, locks, formats."""

from __future__ import annotations

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

from rag_kit.cli.main import main
from rag_kit.documents import with_provenance
from rag_kit.errors import (
    DocumentIndexError,
    FilterError,
    IndexFormatError,
    IndexMismatchError,
    IndexMissingError,
    InvalidInputError,
    LockedError,
    ModelUnreachableError,
)
from rag_kit.indexing import DocumentIndex
from rag_kit.indexing.document_index.rows import Child, Family
from rag_kit.retrieval import index_retriever

pytestmark = pytest.mark.usefixtures("backend")

TEXTS = [f"alpha{i} common words number{i % 7} and beta{i % 3}" for i in range(30)]


def documents(source: str = "/docs/a.md") -> list[Document]:
    return [Document(text, metadata={"source": source, "n": i}) for i, text in enumerate(TEXTS)]


@pytest.fixture
def folder(tmp_path: Path, model: WordEmbeddings) -> Path:
    """A closed index of thirty documents with vectors."""
    with DocumentIndex.create(tmp_path / "index", embeddings=model) as index:
        index.upsert(documents())
    return tmp_path / "index"


def state_of(folder: Path, model: WordEmbeddings) -> Any:
    """All that an index holds and finds."""
    with DocumentIndex.open(folder, embeddings=model) as index:
        ids = index.ids()
        queries = ["alpha7", "number3 beta1", "common words"]
        return (
            index.get(ids),
            index.vectors(ids),
            [index.search_keyword(query, 5) for query in queries],
            [index.search_dense(query, 5) for query in queries],
        )


def test_replaced_and_deleted_texts_are_in_no_leg(folder: Path, model: WordEmbeddings) -> None:
    """After an upsert under the same id, or a delete, now and after opening again; Document.id is kept."""
    with DocumentIndex.open(folder, embeddings=model, mode="w") as index:
        index.upsert([Document("walrus tusk", id="mine")])
        report = index.upsert([Document("ocelot spots", id="mine")])
        assert report.updated == ["mine"]
        assert index.search_keyword("walrus") == []
        assert [d.id for d, _ in index.search_keyword("ocelot")] == ["mine"]
        assert index.search_dense("ocelot spots", 1)[0][0].page_content == "ocelot spots"
        assert all(d.page_content != "walrus tusk" for d, _ in index.search_dense("walrus tusk", 31))
        victim = index.search_keyword("alpha7", 1)[0][0]
        assert index.delete(["mine", victim.id, "unknown"]) == 2 and index.delete([victim.id]) == 0
        assert index.get([victim.id]) == []
    with DocumentIndex.open(folder, embeddings=model) as index:
        found = index.search_keyword("alpha7 ocelot", 30) + index.search_dense(victim.page_content, 30)
        assert not {"mine", victim.id} & {document.id for document, _ in found} and len(index.ids()) == 29
        assert index.verify().ok


def test_sync_replaces_sources(tmp_path: Path) -> None:
    """sync removes what a source no longer has."""
    with DocumentIndex.create(tmp_path / "index") as index:
        for source in ("/docs/a.md", "/docs/b.md"):
            index.upsert(documents(source)[:3])
        report = index.sync(documents("/docs/a.md")[:2])
        assert len(report.removed) == 1 and len(report.unchanged) == 2 and len(index.ids("/docs/b.md")) == 3
        twins = [Document("twin", metadata={"source": "/docs/t.md"})] * 2
        assert len(set(index.upsert(twins).added)) == 2 and len(index.upsert(twins).unchanged) == 2


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


def test_embedding_error_changes_nothing(folder: Path, model: WordEmbeddings) -> None:
    """When the model fails in the middle of an upsert, the old state stays, also after opening again."""
    before = state_of(folder, model)
    new = [Document(f"gamma{i}", metadata={"source": "/docs/a.md"}) for i in range(700)]
    failing = WordEmbeddings(fail_after=1)
    with (
        DocumentIndex.open(folder, embeddings=failing, mode="w") as index,
        pytest.raises(ModelUnreachableError),
    ):
        index.sync(new)
    assert failing.batches == 2
    assert state_of(folder, model) == before


@pytest.mark.folder
def test_a_second_writer_waits_or_is_refused(folder: Path, model: WordEmbeddings) -> None:
    """A second writer is refused, or gets in once the first is done."""
    first = DocumentIndex.open(folder, embeddings=model, mode="w")
    with pytest.raises(LockedError, match="Another process is writing"):
        DocumentIndex.open(folder, embeddings=model, mode="w")
    timer = threading.Timer(0.3, first.close)
    timer.start()
    with DocumentIndex.open(folder, embeddings=model, mode="w", wait=20) as second:
        assert second.upsert([Document("late", id="late")]).added == ["late"]
    timer.join()
    code = (
        "import sys; from rag_kit.indexing import DocumentIndex; from rag_kit.errors import LockedError\n"
        "try: DocumentIndex.open(sys.argv[1], mode='w', check=False)\n"
        "except LockedError as error: print(error)"
    )
    with DocumentIndex.open(folder, embeddings=model, mode="w"):
        done = subprocess.run(
            [sys.executable, "-c", code, str(folder)], capture_output=True, text=True, check=True
        )
    assert "Another process is writing" in done.stdout


def test_readers_see_each_write_whole(folder: Path, model: WordEmbeddings) -> None:
    """A reader that was open before sees a later write in all legs; during an open transaction, nothing of it."""
    with DocumentIndex.open(folder, embeddings=model) as reader:
        reader.search_dense("alpha1", 1)
        with DocumentIndex.open(folder, embeddings=model, mode="w") as writer:
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


@pytest.mark.folder
def test_backup_by_copying_the_closed_folder(folder: Path, model: WordEmbeddings, tmp_path: Path) -> None:
    """A copy, put elsewhere, gives the same results, can be written to, and leaves the original alone."""
    shutil.copytree(folder, tmp_path / "moved" / "copy")
    copy = tmp_path / "moved" / "copy"
    assert not (folder / "store.sqlite3-wal").exists()
    assert state_of(copy, model) == state_of(folder, model)
    with DocumentIndex.open(copy, embeddings=model, mode="w") as index:
        index.upsert([Document("only in the copy", id="c")])
    with DocumentIndex.open(copy, embeddings=model) as index:
        assert index.verify().ok
    with DocumentIndex.open(folder, embeddings=model) as index:
        assert index.get(["c"]) == [] and index.verify().ok


@pytest.mark.folder
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


def test_another_embedding_model_is_refused_by_both_names(folder: Path) -> None:
    """Another model, or none for writing, is refused and both names are in the message; no index is made twice."""
    with pytest.raises(InvalidInputError, match="already"):
        DocumentIndex.create(folder)
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
        with pytest.raises(DocumentIndexError, match="mode='w'"):
            index.delete(["x"])


def test_an_index_without_documents_refuses_a_query_that_is_no_vector(tmp_path: Path) -> None:
    """The length of its vectors is not known yet; a number alone ended in a TypeError."""
    with DocumentIndex.create(tmp_path, embeddings=WordEmbeddings()) as index:
        assert index.search_dense([1.0, 2.0]) == []
        for query in (3.0, [], [[1.0]], [float("nan")], ["a"]):
            with pytest.raises(InvalidInputError, match=r"a text, or finite numbers; what was given"):
                index.search_dense(query)  # type: ignore[arg-type]


def test_vectors_can_be_added_later(tmp_path: Path, model: WordEmbeddings) -> None:
    """A keyword index has no file of vectors; opened with a model it gets all its vectors, once, whatever fails."""
    folder = tmp_path / "index"
    with DocumentIndex.create(folder) as index:
        index.upsert(documents())
        index.upsert([Document(f"delta{i}", id=f"d{i}") for i in range(600)])
        with pytest.raises(InvalidInputError, match="no vectors"):
            index.search_dense("alpha1")
    assert not list(folder.glob("vectors-*")) and DocumentIndex.recorded_embedding(folder) is None
    failing = WordEmbeddings(fail_after=1)
    with (
        DocumentIndex.open(folder, embeddings=failing, mode="w") as index,
        pytest.raises(ModelUnreachableError),
    ):
        index.add_vectors()
    assert DocumentIndex.recorded_embedding(folder) is None
    with DocumentIndex.open(folder, mode="w") as index:
        index.upsert([Document("changed meanwhile", id="d1")])
    with DocumentIndex.open(folder, embeddings=model, mode="w") as index:
        assert index.add_vectors() == 630 - 512 + 1 and index.add_vectors() == 0
        assert index.vectors(["d1"])["d1"] == pytest.approx(model.vector("changed meanwhile"))
    with DocumentIndex.open(folder, embeddings=model) as index:
        assert "d77" in {document.id for document, _ in index.search_dense("delta77", 30)}
        assert index.verify().ok and len(index.vectors(index.ids())) == 630


@pytest.mark.folder
@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
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


def test_queries_lose_question_words_and_identifiers_are_found_by_their_parts(tmp_path: Path) -> None:
    """The keyword leg searches for the topic alone, and for FY2022 by 2022, for XR20 by XR-20 and back."""
    texts = [
        "How do I, what can I, which?",
        "Filing of FY2022",
        "The XR20 pump",
        "The AB-7 valve",
        "怎样？请问哪些？",
    ]
    with DocumentIndex.create(tmp_path / "index") as index:
        index.upsert([Document(text, id=text) for text in texts])
        for query, found in {
            "How do I open what the pump can hold?": "The XR20 pump",
            "What happened in 2022?": "Filing of FY2022",
            "XR-20": "The XR20 pump",
            "AB7": "The AB-7 valve",
        }.items():
            assert [doc.id for doc, _ in index.search_keyword(query, 5)] == [found]
        view = index.keyword_view()
        assert view.query_terms("Which valve?") == ["valv"]
        asked = "How do I open a valve?", "open valve"
        assert len({index.search_keyword(query).maximum for query in asked}) == 1


@pytest.mark.folder
def test_a_keyword_file_of_older_terms_is_named_and_repaired(folder: Path, model: WordEmbeddings) -> None:
    """A folder of the format before says what it is and how its terms are made again, without reading files."""
    before = state_of(folder, model)
    path = next(folder.glob("bm25-*"))
    data = bytearray(path.read_bytes())
    data[8:12] = (1).to_bytes(4, "little")
    path.write_bytes(bytes(data))
    for mode in ("r", "w"):
        with pytest.raises(IndexFormatError, match=r"an older rag_kit.*rag-kit repair --index"):
            DocumentIndex.open(folder, embeddings=model, mode=mode)  # type: ignore[arg-type]
    assert main(["repair", "--index", str(folder)]) == 0
    assert state_of(folder, model) == before


@pytest.mark.folder
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
    """Clashing, empty and other ids than texts, half surrogates and wrong k are refused, and nothing is changed."""
    with DocumentIndex.open(folder, embeddings=model, mode="w") as index:
        for bad, ids in (
            ([Document("a", id="x"), Document("b", id="x")], None),
            ([Document("a")], ["1", "2"]),
            ([Document("a")], [""]),
            ([Document("a"), Document("b")], "ab"),  # would be an id for each letter
            ([Document.model_construct(page_content="a", metadata={}, id=7)], None),
            ([Document("half \ud800 pair")], None),
            ([Document("a", metadata={"source": "\udfff"})], None),
        ):
            with pytest.raises(InvalidInputError):
                index.upsert(bad, ids=ids)
        for k in (0, -1, True, 2.5):
            with pytest.raises(InvalidInputError, match=r"k=.* is not allowed"):
                index.search_keyword("alpha1", k)  # type: ignore[arg-type]
        with pytest.raises(FilterError):
            index.search_keyword("alpha1", 1, {"n": {"$near": 1}})
        index.upsert([Document("seven", id="7"), Document("eight", id="8")])
        for call in (index.get, index.vectors, index.delete):
            for wrong in ("abc", [7], 7):
                with pytest.raises(InvalidInputError, match="list of ids"):
                    call(wrong)  # type: ignore[arg-type]
        assert [document.id for document in index.get(iter(["7", "8"]))] == ["7", "8"]  # type: ignore[arg-type]
        assert index.vectors(iter(["7"])).keys() == {"7"}  # type: ignore[arg-type]
        assert index.delete(iter(["7", "8"])) == 2  # type: ignore[arg-type]
        assert len(index.ids()) == 30
    with pytest.raises(DocumentIndexError, match="closed"):
        index.search_keyword("alpha1")


@pytest.mark.folder
def test_pending_changes_are_no_damage_and_a_lost_file_is(tmp_path: Path, model: WordEmbeddings) -> None:
    """Before ``flush`` an index verifies as sound, to its writer and to readers; without its files it does not."""
    folder = tmp_path / "i"
    with DocumentIndex.create(folder, embeddings=model) as index:
        index.upsert(documents())
        for _ in range(2):  # nothing saved yet; then files that are older than the store
            with DocumentIndex.open(folder, embeddings=model) as reader:
                for report in (index.verify(), reader.verify()):
                    assert report.ok and all("pending" in note for note in report.notes)
                    assert len(report.notes) == 2
            index.flush()
            assert index.verify().ok and not index.verify().notes
            index.upsert([Document(f"numbat {n}", id=f"n{n}") for n in range(20)])
    for path in (*folder.glob("bm25-*"), *folder.glob("vectors-*")):
        path.unlink()
    with DocumentIndex.open(folder, embeddings=model) as reader:
        assert [p.split(":")[0] for p in reader.verify().problems] == ["keyword", "vectors"]


@pytest.mark.folder
def test_verify_names_a_row_of_the_keyword_index_that_is_not_the_store_s(tmp_path: Path) -> None:
    """Each text in the keyword index is compared with the store's."""
    texts = ["- pump\n" * n + "- valve\n" * (n // 2) for n in range(1, 120)]
    with DocumentIndex.create(tmp_path) as index:
        index.upsert([Document(text, id=str(number)) for number, text in enumerate(texts)])
        index.flush()
        assert index.search_keyword("pump") and index.verify().problems == []
        loaded = index._store.keyword._loaded
        assert loaded is not None
        loaded.update([Document("quite another text")], ids=["0"])
        assert "1 rows are not what was written" in index.verify().problems[0]


@pytest.mark.folder
def test_a_damaged_vector_stops_no_hybrid_search(tmp_path: Path) -> None:
    """Hybrid search leaves damaged vectors of the store out; verify names them."""
    with DocumentIndex.create(tmp_path, embeddings=WordEmbeddings()) as index:
        index.upsert([Document(f"pump {number}", id=str(number)) for number in range(5)])
    with sqlite3.connect(tmp_path / "store.sqlite3") as store:
        store.execute("UPDATE vectors SET vector = x'00' WHERE n % 2 = 1")
        store.execute("UPDATE vectors SET vector = ? WHERE n % 2 = 0", (b"\0\0\xc0\x7f" * 64,))  # not numbers
    store.close()
    with DocumentIndex.open(tmp_path, embeddings=WordEmbeddings()) as index:
        assert index.vectors(index.ids()) == {}
        assert index_retriever(index, "hybrid", k=1).invoke("pump 3")[0].id == "3"
        assert any("vectors" in problem for problem in index.verify().problems)


@pytest.mark.folder
def test_few_changes_leave_the_files_as_they_are(tmp_path: Path, model: WordEmbeddings) -> None:
    """Up to one changed row in a hundred readers follow the store; what is removed stays recorded till then."""
    folder = tmp_path / "index"
    with DocumentIndex.create(folder, embeddings=model) as index:
        index.upsert([Document(f"badger number{i}", id=str(i)) for i in range(300)])
    files = [*folder.glob("bm25-*"), *folder.glob("vectors-*")]
    for word, last in (("quoll", False), ("dunnart", False), ("bilby", True)):
        with DocumentIndex.open(folder, mode="w", embeddings=model) as index:
            index.upsert([Document(f"{word} again", id="7")])
            index.delete([str(len(index.ids()))])
            if last:
                index.upsert([Document("potoroo", id=str(i)) for i in range(20, 30)])
        assert [file.exists() for file in files] == [not last] * 2
        with DocumentIndex.open(folder, embeddings=model) as reader:
            assert [document.id for document, _ in reader.search_keyword(word)] == ["7"]
            assert reader.search_dense(f"{word} again", 1)[0][0].id == "7"
            assert len(reader.search_keyword("badger", 400)) == len(reader.ids()) - (11 if last else 1)
            assert reader.verify().ok and not reader.verify().notes


def test_as_many_hits_as_there_are_documents(tmp_path: Path) -> None:
    """With k as large as the corpus all hits come, best first, ties by id."""
    with DocumentIndex.create(tmp_path / "index") as index:
        index.upsert([Document("heron " * (1 + i % 3), id=f"{i:03}") for i in reversed(range(200))])
        hits = index.search_keyword("heron", 10_000)
        assert len(hits) == 200 and hits[:50] == index.search_keyword("heron", 50)
        assert [(-score, document.id) for document, score in hits] == sorted(
            (-score, document.id) for document, score in hits
        )


@pytest.mark.parametrize("families", [False, True])
def test_a_document_that_takes_the_place_of_anothers_is_logged(
    families: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Two tenants write the same text of the same source without ids; a passage that only moved is no such case."""
    same = "Returns are free within 30 days."

    def write(index: DocumentIndex, **metadata: Any) -> None:
        document = Document(same, metadata={"source": "handbook.md", **metadata})
        index.upsert([Family(document, [Child(same, 0, len(same))])] if families else [document])

    with DocumentIndex.create(tmp_path / "index") as index:
        write(index, tenant="a", chunk=0)
        write(index, tenant="a", chunk=1)
        assert not caplog.records
        write(index, tenant="b", chunk=1)
        [record] = caplog.records
        assert "whose tenant differed" in record.getMessage() and "give ids=" in record.getMessage()
        index.upsert([Document(same, id="c", metadata={"source": "handbook.md", "tenant": "c"})])
        index.upsert([Document(same, id="c", metadata={"source": "handbook.md", "tenant": "d"})])
        assert len(caplog.records) == 1
