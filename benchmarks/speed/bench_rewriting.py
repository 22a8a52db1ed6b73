"""Rewriting retrievers as multiples of their critical path (a model of 200 ms, a retriever of 50 ms); what they
cost besides, as multiples of a bare LangChain chain; joining 1,000 documents against LangChain's union."""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Callable
from typing import Any

from harness import Row, at_least, at_most, interleaved, unshared_seconds
from langchain_core.documents import Document
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.outputs import ChatGeneration, ChatResult

from rag_kit.concurrency.steps import Step
from rag_kit.prompts import load_prompt
from rag_kit.retrieval import (
    BM25Retriever,
    ConversationalRetriever,
    DecompositionRetriever,
    EnsembleRetriever,
    HyDERetriever,
    MultiQueryRetriever,
    Query2DocRetriever,
    RagKitRetriever,
    StepBackRetriever,
)
from rag_kit.retrieval.call import Call
from rag_kit.retrieval.fusion import Search, merge

MODEL, SEARCH = 0.2, 0.05
CONCURRENT = 100
HISTORY = [("user", "Who wrote Emma?"), ("assistant", "Jane Austen.")]


class Model(BaseChatModel):
    """Answers after 200 ms: a text, or what a function makes of the prompt."""

    reply: Any
    delay: float = MODEL

    @property
    def _llm_type(self) -> str:
        return "slow"

    def _result(self, messages: list[BaseMessage]) -> ChatResult:
        reply = self.reply if isinstance(self.reply, str) else self.reply(messages)
        return ChatResult(generations=[ChatGeneration(message=AIMessage(content=reply))])

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        if self.delay:
            time.sleep(self.delay)
        return self._result(messages)

    async def _agenerate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        if self.delay:
            await asyncio.sleep(self.delay)
        return self._result(messages)


class Leaf(RagKitRetriever):
    """Answers after 50 ms."""

    delay: float = SEARCH

    async def _search(self, query: str, call: Call) -> list[Document]:
        if self.delay:
            await Step("wait", lambda _: time.sleep(self.delay), lambda _: asyncio.sleep(self.delay))
        return self._found(query)

    def _found(self, query: str) -> list[Document]:
        return [Document(f"text {number} {query}", id=f"{number}{query}") for number in range(4)]


class Talking(RagKitRetriever):
    """A conversational retriever in the midst of a conversation."""

    inner: Any

    async def _search(self, query: str, call: Call) -> list[Document]:
        config = call.child()
        documents: list[Document] = await Step(
            "inner",
            lambda _: self.inner.invoke(query, config, history=HISTORY),
            lambda _: self.inner.ainvoke(query, config, history=HISTORY),
        )
        return documents


def patterns(model: float = MODEL, search: float = SEARCH) -> dict[str, tuple[RagKitRetriever, int, int]]:
    """Name -> retriever, model calls and searches that must follow one another."""

    def llm(reply: Any) -> Model:
        return Model(reply=reply, delay=model)

    leaf = Leaf(delay=search)
    queries = '{"queries": ["one way to ask", "another way to ask", "a third way", "a fourth way"]}'
    passages = '{"passages": ["A passage of several words that might answer."]}'
    many = '{"queries": [' + ", ".join(f'"way number {n} to ask"' for n in range(31)) + "]}"
    question = llm('{"query": "Why is it so?"}')
    talk = ConversationalRetriever.from_llm(question, leaf)
    draft = ConversationalRetriever.from_llm(llm(passages), leaf, mode="answer")
    parts, wide = DecompositionRetriever, MultiQueryRetriever.from_llm(llm(many), leaf, n=31)
    return {
        "multi-query, 5 queries": (MultiQueryRetriever.from_llm(llm(queries), leaf, n=4), 1, 1),
        "multi-query, 32 queries": (wide, 1, 1),
        "HyDE, 3 passages": (HyDERetriever.from_llm(llm(passages), leaf, n=3), 1, 1),
        "step-back": (StepBackRetriever.from_llm(question, leaf), 1, 1),
        "Query2Doc": (Query2DocRetriever.from_llm(llm(passages), leaf), 1, 1),
        "decomposition, 4 parts": (parts.from_llm(llm(queries), leaf), 1, 1),
        "decomposition, 3 in turn": (parts.from_llm(llm(_in_turn), leaf, mode="serial", n=3), 5, 3),
        "conversation": (Talking(inner=talk), 1, 1),
        "conversation, draft answer": (Talking(inner=draft), 1, 1),
    }


