"""Vector search in PostgreSQL: the hits of a folder where all vectors are read, nearly all of them with HNSW."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings

from rag_kit.documents import Filter
from rag_kit.errors import InvalidInputError
from rag_kit.indexing import DocumentIndex

psycopg = pytest.importorskip("psycopg")

EXACT_ROWS = "rag_kit.indexing.postgres.vectors.EXACT_ROWS"
NAMES = (f"index_{number}" for number in itertools.count())


@cache
def vector(number: int, version: int, size: int) -> list[float]:
    """In clusters that share a large part; some are of no length, some equal, some huge or tiny."""
    if number % 97 == 13:
        return [0.0] * size
    cluster = np.random.default_rng(number % 40).normal(size=size)
    own = np.random.default_rng([number % 500 if number < 1000 else number, version]).normal(size=size)
    scale = {5: 1e16, 6: 1e-15}.get(number % 50, 1.0)
    return [float(value) for value in scale * (2.0 + cluster + 0.8 * own)]


class Points(Embeddings):
    """The text names a point and its version."""

    def __init__(self, size: int = 32) -> None:
        self.size = size

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        number, version = (int(part) for part in text.split()[1:3])
        return vector(number, version, self.size)


def points(numbers: range, version: int = 0, **more: Any) -> list[Document]:
    return [
        Document(f"point {n} {version}", id=f"p{n}", metadata={"n": n, "share": n % 100, **more})
        for n in numbers
    ]


@pytest.fixture(scope="module")
def server(plain_url: str) -> str:
    """The URL of a server for an ordinary role; whoever waits for a lock fails."""
    return f"{plain_url}&options=-c%20lock_timeout%3D10s"


@pytest.fixture
def url(server: str) -> str:
    """An index that does not exist yet has a location, too."""
    return f"{server}&index={next(NAMES)}"


def execute(url: str, statement: str) -> list[Any]:
    """Run a statement in the schema of an index, as the tenant without a name."""
    address, name = url.split("&index=")
    with psycopg.connect(address) as connection:
        connection.execute(f"SET search_path = {name}, public; SET rag_kit.tenant = ''")
        cursor = connection.execute(statement)
        return cursor.fetchall() if cursor.description else []


def has_hnsw(url: str) -> bool:
    query = "SELECT 1 FROM pg_indexes WHERE schemaname = current_schema AND indexdef LIKE '%hnsw%'"
    return bool(execute(url, query))


@pytest.fixture(scope="module")
def both(
    server: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[DocumentIndex, DocumentIndex]]:
    """A folder and a database with the same past."""
    folder = DocumentIndex.create(tmp_path_factory.mktemp("both") / "index", embeddings=Points())
    # a new name each time, for a process may be given the tests of a module twice
    database = DocumentIndex.create(f"{server}&index={next(NAMES)}", embeddings=Points())
    for index in (folder, database):
        index.upsert(points(range(1200)))
        index.upsert(points(range(100), version=1))
        index.upsert(points(range(100, 200), changed=True))
        index.delete([f"p{n}" for n in range(200, 300)])
        index.upsert(points(range(250, 260), version=2))
    yield folder, database
    folder.close()
    database.close()


@pytest.mark.parametrize(
    "where",
    [
        None,
        {"n": {"$lt": 700}},
        {"share": 3},
        {"changed": True},
        {"n": -1},
        {"$not": {"share": {"$in": [1, 13]}}},
    ],
)
def test_hits_are_those_of_a_folder(both: tuple[DocumentIndex, DocumentIndex], where: Filter | None) -> None:
    """After many changes both find the same ids with the same cosines: equal vectors, zeros, huge and tiny ones."""
    folder, database = both
    for number, k in ((3, 1), (41, 4), (250, 10), (13, 5), (900, 100), (1100, 3000)):
        query = vector(number, 1, 32)
        expected, found = folder.search_dense(query, k, where), database.search_dense(query, k, where)
        assert [document.id for document, _ in found] == [document.id for document, _ in expected]
        assert [s for _, s in found] == pytest.approx([s for _, s in expected], abs=2e-6)


@pytest.fixture(scope="module")
def graph(server: str) -> Iterator[DocumentIndex]:
    """An index of 2,000 points with HNSW, which is made here from 1,000."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(EXACT_ROWS, 1000)
        url = f"{server}&index={next(NAMES)}"
        with DocumentIndex.create(url, embeddings=Points()) as index:
            index.upsert(points(range(1000, 2000)))
            assert not has_hnsw(url)
            index.upsert(points(range(2000, 2500)))
            assert has_hnsw(url)
            index.upsert(points(range(2500, 3000)))
            yield index


