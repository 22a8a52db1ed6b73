"""Several queries for one retriever: one embedding request and one vector query; else all as for separate calls."""

from __future__ import annotations

import asyncio
import tempfile
import threading
import time
from collections.abc import Iterator
from typing import Any

import chromadb
import pytest
from chromadb.config import Settings
from langchain_chroma import Chroma
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding, Embeddings
from langchain_core.language_models import FakeListChatModel
from langchain_core.runnables import RunnableLambda
from langchain_core.vectorstores import InMemoryVectorStore

from rag_kit.concurrency.steps import arun, run
from rag_kit.documents import get_provenance
from rag_kit.errors import BranchError, InvalidInputError
from rag_kit.indexing import DocumentIndex
from rag_kit.retrieval import (
    BM25Retriever,
    EnsembleRetriever,
    ExactVectorRetriever,
    MultiQueryRetriever,
    VectorRetriever,
    index_retriever,
)
from rag_kit.retrieval.batching import asearch_many, embed_in_one, many_searcher, search_many
from rag_kit.retrieval.compose import SearchGroup, call_retriever
from rag_kit.retrieval.hybrid import QueryVectors
from rag_kit.retrieval.vector import VectorSearch

DOCS = [Document(f"text {n}", id=str(n), metadata={"n": n, "odd": bool(n % 2)}) for n in range(30)]
QUERIES = ["text 3", "text 14", "text 25", "other words", "text 9"]
FILTERS: list[Any] = [None, {"odd": True}, {"n": {"$in": []}}]


class Counting(Embeddings):
    """Counts what it is asked."""

    name = "counting"

    def __init__(self, *, prefix: str = "", fail: bool = False) -> None:
        self.inner = DeterministicFakeEmbedding(size=8)
        self.prefix = prefix
        self.fail = fail
        self.queries: list[str] = []
        self.batches: list[list[str]] = []

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        self.batches.append(list(texts))
        if self.fail:
            raise ConnectionError("down")
        return self.inner.embed_documents(texts)

    def embed_query(self, text: str) -> list[float]:
        self.queries.append(text)
        return self.inner.embed_query(self.prefix + text)


class Native(Counting):
    """The same with asynchronous methods of its own."""

    async def aembed_documents(self, texts: list[str]) -> list[list[float]]:
        await asyncio.sleep(0)
        return self.embed_documents(texts)

    async def aembed_query(self, text: str) -> list[float]:
        await asyncio.sleep(0)
        return self.embed_query(text)


