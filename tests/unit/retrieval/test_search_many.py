"""Several queries for one retriever: one embedding request; else all as for separate calls."""

from __future__ import annotations

import asyncio
import tempfile
import threading
import time
from collections.abc import Iterator
from typing import Any

import chromadb
import numpy as np
import pytest
from chromadb.config import Settings
from langchain_chroma import Chroma
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding, Embeddings
from langchain_core.language_models import FakeListChatModel
from langchain_core.vectorstores import InMemoryVectorStore

from rag_kit.concurrency.steps import arun, run
from rag_kit.documents import get_provenance
from rag_kit.errors import BranchError, InvalidInputError
from rag_kit.indexing import DocumentIndex
from rag_kit.models.clients import QueryVectors, embed_together
from rag_kit.retrieval import (
    BM25Retriever,
    EnsembleRetriever,
    ExactVectorRetriever,
    HybridRetriever,
    MultiQueryRetriever,
    RerankRetriever,
    VectorRetriever,
    index_retriever,
)

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
        expected = [retriever.invoke(query, k=4, filter=where) for query in QUERIES]
        model.queries.clear()
        model.batches.clear()
        _forget(retriever)
        found = retriever.search_many(QUERIES, k=4, filter=where)
        _forget(retriever)
        together = await retriever.asearch_many(QUERIES, k=4, filter=where)
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


@pytest.mark.parametrize("around", ["nothing", "with_config", "ensemble", "rerank"])
async def test_one_request_through_what_is_around(around: str) -> None:
    """The queries of a multi-query reach the model together through wrappers, and each is a run of its own."""
    model = Native()
    store = InMemoryVectorStore(model)
    store.add_documents(DOCS)
    dense = VectorRetriever(vectorstore=store, name="dense")
    inner: Any = {
        "nothing": dense,
        "with_config": dense.with_config(tags=["t"]),
        "ensemble": EnsembleRetriever(retrievers=[BM25Retriever.from_documents(DOCS), dense]),
        "rerank": RerankRetriever(retriever=dense, reranker=lambda query, documents: [1.0] * len(documents)),
    }[around]
    answer = '{"queries": ["the text 14", "text number 25", "words of text 9", "text 3 again"]}'
    retriever = MultiQueryRetriever.from_llm(FakeListChatModel(responses=[answer]), inner, n=4)
    for _ in range(2):
        model.batches.clear()
        runs = Runs()
        found = retriever.invoke("text 3", config={"callbacks": [runs]})
        assert len(model.batches) == 1 and len(model.batches[0]) == 5
        assert _plain([found]) == _plain([await retriever.ainvoke("text 3")]) and len(model.batches) == 2
        leaves = {"ensemble": 3, "rerank": 2}.get(around, 1)
        assert len(runs.seen) == 1 + 5 * leaves == runs.ended
        parent = runs.seen[0][2]
        assert {query for query, of, _ in runs.seen[1:] if of == parent} == {
            "text 3", "the text 14", "text number 25", "words of text 9", "text 3 again"
        }  # fmt: skip


async def test_one_bad_query_fails_alone() -> None:
    """The others are searched where one of several queries cannot be embedded, and it is named."""

    class Picky(Native):
        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            if any("14" in text for text in texts) and len(texts) < 10:
                raise ValueError("too long")
            return super().embed_documents(texts)

        def embed_query(self, text: str) -> list[float]:
            if "14" in text:
                raise ValueError("too long")
            return super().embed_query(text)

    store = InMemoryVectorStore(Picky())
    store.add_documents(DOCS)
    retriever = VectorRetriever(vectorstore=store, k=1)
    for found in (
        retriever.search_many(QUERIES, return_exceptions=True),
        await retriever.asearch_many(QUERIES, return_exceptions=True),
    ):
        assert [isinstance(one, Exception) for one in found] == [False, True, False, False, False]
    with pytest.raises(ValueError, match="too long"):
        retriever.search_many(QUERIES)


async def test_a_failure_falls_back_to_separate_calls() -> None:
    """When the request for all fails each query is searched for by itself."""
    model = Native()
    store = InMemoryVectorStore(model)
    store.add_documents(DOCS)
    retriever = VectorRetriever(vectorstore=store, k=2)
    expected = _plain([retriever.invoke(query) for query in QUERIES])
    model.fail = True
    assert _plain(retriever.search_many(QUERIES)) == expected
    assert _plain(await retriever.asearch_many(QUERIES)) == expected


async def test_a_model_with_an_instruction_for_queries_is_asked_for_each() -> None:
    """A model that embeds questions otherwise than documents is found out, once, and never asked for documents."""
    model = Native(prefix="query: ")
    store = InMemoryVectorStore(model)
    store.add_documents(DOCS)
    retriever = VectorRetriever(vectorstore=store, k=2)
    expected = _plain([retriever.invoke(query) for query in QUERIES])
    assert _plain(retriever.search_many(QUERIES)) == expected
    model.batches.clear()
    assert _plain(retriever.search_many(QUERIES)) == expected
    assert _plain(await retriever.asearch_many(QUERIES)) == expected
    assert model.batches == []


async def test_a_model_may_offer_embed_queries() -> None:
    """`embed_queries` of a model is taken as it is."""

    class Own(Counting):
        def embed_queries(self, texts: list[str]) -> list[list[float]]:
            return [[float(len(text))] for text in texts]

    model = Own(prefix="query: ")
    assert run(embed_together(model, ["a", "bb"])) == [[1.0], [2.0]]
    assert await arun(embed_together(model, ["a", "bb"])) == [[1.0], [2.0]]
    assert not model.queries and not model.batches


