"""ingest: what changed is read and embedded, the rest is left alone; trouble is reported by name."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from time import time_ns
from typing import Any

import pytest
from langchain_core.documents import Document
from support import documents as make
from support.embedding import WordEmbeddings
from support.openai_server import OpenAIServer, Recorded

import rag_kit.indexing.document_index.embedding as embedding
import rag_kit.indexing.ingestion.converting as converting
import rag_kit.indexing.ingestion.grouping as grouping
import rag_kit.indexing.ingestion.run as run
from rag_kit.cli.main import main
from rag_kit.errors import (
    IndexMismatchError,
    InvalidInputError,
    LockedError,
    ModelUnreachableError,
    ReadError,
)
from rag_kit.indexing import DocumentIndex, IngestOptions, ingest
from rag_kit.indexing.readers.api import Reader
from rag_kit.indexing.readers.limits import ReadLimits
from rag_kit.models import embedding_model

pytestmark = pytest.mark.usefixtures("backend")


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    """Six small files, old enough for their times to be trusted."""
    folder = tmp_path / "docs"
    (folder / "sub").mkdir(parents=True)
    for number in range(5):
        sections = "\n\n".join(f"## Part {part}\n\nItem{number} has value{part}." for part in range(4))
        (folder / f"file{number}.md").write_text(f"# File {number}\n\n{sections}\n")
    (folder / "sub" / "泵.txt").write_text("水泵在四十度时启动。", encoding="utf-8")
    age(folder)
    return folder


def age(folder: Path) -> None:
    """Set all times back by an hour, so that size and time alone tell a change."""
    for path in folder.rglob("*"):
        os.utime(path, (time.time() - 3600,) * 2)


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the files that are converted."""
    names: list[str] = []
    original = Reader.read

    def read(self: Reader, path: Any, **options: Any) -> Any:
        names.append(Path(path).name)
        return original(self, path, **options)

    monkeypatch.setattr(Reader, "read", read)
    return names


