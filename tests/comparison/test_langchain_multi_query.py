"""LangChain's MultiQueryRetriever and HyDE beside ours.

Each test first shows LangChain's behaviour, and so fails when LangChain mends it; then that ours is right.
"""

from __future__ import annotations

import asyncio
import threading
import time
import warnings
from typing import Any

import pytest
from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.prompts import PromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableConfig, RunnableLambda
from langchain_core.vectorstores import InMemoryVectorStore
from support.embedding import WordEmbeddings
from support.rewriters import Scripted, ids, sent

from rag_kit.documents import get_provenance
from rag_kit.retrieval import HyDERetriever, MultiQueryRetriever

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    theirs = pytest.importorskip(
        "langchain_classic.retrievers.multi_query",
        reason="LangChain's multi-query retriever is in langchain-classic",
    )

QUESTION = "What is the question?"
LINES = "one way to ask\nanother way to ask\na third way to ask"


class Leaf(BaseRetriever):
    """A slow retriever that counts how many calls run at once, and keeps the queries."""

    seconds: float = 0
    found: Any = None
    queries: Any = None
    lock: Any = None
    now: int = 0
    most: int = 0

    def model_post_init(self, context: Any) -> None:
        self.queries, self.lock = [], threading.Lock()

    def _enter(self, query: str) -> None:
        with self.lock:
            self.queries.append(query)
            self.now += 1
            self.most = max(self.most, self.now)

    def _leave(self, query: str) -> list[Document]:
        with self.lock:
            self.now -= 1
        return self.found(query) if self.found else [Document(query, id=query)]

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Document]:
        self._enter(query)
        time.sleep(self.seconds)
        return self._leave(query)

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun
    ) -> list[Document]:
        self._enter(query)
        await asyncio.sleep(self.seconds)
        return self._leave(query)


def their_retriever(leaf: Any, script: Any = LINES, **kwargs: Any) -> Any:
    return theirs.MultiQueryRetriever.from_llm(leaf, Scripted(script=script), **kwargs)


def our_retriever(leaf: Any, script: Any = LINES, **kwargs: Any) -> MultiQueryRetriever:
    return MultiQueryRetriever.from_llm(Scripted(script=script), leaf, **kwargs)


def test_row_2_config_lost() -> None:
    """LangChain passes callbacks down alone, so that configurable values are lost; ours passes all."""
    seen: list[Any] = []

    def look(query: str, config: RunnableConfig) -> list[Document]:
        seen.append(config.get("configurable", {}).get("tenant"))
        return [Document(query)]

    class Inner(BaseRetriever):
        def _get_relevant_documents(
            self, query: str, *, run_manager: CallbackManagerForRetrieverRun
        ) -> list[Document]:
            raise AssertionError

        def invoke(self, input: str, config: Any = None, **kwargs: Any) -> list[Document]:
            return look(input, config)

    config: Any = {"configurable": {"tenant": "t"}}
    their_retriever(Inner()).invoke(QUESTION, config)
    assert set(seen) == {None}
    seen.clear()
    our_retriever(Inner()).invoke(QUESTION, config)
    assert set(seen) == {"t"}


def test_row_3_no_provenance() -> None:
    """LangChain's documents do not say which query found them; ours do."""
    assert all(doc.metadata == {} for doc in their_retriever(Leaf()).invoke(QUESTION))
    found = our_retriever(Leaf(), k=9).invoke(QUESTION)
    assert {get_provenance(doc)["stages"][0]["query"] for doc in found} == {QUESTION, *LINES.split("\n")}


def test_row_15_sync_is_sequential() -> None:
    """LangChain's invoke searches for one query after the other; ours for all at once."""
    leaf = Leaf(seconds=0.1)
    their_retriever(leaf).invoke(QUESTION)
    assert leaf.most == 1
    our_retriever(leaf).invoke(QUESTION)
    assert leaf.most == 4


async def test_row_16_async_ignores_max_concurrency() -> None:
    """LangChain's ainvoke runs all searches at once whatever max_concurrency says; ours keeps to it."""
    script = "\n".join(f"way number {number} to ask" for number in range(10))
    config: Any = {"max_concurrency": 2}
    leaf = Leaf(seconds=0.05)
    await their_retriever(leaf, script).ainvoke(QUESTION, config)
    assert leaf.most == 10
    for use in (our_retriever(leaf, script, n=10), our_retriever(leaf, script, n=10, max_concurrency=2)):
        leaf.most = 0
        await use.ainvoke(QUESTION, config if use.max_concurrency is None else None)
        assert leaf.most == 2


def test_row_17_deduplication() -> None:
    """LangChain compares every pair, metadata included: copies that differ in a score all stay, and 1,000
    documents take far longer than ours."""

    def scored(query: str) -> list[Document]:
        return [Document("same", id="1", metadata={"score": query})]

    assert len(their_retriever(Leaf(found=scored)).invoke(QUESTION)) == 3
    assert len(our_retriever(Leaf(found=scored)).invoke(QUESTION)) == 1

    documents = [Document(f"text {n}", id=str(n), metadata={"n": n, "tags": ["a"]}) for n in range(1000)]
    begun = time.perf_counter()
    theirs._unique_documents(documents)
    slow = time.perf_counter() - begun
    leaf = Leaf(found=lambda query: documents[250 * (len(query) % 4) :][:250])
    ours = our_retriever(leaf)
    ours.invoke(QUESTION)
    begun = time.perf_counter()
    ours.invoke(QUESTION)
    assert slow > 3 * (time.perf_counter() - begun)


