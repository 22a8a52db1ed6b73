"""An index whose vectors are in a LangChain vector store finds what an index with its own files finds."""

from __future__ import annotations

import logging
import pickle
import random
import shutil
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import InMemoryVectorStore, VectorStore
from support.chroma import memory_client
from support.vector_stores import ChromaServer, Kind, Points, ServedChroma, chroma, milvus, qdrant, rows

from rag_kit.documents import get_provenance, matches
from rag_kit.errors import DocumentIndexError, InvalidInputError
from rag_kit.indexing import DocumentIndex
from rag_kit.retrieval import index_retriever


@pytest.fixture(scope="module")
def server() -> Iterator[ChromaServer]:
    with ChromaServer() as running:
        yield running


@pytest.fixture(
    params=[
        "qdrant",
        "chroma",
        pytest.param("chroma server", marks=pytest.mark.slow),
        pytest.param("milvus", marks=pytest.mark.slow),
    ]
)
def kind(request: pytest.FixtureRequest, tmp_path: Path) -> Kind:
    """Each store, empty."""
    name = f"c{uuid.uuid4().hex}"
    if request.param == "qdrant":
        pytest.importorskip("langchain_qdrant", reason="langchain-qdrant is not installed")
        return qdrant()
    if request.param == "chroma":
        return chroma(name, memory_client())
    if request.param == "milvus":
        pytest.importorskip("langchain_milvus", reason="langchain-milvus is not installed")
        return milvus(tmp_path)
    return request.getfixturevalue("server").kind(name)


def same(index: DocumentIndex, files: DocumentIndex, **search: Any) -> None:
    """Both find the same rows with the same cosines."""
    for query in ("text 3 0 about pumps and valves in the plant", "文本 5 1", "what is in the plant"):
        found, wanted = (each.search_dense(query, **search) for each in (index, files))
        assert [document.id for document, _ in found] == [document.id for document, _ in wanted]
        assert [score for _, score in found] == pytest.approx([score for _, score in wanted], abs=1e-5)


def test_it_finds_what_the_files_find_after_each_write(kind: Kind, tmp_path: Path) -> None:
    """Documents come, change and go, saved or not: the store's index equals that of files, each text embedded once."""
    model, alone, chance = Points(), Points(), random.Random(3)
    with (
        DocumentIndex.create(tmp_path / "a", embeddings=model, **kind.arguments()) as index,
        DocumentIndex.create(tmp_path / "b", embeddings=alone) as files,
    ):
        for turn in range(6):
            start = chance.randrange(100)
            for each in (index, files):
                each.upsert(rows(range(start, start + 60), turn % 3))
                each.delete([f"d{n}" for n in range(start, start + 60, 7)])
            same(index, files, k=5)
            if turn % 2:
                index.flush()
                asked = len(model.texts)
                same(index, files, k=1)
                same(index, files, k=30, filter={"n": {"$lt": 70}})
                same(index, files, k=200)
                assert len(model.texts) == asked
        report = index.verify()
        assert report.ok and report.checked["vector rows"] == len(index.ids()), str(report)
        assert [text for text in model.texts if text != "dummy_text"] == alone.texts
    with DocumentIndex.open(tmp_path / "a", embeddings=model, **kind.arguments()) as index:
        with DocumentIndex.open(tmp_path / "b", embeddings=Points()) as files:
            same(index, files, k=8)


def test_filters_are_exact(kind: Kind, tmp_path: Path) -> None:
    """Sync and async, a filter gives just the documents that pass, whatever the store can say of metadata."""
    filters: list[dict[str, Any]] = [
        {"n": {"$lt": 20}}, {"kind": "a"}, {"kind": "a", "n": {"$gte": 50}}, {"$or": [{"n": 1}, {"n": 90}]},
        {"tags": {"$contains": "y"}}, {"kind": {"$ne": "a"}}, {"n": {"$in": []}}, {"tags": {"$exists": True}},
        {"kind": {"$startswith": "a"}}, {"kind": {"$gt": "a"}}, {"$not": {"n": {"$lt": 90}}}, {"none": {"$ne": 1}},
    ]  # fmt: skip
    with DocumentIndex.create(tmp_path / "a", embeddings=Points(), **kind.arguments()) as index:
        index.upsert(rows(range(100)))
        index.flush()
        index.upsert(rows(range(95, 110)))
        documents = rows(range(110))
        for where in filters:
            wanted = {document.id for document in documents if matches(where, document.metadata)}
            found = index.search_dense("文本", 200, where)
            assert {document.id for document, _ in found} == wanted, where
            near = index.search_dense("文本", 3, where)
            assert [doc.id for doc, _ in near] == [doc.id for doc, _ in found[:3]]


