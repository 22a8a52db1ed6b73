"""A filter on a field that no document has is an error that lists the fields; folders can be filtered by."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from langchain_chroma import Chroma
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.language_models import FakeListChatModel
from langchain_core.runnables import RunnableLambda
from langchain_core.vectorstores import InMemoryVectorStore
from support.chroma import memory_client
from support.outages import ask

from rag_kit.documents import get_provenance
from rag_kit.errors import DocumentIndexError, InvalidInputError
from rag_kit.indexing import DocumentIndex
from rag_kit.query_construction import SelfQueryRetriever
from rag_kit.retrieval import (
    BM25Retriever,
    EnsembleRetriever,
    ExactVectorRetriever,
    MultiQueryRetriever,
    SparseRetriever,
    TrigramRetriever,
    VectorRetriever,
    index_retriever,
)
from rag_kit.retrieval.inside import own_filter

MODEL = DeterministicFakeEmbedding(size=8)
DOCUMENTS = [
    Document("The pump starts at 40 degrees.", id="a", metadata={"file": "hr/2024/pump.md", "年份": 2020}),
    Document("The pump stops at 30 degrees.", id="b", metadata={"file": "hr/stop.md", "tags": ["heat"]}),
    Document("水泵四十度启动。", id="c", metadata={"file": "hrx/pump.md", "secret": "salary of Ada"}),
]


def bm25(**settings: Any) -> BM25Retriever:
    return BM25Retriever.from_documents(DOCUMENTS, **settings)


def exact() -> ExactVectorRetriever:
    return ExactVectorRetriever.from_documents(DOCUMENTS, MODEL)


class Counted:
    """A Chroma collection that counts the requests made to it."""

    def __init__(self, collection: Any) -> None:
        self.collection = collection
        self.requests: list[str] = []

    def __getattr__(self, name: str) -> Any:
        value = getattr(self.collection, name)
        if not callable(value):
            return value

        def request(*args: Any, **kwargs: Any) -> Any:
            self.requests.append(name)
            return value(*args, **kwargs)

        return request


@pytest.fixture
def chroma() -> Iterator[Chroma]:
    """A store that the kit did not write to, with a field that one document has."""
    store = Chroma("filter_fields", client=memory_client(), embedding_function=MODEL)
    texts = [f"pump {number}" for number in range(40)]
    store.add_texts(texts, [{"n": number, **({"rare": 1} if number == 39 else {})} for number in range(40)])
    counted: Any = Counted(store._collection)
    store._chroma_collection = counted
    yield store
    store.delete_collection()


def in_memory() -> InMemoryVectorStore:
    """LangChain's store."""
    store = InMemoryVectorStore(MODEL)
    store.add_documents(DOCUMENTS)
    return store


def refused(retriever: Any, where: dict[str, Any], match: str) -> str:
    """The message of the error, which is the same from both doors."""
    with pytest.raises(InvalidInputError, match=match) as caught:
        retriever.invoke("pump", filter=where)
    with pytest.raises(InvalidInputError, match=match):
        asyncio.run(retriever.ainvoke("pump", filter=where))
    return str(caught.value)


@pytest.mark.parametrize(
    "make",
    [
        bm25,
        lambda: TrigramRetriever.from_documents(DOCUMENTS),
        lambda: SparseRetriever.from_documents(DOCUMENTS),
        exact,
        lambda: SelfQueryRetriever.from_rules(DOCUMENTS),
        lambda: EnsembleRetriever(retrievers=[bm25(), exact()]),
    ],
    ids=["bm25", "trigram", "sparse", "vectors", "list", "ensemble"],
)
def test_a_field_of_no_document_is_an_error(make: Callable[[], Any]) -> None:
    """It lists the fields and what was meant, says what $contains means, and gives away no value."""
    retriever = make()
    message = refused(
        retriever, {"fiel": "hr/stop.md"}, "'fiel', a field that no document has .did you mean 'file'"
    )
    assert "file, secret, tags, 年份" in message and "Ada" not in message
    assert "$contains asks whether a list holds a value" in message
    for where in ({"$or": [{"file": "x"}, {"年月": 1}]}, {"$not": {"year": 1}}, {"year": {"$ne": 1}}):
        refused(retriever, where, "a field that no document has")
    assert retriever.invoke("pump", filter={"file": "hr/stop.md"})[0].id == "b"
    assert retriever.invoke("pump", filter={"file": "nowhere.md"}) == []
    assert len(retriever.invoke("pump", filter={"$or": [{"year": {"$exists": False}}, {"year": 1}]})) >= 2


