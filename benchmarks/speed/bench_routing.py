"""Routing as a multiple of its critical path (a model of 200 ms, sources of 50 ms), sync and async."""

from __future__ import annotations

import asyncio
import statistics
import time

from bench_rewriting import MODEL, SEARCH, Leaf, Model
from harness import Row, at_most

from rag_kit.retrieval import RoutingRetriever

NAMES = [f"source {number}" for number in range(32)]


def retrievers() -> dict[str, tuple[RoutingRetriever, float, float]]:
    """Name -> retriever, seconds of its critical path, the highest ratio allowed."""
    sources = {name: (Leaf(), f"about {name}") for name in NAMES}
    return {
        "by model, 4 sources": (_by_model(4), MODEL + SEARCH, 1.05),
        "by model, 32 sources": (_by_model(32), MODEL + SEARCH, 1.10),
        "by keywords, 1 source": (RoutingRetriever(sources=sources), SEARCH, 1.05),
    }


def _by_model(count: int) -> RoutingRetriever:
    choices = ", ".join(f'{{"name": "{name}", "reason": "r"}}' for name in NAMES[:count])
    sources = {name: (Leaf(), f"about {name}") for name in NAMES}
    return RoutingRetriever.from_llm(Model(reply=f'{{"choices": [{choices}]}}'), sources, most=count)


def run(quick: bool = False) -> list[Row]:
    """Measure."""
    rounds = 5 if quick else 15
    rows = []
    for name, (retriever, path, most) in retrievers().items():
        retriever.invoke("about source 7")
        asyncio.run(retriever.ainvoke("about source 7"))
        sync, native = [], []
        for _ in range(rounds):
            begun = time.perf_counter()
            retriever.invoke("about source 7")
            sync.append((time.perf_counter() - begun) / path)
            native.append(asyncio.run(_timed(retriever)) / path)
        rows.append(at_most(f"routing {name}, sync / critical path", statistics.median(sync), most))
        rows.append(at_most(f"routing {name}, async / critical path", statistics.median(native), most))
    return rows


async def _timed(retriever: RoutingRetriever) -> float:
    begun = time.perf_counter()
    await retriever.ainvoke("about source 7")
    return time.perf_counter() - begun


if __name__ == "__main__":
    for row in run():
        print(row)
