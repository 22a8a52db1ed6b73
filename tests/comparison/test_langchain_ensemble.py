"""LangChain's EnsembleRetriever beside ours.

Each test first shows LangChain's behaviour, and so fails when LangChain mends it; then that ours is right.
"""

from __future__ import annotations

import asyncio
import threading
import time
import warnings
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.runnables import RunnableLambda

from rag_kit.documents import get_provenance
from rag_kit.errors import InvalidInputError
from rag_kit.retrieval import EnsembleRetriever

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    theirs = pytest.importorskip(
        "langchain_classic.retrievers", reason="LangChain's ensemble is in langchain-classic"
    )


def returns(*texts: str, **metadata: Any) -> RunnableLambda[str, list[Document]]:
    return RunnableLambda(lambda query: [Document(text, metadata=dict(metadata)) for text in texts])


def their_ensemble(*retrievers: Any, **kwargs: Any) -> Any:
    values = {"weights": [1.0] * len(retrievers), **kwargs}
    return theirs.EnsembleRetriever(retrievers=list(retrievers), **values)


class Counting:
    """A slow retriever that counts how many calls run at once, and in all."""

    def __init__(self, seconds: float) -> None:
        self.seconds, self.now, self.most, self.calls = seconds, 0, 0, 0
        self.lock = threading.Lock()

    def enter(self) -> None:
        with self.lock:
            self.calls += 1
            self.now += 1
            self.most = max(self.most, self.now)

    def leave(self) -> list[Document]:
        with self.lock:
            self.now -= 1
        return [Document("x")]

    def call(self, query: str) -> list[Document]:
        self.enter()
        time.sleep(self.seconds)
        return self.leave()

    async def acall(self, query: str) -> list[Document]:
        self.enter()
        await asyncio.sleep(self.seconds)
        return self.leave()

    def leaf(self) -> RunnableLambda[str, list[Document]]:
        return RunnableLambda(self.call, afunc=self.acall)


def test_row_3_no_scores_or_sources() -> None:
    """LangChain's results say nothing of score or source; ours name every branch with rank and weight."""
    leaves = [returns("a", "b"), returns("b")]
    found = their_ensemble(*leaves).invoke("q")
    assert [doc.metadata for doc in found] == [{}, {}]
    record = get_provenance(EnsembleRetriever(retrievers=leaves).invoke("q")[0])
    assert record["score"] == pytest.approx(1 / 62 + 1 / 61)
    assert [stage["rank"] for stage in record["stages"]] == [2, 1, 1]


def test_row_13_duplicates_in_one_list() -> None:
    """In LangChain a document repeated in one list beats the one that is first in both; not in ours."""
    leaves = [returns("right", "again", "again", "again"), returns("right")]
    assert their_ensemble(*leaves).invoke("q")[0].page_content == "again"
    assert EnsembleRetriever(retrievers=leaves).invoke("q")[0].page_content == "right"


def test_row_14_one_failure_fails_all() -> None:
    """In LangChain one failing retriever fails the call; ours goes on and says what is missing."""

    def broken(query: str) -> list[Document]:
        raise ConnectionError("down")

    leaves = [returns("a"), RunnableLambda(broken)]
    with pytest.raises(ConnectionError):
        their_ensemble(*leaves).invoke("q")
    found = EnsembleRetriever(retrievers=leaves).invoke("q")
    assert [doc.page_content for doc in found] == ["a"]
    assert "ConnectionError" in get_provenance(found[0])["notes"][0]


def test_row_14_no_time_out() -> None:
    """LangChain waits for the slowest however long it takes; ours for as long as it was told."""
    slow = Counting(0.8)
    leaves = [returns("a"), slow.leaf()]
    begun = time.monotonic()
    their_ensemble(*leaves).invoke("q")
    assert time.monotonic() - begun >= 0.8
    with pytest.raises(InvalidInputError):
        EnsembleRetriever(retrievers=leaves, timeout=-1)
    begun = time.monotonic()
    EnsembleRetriever(retrievers=leaves, timeout=0.1).invoke("q")
    assert time.monotonic() - begun < 0.6