class Runs(BaseCallbackHandler):
    """Notes the retriever runs."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, Any, Any]] = []
        self.ended = 0
        self.lock = threading.Lock()

    def on_retriever_start(self, serialized: Any, query: str, **kwargs: Any) -> None:
        with self.lock:
            self.seen.append((query, kwargs["parent_run_id"], kwargs["run_id"]))

    def on_retriever_end(self, documents: Any, **kwargs: Any) -> None:
        with self.lock:
            self.ended += 1


KINDS = ["chroma", "memory", "documents", "index"]


@pytest.fixture(params=KINDS)
def made(request: pytest.FixtureRequest) -> Iterator[tuple[Any, Native]]:
    """A retriever of each kind, and its embedding model."""
    model = Native()
    if request.param == "documents":
        yield ExactVectorRetriever.from_documents(DOCS, model, k=3), model
        return
    if request.param == "index":
        with DocumentIndex.create(tempfile.mkdtemp(), embeddings=model) as index:
            index.upsert(DOCS)
            yield index_retriever(index, "dense", k=3), model
        return
    client = chromadb.EphemeralClient(Settings(anonymized_telemetry=False))
    store: Any = InMemoryVectorStore(model)
    if request.param != "memory":
        store = Chroma("batching", model, client=client, collection_metadata={"hnsw:space": "cosine"})
    store.add_documents(DOCS)
    yield VectorRetriever(vectorstore=store, k=3), model
    if request.param != "memory":
        client.delete_collection("batching")


async def test_equal_to_separate_calls(made: tuple[Any, Native]) -> None:
    """Documents, order and provenance are those of separate calls; the model is asked once for all queries."""
    retriever, model = made
    for where in FILTERS:
        expected = [call_retriever(retriever, query, k=4, filter=where) for query in QUERIES]
        model.queries.clear()
        model.batches.clear()
        _forget(retriever)
        found = search_many(retriever, QUERIES, k=4, filter=where)
        _forget(retriever)
        together = await asearch_many(retriever, QUERIES, k=4, filter=where)
        assert _plain(found) == _plain(expected) == _plain(together)
        assert model.batches == [QUERIES, QUERIES]
        assert len(model.queries) <= 1  # the first time one query is embedded both ways


def _forget(retriever: Any) -> None:
    """A retriever over an index does not embed the last queries again."""
    if hasattr(retriever, "query_vectors"):
        retriever.query_vectors = QueryVectors()


def _plain(lists: list[list[Document]]) -> Any:
    """Everything of the results, scores rounded: a batch moves their last digits."""
    rounded = []
    for found in lists:
        for doc in found:
            record = get_provenance(doc)
            for part in (record, *record["stages"]):
                for name in ("score", "store_score"):
                    if part.get(name) is not None:
                        part[name] = round(part[name], 5) + 0.0
            rounded.append((doc.id, doc.page_content, doc.metadata))
        rounded.append((str(len(found)), "", {}))
    return rounded


async def test_one_query_of_the_store(monkeypatch: pytest.MonkeyPatch) -> None:
    """Chroma gets all vectors in one query, also through an ensemble inside a multi-query retriever."""
    client = chromadb.EphemeralClient(Settings(anonymized_telemetry=False))
    store = Chroma("batching_one", Native(), client=client)
    store.add_documents(DOCS)
    sent: list[int] = []
    query = store._collection.query

    def counted(**kwargs: Any) -> Any:
        sent.append(len(kwargs["query_embeddings"]))
        return query(**kwargs)

    monkeypatch.setattr(store._collection, "query", counted)
    dense = VectorRetriever(vectorstore=store, name="dense")
    hybrid = EnsembleRetriever(retrievers=[BM25Retriever.from_documents(DOCS), dense])
    answer = '{"queries": ["the text 14", "text number 25", "words of text 9", "text 3 again"]}'
    for inner in (dense, dense.with_config(tags=["t"]), hybrid):
        retriever = MultiQueryRetriever.from_llm(FakeListChatModel(responses=[answer]), inner, n=4)
        sent.clear()
        runs = Runs()
        found = retriever.invoke("text 3", config={"callbacks": [runs]})
        assert sent == [5]
        assert _plain([found]) == _plain([await retriever.ainvoke("text 3")]) and sent == [5, 5]
        leaves = 3 if inner is hybrid else 1
        assert len(runs.seen) == 1 + 5 * leaves == runs.ended
        parent = runs.seen[0][2]
        assert {query for query, of, _ in runs.seen[1:] if of == parent} == {
            "text 3", "the text 14", "text number 25", "words of text 9", "text 3 again"
        }  # fmt: skip
    client.delete_collection("batching_one")


async def test_a_failure_falls_back_to_separate_calls(caplog: pytest.LogCaptureFixture) -> None:
    """When the request for all fails each call searches for itself, and the log says so."""
    model = Native()
    store = InMemoryVectorStore(model)
    store.add_documents(DOCS)
    retriever = VectorRetriever(vectorstore=store, k=2)
    expected = _plain([retriever.invoke(query) for query in QUERIES])
    model.fail = True
    assert _plain(search_many(retriever, QUERIES)) == expected
    assert _plain(await asearch_many(retriever, QUERIES)) == expected
    assert "each query is searched by itself" in caplog.text and "down" in caplog.text


async def test_a_model_with_an_instruction_for_queries_is_asked_for_each() -> None:
    """A model that embeds questions otherwise than documents is found out, once, and never asked for documents."""
    model = Native(prefix="query: ")
    store = InMemoryVectorStore(model)
    store.add_documents(DOCS)
    retriever = VectorRetriever(vectorstore=store, k=2)
    expected = _plain([retriever.invoke(query) for query in QUERIES])
    assert _plain(search_many(retriever, QUERIES)) == expected
    model.batches.clear()
    assert _plain(search_many(retriever, QUERIES)) == expected
    assert _plain(await asearch_many(retriever, QUERIES)) == expected
    assert model.batches == []


async def test_a_model_may_offer_embed_queries() -> None:
    """`embed_queries` of a model is taken as it is."""

    class Own(Counting):
        def embed_queries(self, texts: list[str]) -> list[list[float]]:
            return [[float(len(text))] for text in texts]

    model = Own(prefix="query: ")
    assert run(embed_in_one(model, ["a", "bb"])) == [[1.0], [2.0]]
    assert await arun(embed_in_one(model, ["a", "bb"])) == [[1.0], [2.0]]
    assert not model.queries and not model.batches


def test_stores_that_are_not_known_are_asked_one_by_one() -> None:
    """A class made from a known store may search otherwise; and a filter that is decided here asks separately."""

    class Mine(InMemoryVectorStore):
        def similarity_search_with_score(self, query: str, k: int = 4, **kwargs: Any) -> Any:
            return [(Document(f"mine: {query}"), 1.0)]

    store = Mine(Counting())
    assert many_searcher(store) is None
    found = search_many(VectorRetriever(vectorstore=store), ["a", "b"])
    assert [docs[0].page_content for docs in found] == ["mine: a", "mine: b"]
    plain = search_many(RunnableLambda(lambda query: [Document(query)]), ["a", "b"])
    assert [docs[0].page_content for docs in plain] == ["a", "b"]


def test_a_search_by_vector_keeps_its_vector() -> None:
    """A search with a ready vector has nothing to do with the text of its query."""
    model = Counting()
    store = InMemoryVectorStore(model)
    store.add_documents(DOCS)
    search = VectorSearch(vectorstore=store, vector=model.embed_query("text 7"), k=1)
    assert [docs[0].id for docs in search_many(search, QUERIES)] == ["7"] * 5


def test_other_depths_search_for_themselves() -> None:
    """Calls of one group with another k are not mixed up, and do not each search for all."""
    model = Counting()
    store = InMemoryVectorStore(model)
    store.add_documents(DOCS)
    retriever = VectorRetriever(vectorstore=store)
    group = SearchGroup(["text 3", "text 4"])
    assert len(group.call(retriever.invoke, "text 3", k=2)) == 2
    assert len(group.call(retriever.invoke, "text 4", k=5)) == 5
    assert group.call(retriever.invoke, "text 4", k=2)[0].id == "4"
    assert group.call(retriever.invoke, "text 5", k=2)[0].id == "5"  # not of the group
    assert model.batches[1:] == [["text 3", "text 4"]]


async def test_a_leader_that_is_cancelled_leaves_the_others_going() -> None:
    """When the call that embeds for all is cancelled, the others search for themselves."""

    class Hanging(Native):
        async def aembed_documents(self, texts: list[str]) -> list[list[float]]:
            await asyncio.sleep(60)
            return []

    store = InMemoryVectorStore(Native())
    await store.aadd_documents(DOCS)
    store.embedding = Hanging()
    retriever = VectorRetriever(vectorstore=store, k=1)
    group = SearchGroup(["text 3", "text 4"])
    leader = asyncio.create_task(group.acall(retriever.ainvoke, "text 3"))
    await asyncio.sleep(0.05)
    other = asyncio.create_task(group.acall(retriever.ainvoke, "text 4"))
    await asyncio.sleep(0.05)
    leader.cancel()
    assert (await asyncio.wait_for(other, 30))[0].id == "4"
    with pytest.raises(asyncio.CancelledError):
        await leader


def test_a_follower_that_is_cancelled_leaves_the_rest_going() -> None:
    """Cancelling a call that waits does not cancel what the others wait for."""

    class Slow(Native):
        async def aembed_documents(self, texts: list[str]) -> list[list[float]]:
            await asyncio.sleep(0.2)
            return self.embed_documents(texts)

    async def run() -> list[Any]:
        store = InMemoryVectorStore(Slow())
        store.add_documents(DOCS)
        retriever = VectorRetriever(vectorstore=store, k=1)
        group = SearchGroup(["text 3", "text 4", "text 5"])
        tasks = [asyncio.create_task(group.acall(retriever.ainvoke, query)) for query in group.queries]
        await asyncio.sleep(0.05)
        tasks[1].cancel()
        return await asyncio.gather(*tasks, return_exceptions=True)

    first, cancelled, third = asyncio.run(run())
    assert first[0].id == "3" and third[0].id == "5" and isinstance(cancelled, asyncio.CancelledError)


def test_one_at_a_time() -> None:
    """`max_concurrency=1` works: the first search does it for all, and nobody waits for a later one."""
    store = InMemoryVectorStore(Counting())
    store.add_documents(DOCS)
    started = time.monotonic()
    found = search_many(VectorRetriever(vectorstore=store, k=1), QUERIES, max_concurrency=1)
    assert [docs[0].id for docs in found][:3] == ["3", "14", "25"] and time.monotonic() - started < 30


def test_refused() -> None:
    """Queries that are no list of strings, and a retriever that fails."""
    retriever = RunnableLambda(lambda query: [Document(query)])
    assert search_many(retriever, []) == []
    for wrong in ("one", [1]):
        with pytest.raises(InvalidInputError, match="list of strings"):
            search_many(retriever, wrong)  # type: ignore[arg-type]
    with pytest.raises(BranchError):
        search_many(RunnableLambda(lambda query: 1 / 0), ["a", "b"])
