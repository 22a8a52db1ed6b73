"""One OpenAI model, its connections kept alive, in blocking calls, in a running loop and in one loop after another."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_openai import ChatOpenAI, OpenAIEmbeddings
from support.openai_server import OpenAIServer, Recorded, Reply, text

from rag_kit.evaluation import Example, Judge, abilities, aevaluate, evaluate, generate, tune
from rag_kit.graphs import build_crag, build_plain_rag
from rag_kit.models import astructured_call, atext_call, structured_call, text_call
from rag_kit.models.extractive.model import ExtractiveChatModel
from rag_kit.prompts import load_prompt
from rag_kit.retrieval import BM25Retriever, ExactVectorRetriever, MultiQueryRetriever, RoutingRetriever

FACTS = [
    "The Mizar pump was built in 1912 by Grace Weber. It moves water from the lake to the mill of the town, and "
    "it is the oldest pump of the whole county.",
    "The Alcor lamp was built in 1931 by Henry Stone. It lights the harbour and the road to the old bridge, "
    "and it is the brightest lamp of the whole coast.",
    "The Vega bridge was built in 1875 by Anna Brown. It carries the road over the river to the harbour, and "
    "it is the longest bridge of the whole county.",
]
EXAMPLES = [
    Example(f"q{number}", question, reference=fact, answers=(year,), relevant={str(number): 1})
    for number, (question, fact, year) in enumerate(
        [
            ("When was the Mizar pump built?", FACTS[0], "1912"),
            ("When was the Alcor lamp built?", FACTS[1], "1931"),
            ("When was the Vega bridge built?", FACTS[2], "1875"),
        ]
        * 6
    )
]
METRICS = ("answer_relevancy",)
VALUES = {"question": "When was the Mizar pump built?", "count": 2}
DOUBT = {"question": VALUES["question"], "passages": FACTS[0]}


def extracted(request: Recorded) -> Reply:
    """Answers as the embedded model does, after some milliseconds, so that requests need connections of their own."""
    if "<task>multi_query</task>" in request.prompt:
        return text('{"queries": ["Mizar pump built", "Mizar pump year"]}', delay=0.005)
    messages = [(message["role"], message["content"]) for message in request.body["messages"]]
    return text(str(ExtractiveChatModel().invoke(messages).content), delay=0.005)


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    with OpenAIServer([extracted], refuse={"json_schema", "tools", "json_object"}) as running:
        yield running


class Calls:
    """The entry points over one model and one embedding model; each raises where anything failed."""

    def __init__(self, url: str, folder: Path) -> None:
        self.folder = folder
        rgb = [
            {
                "id": number,
                "query": each.question,
                "answer": each.reference,
                "positive": FACTS[:1],
                "negative": FACTS,
            }
            for number, each in enumerate(EXAMPLES[:3])
        ]
        (folder / "en.json").write_text("\n".join(map(json.dumps, rgb)))
        self.llm = ChatOpenAI(model="m", base_url=url, api_key="sk-1")
        self.embeddings = OpenAIEmbeddings(  # type: ignore[call-arg]
            model="e", base_url=url, api_key="sk-1", check_embedding_ctx_length=False
        )
        documents = [Document(fact, id=str(number)) for number, fact in enumerate(FACTS)]
        self.words = BM25Retriever.from_documents(documents, k=2)
        self.dense = ExactVectorRetriever.from_documents(documents, self.embeddings, k=2)
        self.rag = build_plain_rag(self.dense, self.llm)
        self.number = itertools.count()

        async def choose(question: str) -> str:
            found = await astructured_call(self.llm, load_prompt("multi_query"), VALUES)
            return "words" if found else "dense"

        sources = {"words": self.words, "dense": self.dense}
        self.routed = RoutingRetriever(sources=sources, how=choose, on_error="raise")

    def blocking(self) -> dict[str, Callable[[], Any]]:
        return {
            "structured_call": lambda: structured_call(self.llm, load_prompt("multi_query"), VALUES),
            "text_call": lambda: text_call(self.llm, load_prompt("answer_or_doubt"), DOUBT),
            "multi query": lambda: MultiQueryRetriever.from_llm(
                self.llm, self.words, on_error="raise"
            ).invoke("Mizar pump"),
            "vectors": lambda: self.dense.invoke("Mizar pump"),
            "plain": lambda: self.answered(self.rag.invoke({"question": EXAMPLES[0].question})),
            "crag": lambda: self.answered(
                build_crag(self.dense, self.llm).invoke({"question": EXAMPLES[0].question})
            ),
            "routing": lambda: self.routed.invoke("Mizar pump"),
            "generate": lambda: self.generated(generate(FACTS, self.llm, n=2, kinds=["single_hop"])),
            "evaluate 16": lambda: self.evaluated(evaluate(self.rag, EXAMPLES, METRICS, **self.settings(16))),
            "evaluate 2": lambda: self.evaluated(
                evaluate(self.asked, EXAMPLES[:4], METRICS, **self.settings(2))
            ),
            "abilities": lambda: self.able(abilities(self.llm, self.folder, passages=1, noise_rates=[0.0])),
            "tune": self.tuned,
        }

    async def asked(self, question: str) -> Any:
        """A pipeline that has no blocking side, over the model's own."""
        answer = await self.llm.ainvoke([("user", question)])
        return {"answer": str(answer.content) or "no", "documents": await self.dense.ainvoke(question)}

    def settings(self, at_once: int) -> dict[str, Any]:
        judge = Judge(self.llm, self.embeddings, max_concurrency=at_once, max_retries=0)
        return {"judge": judge, "max_concurrency": at_once, "progress": False, "max_missing_gold": 1}

    @staticmethod
    def answered(result: Any) -> None:
        assert "1912" in result["answer"]

    @staticmethod
    def generated(written: Any) -> None:
        assert len(written) == 2
        assert not written.stopped_by

    @staticmethod
    def evaluated(results: Any) -> None:
        failed = [row.output.error for row in results if row.output.error]
        failed += [cell.reason for row in results for cell in row.cells.values() if cell.status == "error"]
        assert not failed, failed[:2]

    @staticmethod
    def able(report: Any) -> None:
        failed = [row.output.error for row in report.results if row.output.error]
        assert not failed, failed[:2]

    def tuned(self) -> None:
        def make(settings: dict[str, Any]) -> Any:
            return self.dense.bind(k=settings["k"])

        result = tune(
            make, EXAMPLES[:6], "mrr@10", space={"k": [1, 2]}, out=self.folder / f"t{next(self.number)}",
            n_trials=2, set_aside=0.3, progress=False, max_missing_gold=1,
        )  # fmt: skip
        assert result.best

    async def awaited(self) -> None:
        """The same from a running loop."""
        await asyncio.gather(*(self.dense.ainvoke(fact) for fact in FACTS))
        await astructured_call(self.llm, load_prompt("multi_query"), VALUES)
        await atext_call(self.llm, load_prompt("answer_or_doubt"), DOUBT)
        self.answered(await self.rag.ainvoke({"question": EXAMPLES[0].question}))
        self.evaluated(await aevaluate(self.rag, EXAMPLES[:8], METRICS, **self.settings(8)))