def test_row_15_sync_is_sequential() -> None:
    """LangChain's invoke calls one retriever after the other; ours side by side."""
    counter = Counting(0.1)
    leaves = [counter.leaf() for _ in range(5)]
    their_ensemble(*leaves).invoke("q")
    assert counter.most == 1
    EnsembleRetriever(retrievers=leaves).invoke("q")
    assert counter.most == 5


async def test_row_16_async_ignores_max_concurrency() -> None:
    """LangChain's ainvoke runs all at once whatever max_concurrency says; ours keeps to it."""
    config: Any = {"max_concurrency": 2}
    counter = Counting(0.05)
    leaves = [counter.leaf() for _ in range(10)]
    await their_ensemble(*leaves).ainvoke("q", config)
    assert counter.most == 10
    counter.most = 0
    await EnsembleRetriever(retrievers=leaves).ainvoke("q", config)
    assert counter.most == 2


def test_row_20_document_id_is_not_identity() -> None:
    """LangChain joins two documents of the same text though their ids differ; ours keeps them apart."""
    leaves = [
        RunnableLambda(lambda q: [Document("same", id="1")]),
        RunnableLambda(lambda q: [Document("same", id="2")]),
    ]
    assert len(their_ensemble(*leaves).invoke("q")) == 1
    assert [doc.id for doc in EnsembleRetriever(retrievers=leaves).invoke("q")] == ["1", "2"]


def test_row_20_missing_id_key() -> None:
    """LangChain raises a bare KeyError for a missing id_key; ours says which key and what to do."""
    with pytest.raises(KeyError):
        their_ensemble(returns("a"), id_key="isbn").invoke("q")
    with pytest.raises(InvalidInputError, match=r"id_key='isbn'.*leave id_key out"):
        EnsembleRetriever(retrievers=[returns("a")], id_key="isbn").invoke("q")


def test_row_20_zero_weight_still_runs() -> None:
    """LangChain runs a retriever of weight 0 and keeps its results; ours does neither."""
    counter = Counting(0)
    leaves = [returns("a"), counter.leaf()]
    assert len(their_ensemble(*leaves, weights=[1.0, 0.0]).invoke("q")) == 2
    assert counter.calls == 1
    assert len(EnsembleRetriever(retrievers=leaves, weights=[1, 0]).invoke("q")) == 1
    assert counter.calls == 1


def test_row_20_negative_weights_are_accepted() -> None:
    """LangChain takes a negative weight; ours refuses it."""
    their_ensemble(returns("a"), returns("b"), weights=[1.0, -1.0])
    with pytest.raises(InvalidInputError, match="-1"):
        EnsembleRetriever(retrievers=[returns("a"), returns("b")], weights=[1.0, -1.0])


def test_row_20_no_top_k() -> None:
    """LangChain returns the whole union and ignores k in the call; ours returns k."""
    leaves = [returns(*"abcdef"), returns(*"ghijkl")]
    assert len(their_ensemble(*leaves).invoke("q", None)) == 12
    assert len(EnsembleRetriever(retrievers=leaves, k=3).invoke("q")) == 3
    assert len(EnsembleRetriever(retrievers=leaves).invoke("q", None, k=5)) == 5


def test_results_are_live() -> None:
    """Editing LangChain's result edits the source; ours are copies."""
    source = [Document("a", metadata={"n": 1})]
    leaf = RunnableLambda(lambda q: source)
    their_ensemble(leaf).invoke("q")[0].metadata["n"] = 2
    assert source[0].metadata == {"n": 2}
    EnsembleRetriever(retrievers=[leaf]).invoke("q")[0].metadata["n"] = 3
    assert source[0].metadata == {"n": 2}


def test_same_scores_without_duplicates() -> None:
    """Both give the same order where LangChain is right: ranks from 1, k = 60, weights."""
    leaves = [returns("a", "b", "c", "d"), returns("d", "c", "x"), returns("y", "b")]
    weights = [0.5, 0.3, 0.2]
    expected = [doc.page_content for doc in their_ensemble(*leaves, weights=weights).invoke("q")]
    ours = EnsembleRetriever(retrievers=leaves, weights=weights, k=20).invoke("q")
    assert [doc.page_content for doc in ours] == expected
