"""Legs beside keyword and vectors: trigrams of characters, in a folder and in PostgreSQL, and sparse vectors."""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import pickle
import random
import shutil
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from langchain_core.documents import Document

from rag_kit.cli.main import main
from rag_kit.documents import get_provenance
from rag_kit.errors import IndexMismatchError, InvalidInputError
from rag_kit.indexing import DocumentIndex, IngestOptions, ingest
from rag_kit.retrieval import TrigramRetriever, index_retriever

TEXTS = {
    "retrieval": "Retrieval by vectors of passages",
    "graph": "Photographs are kept in an archive",
    "beijing": "北京大学的图书馆",
    "pump": "The pump starts at 40 degrees.",
}
DOCUMENTS = [
    Document(text, id=key, metadata={"tenant": "a" if key == "pump" else "b"}) for key, text in TEXTS.items()
]


def word_counts(texts: list[str]) -> list[dict[str, float]]:
    """The words of texts with their counts, as a sparse encoder gives them."""
    return [dict(Counter(text.lower().split())) for text in texts]


async def word_counts_later(texts: list[str]) -> list[dict[str, float]]:
    await asyncio.sleep(0)
    return word_counts(texts)


def halves(texts: list[str]) -> list[dict[str, float]]:
    """Another encoder: the first halves of words."""
    return [{word[: len(word) // 2]: 1.0 for word in text.lower().split()} for text in texts]


def made(place: Any, leg: Any = "sparse", **options: Any) -> Any:
    """A new index of the documents with a leg, open for writing."""
    encoder = {"sparse_encoder": word_counts} if leg == "sparse" else {}
    index = DocumentIndex.create(place, **{"legs": [leg], **encoder, **options})
    index.upsert(DOCUMENTS)
    return index


def ids(found: Any) -> list[str | None]:
    return [document.id for document, _ in found]


@pytest.mark.usefixtures("backend")
def test_trigrams_are_searched_as_in_memory(tmp_path: Path) -> None:
    """Whatever was written in which order, scores are those of a `TrigramRetriever`, to 1e-5; filters are all met."""
    with DocumentIndex.create(tmp_path / "i", legs=["trigram"]) as index:
        index.upsert([*DOCUMENTS[:2], Document("old text of the library", id="beijing")])
        index.flush()
        index.upsert([*DOCUMENTS[2:], Document("to be removed", id="gone")])
        index.delete(["gone"])
    memory = TrigramRetriever.from_documents(DOCUMENTS, k=4)
    with DocumentIndex.open(tmp_path / "i") as index:
        retriever = index_retriever(index, "trigram", k=4)
        for question in ("retreival", "graph", "图书馆", "strats at degres", "xyzzy"):
            found, expected = retriever.invoke(question), memory.invoke(question)
            scores = [
                [get_provenance(document)["score"] for document in documents]
                for documents in (found, expected)
            ]
            assert scores[0] == pytest.approx(scores[1], abs=1e-5)
            assert {document.id for document in found} == {document.id for document in expected}
            assert found == asyncio.run(retriever.ainvoke(question))
        assert index.verify().ok
        assert index.verify().checked["trigram rows"] == 4
        retriever = index_retriever(index, "trigram", filter={"tenant": "a"})
        assert [document.id for document in retriever.invoke("pumps and photographs")] == ["pump"]
        assert retriever.invoke("photographs", filter={"tenant": "b"}) == []


@pytest.mark.usefixtures("backend")
def test_a_writer_adds_and_removes_the_leg(tmp_path: Path) -> None:
    """An index that is there already gets the leg for all its documents, and loses it again."""
    with DocumentIndex.create(tmp_path / "i") as index:
        index.upsert(DOCUMENTS)
        with pytest.raises(InvalidInputError, match=r"no trigram leg.*--legs trigram"):
            index_retriever(index, "trigram")
        with pytest.raises(
            InvalidInputError, match=r"no sparse leg.*sparse_encoder=...\)\.$"
        ):  # no command has one
            index_retriever(index, "sparse")
    with DocumentIndex.open(tmp_path / "i", mode="w", legs=["trigram"]) as index:
        assert ids(index.leg_view("trigram").search("photografs")) == ["graph"]
    with DocumentIndex.open(tmp_path / "i", mode="w") as index:  # keeps it
        index.delete(["graph"])
        assert ids(index.leg_view("trigram").search("photografs")) == []
        assert index.verify().ok
    with DocumentIndex.open(tmp_path / "i", mode="w", legs=[]) as index:
        assert index.legs == []
        with pytest.raises(InvalidInputError, match="no trigram leg"):
            index.leg_view("trigram")
        assert "trigram rows" not in index.verify().checked
        assert index.verify().ok
    with DocumentIndex.open(tmp_path / "i", mode="w", legs=["trigram"]) as index:
        assert ids(index.leg_view("trigram").search("pumpe")) == ["pump"]


@pytest.mark.usefixtures("backend")
def test_legs_that_are_refused(tmp_path: Path) -> None:
    """Unknown names, other kinds, a sparse leg without its encoder, and legs of a reader; nothing is made."""
    wrong: list[Any] = [["fancy"], "trigram", ["sparse"], 5, [["trigram"]]]
    settings: list[dict[str, Any]] = [{"legs": legs} for legs in wrong]
    for given in (*settings, {"legs": ["sparse"], "sparse_encoder": "x"}, {"sparse_encoder": word_counts}):
        with pytest.raises(InvalidInputError):
            DocumentIndex.create(tmp_path / "i", **given)
    assert not (tmp_path / "i").exists()
    DocumentIndex.create(tmp_path / "i").close()
    with pytest.raises(InvalidInputError, match="by a writer"):
        DocumentIndex.open(tmp_path / "i", legs=["trigram"])


@pytest.mark.usefixtures("backend")
def test_ingest_with_a_leg(tmp_path: Path) -> None:
    """The option of `ingest` makes the leg, what is not said keeps it, and an empty list removes it."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "pump.md").write_text("# Pump\n\nThe centrifugal pump starts at 40 degrees.")
    for options, legs in (
        (IngestOptions(legs=["trigram"]), ["trigram"]),
        (IngestOptions(), ["trigram"]),
        (IngestOptions(legs=[]), []),
    ):
        ingest(tmp_path / "docs", tmp_path / "i", options=options)
        with DocumentIndex.open(tmp_path / "i") as index:
            assert index.legs == legs


@pytest.mark.slow
def test_legs_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A misspelt word is found by ``--pipeline trigram`` in an index that ``--legs trigram`` made."""
    (tmp_path / "pump.md").write_text("# Pump\n\nThe centrifugal pump starts at 40 degrees.")
    where = ["--index", str(tmp_path / "i")]
    assert main(["ingest", str(tmp_path / "pump.md"), *where, "--legs", "trigram"]) == 0
    capsys.readouterr()
    assert main(["retrieve", "centrifuglapump", *where, "--pipeline", "trigram", "--json"]) == 0
    assert "centrifugal" in json.dumps(json.loads(capsys.readouterr().out))
    assert main(["verify", *where]) == 0
    assert "trigram rows" in capsys.readouterr().out
    assert main(["ingest", str(tmp_path / "pump.md"), *where, "--legs", "fancy"]) != 0
    assert "'trigram', 'sparse'" in capsys.readouterr().err


@pytest.mark.parametrize("leg", ["trigram", "sparse"])
def test_a_damaged_file_is_named_and_mended(tmp_path: Path, leg: str) -> None:
    """A flipped byte is found by `verify` and by the search, and `repair` writes the file again."""
    encoder: Any = {"sparse_encoder": word_counts} if leg == "sparse" else {}
    made(tmp_path / "i", leg).close()
    [file] = (tmp_path / "i").glob(f"{leg}-*.index")
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(bytes(data))
    with DocumentIndex.open(tmp_path / "i", mode="w", **encoder) as index:
        assert any(problem.startswith(f"{leg}:") for problem in index.verify().problems)
        assert index.repair().ok
        assert ids(index.leg_view(leg).search("pump"))  # type: ignore[arg-type,attr-defined]


@pytest.mark.parametrize("encoder", [word_counts, word_counts_later])
def test_sparse_vectors_are_searched_as_in_memory(tmp_path: Path, encoder: Any) -> None:
    """Scores are inner products; the encoder is asked once for each text that is written."""
    asked: list[str] = []

    def counted(texts: list[str]) -> Any:
        asked.extend(texts)
        return encoder(texts)

    made(tmp_path / "i", sparse_encoder=counted).close()
    assert sorted(asked) == sorted(TEXTS.values())
    with DocumentIndex.open(tmp_path / "i", mode="w", sparse_encoder=counted) as index:
        index.upsert([Document("The pump at the pump house", id="house")])
    assert len(asked) == 5
    with DocumentIndex.open(tmp_path / "i", sparse_encoder=counted) as index:
        retriever = index_retriever(index, "sparse", k=2)
        found = retriever.invoke("The pump")
        scores = [(document.id, get_provenance(document)["score"]) for document in found]
        assert scores == [("house", 4.0), ("pump", 2.0)]
        assert found == asyncio.run(retriever.ainvoke("The pump"))
        assert index.verify().ok
    assert len(asked) == 7


def test_a_writer_without_the_encoder_leaves_texts_to_wait(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The next writer with the encoder takes over its texts and removals; searches say what is missing."""
    made(tmp_path / "i").close()
    with DocumentIndex.open(tmp_path / "i", mode="w") as index:
        index.upsert([Document("A pump house", id="house")])
        index.delete(["pump"])
        with pytest.raises(InvalidInputError, match="sparse_encoder="):
            index_retriever(index, "sparse").invoke("pump")
        index.repair()
    assert "waits" in caplog.text
    with DocumentIndex.open(tmp_path / "i", mode="w", sparse_encoder=word_counts) as index:
        assert ids(index.leg_view("sparse").search("pump")) == ["house"]  # type: ignore[attr-defined]
    with DocumentIndex.open(tmp_path / "i", sparse_encoder=word_counts) as index:
        assert index.verify().ok and not index.verify().notes


class LocalModel:
    """A sparse model on this machine, as fastembed's are: its methods are the encoders."""

    def __init__(self, model: str) -> None:
        self.model = model

    def passages(self, texts: list[str]) -> list[dict[str, float]]:
        return word_counts(texts)


def test_another_encoder_is_refused(tmp_path: Path) -> None:
    """Vectors of two encoders would be compared, also of one method of two models; nothing is changed then."""
    with made(tmp_path / "i") as index:
        copy = pickle.loads(pickle.dumps(index))
    assert copy.leg_view("sparse").search("pump")
    copy.close()
    with pytest.raises(IndexMismatchError, match="word_counts'"):
        DocumentIndex.open(tmp_path / "i", sparse_encoder=word_counts_later)
    with pytest.raises(IndexMismatchError):
        DocumentIndex.open(tmp_path / "i", mode="w", legs=["trigram", "sparse"], sparse_encoder=halves)
    with DocumentIndex.open(tmp_path / "i", sparse_encoder=word_counts) as index:
        assert index.legs == ["sparse"] and ids(index.leg_view("sparse").search("pump")) == ["pump"]
    DocumentIndex.create(tmp_path / "plain").close()
    with pytest.raises(InvalidInputError, match="no sparse leg"):
        DocumentIndex.open(tmp_path / "plain", sparse_encoder=word_counts)
    made(tmp_path / "models", sparse_encoder=LocalModel("splade-a").passages).close()
    DocumentIndex.open(tmp_path / "models", sparse_encoder=LocalModel("splade-a").passages).close()
    with pytest.raises(IndexMismatchError, match="splade-b"):
        DocumentIndex.open(tmp_path / "models", sparse_encoder=LocalModel("splade-b").passages)


def test_postgres_refuses_the_sparse_leg(postgres_url: str) -> None:
    with pytest.raises(InvalidInputError, match="trigram"):
        DocumentIndex.create(f"{postgres_url}&index=sparse", legs=["sparse"], sparse_encoder=word_counts)


def test_legs_in_one_database_are_apart(plain_url: str, postgres_url: str) -> None:
    """Legs of two tenants, and of two indexes, know nothing of each other; pgvector's schema is on every path."""
    import psycopg

    with psycopg.connect(postgres_url) as connection:
        connection.execute("GRANT ALL ON SCHEMA public TO plain")
    first, second = (f"{plain_url}&index=public&tenant={name}" for name in "ab")
    secret = Document("A secret pump", id="secret")
    with made(first, "trigram") as a, DocumentIndex.create(second) as b:
        b.upsert([secret])
        with pytest.raises(InvalidInputError, match="no trigram leg"):
            b.leg_view("trigram")
        with DocumentIndex.create(f"{plain_url}&index=beside_public", legs=["trigram"]) as other:
            other.upsert([secret])
            assert ids(other.leg_view("trigram").search("pumpe")) == ["secret"]
        assert ids(a.leg_view("trigram").search("pumpe")) == ["pump"] and a.verify().ok
    with DocumentIndex.open(second, mode="w", legs=["trigram"]) as b:
        assert ids(b.leg_view("trigram").search("pumpe")) == ["secret"]


def test_a_leg_that_comes_and_goes_meanwhile_is_followed(postgres_url: str) -> None:
    """A writer that was open before another added the leg writes into it; a search finds that it was removed."""
    url = f"{postgres_url}&index=added"
    with DocumentIndex.create(url) as first:
        first.upsert(DOCUMENTS[:2])
        DocumentIndex.open(url, mode="w", legs=["trigram"]).close()
        first.upsert(DOCUMENTS[2:])
        first.delete(["graph"])
        view = first.leg_view("trigram")
        assert ids(view.search("pumpe photografs")) == ["pump"] and first.verify().ok
        DocumentIndex.open(url, mode="w", legs=[]).close()
        with pytest.raises(InvalidInputError, match="no trigram leg"):
            view.search("pump")


def write_on(folder: Path) -> None:
    """Write one document after another until killed."""
    with DocumentIndex.open(folder, mode="w", sparse_encoder=word_counts) as index:
        for number in range(10_000):
            index.upsert([Document(f"item{number} of the pump", id=str(number % 50))])
            index.flush()


@pytest.mark.parametrize("kills", [2, pytest.param(8, marks=pytest.mark.slow)])
def test_kills_leave_whole_legs(kills: int, tmp_path: Path) -> None:
    """After kill -9 at any moment each leg finds what the store holds, and is whole."""
    if "fork" not in multiprocessing.get_all_start_methods():
        pytest.skip("this system cannot fork")
    folder, chance = tmp_path / "i", random.Random(20261129)
    made(folder, legs=["trigram", "sparse"]).close()
    for _ in range(kills):
        process = multiprocessing.get_context("fork").Process(target=write_on, args=(folder,))
        process.start()
        time.sleep(0.1 + chance.random() / 4)
        process.kill()
        process.join()
        with DocumentIndex.open(folder, sparse_encoder=word_counts) as index:
            assert index.verify().problems == []
            for leg in ("trigram", "sparse"):
                view: Any = index.leg_view(leg)  # type: ignore[arg-type]
                assert {*ids(view.search("pump", k=100))} == {*index.ids()} - {
                    "retrieval",
                    "graph",
                    "beijing",
                }


def test_a_reader_is_told_of_another_encoder(tmp_path: Path) -> None:
    """An open reader does not search the vectors of the encoder that came since; nothing of the message is a path."""
    made(tmp_path / "i").close()
    with DocumentIndex.open(tmp_path / "i", sparse_encoder=word_counts) as reader:
        retriever = index_retriever(reader, "sparse")
        DocumentIndex.open(tmp_path / "i", mode="w", legs=[]).close()
        with pytest.raises(InvalidInputError, match="no sparse leg") as gone:
            retriever.invoke("pump")
        DocumentIndex.open(tmp_path / "i", mode="w", legs=["sparse"], sparse_encoder=halves).close()
        with pytest.raises(IndexMismatchError, match=r"halves.*word_counts") as other:
            retriever.invoke("pump")
    assert str(tmp_path) not in f"{gone.value} {other.value}"


def test_what_a_kill_left_of_a_leg_is_not_taken_over(tmp_path: Path) -> None:
    """A file that a killed removal left is removed by the next writer, and is nothing for another encoder."""
    made(tmp_path / "i").close()
    [file] = (tmp_path / "i").glob("sparse-*.index")
    data = file.read_bytes()
    DocumentIndex.open(tmp_path / "i", mode="w", legs=[]).close()
    file.write_bytes(data)
    with DocumentIndex.open(tmp_path / "i", mode="w", legs=["sparse"], sparse_encoder=halves) as index:
        assert ids(index.leg_view("sparse").search("pump")) == ["pump"]  # type: ignore[attr-defined]
    DocumentIndex.open(tmp_path / "i", mode="w", legs=[]).close()
    file.write_bytes(data)
    DocumentIndex.open(tmp_path / "i", mode="w").close()
    assert not file.exists()


def test_no_search_sees_half_of_a_write(tmp_path: Path) -> None:
    """While the leg follows a write that replaces a document, a search finds the old one or the new one."""
    encoding, go_on = threading.Event(), threading.Event()

    def encode(texts: list[str]) -> list[dict[str, float]]:
        if any("new" in text for text in texts):
            encoding.set()
            assert go_on.wait(20)
        return word_counts(texts)

    with DocumentIndex.create(tmp_path / "i", legs=["sparse"], sparse_encoder=encode) as index:
        index.sync([Document("old pump", id="old", metadata={"source": "s"})])
        view: Any = index.leg_view("sparse")
        index.sync([Document("new pump", id="new", metadata={"source": "s"})])
        following = threading.Thread(target=index.leg_view, args=("sparse",))
        following.start()
        assert encoding.wait(20)
        assert ids(view.search("pump")) == ["old"]
        go_on.set()
        following.join()
        assert ids(view.search("pump")) == ["new"]


@pytest.mark.parametrize("leg", ["keyword", "trigram"])
def test_a_backup_that_was_written_on_is_read(tmp_path: Path, leg: Any) -> None:
    """A reader drops what it had loaded, also where the backup has come to the same number of writes."""
    folder = tmp_path / "i"
    with DocumentIndex.create(folder, legs=["trigram"]) as index:
        index.upsert(DOCUMENTS[:1])
    shutil.copytree(folder, tmp_path / "backup")
    with DocumentIndex.open(folder, mode="w") as index:
        index.upsert([Document("lost zebra", id="lost")])
    with DocumentIndex.open(folder) as reader:

        def search(query: str) -> list[str | None]:
            view: Any = reader.keyword_view() if leg == "keyword" else reader.leg_view(leg)
            return ids(view.search(query))

        assert search("zebra") == ["lost"]
        for path in folder.iterdir():
            path.unlink()
        shutil.copytree(tmp_path / "backup", folder, dirs_exist_ok=True)
        with DocumentIndex.open(folder, mode="w") as index:
            index.upsert([Document("new kayak", id="new")])
        assert search("zebra") == []
        assert search("kayak") == ["new"]
        assert reader.verify().ok


def test_a_leg_is_added_while_another_tenant_adds_its_own(plain_url: str) -> None:
    """Nobody waits for the documents of another tenant to be analysed, once the tables are there."""
    import psycopg

    first, second = (f"{plain_url}&index=adding&tenant={name}" for name in "ab")
    DocumentIndex.create(first, legs=["trigram"]).close()
    DocumentIndex.create(second).close()
    with psycopg.connect(plain_url) as adding:
        adding.execute("SELECT pg_advisory_xact_lock(hashtextextended('rag_kit trigram', 0))")
        DocumentIndex.open(second, mode="w", legs=["trigram"], wait=1).close()


def test_a_leg_that_was_just_added_is_not_lost(tmp_path: Path) -> None:
    """Until its first file is written, `verify` has a note; what a killed writer began to write is removed."""
    with DocumentIndex.create(tmp_path / "i") as index:
        index.upsert(DOCUMENTS)
    draft = tmp_path / "i" / ".trigram-0123abcd-7.index.0123456789ab.tmp"
    draft.write_text("half a file")
    DocumentIndex.open(tmp_path / "i", mode="w", legs=["trigram"]).discard()
    assert not draft.exists()
    with DocumentIndex.open(tmp_path / "i") as index:
        assert ids(index.leg_view("trigram").search("photografs")) == ["graph"]
        assert index.verify().ok and index.verify().notes


def test_a_fork_beside_a_busy_thread_can_search(tmp_path: Path) -> None:
    """A child waits for nothing that another thread of its parent held at that moment."""
    if "fork" not in multiprocessing.get_all_start_methods():
        pytest.skip("this system cannot fork")
    made(tmp_path / "i", "trigram").close()
    with DocumentIndex.open(tmp_path / "i") as reader:
        views: list[Any] = [reader.keyword_view(), reader.leg_view("trigram")]
        with ExitStack() as busy:
            locks = [view._index._lock for view in views]
            threads = ThreadPoolExecutor(1)
            threads.submit(lambda: [lock.acquire() for lock in locks]).result()
            busy.callback(threads.shutdown)
            busy.callback(lambda: threads.submit(lambda: [lock.release() for lock in locks]).result())

            def search() -> None:
                assert "pump" in reader.keyword_view()
                assert "pump" in reader.leg_view("trigram")

            child = multiprocessing.get_context("fork").Process(target=search)
            child.start()
            child.join(20)
            child.kill()
            assert child.exitcode == 0