def test_without_the_store_keywords_are_found_and_writes_wait(kind: Kind, tmp_path: Path) -> None:
    """Dense search says what is missing; what is written and removed meanwhile, the next writer hands over."""
    model = Points()
    with DocumentIndex.create(tmp_path / "a", embeddings=model, **kind.arguments()) as index:
        index.upsert(rows(range(30)))
    with DocumentIndex.open(tmp_path / "a", embeddings=model, mode="w") as index:
        assert index.search_keyword("pumps", 3)
        with pytest.raises(InvalidInputError, match=r"vector_store=.*Keyword search works"):
            index.search_dense("pumps", 3)
        index.upsert(rows(range(20, 40), 1))
        index.delete([f"d{n}" for n in range(10)])
        advice = (
            "neither looked at nor filled; that is done in Python, by DocumentIndex.open(folder, mode='w', "
        )
        assert advice in str(index.verify()) and advice in str(report := index.repair()) and report.ok
    with DocumentIndex.open(tmp_path / "a", embeddings=model, **kind.arguments()) as reader:
        assert {document.id for document, _ in reader.search_dense("text", 50)} == {
            f"d{n}" for n in range(10, 40)
        }
        DocumentIndex.open(tmp_path / "a", embeddings=model, mode="w", **kind.arguments()).close()
        report = reader.verify()
        assert report.ok and not report.notes and report.checked["vector rows"] == 30
        assert {document.id for document, _ in reader.search_dense("text", 50)} == {
            f"d{n}" for n in range(10, 40)
        }


def test_verify_finds_what_is_missing_or_too_much_and_repair_mends_it(kind: Kind, tmp_path: Path) -> None:
    """Rows that somebody deleted in the store, or put back, are found; repair embeds nothing."""
    model = Points()
    with DocumentIndex.create(tmp_path / "a", embeddings=model, **kind.arguments()) as index:
        index.upsert(rows(range(40)))
        index.flush()
        store, state = index._store.vectors._store, index._state()
        with index._store.reading() as connection:
            store.delete(state, np.arange(3, 8))
        assert "5 rows are missing" in str(index.verify())
        with index._store.reading() as connection:
            store.add(connection, state, np.arange(3, 8))
        # Chroma's graph misses a row now and then that was deleted and added again; written over, it is found
        assert index.verify().ok or (kind.name == "Chroma" and index.repair().ok)
        deleted = index.ids()[:4]
        with index._store.reading() as connection:
            numbers = [
                connection.execute("SELECT n FROM chunks WHERE id = ?", (key,)).fetchone()[0]
                for key in deleted
            ]
            store.delete(state, np.array(numbers))
        asked = len(model.texts)
        assert not index.verify().ok and index.repair().ok and len(model.texts) == asked


