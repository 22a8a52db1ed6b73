"""The vector leg of an index: the file and what was written since, sign bits, several processes."""

from __future__ import annotations

import random
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from support.embedding import WordEmbeddings

from rag_kit.documents import Filter, matches
from rag_kit.indexing import DocumentIndex
from rag_kit.indexing.document_index import vector_leg

SIZE = 96


class Points(Embeddings):
    """The text names a point: vectors in clusters that all share a large part, as those of real models do."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        number, version = (int(part) for part in text.split()[1:3])
        cluster = np.random.default_rng(number % 40).normal(size=SIZE)
        own = np.random.default_rng([number, version]).normal(size=SIZE)
        return [float(value) for value in 3.0 + cluster + 0.8 * own]


def points(numbers: range, version: int = 0) -> list[Document]:
    return [
        Document(f"point {number} {version}", id=f"p{number}", metadata={"n": number, "version": version})
        for number in numbers
    ]


class Everything:
    """All stored vectors of an index, to search by brute force."""

    def __init__(self, index: DocumentIndex) -> None:
        self.ids = index.ids()
        self.numbers = np.array([document.metadata["n"] for document in index.get(self.ids)])
        vectors = index.vectors(self.ids)
        self.matrix = np.array([vectors[key] for key in self.ids])
        self.matrix /= np.linalg.norm(self.matrix, axis=1, keepdims=True)

    def nearest(self, query: list[float], k: int, below: float = 1e9) -> list[str]:
        """Ids of the k nearest with a number below some."""
        scores = np.where(self.numbers < below, self.matrix @ np.array(query), -np.inf)
        return [self.ids[place] for place in np.argsort(-scores)[: min(k, (self.numbers < below).sum())]]


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A closed index of 5,000 points, a third of which were changed or removed after the first snapshot."""
    folder = tmp_path_factory.mktemp("large") / "index"
    with DocumentIndex.create(folder, embeddings=Points()) as index:
        index.upsert(points(range(4000)))
        index.flush()
        index.upsert(points(range(500), version=1))
        index.delete([f"p{number}" for number in range(500, 700)])
        index.upsert(points(range(4000, 5000)))
    return folder