@pytest.fixture
def hashes(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the files whose bytes are compared for being unchanged."""
    names: list[str] = []
    original = grouping.file_hash

    def file_hash(path: Path) -> str:
        names.append(path.name)
        return original(path)

    monkeypatch.setattr(grouping, "file_hash", file_hash)
    return names


def rows(folder: Path) -> list[tuple[str, str]]:
    with DocumentIndex.open(folder) as index:
        return [(document.metadata["file"], document.page_content) for document in index.get(index.ids())]


def test_second_run_reads_and_embeds_nothing(
    docs: Path, tmp_path: Path, model: WordEmbeddings, reads: list[str], hashes: list[str]
) -> None:
    """The first run embeds batches across files; the second converts, hashes and embeds nothing."""
    report = ingest([docs], tmp_path / "index", embeddings=model)
    assert (report.added, report.updated, report.unchanged, report.removed) == (6, 0, 0, 0)
    assert report.failed == [] and report.embedded == report.chunks == len(model.texts) == len(
        rows(tmp_path / "index")
    )
    assert model.batches == 1 and len(reads) == 6
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "index").glob("bm25*")}
    again = ingest(str(docs), tmp_path / "index", embeddings=model)
    assert (again.added, again.updated, again.unchanged, again.embedded) == (0, 0, 6, 0)
    assert model.batches == 1 and len(reads) == 6 and hashes == []
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "index").glob("bm25*")} == before


def test_a_clock_that_goes_back_hides_no_change(
    docs: Path, tmp_path: Path, model: WordEmbeddings, reads: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files changed while the clock is a day behind, and after it is right again, are read; no others are."""
    index = tmp_path / "index"
    ingest(docs, index, embeddings=model)
    for behind, old, new in ((86_400, "value", "other"), (0, "other", "again")):  # of the same size
        monkeypatch.setattr(converting.time, "time_ns", lambda behind=behind: time_ns() - behind * 10**9)
        path = docs / "file1.md"
        path.write_text(path.read_text().replace(old, new))
        os.utime(path, (time.time() - behind,) * 2)
        reads.clear()
        for turn in range(2):
            report = ingest(docs, index, embeddings=model)
            assert (report.updated, report.unchanged, report.failed) == (1 - turn, 5 + turn, [])
        assert reads == ["file1.md"]
        with DocumentIndex.open(index, embeddings=model) as opened:
            assert opened.verify().ok
            for word, found in ((f"{new}1", True), (f"{old}1", False)):
                passages = opened.search_keyword(word, 50, filter={"file": "file1.md"})
                assert any(word in document.page_content for document, _ in passages) == found


def test_a_touched_file_is_compared_by_its_bytes_once(
    docs: Path, tmp_path: Path, model: WordEmbeddings, reads: list[str], hashes: list[str]
) -> None:
    """A new time with the same bytes costs one hash, no conversion, and is remembered."""
    ingest(docs, tmp_path / "index", embeddings=model)
    os.utime(docs / "file1.md", (time.time() - 1800,) * 2)
    for _ in range(2):
        assert ingest(docs, tmp_path / "index", embeddings=model).unchanged == 6
    assert hashes == ["file1.md"] and len(reads) == 6
    ingest(docs, tmp_path / "index", embeddings=model, options=IngestOptions(rehash=True))
    assert len(hashes) == 1 + 6


def test_same_size_and_time_within_a_tick_is_not_trusted(
    docs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that was written just before it was read, and again with its old size and time, is seen as changed."""
    monkeypatch.setattr(grouping, "_TICK_NS", 60 * 10**9)  # the machine may be slow
    path = docs / "file0.md"
    path.write_text("The heron waits.")
    stamp = path.stat().st_mtime_ns
    ingest(docs, tmp_path / "index")
    path.write_text("The eagle waits.")
    os.utime(path, ns=(stamp, stamp))
    assert ingest(docs, tmp_path / "index").updated == 1
    assert ("file0.md", "The eagle waits.") in rows(tmp_path / "index")


def test_changed_file_embeds_only_new_chunks(
    docs: Path, tmp_path: Path, model: WordEmbeddings, reads: list[str]
) -> None:
    """A paragraph put in at the top embeds one chunk; the ids of the others stay; the old text is gone."""
    ingest(docs, tmp_path / "index", embeddings=model)
    with DocumentIndex.open(tmp_path / "index") as index:
        before = set(index.ids())
    path = docs / "file2.md"
    text = path.read_text().replace("# File 2\n", "# File 2\n\n## Preface\n\nAn osprey nests.\n", 1)
    path.write_text(text.replace("Item2 has value3.", "Item2 lost it."))
    reads.clear()
    report = ingest(docs, tmp_path / "index", embeddings=model)
    assert (report.updated, report.unchanged, reads) == (1, 5, ["file2.md"])
    assert report.embedded <= 3
    with DocumentIndex.open(tmp_path / "index", embeddings=model) as index:
        after = set(index.ids())
        assert len(before - after) <= 2 and len(after & before) >= len(before) - 2
        assert "osprey" in index.search_keyword("osprey", 1)[0][0].page_content
        texts = [document.page_content for document, _ in index.search_dense("Item2 has value3.", 40)]
        assert not any("Item2 has value3." in text for text in texts)


def test_prune_removes_what_vanished_below_the_paths(docs: Path, tmp_path: Path) -> None:
    """Without prune a vanished file stays, with a note; with it, it goes, below the given paths alone; no document."""
    ingest(docs, tmp_path / "index")
    by_hand = Document("by hand", metadata={"source": str(docs / "hand.md"), "file": "hand"})
    with DocumentIndex.open(tmp_path / "index", mode="w") as index:
        index.upsert([by_hand])
    (docs / "file0.md").unlink()
    (docs / "sub" / "泵.txt").unlink()
    report = ingest(docs, tmp_path / "index")
    assert report.removed == 0 and report.notes[-1].startswith(
        "gone, but still found: file0.md, sub/泵.txt; --prune"
    )
    report = ingest(docs / "sub", tmp_path / "index", prune=True)
    assert report.changes == [("泵.txt", "removed")] and report.removed == 1 and not report.notes
    assert any(file == "file0.md" for file, _ in rows(tmp_path / "index"))
    assert ingest(docs, tmp_path / "index", prune=True).removed == 1
    (docs / "file1.md").unlink()
    assert ingest(docs / "file1.md", tmp_path / "index", prune=True).removed == 1
    assert {file for file, _ in rows(tmp_path / "index")} == {"file2.md", "file3.md", "file4.md", "hand"}


def test_trouble_is_reported_by_name_and_the_rest_goes_in(docs: Path, tmp_path: Path) -> None:
    """Broken, empty, unknown files and links out of the folder are named with a reason; earlier versions stay."""
    (docs / "broken.docx").write_bytes(b"PK\x03\x04 cut off")
    (docs / "empty.md").write_text("")
    (docs / "program.xyz").write_text("what is this")
    (tmp_path / "secret.md").write_text("outside")
    (docs / "link.md").symlink_to(tmp_path / "secret.md")
    for _ in range(2):
        report = ingest(docs, tmp_path / "index")
        reasons = dict(report.failed)
        assert set(reasons) == {"broken.docx", "empty.md", "program.xyz", "link.md"}
        assert "damaged" in reasons["broken.docx"] and "empty" in reasons["empty.md"]
        assert ".xyz" in reasons["program.xyz"] and "leaves the folder" in reasons["link.md"]
        assert not any(reason.startswith(str(tmp_path)) for reason in reasons.values())
    assert report.unchanged == 6 and "4 not read" in report.summary()
    assert "outside" not in str(rows(tmp_path / "index"))
    (docs / "file1.md").write_bytes(b"")
    report = ingest(docs, tmp_path / "index", prune=True)
    assert report.removed == 0 and "earlier version stays" in dict(report.failed)["file1.md"]
    assert any("Item1" in text for _, text in rows(tmp_path / "index"))


def test_strict_stops_and_leaves_the_index_as_it_was(
    docs: Path, tmp_path: Path, model: WordEmbeddings
) -> None:
    """With strict one bad file means: an error by name, and nothing changed."""
    (docs / "zz-empty.md").write_text("")
    with pytest.raises(ReadError, match=r"zz-empty\.md.*Nothing was changed"):
        ingest(docs, tmp_path / "index", embeddings=model, options=IngestOptions(strict=True))
    assert rows(tmp_path / "index") == []
    (docs / "zz-empty.md").unlink()
    ingest(docs, tmp_path / "index", embeddings=model, options=IngestOptions(strict=True))
    before = rows(tmp_path / "index")
    (docs / "file0.md").write_text("A changed file.")
    (docs / "zz-empty.md").write_text("")
    with pytest.raises(ReadError):
        ingest(docs, tmp_path / "index", embeddings=model, options=IngestOptions(strict=True), prune=True)
    assert rows(tmp_path / "index") == before
    with DocumentIndex.open(tmp_path / "index", embeddings=model) as index:
        assert index.verify().ok


def test_other_chunk_size_splits_all_again_and_says_so(
    docs: Path, tmp_path: Path, model: WordEmbeddings
) -> None:
    """A new chunk size is recorded, told, applied to all files, and is then the default."""
    (docs / "long.txt").write_text("A sentence of some length stands here. " * 30)
    ingest(docs, tmp_path / "index", embeddings=model)
    report = ingest(docs, tmp_path / "index", embeddings=model, options=IngestOptions(chunk_size=100))
    changes = "chunk_size changed from 1000 to 100 and chunk_overlap changed from 100 to 50"
    assert report.updated == 7 and changes in report.notes[0]
    assert max(len(text) for _, text in rows(tmp_path / "index")) <= 100
    again = ingest(docs, tmp_path / "index", embeddings=model)
    assert again.unchanged == 7 and again.notes == []
    with pytest.raises(InvalidInputError, match="chunk_size"):
        ingest(docs, tmp_path / "index", embeddings=model, options=IngestOptions(chunk_size=0))


@pytest.mark.parametrize(
    "wrong",
    [
        {"limits": 5},
        {"wait": "5"},
        {"strict": "yes"},
        {"keep_duplicates": "x"},
        {"represent": 5},
        {"readers": 5},
        {"readers": {"*.md": 5}},
    ],
)
def test_values_of_another_kind_are_refused(wrong: dict[str, Any]) -> None:
    """The message names the option, or the pattern of a reader, and what was given."""
    with pytest.raises(InvalidInputError, match=r"(\w+=|of '\*\.md' is )('\w+'|5)[ ;].*(it is|give) "):
        IngestOptions(**wrong)


def test_a_file_that_changes_while_it_is_read(
    docs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is read again, and the chunks are those of its last state; one that never rests is reported."""
    original = Reader.read
    restless = docs / "file3.md"
    changes = 1

    def read(self: Reader, path: Any, **options: Any) -> Any:
        nonlocal changes
        found = original(self, path, **options)
        if Path(path) == restless and changes:
            changes -= 1
            restless.write_text(f"Changed, {changes} to go.")
            os.utime(restless, (changes, changes))
        return found

    monkeypatch.setattr(converting.Reader, "read", read)
    assert ingest(docs, tmp_path / "index").added == 6
    assert ("file3.md", "Changed, 0 to go.") in rows(tmp_path / "index")
    assert ingest(docs, tmp_path / "index").unchanged == 6
    changes = 100
    restless.write_text("again")
    report = ingest(docs, tmp_path / "index")
    assert "being written to" in dict(report.failed)["file3.md"]


def test_embedding_failure_keeps_what_was_committed(
    docs: Path, tmp_path: Path, model: WordEmbeddings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When the model goes away, the groups before stay, whole files each; the next run does only the rest."""
    monkeypatch.setattr(run, "_GROUP", 5)
    with pytest.raises(ModelUnreachableError):
        ingest(docs, tmp_path / "index", embeddings=WordEmbeddings(fail_after=2))
    held = {file for file, _ in rows(tmp_path / "index")}
    assert 0 < len(held) < 6
    report = ingest(docs, tmp_path / "index", embeddings=model)
    assert report.unchanged == len(held) and report.added == 6 - len(held)
    ingest(docs, tmp_path / "undisturbed", embeddings=WordEmbeddings())
    assert sorted(rows(tmp_path / "index")) == sorted(rows(tmp_path / "undisturbed"))


class Waiting(WordEmbeddings):
    """Waits, in a batch with a word, for an event; as an endpoint does."""

    def __init__(self, word: str) -> None:
        super().__init__()
        self.word, self.begun, self.go = word, threading.Event(), threading.Event()

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        if any(self.word in text for text in texts):
            self.begun.set()
            assert self.go.wait(20)
        return super().embed_documents(texts)


def test_files_are_read_while_others_are_embedded(
    docs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While the first group is at the endpoint the next one is read, and no more than a few."""
    monkeypatch.setattr(run, "_GROUP", 1)  # a file each
    for number in range(5, 40):
        (docs / f"file{number:02}.md").write_text(f"Item{number} has some value.")
    model, reads, ahead = Waiting("Item0"), list[str](), list[int]()
    original = Reader.read

    def read(self: Reader, path: Any, **options: Any) -> Any:
        reads.append(Path(path).name)
        if len(reads) == 3:  # the second file is ready, and the first is not embedded
            assert model.begun.wait(20) and not model.texts
            model.go.set()
        return original(self, path, **options)

    def progress(name: str, done: int, total: int, **_: Any) -> None:
        ahead.append(len(reads) - done)

    monkeypatch.setattr(Reader, "read", read)
    report = ingest(docs, tmp_path / "index", embeddings=model, on_progress=progress)
    assert report.added == 41 and max(ahead) <= 12
    with DocumentIndex.open(tmp_path / "index", embeddings=model) as index:
        rows = [row["file"] for row in index.metadata_rows()]
        assert index.verify().ok and len(dict.fromkeys(rows)) == 41


@pytest.mark.slow
def test_an_endpoint_gets_several_requests_at_once(
    docs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Over HTTP: two requests meet there, and no third with max_concurrency=2; in ingest, upsert and reembed."""
    monkeypatch.setattr(run, "_GROUP", 1)
    monkeypatch.setattr(embedding, "EMBED_BATCH", 10)
    lock, now, most, first = threading.Lock(), [0], [0], threading.Semaphore(0)
    meeting = threading.Barrier(2)

    def answer(request: Recorded) -> None:
        with lock:
            now[0] += 1
            most[0] = max(most[0], now[0])
        if first.acquire(blocking=False):
            meeting.wait(20)
        with lock:
            now[0] -= 1

    with OpenAIServer(embeddings=[answer]) as server:
        old, new = (
            embedding_model(f"openai:{name}", base_url=server.url, api_key="sk-test")
            for name in ("old", "new")
        )
        assert old is not None and new is not None
        first.release(2)  # the first two requests wait for each other
        assert ingest(
            docs, tmp_path / "index", embeddings=old, options=IngestOptions(max_concurrency=2)
        ).added == 6 and most == [2]
        with DocumentIndex.open(tmp_path / "index", mode="w", embeddings=old) as index:
            first.release(2)
            index.upsert([Document(f"number {n}", id=str(n)) for n in range(40)])
            most[0] = 0
            first.release(2)
            assert index.reembed(new, max_concurrency=2) > 40
            assert index.verify().ok and len(index.vectors(index.ids())) == len(index.ids())
        assert most == [2]


def test_a_text_that_leaves_the_index_while_others_are_embedded(
    docs: Path, tmp_path: Path, model: WordEmbeddings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A paragraph that moves to a later file had a vector when that file was prepared; it has one afterwards, too."""
    monkeypatch.setattr(run, "_GROUP", 1)
    (docs / "a.md").write_text("A heron waits.")
    ingest(docs, tmp_path / "index", embeddings=model)
    (docs / "a.md").write_text("Nobody waits there now.")
    (docs / "b.md").write_text("A heron waits.")
    ingest(docs, tmp_path / "index", embeddings=model)
    with DocumentIndex.open(tmp_path / "index", embeddings=model) as index:
        assert index.search_dense("A heron waits.", 1)[0][0].metadata["file"] == "b.md"
        assert index.verify().ok and len(index.vectors(index.ids())) == len(index.ids())


def test_ctrl_c_ends_at_once_and_leaves_a_whole_index(
    docs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It does not wait for the request that is under way; what was committed stays, and the next run does the rest."""
    monkeypatch.setattr(run, "_GROUP", 1)
    model = Waiting("Item3")
    interrupt = threading.Thread(
        target=lambda: model.begun.wait(20) and os.kill(os.getpid(), signal.SIGINT), daemon=True
    )
    interrupt.start()
    with pytest.raises(KeyboardInterrupt):
        ingest(docs, tmp_path / "index", embeddings=model)
    assert not model.go.is_set()
    model.go.set()
    committed = {file for file, _ in rows(tmp_path / "index")}
    assert committed <= {"file0.md", "file1.md", "file2.md"}
    report = ingest(docs, tmp_path / "index", embeddings=model)
    assert (report.unchanged, report.added) == (len(committed), 6 - len(committed))
    with DocumentIndex.open(tmp_path / "index", embeddings=model) as index:
        assert index.verify().ok


def test_vectors_are_added_when_a_model_comes_later(
    docs: Path, tmp_path: Path, model: WordEmbeddings
) -> None:
    """A keyword index ingested again with a model gets vectors for all, is told so, and reads nothing again."""
    ingest(docs, tmp_path / "index")
    assert not list((tmp_path / "index").glob("vectors*"))
    report = ingest(docs, tmp_path / "index", embeddings=model)
    assert report.unchanged == 6 and report.embedded == report.chunks and "no vectors" in report.notes[0]
    with pytest.raises(IndexMismatchError):
        ingest(docs, tmp_path / "index", embeddings=WordEmbeddings(size=8))
    with pytest.raises(IndexMismatchError):
        ingest(docs, tmp_path / "index")


def test_progress_counts_files_and_bytes(docs: Path, tmp_path: Path) -> None:
    """The callback sees each file begun, never goes backwards, and ends with all files and bytes."""
    calls: list[tuple[str, int, int, int]] = []

    def progress(file: str, done: int, total: int, bytes: int) -> None:  # noqa: A002
        calls.append((file, done, total, bytes))

    (docs / "empty.md").write_text("")
    ingest(docs, tmp_path / "index", on_progress=progress)
    assert {file for file, *_ in calls} >= {"file0.md", "sub/泵.txt", "empty.md"}
    assert [done for _, done, *_ in calls] == sorted(done for _, done, *_ in calls)
    size = sum(path.stat().st_size for path in docs.rglob("*") if path.is_file())
    assert calls[-1][1:] == (7, 7, size)


@pytest.mark.folder
def test_paths_that_cannot_be(docs: Path, tmp_path: Path) -> None:
    """A missing path, no path, and an index folder full of other files are refused; nothing is left behind."""
    with pytest.raises(InvalidInputError, match="nowhere"):
        ingest(tmp_path / "nowhere", tmp_path / "index")
    with pytest.raises(InvalidInputError, match="empty"):
        ingest([], tmp_path / "index")
    with pytest.raises(InvalidInputError, match=r"file0\.md"):
        ingest(docs, docs)
    assert not (tmp_path / "index").exists() and not (docs / "store.sqlite3").exists()
    (docs / "store.sqlite3").touch()  # a file of the store's name makes no index of a folder
    for paths, word in ((tmp_path / "nowhere", "nowhere"), (docs / "sub", r"file0\.md")):
        with pytest.raises(InvalidInputError, match=word):
            ingest(paths, docs)
    assert len(list(docs.rglob("*.md"))) == 5


@pytest.mark.folder
def test_an_index_inside_the_documents_is_not_read(docs: Path, tmp_path: Path) -> None:
    """The index may lie among the documents; its own files are passed over."""
    for _ in range(2):
        assert ingest(docs, docs / "index").failed == []
    with DocumentIndex.open(docs / "index", mode="w"), pytest.raises(LockedError):
        ingest(docs, docs / "index")


def test_an_english_model_says_what_it_could_not_read(tmp_path: Path) -> None:
    """The report names the embedding model, and counts the Chinese chunks that an English-only one was given."""

    class EnglishEmbeddings(WordEmbeddings):
        english_only = True

    (tmp_path / "pump.md").write_text("The pump starts at 40 degrees.", encoding="utf-8")
    first = ingest(tmp_path / "pump.md", tmp_path / "index", embeddings=EnglishEmbeddings())
    assert "EnglishEmbeddings" in first.embedding and first.notes == []
    (tmp_path / "fan.md").write_text("风扇在六十度时启动，噪音很大。", encoding="utf-8")
    [note] = ingest(tmp_path / "fan.md", tmp_path / "index", embeddings=EnglishEmbeddings()).notes
    assert "English only: Chinese chunks (1)" in note and "multilingual" in note
    assert ingest(tmp_path / "fan.md", tmp_path / "words", embeddings=WordEmbeddings()).notes == []
    assert ingest(tmp_path / "fan.md", tmp_path / "none").embedding == "none"


def sources_of(folder: Path) -> set[str]:
    """Return the sources that chunks name."""
    with DocumentIndex.open(folder) as index:
        return {row["source"] for row in index.metadata_rows()}


def test_sources_are_relative_to_what_was_given(docs: Path, tmp_path: Path) -> None:
    """Below a folder its path there, else its name; what `sources` lists stays absolute, and so do ids apart."""
    from rag_kit.indexing import read

    ingest([docs, docs / "sub" / "泵.txt"], tmp_path / "index")
    assert sources_of(tmp_path / "index") == {*(f"file{n}.md" for n in range(5)), "sub/泵.txt"}
    ingest(docs / "sub" / "泵.txt", tmp_path / "one")
    assert sources_of(tmp_path / "one") == {"泵.txt"}
    other = tmp_path / "other" / "file0.md"
    other.parent.mkdir()
    other.write_bytes((docs / "file0.md").read_bytes() + b"\n\nAnother file.\n")
    assert (
        ingest(other.parent, tmp_path / "index").added == 1
    )  # a file of the same name elsewhere is another one
    with DocumentIndex.open(tmp_path / "index") as index:
        assert {str(other), str(docs / "file0.md")} <= set(index.sources())
        assert len(index.ids(str(other))) == len(index.ids(str(docs / "file0.md"))) > 0
    assert read(docs / "file0.md", root=tmp_path)[0].metadata["source"] == "docs/file0.md"


def test_no_path_of_this_machine_leaves_with_an_answer(
    docs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """No internal field appears in results of graphs, whole states too, or in the JSON of the command line."""
    from rag_kit.cli.main import main
    from rag_kit.graphs import build_crag, build_plain_rag
    from rag_kit.models import chat_model
    from rag_kit.retrieval import index_retriever

    folder = tmp_path / "index"
    ingest(docs, folder)
    with DocumentIndex.open(folder) as index:
        for build in (build_plain_rag, build_crag):
            graph = build(index_retriever(index, "bm25"), chat_model("extractive"), output="full")
            state = graph.invoke({"question": "Which value has Item3?"})
            assert state["citations"][0]["source"] == "file3.md" and str(tmp_path) not in repr(state)
    for command in ("ask", "retrieve"):
        capsys.readouterr()
        assert main([command, "Which value has Item3?", "--index", str(folder), "--json"]) == 0
        out = capsys.readouterr().out
        assert "file3.md" in out and str(tmp_path) not in out


def test_what_was_left_out_or_guessed_stands_in_the_report(
    tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    """By file and place, pages too, in the report, as JSON and in the text; files that others lock are passed over."""
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "old.txt").write_bytes("Насос запускается при сорока градусах, если бак полон.".encode("cp1251"))
    (docs / "rows.jsonl").write_bytes(b'{"a": "one"}\nno JSON\n')
    (docs / "~$letter.docx").write_bytes(b"\x03Ann")
    (docs / "part.pdf").write_bytes(make.pdf([[(72, 700, 12, "The pump starts at 40 degrees.")], []]))
    report = ingest(docs, tmp_path / "index")
    assert not report.failed and report.added == 3
    assert any("without text: part.pdf: 1; scanned pages are read with OCR" in note for note in report.notes)
    remarks = dict(report.remarks)
    assert remarks["old.txt"] == "encoding guessed: cp1251"
    assert remarks["rows.jsonl"].startswith("line 2 left out: not valid JSON")
    assert {"file": "old.txt", "remark": "encoding guessed: cp1251"} in report.as_dict()["remarks"]
    assert main(["ingest", str(docs), "--index", str(tmp_path / "other"), "--embedding-model", "none"]) == 0
    assert "old.txt: encoding guessed: cp1251" in capsys.readouterr().err


def test_a_file_is_refused_by_its_ending_and_size_before_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No byte of a film or of a file that is too large is read, at any ingest."""
    docs = tmp_path / "docs"
    docs.mkdir()
    for name in ("film.mp4", "large.txt", "small.txt"):
        (docs / name).write_text("x" * (30 if name == "small.txt" else 200))
    hashed: list[str] = []
    real = converting.file_hash
    monkeypatch.setattr(converting, "file_hash", lambda path: hashed.append(path.name) or real(path))
    report = ingest(docs, tmp_path / "index", options=IngestOptions(limits=ReadLimits(max_bytes=100)))
    assert hashed == ["small.txt"] and report.added == 1
    reasons = dict(report.failed)
    assert (
        "not among the supported formats" in reasons["film.mp4"] and "max_bytes=100" in reasons["large.txt"]
    )


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes with names")
def test_a_file_that_becomes_a_pipe_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether it does so before it is looked at, before it is hashed, or before it is read."""
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "a.txt").write_text("The pump starts.")
    (docs / "b.txt").write_text("The lamp shines.")

    def become_pipe() -> None:
        (docs / "a.txt").unlink(missing_ok=True)
        os.mkfifo(docs / "a.txt")

    for place in ("file_state", "file_hash"):
        real = getattr(converting, place)

        def swap(path: Path, real: Any = real) -> Any:
            if path.name == "a.txt" and not path.is_fifo():
                become_pipe()
            return real(path)

        with monkeypatch.context() as patch:
            patch.setattr(converting, place, swap)
            report = ingest(docs, tmp_path / f"index-{place}")
        assert report.added == 1 and "no regular file" in dict(report.failed)["a.txt"]
        (docs / "a.txt").unlink()
        (docs / "a.txt").write_text("The pump starts.")


def test_options_that_are_none_are_refused(docs: Path, tmp_path: Path) -> None:
    """By name, with what to give; nothing is made."""
    with pytest.raises(InvalidInputError, match=r"options is dict; give IngestOptions\("):
        ingest(docs, tmp_path / "index", options={"chunk_size": 400})  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="workers=0"):
        IngestOptions(workers=0)
    assert not (tmp_path / "index").exists()


def test_an_ingest_into_a_folder_imports_neither_postgres_nor_dask(docs: Path, tmp_path: Path) -> None:
    """Other stores are imported when a URL, and a cluster when a scheduler, is given."""
    code = (
        "import sys; from rag_kit.indexing import ingest; ingest(sys.argv[1], sys.argv[2]);"
        "print([name for name in sys.modules if name.startswith(('rag_kit.indexing.postgres',"
        "'rag_kit.indexing.cluster', 'distributed', 'psycopg'))])"
    )
    command = [sys.executable, "-c", code, str(docs), str(tmp_path / "index")]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip() == "[]"


@pytest.mark.folder
def test_a_file_beyond_the_limits_is_named_and_the_others_are_read(tmp_path: Path) -> None:
    """A CSV with 100,000 columns, and one text of countless sections: two files are reported, good ones are in."""
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "good.md").write_text("# Pump\n\nIt starts at 40 degrees.")
    columns = ",".join(f"c{number}" for number in range(100_000))
    (folder / "wide.csv").write_text(f"{columns}\n" + "1\n" * 100)
    (folder / "sections.md").write_text("# a\n\nb\n\n" * 3_000)
    limits = ReadLimits(max_characters=20_000_000, max_chunks=2_000)
    report = ingest(folder, tmp_path / "index", options=IngestOptions(limits=limits))
    assert report.added == 1
    reasons = dict(report.failed)
    assert set(reasons) == {"wide.csv", "sections.md"}
    assert "max_characters" in reasons["wide.csv"]
    assert "over 2000 chunks" in reasons["sections.md"] and "chunk_size" in reasons["sections.md"]
    with DocumentIndex.open(tmp_path / "index") as index:
        assert index.stats()["chunks"] == 1