@pytest.mark.parametrize(
    ("script", "junk"),
    [
        ("Sure! Here are three versions:\n1. fan noise\n2. fan sound", "Sure! Here are three versions:"),
        ("- fan noise\n- fan sound", "- fan noise"),
        ("<think>\nlet me see\n</think>\nfan noise\nfan sound", "let me see"),
    ],
)
def test_row_18_junk_is_searched_for(script: str, junk: str) -> None:
    """LangChain searches for numbering, bullets, preambles and reasoning; ours for the queries."""
    leaf = Leaf()
    their_retriever(leaf, script).invoke(QUESTION)
    assert junk in leaf.queries
    leaf.queries.clear()
    our_retriever(leaf, script).invoke(QUESTION)
    assert sorted(leaf.queries) == sorted([QUESTION, "fan noise", "fan sound"])


@pytest.mark.parametrize("script", ["", " \n "])
def test_row_18_empty_output_finds_nothing(script: str) -> None:
    """With an empty answer LangChain returns nothing; ours searches for the question and says so."""
    assert their_retriever(Leaf(), script).invoke(QUESTION) == []
    found = our_retriever(Leaf(), script).invoke(QUESTION)
    assert ids(found) == [QUESTION]
    assert any("degraded" in note for note in get_provenance(found[0])["notes"])


def test_row_19_unranked_union() -> None:
    """LangChain returns the union in the order of the queries, whole; ours ranks it and takes k."""
    lists = {"one way to ask": "abc", "another way to ask": "cx", "a third way to ask": "cy", QUESTION: "c"}
    leaf = Leaf(found=lambda query: [Document(name, id=name) for name in lists[query]])
    assert ids(their_retriever(leaf).invoke(QUESTION)) == ["a", "b", "c", "x", "y"]
    assert ids(our_retriever(leaf, k=2).invoke(QUESTION)) == ["c", "a"]
    assert len(our_retriever(leaf).invoke(QUESTION, None, k=5)) == 5


def test_row_19_number_of_queries() -> None:
    """LangChain's prompt asks for 3 in its text and no argument changes it; ours takes n, and tells the queries."""
    assert "generate 3 different versions" in theirs.DEFAULT_QUERY_PROMPT.template
    with pytest.raises(TypeError):
        their_retriever(Leaf(), n=5)
    ours = our_retriever(Leaf(), n=2)
    assert sent(ours.invoke(QUESTION)) == [QUESTION, *LINES.split("\n")[:2]]
    assert "<count>2</count>" in ours.llm.prompts[0]  # type: ignore[attr-defined]


def test_row_14_one_failure_fails_all() -> None:
    """In LangChain a failing model or search fails the call; ours goes on and says what is missing."""
    with pytest.raises(ConnectionError):
        their_retriever(Leaf(), ConnectionError("down")).invoke(QUESTION)
    assert ids(our_retriever(Leaf(), ConnectionError("down")).invoke(QUESTION)) == [QUESTION]

    def fails(query: str) -> list[Document]:
        if query == "another way to ask":
            raise ConnectionError("down")
        return [Document(query)]

    with pytest.raises(ConnectionError):
        their_retriever(Leaf(found=fails)).invoke(QUESTION)
    found = our_retriever(RunnableLambda(fails)).invoke(QUESTION)
    assert len(found) == 3
    assert any("query 3 failed" in n for n in get_provenance(found[0])["notes"])


def their_hyde(model: Any) -> Any:
    hyde = pytest.importorskip("langchain_classic.chains.hyde.base")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return hyde.HypotheticalDocumentEmbedder.from_llm(
            model, WordEmbeddings(), custom_prompt=PromptTemplate.from_template("Answer {question}")
        )


async def test_row_21_hyde_is_an_embedding_model() -> None:
    """LangChain's HyDE is an embedding model inside the store: one passage, the question unused, numpy numbers, a
    blocking call in async code, and no run of its own in the trace. Ours is a retriever and has none of these."""
    model = Scripted(script="a passage about bees")
    embedder = their_hyde(model)
    vector = embedder.embed_query(QUESTION)
    assert type(vector[0]).__name__ == "float64"
    assert vector == WordEmbeddings().vector("a passage about bees")  # nothing of the question in it
    assert len(model.prompts) == 1
    assert "aembed_query" not in vars(type(embedder))
    store = InMemoryVectorStore(WordEmbeddings())
    store.add_texts(["a passage about bees", "the question of what is"])
    ours = HyDERetriever.from_llm(Scripted(script=['["bees one"]', '["bees two"]']), store, n=2)
    found = await ours.ainvoke(QUESTION)
    assert sorted(sent(found)) == sorted([QUESTION, "bees one", "bees two"])
    assert type(get_provenance(found[0])["score"]) is float


async def test_row_21_hyde_without_passages() -> None:
    """In LangChain a failing model fails the search; ours makes the plain search and says so."""
    store = InMemoryVectorStore(their_hyde(Scripted(script=ConnectionError("down"))))
    with pytest.raises(ConnectionError):
        store.similarity_search(QUESTION)
    plain = InMemoryVectorStore(WordEmbeddings())
    plain.add_texts(["the question"])
    found = await HyDERetriever.from_llm(Scripted(script=ConnectionError("down")), plain).ainvoke(QUESTION)
    assert len(found) == 1 and any("degraded" in note for note in get_provenance(found[0])["notes"])