@pytest.mark.slow
def test_every_blocking_call_after_every_other(server: OpenAIServer, tmp_path: Path) -> None:
    """In a script: no call finds connections of an event loop that is gone."""
    entries = Calls(server.url, tmp_path).blocking()
    for first, second in itertools.combinations(entries.values(), 2):
        first()
        second()


@pytest.mark.slow
def test_blocking_calls_between_two_loops_of_the_users(server: OpenAIServer, tmp_path: Path) -> None:
    """``asyncio.run`` twice, and every blocking call between."""
    calls = Calls(server.url, tmp_path)
    for _ in range(2):
        asyncio.run(calls.awaited())
        for entry in calls.blocking().values():
            entry()
        asyncio.run(calls.awaited())


@pytest.mark.slow
async def test_blocking_calls_between_awaits(server: OpenAIServer, tmp_path: Path) -> None:
    """In a notebook: the user awaits the model and the kit's calls in the running loop, and blocking calls between."""
    calls = Calls(server.url, tmp_path)
    for name, entry in calls.blocking().items():
        if name != "evaluate 2":  # its pipeline is the user's own, of this loop: it is awaited below
            entry()
        await asyncio.gather(*(calls.llm.ainvoke("Hello.") for _ in range(16)))
        await calls.awaited()
    calls.evaluated(await aevaluate(calls.asked, EXAMPLES[:4], METRICS, **calls.settings(2)))