@pytest.mark.parametrize("scanned", [1000, 100])
@pytest.mark.parametrize("share", [100, 50, 10, 1])
def test_hnsw_finds_nearly_all(
    graph: DocumentIndex, share: int, scanned: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With an HNSW index recall@10 is .97 or more, also where a filter lets few of the rows that it gives through."""
    monkeypatch.setattr("rag_kit.indexing.postgres.vectors.SCANNED", scanned)
    rows = np.array([vector(n, 0, 32) for n in range(1000, 3000) if n % 100 < share])
    rows /= np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-30)
    recalls = []
    for number in range(5000, 5020):
        query = vector(number, 0, 32)
        least = np.sort(rows @ query)[-10] / max(float(np.linalg.norm(query)), 1e-30) - 1e-5
        found = graph.search_dense(query, 10, {"share": {"$lt": share}} if share < 100 else None)
        assert all(document.metadata["share"] < share for document, _ in found)
        recalls.append(sum(score >= least for _, score in found) / 10)
    assert np.mean(recalls) >= 0.97


def test_a_tenant_with_few_rows(graph: DocumentIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    """A tenant with 1% of the rows finds its own, all of them if need be, with an HNSW index of its own or without."""
    with DocumentIndex.create(f"{graph.folder}&tenant=small", embeddings=Points()) as small:
        for most, numbers in ((1000, range(6000, 6020)), (0, range(6020, 6040))):
            monkeypatch.setattr(EXACT_ROWS, most)
            small.upsert(points(numbers))
            found = small.search_dense("point 6001 0", 5)
            assert found[0][0].id == "p6001" and all(int(str(d.id)[1:]) >= 6000 for d, _ in found)
            assert len(small.search_dense("point 6001 0", 100)) == len(small.ids())


def test_readers_go_on_while_hnsw_is_made(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the making of the index and the commit a reader searches, and finds the state of before."""
    from rag_kit.indexing.postgres import vectors

    make, seen = vectors._make_hnsw_index, []
    with DocumentIndex.create(url, embeddings=Points()) as writer:
        writer.upsert(points(range(1000, 1100)))
        with DocumentIndex.open(url, embeddings=Points()) as reader:

            def make_and_search(*arguments: Any) -> None:
                make(*arguments)
                seen.extend(document.id for document, _ in reader.search_dense("point 1110 0", 1000))

            monkeypatch.setattr(vectors, "_make_hnsw_index", make_and_search)
            monkeypatch.setattr(vectors, "EXACT_ROWS", 150)
            writer.upsert(points(range(1100, 1200)))
            assert sorted(seen) == sorted(document.id for document in points(range(1000, 1100)))
            assert reader.search_dense("point 1110 0", 1)[0][0].id == "p1110"
    assert has_hnsw(url)


def test_reembed_takes_vectors_of_another_length(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Vectors of another model replace the old ones in one transaction, with an HNSW index of their own."""
    monkeypatch.setattr(EXACT_ROWS, 100)
    with DocumentIndex.create(url, embeddings=Points()) as index:
        index.upsert(points(range(1000, 1200)))
        with DocumentIndex.open(url) as reader:
            index.reembed(Points(16))
            query = vector(1100, 0, 16)
            assert index.search_dense(query, 1)[0][0].id == reader.search_dense(query, 1)[0][0].id == "p1100"
        assert index.verify().ok
    assert execute(url, "SELECT count(*), count(DISTINCT model) FROM nearest") == [(200, 1)]


def test_verify_finds_what_was_changed_by_hand(url: str) -> None:
    """A vector of the table that is searched was changed or is missing: verify says so, and repair mends it."""
    row = "n = (SELECT n FROM chunks WHERE id = 'p{}')"
    with DocumentIndex.create(url, embeddings=Points()) as index:
        index.upsert(points(range(1000, 1100)))
        assert index.verify().ok and index.verify().checked["vector rows"] == 100
        execute(
            url,
            f"UPDATE nearest SET generation = 0, unit = (SELECT unit FROM nearest LIMIT 1) WHERE {row.format(1050)}",
        )
        execute(url, f"DELETE FROM nearest WHERE {row.format(1060)}")
        problems = " ".join(index.verify().problems)
        assert "1 rows are missing" in problems and "1 rows are not what was written" in problems
        execute(url, f"UPDATE vectors SET vector = '\\x00' WHERE {row.format(1070)}")
        assert {str(d.id) for d, _ in index.search_dense("point 1070 0", 100)} >= {"p1050", "p1071"}
        index.repair()
        assert index.verify().ok
        for n in (1050, 1060):
            assert index.search_dense(f"point {n} 0", 1)[0][0].id == f"p{n}"


def test_long_vectors(server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Above 4,000 numbers all vectors are read; above 16,000 they are refused."""
    monkeypatch.setattr(EXACT_ROWS, 10)
    with DocumentIndex.create(f"{server}&index={next(NAMES)}", embeddings=Points(4001)) as index:
        index.upsert(points(range(1000, 1030)))
        assert index.search_dense("point 1020 0", 1)[0][0].id == "p1020"
        assert index.verify().ok
    with DocumentIndex.create(f"{server}&index={next(NAMES)}", embeddings=Points(16_001)) as index:
        with pytest.raises(InvalidInputError, match="16000"):
            index.upsert(points(range(1000, 1003)))
        assert index.ids() == []