@pytest.mark.parametrize("share", [1.0, 0.5, 0.1, 0.01])
def test_sign_bits_find_what_exact_search_finds(
    large: Path, share: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Above the size for exact search the ten nearest are found, with any filter, whatever the vectors share."""
    monkeypatch.setattr(vector_leg, "EXACT_ROWS", 0)
    monkeypatch.setattr(vector_leg, "_CANDIDATES", 400)
    where = {"n": {"$lt": int(5000 * share)}} if share < 1 else None
    with DocumentIndex.open(large, embeddings=Points()) as index:
        found = wanted = 0
        everything = Everything(index)
        for number in range(10):
            query = Points().embed_query(f"point {number} 77")
            best = everything.nearest(query, 10, 5000 * share)
            hits = index.search_dense(query, 10, where)
            assert all(document.metadata["n"] < 5000 * share for document, _ in hits)
            found += len({document.id for document, _ in hits} & set(best))
            wanted += len(best)
        assert found >= 0.99 * wanted


def test_a_new_filter_reads_only_metadata_written_since_the_index_was_loaded(
    large: Path, tmp_path: Path
) -> None:
    """Any filter finds what brute force finds while documents come, change and go, without a scan of the store."""
    folder = shutil.copytree(large, tmp_path / "index")
    chance = random.Random(5)
    with (
        DocumentIndex.open(folder, embeddings=Points(), mode="w") as writer,
        DocumentIndex.open(folder, embeddings=Points()) as reader,
    ):
        statements: list[str] = []
        reader._store._reader.set_trace_callback(statements.append)
        for turn in range(2, 10):
            start = chance.randrange(5000)
            writer.upsert(points(range(start, start + chance.randrange(1, 40)), version=turn))
            writer.upsert(points(range(5000 + turn, 5002 + turn), version=turn))
            writer.delete([f"p{chance.randrange(5000)}" for _ in range(3)])
            new: Filter = {"$or": [{"version": turn}, {"n": {"$lt": 10 * turn}}]}
            documents = {document.id: document for document in writer.get(writer.ids())}
            for where in (new, {"version": {"$gt": 1}}):  # the second one is used again
                wanted = {key for key, document in documents.items() if matches(where, document.metadata)}
                for index in (writer, reader):
                    hits = index.search_dense("point 1 0", 500, where)
                    assert {document.id for document, _ in hits} == wanted
        scans = [
            int(since)
            for since in re.findall(r"metadata FROM chunks WHERE generation > (-?\d+)", str(statements))
        ]
        assert scans and min(scans) > 0


def test_many_small_writes_give_what_one_gives(tmp_path: Path) -> None:
    """One file is left, and each state is that of an index made at once, also for another reader."""
    with DocumentIndex.create(tmp_path / "index", embeddings=Points()) as index:
        for number in range(40):
            index.upsert(points(range(number, number + 3), version=number))
            if number % 5 == 4:
                index.delete([f"p{number - 3}"])
            if number % 3:
                index.flush()
            query = Points().embed_query(f"point {number} {number}")
            expected = Everything(index).nearest(query, 20)
            assert [document.id for document, _ in index.search_dense(query, 20)] == expected
            assert len(list((tmp_path / "index").glob("vectors-*"))) <= 1
        assert index.verify().ok
    with DocumentIndex.open(tmp_path / "index", embeddings=Points()) as index:
        assert [document.id for document, _ in index.search_dense(query, 20)] == expected
        assert index.verify().ok


def test_a_reader_keeps_its_snapshot_and_takes_the_next(large: Path, tmp_path: Path) -> None:
    """Files that a reader has mapped may be removed under it; it follows each commit, saved or not."""
    folder = shutil.copytree(large, tmp_path / "index")
    with (
        DocumentIndex.open(folder, embeddings=Points()) as reader,
        DocumentIndex.open(folder, embeddings=Points(), mode="w") as writer,
    ):
        for version in range(1, 4):
            reader.search_dense("point 4000 0", 3)
            writer.upsert(points(range(2000, 4500), version=version))
            if version > 1:
                writer.flush()
            text = f"point 4000 {version}"
            [(found, score)] = reader.search_dense(text, 1)
            assert (found.page_content, round(score, 4)) == (text, 1.0)
            writer.delete([f"p{4000 + version}"])
            assert reader.search_dense(f"point {4000 + version} {version}", 1)[0][1] < 0.999
        writer.repair()
        assert reader.search_dense("point 10 1", 1)[0][0].id == "p10" and reader.verify().ok


def test_files_that_are_ahead_of_a_restored_store(tmp_path: Path) -> None:
    """With an older store put back, what was derived from the newer one is never taken for a later state."""
    folder = tmp_path / "index"
    with DocumentIndex.create(folder, embeddings=WordEmbeddings()) as index:
        index.upsert([Document("common", id="0")])
    shutil.copy(folder / "store.sqlite3", tmp_path / "backup")
    with DocumentIndex.open(folder, embeddings=WordEmbeddings(), mode="w") as index:
        index.upsert([Document("walrus tusk", id="1")])
    shutil.copy(tmp_path / "backup", folder / "store.sqlite3")
    with DocumentIndex.open(folder, embeddings=WordEmbeddings(), mode="w") as index:
        index.upsert([Document("ocelot spots", id="1")])
    with DocumentIndex.open(folder, embeddings=WordEmbeddings()) as index:
        assert index.search_keyword("walrus") == [] and index.search_keyword("ocelot")[0][0].id == "1"
        assert index.search_dense("ocelot spots", 1)[0][1] == pytest.approx(1) and index.verify().ok


@pytest.fixture
def index_folder(tmp_path: Path) -> Path:
    """A closed index of two documents."""
    with DocumentIndex.create(tmp_path / "index", embeddings=WordEmbeddings()) as index:
        index.upsert([Document("The pump starts.", id="pump"), Document("The valve opens.", id="valve")])
    return tmp_path / "index"


@pytest.mark.parametrize(
    "damage",
    ["deleted", "short", "link", "NaN", "huge", "garbled"],
)
def test_damaged_vector_files_are_named_and_mended(index_folder: Path, tmp_path: Path, damage: str) -> None:
    """Vector files gone, cut short, garbled or links: searches find the same, verify says so, repair mends them."""
    [path] = index_folder.glob("vectors-*.index")
    target = tmp_path / "elsewhere"
    content = path.read_bytes()
    path.unlink()
    if "link" in damage:
        target.write_bytes(content[:-1])
        path.symlink_to(target)
    elif damage in ("NaN", "huge"):
        path.write_bytes(content[:64] + (b"\xff" if damage == "NaN" else b"\x60") * 8 + content[72:])
    elif damage == "garbled":
        path.write_bytes(b"\xff" * len(content))
    elif not damage.endswith("deleted"):
        path.write_bytes(content[:-7])
    for mode in ("r", "w"):
        with DocumentIndex.open(index_folder, embeddings=WordEmbeddings(), mode=mode) as index:  # type: ignore[arg-type]
            assert index.search_dense("The pump starts", 1)[0][0].page_content.startswith("The pump")
            if mode == "r":
                report = index.verify()
                assert not report.ok and "vectors:" in str(report)
            else:
                assert index.repair().ok
    with DocumentIndex.open(index_folder, embeddings=WordEmbeddings()) as index:
        assert index.verify().ok
        assert index.search_dense("The pump starts", 1)[0][0].page_content.startswith("The pump")
    assert not target.exists() or target.read_bytes() == content[:-1]