def test_stores_that_are_not_known_are_asked_one_by_one() -> None:
    """A class made from a known store may search otherwise; and a filter that is decided here asks separately."""

    class Mine(InMemoryVectorStore):
        def similarity_search_with_score(self, query: str, k: int = 4, **kwargs: Any) -> Any:
            return [(Document(f"mine: {query}"), 1.0)]

    retriever = VectorRetriever(vectorstore=Mine(Counting()))
    assert [docs[0].page_content for docs in retriever.search_many(["a", "b"])] == ["mine: a", "mine: b"]


@pytest.mark.parametrize("blocking", [True, False])
def test_only_arms_that_run_are_prepared(blocking: bool) -> None:
    """An ensemble has the queries embedded by the retrievers that it runs, and by none of weight 0."""
    used, unused = Counting(), Counting()
    arms = [ExactVectorRetriever.from_documents(DOCS, model) for model in (used, unused)]
    used.batches, unused.batches = [], []
    both = EnsembleRetriever(retrievers=arms, weights=[1, 0])
    found = both.search_many(QUERIES) if blocking else asyncio.run(both.asearch_many(QUERIES))
    assert [docs[0].id for docs in found[:3]] == ["3", "14", "25"]
    assert used.batches == [QUERIES] and len(used.queries) <= 1
    assert unused.batches == unused.queries == []


def test_one_query_and_blank_ones_are_embedded_as_alone() -> None:
    """A single query is embedded as a query, and nothing is embedded for a blank one."""
    model = Counting()
    exact = ExactVectorRetriever.from_documents(DOCS, model, k=1)
    model.batches = []
    assert [[doc.id for doc in found] for found in exact.search_many(["text 3", "  "])] == [["3"], []]
    assert model.batches == [] and model.queries == ["text 3"]


def test_queries_that_were_asked_before_are_not_embedded_again() -> None:
    """New queries go into one request, one of them also where it is asked several times."""
    model = Native()
    retriever = ExactVectorRetriever.from_documents(DOCS, model)
    found = retriever.search_many(QUERIES)
    model.batches.clear()
    model.queries.clear()
    assert _plain(retriever.search_many(QUERIES)) == _plain(found) and not model.batches and not model.queries
    retriever.search_many([*QUERIES, "one more", "one more"])
    retriever.search_many([*QUERIES, "a second", "a third"])
    assert model.batches == [["one more"], ["a second", "a third"]] and not model.queries


def test_queries_that_the_model_does_not_read_are_not_embedded() -> None:
    """Queries for a hybrid in a language that the model lacks are searched by keyword alone."""
    model = Counting()
    model.english_only = True  # type: ignore[attr-defined]
    dense = ExactVectorRetriever.from_documents(DOCS, model)
    model.batches = []
    hybrid = HybridRetriever(retrievers=[BM25Retriever.from_documents(DOCS), dense])
    chinese = "北京大学在哪里"
    found = hybrid.search_many(["text 3", chinese, "text 9"])
    assert found[0][0].id == "3" and found[2][0].id == "9"
    assert model.batches == [["text 3", "text 9"]] and chinese not in model.queries


@pytest.mark.parametrize("blocking", [True, False])
def test_a_request_that_hangs_is_given_up(blocking: bool) -> None:
    """An endpoint that hangs costs its time-out once, and keyword search answers; the deadline is not reached."""
    model = Hanging()
    limits: list[tuple[Any, Any]] = [({"timeout": 0.6}, {}), ({}, {"timeout": 0.6})]
    for inner, outer in limits:
        both = EnsembleRetriever(retrievers=[BM25Retriever.from_documents(DOCS), hanging(model)], **inner)
        retriever = MultiQueryRetriever.from_llm(three_queries(), both, deadline=8, **outer)
        begun = time.monotonic()
        found = retriever.invoke("text 3") if blocking else asyncio.run(retriever.ainvoke("text 3"))
        assert 0.5 < time.monotonic() - begun < 2.3
        assert {"0", "3"} <= {doc.id for doc in found}
        assert any("degraded: Exact" in note for note in get_provenance(found[0])["notes"])
    assert model.queries == ["text 3"] * 2  # to compare, each time; none by itself
    model.ended.set()


def test_what_took_too_long_is_asked_again_by_the_next_call() -> None:
    """A time-out is remembered for the call alone."""
    model = Hanging()
    retriever = MultiQueryRetriever.from_llm(three_queries(), hanging(model), timeout=0.3)
    with pytest.raises(BranchError, match="preparing the queries took longer than timeout"):
        retriever.invoke("text 3")
    model.ended.set()
    assert {"3", "14", "25"} <= {doc.id for doc in retriever.invoke("text 3")}


class Hanging(Counting):
    """Answers no request before it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.ended = threading.Event()

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        self.ended.wait(20)
        return super().embed_documents(texts)

    def embed_query(self, text: str) -> list[float]:
        self.queries.append(text)
        self.ended.wait(20)
        return self.inner.embed_query(text)


def hanging(model: Embeddings) -> ExactVectorRetriever:
    """A retriever with this model and vectors made before."""
    vectors = np.array(Counting().embed_documents([doc.page_content for doc in DOCS]))
    return ExactVectorRetriever.from_documents(DOCS, model, vectors=vectors)


def three_queries() -> FakeListChatModel:
    """A model that writes two more queries."""
    return FakeListChatModel(responses=['{"queries": ["text 14", "text 25"]}'])


def test_refused() -> None:
    """Queries that are no list of strings are refused; no query finds nothing."""
    retriever = BM25Retriever.from_documents(DOCS)
    assert retriever.search_many([]) == []
    for wrong in ("one", [1]):
        with pytest.raises(InvalidInputError, match="list of strings"):
            retriever.search_many(wrong)  # type: ignore[arg-type]