def test_contains_on_text_is_an_error_that_says_what_it_means() -> None:
    """It never held of a text, so nothing was found and nobody knew why."""
    retriever = bm25()
    message = refused(retriever, {"file": {"$contains": "hr"}}, "'file', which is a list in no document")
    assert "does not search inside a text" in message and "{'file': {'$startswith': 'folder/'}}" in message
    assert [doc.id for doc in retriever.invoke("pump", filter={"tags": {"$contains": "heat"}})] == ["b"]
    for where in ({"tags": "heat"}, {"tags": {"$ne": "heat"}}):  # the second one let all lists pass
        refused(retriever, where, "'tags', which is a list in every document: ask {'tags': {'.contains")


@pytest.mark.parametrize("pipeline", ["bm25", "dense", "hybrid"])
def test_an_index_knows_its_fields(tmp_path: Path, pipeline: Any) -> None:
    """Nothing is refused of an empty index; what a later document brings is known at once."""
    with DocumentIndex.create(tmp_path / "index", embeddings=MODEL) as index:
        retriever = index_retriever(index, pipeline)
        assert retriever.invoke("pump", filter={"year": 1}) == []
        index.upsert(DOCUMENTS)
        refused(retriever, {"year": 2021}, "The fields there are: file, secret, tags, 年份")
        index.upsert([Document("The pump is new.", id="d", metadata={"file": "hr/new.md", "year": 2021})])
        assert [doc.id for doc in retriever.invoke("pump", filter={"year": 2021})] == ["d"]


#: Retrievers over a store of LangChain's: name -> how one is made, and for how many queries the store is asked.
OVER_A_STORE: dict[str, tuple[Callable[[Any], Any], int]] = {
    "vector": (lambda store: VectorRetriever(vectorstore=store), 1),
    "ensemble": (lambda store: EnsembleRetriever(retrievers=[bm25(), store.as_retriever()]), 1),
    "self-query": (
        lambda store: SelfQueryRetriever.from_rules(
            store.as_retriever(), schema=[{"name": "n", "type": "int"}]
        ),
        1,
    ),
    "multi-query": (
        lambda store: MultiQueryRetriever.from_llm(
            FakeListChatModel(responses=['{"queries": ["a pump"]}']), store.as_retriever()
        ),
        2,
    ),
}


@pytest.mark.parametrize("way", ["sync", "async"])
@pytest.mark.parametrize("name", OVER_A_STORE)
def test_a_store_gets_no_request_but_the_search(chroma: Any, name: str, way: str) -> None:
    """A filter on a field of one document, or of none, is no error."""
    make, queries = OVER_A_STORE[name]
    retriever = make(chroma)
    for where, found in (({"rare": 1}, ["pump 39"]), ({"raer": 1}, []), ({"rare": 1}, ["pump 39"])):
        chroma._collection.requests.clear()
        documents, _ = ask(retriever, "pump", way, filter=where)
        assert [doc.page_content for doc in documents] == found
        assert Counter(chroma._collection.requests) <= Counter({"query": queries})


@pytest.mark.parametrize("way", ["sync", "async"])
def test_a_misspelt_field_of_a_store_is_no_error(way: str) -> None:
    """Fields of a foreign retriever are not known; nor are those of an ensemble that searches it too."""
    vectors = VectorRetriever(vectorstore=in_memory())
    for retriever in (vectors, EnsembleRetriever(retrievers=[bm25(), vectors])):
        found, notes = ask(retriever, "pump", way, filter={"fiel": "hr/stop.md"})
        assert found == [] and notes.unsearched == []


@pytest.mark.parametrize("way", ["sync", "async"])
def test_a_part_that_cannot_be_read_is_left_to_its_branch(tmp_path: Path, way: str) -> None:
    """With a filter as without one; alone it raises its own error, and its fields are checked when it is back."""
    store = InMemoryVectorStore(MODEL)
    store.add_documents(DOCUMENTS)
    index = DocumentIndex.create(tmp_path / "index")
    index.upsert(DOCUMENTS)
    alone = index_retriever(index)
    retriever = EnsembleRetriever(retrievers=[alone, store.as_retriever()])
    index.close()
    for where in ({}, {"file": "hr/stop.md"}, {"filee": "hr/stop.md"}):
        found, notes = ask(retriever, "pump", way, filter=where)
        assert len(found) == (1 if where.get("file") else 0 if where else 3) and len(notes.unsearched) == 1
    with pytest.raises(DocumentIndexError, match="was closed"):
        ask(alone, "pump", way, filter={"filee": "hr/stop.md"})
    with DocumentIndex.open(tmp_path / "index") as index:
        alone.index = index
        with pytest.raises(InvalidInputError, match="filee"):
            ask(alone, "pump", way, filter={"filee": "hr/stop.md"})