def test_a_store_that_was_emptied_or_is_another_is_not_asked(
    kind: Kind, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Answers stay right, the log says so, and the next writer fills it."""
    model, empty = Points(), qdrant()
    with (
        DocumentIndex.create(tmp_path / "a", embeddings=model, **kind.arguments()) as index,
        DocumentIndex.create(tmp_path / "b", embeddings=model) as files,
    ):
        for each in (index, files):
            each.upsert(rows(range(30)))
    with DocumentIndex.open(tmp_path / "b", embeddings=model) as files:
        with DocumentIndex.open(tmp_path / "a", embeddings=model, **empty.arguments()) as index:
            with caplog.at_level(logging.WARNING):
                same(index, files, k=5, filter={"n": {"$lt": 20}})
            assert "lacks what the index wrote to it" in caplog.text
        with DocumentIndex.open(tmp_path / "a", embeddings=model, mode="w", **empty.arguments()) as index:
            index.flush()
            same(index, files, k=5)
            assert index.verify().ok
            index.upsert(rows(range(25, 40), 2))
        with DocumentIndex.open(tmp_path / "a", embeddings=model, **kind.arguments()) as index:
            assert len(index.search_dense("text", 50)) == 40  # the first store again, which is behind now


def test_an_older_store_file_put_back(kind: Kind, tmp_path: Path) -> None:
    """A backup of the index is filled into the store again, with nothing of what came after it."""
    model = Points()
    with DocumentIndex.create(tmp_path / "a", embeddings=model, **kind.arguments()) as index:
        index.upsert(rows(range(30)))
    shutil.copytree(tmp_path / "a", tmp_path / "backup")
    with DocumentIndex.open(tmp_path / "a", embeddings=model, mode="w", **kind.arguments()) as index:
        index.delete([f"d{n}" for n in range(5)])
        index.upsert(rows(range(20, 50), 2))
    shutil.copy(tmp_path / "backup" / "store.sqlite3", tmp_path / "a" / "store.sqlite3")
    with DocumentIndex.open(tmp_path / "a", embeddings=model, mode="w", **kind.arguments()) as index:
        index.upsert(rows(range(6, 8), 3))
        index.flush()
        assert {document.id for document, _ in index.search_dense("text", 50)} == {f"d{n}" for n in range(30)}
        text = "text 7 3 about pumps and valves in the plant"
        assert index.search_dense(text, 1)[0][0].page_content == text
        assert index.repair().ok


class Failing(InMemoryVectorStore):
    """Fails at one of its calls, before or after it has done it."""

    left = 1000

    def _count(self) -> None:
        self.left -= 1
        if self.left == 0:
            raise ConnectionError("api_key=abcd1234 the server went away")

    def add_texts(self, texts: Any, metadatas: Any = None, *, ids: Any = None, **kwargs: Any) -> list[str]:
        self._count()
        done = super().add_texts(texts, metadatas, ids=ids, **kwargs)
        self._count()
        return done

    def delete(self, ids: Any = None, **kwargs: Any) -> None:
        self._count()
        super().delete(ids, **kwargs)
        self._count()


async def test_hybrid_search_goes_on_where_the_store_fails(tmp_path: Path) -> None:
    """Whether the first search of vectors or the second fails, keywords are found, and a note says so."""
    left = [9]

    class Breaking(InMemoryVectorStore):
        def similarity_search_by_vector(self, *args: Any, **kwargs: Any) -> list[Document]:
            left[0] -= 1
            if left[0] < 0:
                raise ConnectionError("the server went away")
            return super().similarity_search_by_vector(*args, **kwargs)

    with DocumentIndex.create(tmp_path / "a", embeddings=Points(), vector_store=Breaking) as index:
        index.upsert(rows(range(30)))
        index.flush()
        assert len(index.search_dense("text", 50, {"empty": {"$exists": True}})) == 30
        retriever = index_retriever(index, k=3)
        for calls, part in ((0, "dense"), (1, "feedback")):
            left[0] = calls
            found = retriever.invoke("pumps and valves")
            assert len(found) == 3 and f"{part} failed: DocumentIndexError" in str(get_provenance(found[0]))
            left[0] = calls
            assert [doc.id for doc in await retriever.ainvoke("pumps and valves")] == [
                doc.id for doc in found
            ]


@pytest.mark.parametrize("call", range(1, 5))
def test_a_store_that_fails_in_the_middle_is_caught_up(call: int, tmp_path: Path) -> None:
    """Wherever it fails, searches are right at once, and the next writer brings it up to date."""
    stores: list[Failing] = []

    def make(embeddings: Embeddings) -> VectorStore:
        stores.append(stores[0] if stores else Failing(embeddings))
        return stores[0]

    model = Points()
    with DocumentIndex.create(tmp_path / "a", embeddings=model, vector_store=make) as index:
        index.upsert(rows(range(30)))
        index.flush()
        index.upsert(rows(range(20, 40), 1))
        index.delete([f"d{n}" for n in range(10)])
        stores[0].left = call
        with pytest.raises(DocumentIndexError, match=r"ConnectionError: api_key.*Nothing is lost") as failed:
            index.flush()
        assert "abcd1234" not in str(failed.value)
        stores[0].left = 1000
        with DocumentIndex.open(tmp_path / "a", embeddings=model, vector_store=make) as reader:
            for _ in range(2):
                found = {
                    document.id for document, _ in reader.search_dense("text 25 0", 50, {"n": {"$lt": 35}})
                }
                assert found == {f"d{n}" for n in range(10, 35)}
                index.flush()
        assert index.verify().ok and len(stores[0].store) == 30


def test_a_reader_of_an_earlier_state_beside_a_writer(tmp_path: Path) -> None:
    """A reader of the earlier state still finds rows that a writer deletes meanwhile."""
    stores: list[InMemoryVectorStore] = []

    def make(embeddings: Embeddings) -> VectorStore:
        stores.append(stores[0] if stores else InMemoryVectorStore(embeddings))
        return stores[0]

    model = Points()
    with DocumentIndex.create(tmp_path / "a", embeddings=model, vector_store=make) as index:
        index.upsert(rows(range(30)))
        index.flush()
        with DocumentIndex.open(tmp_path / "a", embeddings=model, vector_store=make) as reader:
            with reader.view():
                before = [document.id for document, _ in reader.search_dense("text", 30)]
                index.upsert(rows(range(10), 1))
                index.delete(["d20"])
                index.flush()
                assert [document.id for document, _ in reader.search_dense("text", 30)] == before
            assert len(reader.search_dense("text", 40)) == 29


def test_vectors_of_another_length_need_a_collection_of_their_own(tmp_path: Path) -> None:
    """After `reembed` searches are right at once, the old collection is refused in one line, a new one is filled."""
    old, new = qdrant(8), qdrant(16)
    with DocumentIndex.create(tmp_path / "a", embeddings=Points(8), **old.arguments()) as index:
        index.upsert(rows(range(20)))
        index.flush()
        with pytest.raises(DocumentIndexError, match="vector store failed"):
            index.reembed(Points(16))
        assert len(index.search_dense("text", 30)) == 20
        index.discard()
    with DocumentIndex.open(tmp_path / "a", embeddings=Points(16), mode="w", **new.arguments()) as index:
        index.flush()
        assert index.verify().ok and index.verify().checked["vector rows"] == 20


def test_an_index_of_files_moves_to_a_store(tmp_path: Path) -> None:
    """A writer gives it one; the files go, nothing is embedded again; a reader alone may not choose."""
    model, kind = Points(), qdrant()
    with DocumentIndex.create(tmp_path / "a", embeddings=model) as index:
        index.upsert(rows(range(20)))
    with pytest.raises(InvalidInputError, match="open it for writing once"):
        DocumentIndex.open(tmp_path / "a", embeddings=model, **kind.arguments())
    asked = len(model.texts)
    with DocumentIndex.open(tmp_path / "a", embeddings=model, mode="w", **kind.arguments()) as index:
        expected = index.search_dense("text", 5)
    assert set(model.texts[asked:]) == {"dummy_text"} and not list((tmp_path / "a").glob("vectors-*"))
    with DocumentIndex.open(tmp_path / "a", embeddings=model, **kind.arguments()) as index:
        assert index.search_dense("text", 5) == expected
        retriever = index_retriever(index, k=3)
        assert len(retriever.invoke("text about pumps")) == 3


class Kept(InMemoryVectorStore):
    """Cannot delete."""

    delete = VectorStore.delete


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (InMemoryVectorStore(Points()), "vector_store is InMemoryVectorStore; give a function"),
        ("chroma", "vector_store is str; give a function"),
        (Kept, "vector_store gave Kept, no VectorStore that can delete"),
        (lambda embeddings: None, "vector_store gave NoneType"),
        (ServedChroma("rows", 1), "vector store failed"),
    ],
)
def test_what_is_no_vector_store_is_refused_before_there_is_a_folder(
    given: Any, message: str, tmp_path: Path
) -> None:
    """The message says what was given and what to give."""
    with pytest.raises((InvalidInputError, DocumentIndexError), match=message):
        DocumentIndex.create(tmp_path / "a", embeddings=Points(), vector_store=given)
    assert not (tmp_path / "a").exists()


def test_an_index_in_postgresql_takes_no_vector_store() -> None:
    """It searches its vectors by itself."""
    pytest.importorskip("psycopg_pool", reason="the extra postgres is not installed")
    with pytest.raises(InvalidInputError, match="PostgreSQL searches its vectors by itself"):
        DocumentIndex.create("postgresql://nobody@localhost:1/x", embeddings=Points(), vector_store=Kept)


_WRITE = """
import sys
from pathlib import Path
sys.path[:0] = [sys.argv[4]]
from support.vector_stores import Points, ServedChroma, rows
from rag_kit.indexing import DocumentIndex
make, start = ServedChroma(sys.argv[2], int(sys.argv[3])), int(sys.argv[5])
with DocumentIndex.open(sys.argv[1], embeddings=Points(), mode="w", wait=20, vector_store=make) as index:
    for n in range(start, start + 1000):
        index.upsert(rows(range(n % 60, n % 60 + 9), n))
        index.delete([f"d{n % 60}"])
        index.flush()
        print(n, flush=True)
"""


@pytest.mark.slow
def test_readers_beside_a_writer_that_is_killed(server: ChromaServer, tmp_path: Path) -> None:
    """Two clients of one server: the reader sees whole writes while the other is killed again and again."""
    make, model, chance = ServedChroma(f"c{uuid.uuid4().hex}", server.port), Points(), random.Random(1)
    DocumentIndex.create(tmp_path / "a", embeddings=model, vector_store=make).close()
    tests = str(Path(__file__).resolve().parents[1])
    command = [sys.executable, "-c", _WRITE, str(tmp_path / "a"), make.name, str(make.port), tests]
    with DocumentIndex.open(tmp_path / "a", embeddings=model, vector_store=make) as reader:
        copy = pickle.loads(pickle.dumps(reader))
        for turn in range(3):
            writer = subprocess.Popen([*command, str(turn * 1000)], stdout=subprocess.PIPE, text=True)
            assert writer.stdout is not None
            for _ in range(chance.randrange(2, 20)):
                writer.stdout.readline()
                with reader.view():
                    there = reader.get(reader.ids())
                    assert {d.id for d, _ in reader.search_dense("text", 100)} == {d.id for d in there}
                    [(key, vector)] = (
                        reader.vectors([str(there[len(there) // 2].id)]).items() if there else [("", [])]
                    )
                    assert not there or reader.search_dense(vector, 1)[0][0].id == key
            time.sleep(chance.random() / 20)
            writer.kill()
            writer.wait()
            writer.stdout.close()
            assert {d.id for d, _ in reader.search_dense("text", 100)} == set(reader.ids())
        DocumentIndex.open(tmp_path / "a", embeddings=model, mode="w", wait=5, vector_store=make).close()
        report = copy.verify()
        assert report.ok and not report.notes, str(report)
        copy.close()


@pytest.mark.slow
def test_a_server_that_is_killed_while_it_is_written_to(tmp_path: Path) -> None:
    """The writer says so in one line and loses nothing; the next one, or `repair`, makes the store right."""
    with ChromaServer() as own:
        make, model = ServedChroma("rows", own.port), Points()
        index = DocumentIndex.create(tmp_path / "a", embeddings=model, vector_store=make)
        for turn in range(3):
            index.upsert(rows(range(40 * turn, 40 * turn + 600), turn))
            killer = threading.Timer(0.1 + 0.3 * turn, own.kill)
            killer.start()
            failed = ""
            for n in range(200):
                index.upsert(rows(range(n, n + 300), 100 + turn))
                try:
                    index.flush()
                except DocumentIndexError as error:
                    failed = str(error)
                    break
            killer.join()
            assert "vector store failed" in failed and "\n" not in failed
            assert index.search_keyword("pumps", 3)
            index.discard()
            own.start()
            index = DocumentIndex.open(tmp_path / "a", embeddings=model, mode="w", vector_store=make)
            damaged = ""
            try:
                index.flush()
            except DocumentIndexError as error:
                damaged = str(error)
            if damaged:  # of some thirty kills one leaves a collection that Chroma itself reads no more
                assert "hnsw segment" in damaged
                index.discard()
                make = ServedChroma(f"rows-{turn}", own.port)
                index = DocumentIndex.open(tmp_path / "a", embeddings=model, mode="w", vector_store=make)
                index.flush()
            assert (index.verify().ok or index.repair().ok) and len(index.search_dense("text", 3000)) == len(
                index.ids()
            )
        index.close()
