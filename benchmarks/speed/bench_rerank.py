"""Reranking and compression as multiples of their critical path: a model of 200 ms, a retriever of 50 ms."""

from __future__ import annotations

import asyncio
import statistics
import time
from functools import partial
from typing import Any

from bench_rewriting import MODEL, SEARCH, Model
from harness import Row, at_most, unshared_seconds
from langchain_core.documents import Document

from rag_kit.concurrency.steps import Step
from rag_kit.retrieval import CompressionRetriever, PointwiseReranker, RagKitRetriever, RerankRetriever
from rag_kit.retrieval.call import Call
from rag_kit.retrieval.compression.compressors import ModelCompressor
from rag_kit.retrieval.rerank.model import ListwiseReranker

QUESTION = "How is the fan cleaned?"


class Leaf(RagKitRetriever):
    """Answers after 50 ms with as many documents as asked for, at most ``count``."""

    count: int

    async def _search(self, query: str, call: Call) -> list[Document]:
        await Step("wait", lambda _: time.sleep(SEARCH), lambda _: asyncio.sleep(SEARCH))
        text = "Passage {} says how the fan is cleaned. It rains. Tea is hot, and coffee is cold in winter."
        return [Document(text.format(number) * 5, id=str(number)) for number in range(self.count)]


def patterns() -> list[tuple[str, Any, int, float]]:
    """Name, retriever, model calls that must follow one another, and the target."""
    grade = Model(reply='{"relevant": true, "score": 0.8, "reason": "It says how."}')
    chosen = Model(reply='{"sentences": [1, 4]}')
    order = Model(reply='{"ranking": [2, 1, 3, 5, 4, 6, 8, 7, 10, 9]}')
    return [
        (
            f"filter of {count} passages",
            RerankRetriever(
                retriever=Leaf(count=count), reranker=PointwiseReranker(grade), score_threshold=0.5, k=count
            ),
            1,
            target,
        )
        for count, target in ((10, 1.05), (32, 1.10))
    ] + [
        (
            "extractor of 10 passages",
            CompressionRetriever(retriever=Leaf(count=10), compressor=ModelCompressor(chosen), k=10),
            1,
            1.05,
        ),
        (
            "listwise, 3 windows",
            RerankRetriever(
                retriever=Leaf(count=20), reranker=ListwiseReranker(order, window=10, step=5), k=20
            ),
            3,
            1.05,
        ),
    ]


def run(quick: bool = False) -> list[Row]:
    rounds = 5 if quick else 15
    rows = []
    for name, retriever, calls, target in patterns():
        ratios: dict[str, list[float]] = {"sync": [], "async": []}
        retriever.invoke(QUESTION)
        asyncio.run(_alone(retriever))
        for _ in range(rounds):
            path = _path(calls)
            begun = time.perf_counter()
            retriever.invoke(QUESTION)
            ratios["sync"].append((time.perf_counter() - begun) / path)
            ratios["async"].append(asyncio.run(_alone(retriever)) / path)
        bare = SEARCH + MODEL * calls
        alone = min(unshared_seconds(partial(retriever.ainvoke, QUESTION)) for _ in range(rounds)) / bare
        notes = {"sync": "", "async": f"{alone:.2f} by waits and own processor time alone"}
        rows += [
            at_most(f"{kind}, {name} / critical path", statistics.median(values), target, notes[kind])
            for kind, values in ratios.items()
        ]
    return rows


def _path(calls: int) -> float:
    """The critical path, timed in the same round: the bare waits one after the other."""
    begun = time.perf_counter()
    for seconds in [SEARCH] + [MODEL] * calls:
        time.sleep(seconds)
    return time.perf_counter() - begun


async def _alone(retriever: RagKitRetriever) -> float:
    begun = time.perf_counter()
    await retriever.ainvoke(QUESTION)
    return time.perf_counter() - begun


if __name__ == "__main__":
    for row in run():
        print(row)