def test_sources_of_different_fields() -> None:
    """A field that one of them has is enough; one that cannot be listed has what it has."""
    years = BM25Retriever.from_texts(["A pump of 1912."], [{"year": 1912}])
    both = EnsembleRetriever(retrievers=[bm25(), years])
    assert [doc.page_content for doc in both.invoke("pump", filter={"year": 1912})] == ["A pump of 1912."]
    refused(both, {"month": 1}, "The fields there are: file, secret, tags, year, 年份")
    foreign = RunnableLambda(lambda query: [Document("A pump.", metadata={"month": 1})])
    assert len(EnsembleRetriever(retrievers=[years, foreign]).invoke("pump", filter={"month": 1})) == 1


def test_no_model_is_asked_before_the_error() -> None:
    """A retriever that rewrites the query sees the mistake first."""
    model = FakeListChatModel(responses=["never"])
    retriever = MultiQueryRetriever.from_llm(model, bm25().with_retry())
    refused(retriever, {"year": 1}, "a field that no document has")
    assert model.i == 0


def test_a_filter_of_ones_own_inside_is_checked_too() -> None:
    """A part that fails is left out by default: the results say which one and why."""
    inner = bm25(filter={"year": 1})
    found = EnsembleRetriever(retrievers=[inner, exact()]).invoke("pump")
    assert "BM25Retriever failed" in (note := get_provenance(found[0])["notes"][0])
    assert "a field that no document has" in note


def test_fields_stay_unnamed_to_who_may_see_some_documents_only() -> None:
    """A retriever's own filter may be a tenant's: a caller's wrong field lists no others' fields, a wrong own does."""
    words = bm25(filter={"file": {"$startswith": "hr/"}})
    for retriever in (words, EnsembleRetriever(retrievers=[words])):
        for field in ("nothing", "secre"):
            message = refused(retriever, {field: 1}, field)
            assert "年份" not in message and "secret" not in message and "stay unnamed" in message
    own = bm25(filter={"fil": "hr/stop.md"})
    assert "did you mean 'file'" in refused(own, {"file": "hr/stop.md"}, "fil")


def test_no_documents_and_odd_values_for_a_self_query() -> None:
    """An empty list is a collection; arrays in the metadata are values like others."""
    assert SelfQueryRetriever.from_rules([]).invoke("fans after 2010") == []
    odd = [Document("fan", metadata={"a": np.array([]), "b": np.array([1, 2]), "year": np.int64(2011)})]
    retriever = SelfQueryRetriever.from_rules(odd)
    assert [field.name for field in retriever.schema_in_use] == ["b", "year"]
    assert len(retriever.invoke("fan after 2010")) == 1


A, B = {"file": "a"}, {"file": "b"}


def test_several_inside_hold_what_one_of_them_holds() -> None:
    """Either of two different filters may have let a document through; none holds if one leg has none."""
    both = EnsembleRetriever(retrievers=[bm25(filter=A), bm25(filter=B)])
    assert own_filter(both) == {"$or": [A, B]}
    assert own_filter(EnsembleRetriever(retrievers=[bm25(filter=A), bm25(filter=A)])) == A
    assert own_filter(EnsembleRetriever(retrievers=[bm25(filter=A), bm25()])) is None


def test_of_fallbacks_the_first_of_a_known_type_counts() -> None:
    """A function may hide rows by a filter that cannot be read: the filter of the fallback is better than none."""
    stranger: Any = RunnableLambda(lambda query: [])
    assert own_filter(stranger.with_fallbacks([bm25(filter=A), bm25(filter=B)])) == A
    assert own_filter(bm25(filter=A).with_fallbacks([stranger, bm25(filter=B)])) == A
    assert own_filter(bm25().with_fallbacks([bm25(filter=B)])) is None
    assert own_filter(stranger.bind(filter=A).with_fallbacks([bm25(filter=B)])) == A
