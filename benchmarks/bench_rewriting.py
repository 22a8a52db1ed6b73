"""Rewriting retrievers as multiples of their critical path: a model of 200 ms, a retriever of 50 ms."""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Callable
from typing import Any

from harness import Row, at_most
from langchain_core.documents import Document
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult

from rag_kit.retrieval import HyDERetriever, MultiQueryRetriever, RagKitRetriever, Request, StepBackRetriever

MODEL, SEARCH = 0.2, 0.05
CONCURRENT = 100


class Model(BaseChatModel):
    """Answers after 200 ms."""

    reply: str

    @property
    def _llm_type(self) -> str:
        return "slow"

    def _result(self) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=AIMessage(content=self.reply))])

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        time.sleep(MODEL)
        return self._result()

    async def _agenerate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        await asyncio.sleep(MODEL)
        return self._result()


class Leaf(RagKitRetriever):
    """Answers after 50 ms."""

    def _retrieve(self, query: str, request: Request) -> list[Document]:
        time.sleep(SEARCH)
        return self._found(query)

    async def _aretrieve(self, query: str, request: Request) -> list[Document]:
        await asyncio.sleep(SEARCH)
        return self._found(query)

    def _found(self, query: str) -> list[Document]:
        return [Document(f"text {number} {query}", id=f"{number}{query}") for number in range(4)]


def patterns() -> dict[str, tuple[RagKitRetriever, int, int]]:
    """Name -> retriever, model calls and searches that must follow one another."""
    queries = '{"queries": ["one way to ask", "another way to ask", "a third way", "a fourth way"]}'
    passages = '{"passages": ["A passage of several words that might answer."]}'
    return {
        "multi-query, 5 queries": (MultiQueryRetriever.from_llm(Model(reply=queries), Leaf(), n=4), 1, 1),
        "HyDE, 3 passages": (HyDERetriever.from_llm(Model(reply=passages), Leaf(), n=3), 1, 1),
        "step-back": (StepBackRetriever.from_llm(Model(reply='{"query": "Why?"}'), Leaf()), 1, 1),
    }


def run(quick: bool = False) -> list[Row]:
    rounds = 5 if quick else 15
    rows = []
    for name, (retriever, models, searches) in patterns().items():
        rows += _sync_and_async(name, retriever, models, searches, rounds)
    passages = '{"passages": ["A passage of several words that might answer."]}'
    many = HyDERetriever.from_llm(Model(reply=passages), Leaf())
    ratios = [asyncio.run(_together(many)) / _path(1, 1) for _ in range(rounds)]
    rows.append(
        at_most(
            f"async, {CONCURRENT} HyDE calls at once / one critical path", statistics.median(ratios), 1.35
        )
    )
    return rows


def _sync_and_async(
    name: str, retriever: RagKitRetriever, models: int, searches: int, rounds: int
) -> list[Row]:
    calls: dict[str, Callable[[], object]] = {
        "sync": lambda: retriever.invoke("What is the question?"),
        "async": lambda: asyncio.run(_alone(retriever)),
    }
    ratios: dict[str, list[float]] = {kind: [] for kind in calls}
    for call in calls.values():
        call()
    for _ in range(rounds):
        path = _path(models, searches)
        for kind, call in calls.items():
            if kind == "async":
                seconds = asyncio.run(_alone(retriever))
            else:
                begun = time.perf_counter()
                call()
                seconds = time.perf_counter() - begun
            ratios[kind].append(seconds / path)
    return [
        at_most(f"{kind}, {name} / critical path", statistics.median(values), 1.05)
        for kind, values in ratios.items()
    ]


def _path(models: int, searches: int) -> float:
    """The critical path, timed in the same round: the bare waits one after the other."""
    begun = time.perf_counter()
    for seconds in [MODEL] * models + [SEARCH] * searches:
        time.sleep(seconds)
    return time.perf_counter() - begun


async def _alone(retriever: RagKitRetriever) -> float:
    begun = time.perf_counter()
    await retriever.ainvoke("What is the question?")
    return time.perf_counter() - begun


async def _together(retriever: RagKitRetriever) -> float:
    begun = time.perf_counter()
    await asyncio.gather(*(retriever.ainvoke(f"What is question {n}?") for n in range(CONCURRENT)))
    return time.perf_counter() - begun


if __name__ == "__main__":
    for row in run():
        print(row)