def _in_turn(messages: list[BaseMessage]) -> str:
    prompt = "".join(str(message.content) for message in messages)
    if "<task>answer</task>" in prompt:
        return "Something. [1]"
    return f'{{"queries": ["What is part {prompt.count("<turn")}?"]}}'


def run(quick: bool = False) -> list[Row]:
    rounds = 5 if quick else 15
    rows = []
    for name, (retriever, models, searches) in patterns().items():
        rows += _sync_and_async(name, retriever, models, searches, rounds)
    rows += _glue(rounds)
    rows += _union()
    passages = '{"passages": ["A passage of several words that might answer."]}'
    many = HyDERetriever.from_llm(Model(reply=passages), Leaf())
    ratios = [asyncio.run(_together(many)) / _path(1, 1) for _ in range(rounds)]
    alone = min(unshared_seconds(lambda: _together(many)) for _ in range(rounds)) / (MODEL + SEARCH)
    rows.append(
        at_most(
            f"async, {CONCURRENT} HyDE calls at once / one critical path",
            statistics.median(ratios),
            1.3,
            f"{alone:.2f} by waits and own processor time alone, which other work on the machine does not stretch",
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
        at_most(f"{kind}, {name} / critical path", statistics.median(values), 1.10 if "32" in name else 1.05)
        for kind, values in ratios.items()
    ]


def _glue(rounds: int) -> list[Row]:
    """Cost of a call over its model calls and searches, without any delay in these."""
    made = patterns(0, 0)
    model, leaf = Model(reply='{"query": "Why is it so?"}', delay=0), Leaf(delay=0)
    chain = load_prompt("step_back") | model | StrOutputParser()
    rows = []
    for name, models, searches in (
        ("step-back", 1, 2),
        ("Query2Doc", 1, 1),
        ("decomposition, 4 parts", 1, 5),
    ):
        retriever = made[name][0]
        functions: dict[str, Callable[[], object]] = {
            "chain": lambda: chain.invoke({"question": "Why?"}),
            "model": lambda: model.invoke("Why?"),
            "leaf": lambda: leaf.invoke("Why?"),
            "call": lambda retriever=retriever: retriever.invoke("What is the question?"),
        }
        times = {key: min(each) for key, each in interleaved(functions, 30 * rounds).items()}
        glue = times["call"] - models * times["model"] - searches * times["leaf"]
        rows.append(
            at_most(f"glue of a call, {name} / bare prompt | model | parser", glue / times["chain"], 3)
        )
    return rows


def _union() -> list[Row]:
    """1,000 documents in 5 lists, joined to the best 10, against LangChain's union."""
    from langchain_classic.retrievers.multi_query import _unique_documents

    rows = []
    for name, ids in (("with ids", True), ("without ids", False)):
        documents = [
            Document(
                f"text number {n} " + "word " * 60,
                id=str(n) if ids else None,
                metadata={"source": f"{n}.md", "page": n},
            )
            for n in range(1000)
        ]
        found = [Search(f"q{n}", "variant", documents=documents[n * 200 : n * 200 + 200]) for n in range(5)]
        joined = EnsembleRetriever(retrievers=[BM25Retriever.from_texts(["a"])], name="joined")
        how = Call(joined, "q", k=10, filter=None, config={}, run_manager=None)
        functions: dict[str, Callable[[], object]] = {
            "LangChain": lambda documents=documents: _unique_documents(documents),
            "rag_kit": lambda found=found, how=how: merge(found, how),
        }
        times = {key: min(each) for key, each in interleaved(functions, 3).items()}
        rows.append(
            at_least(
                f"union of 1,000 documents {name}, LangChain / rag_kit",
                times["LangChain"] / times["rag_kit"],
                500,
                "rag_kit fuses, and gives copies of the best 10 with provenance",
            )
        )
    return rows


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
