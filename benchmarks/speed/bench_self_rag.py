"""Self-RAG as a multiple of its critical path: a model of 200 ms, a retriever of 50 ms, five passages."""

from __future__ import annotations

import asyncio
import json
import statistics
import time
from typing import Any

from bench_rewriting import MODEL, SEARCH
from harness import Row, at_least, at_most
from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.retrievers import BaseRetriever

from rag_kit.graphs import build_self_rag

PASSAGES = 5
REPLIES = {
    "retrieve_needed": {"retrieve": "yes"},
    "critique": {
        "labels": [
            {"id": n, "relevance": "relevant", "support": "full", "usefulness": 4}
            for n in range(1, PASSAGES + 1)
        ]
    },
    "grade_passages": {
        "grades": [{"id": n, "relevant": True, "score": 0.9, "reason": "So."} for n in range(1, PASSAGES + 1)]
    },
    "grade_support": {"relevant": True, "score": 0.9, "reason": "All of it."},
    "grade_usefulness": {"relevant": True, "score": 0.9, "reason": "It answers."},
}


class Timed(BaseChatModel):
    """Answers each task after 200 ms."""

    @property
    def _llm_type(self) -> str:
        return "timed"

    def _reply(self, messages: list[BaseMessage]) -> ChatResult:
        task = str(messages[0].content).split("<task>")[1].split("</task>")[0]
        text = json.dumps(REPLIES[task]) if task in REPLIES else "The fan is cleaned with water.[1]"
        usage = {"input_tokens": 300, "output_tokens": 10, "total_tokens": 310}
        return ChatResult(generations=[ChatGeneration(message=AIMessage(text, usage_metadata=usage))])

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        time.sleep(MODEL)
        return self._reply(messages)

    async def _agenerate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        await asyncio.sleep(MODEL)
        return self._reply(messages)


class Five(BaseRetriever):
    """Finds five passages after 50 ms."""

    def _found(self) -> list[Document]:
        return [Document(f"The fan is cleaned with water. Passage {i} says so.") for i in range(PASSAGES)]

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Document]:
        time.sleep(SEARCH)
        return self._found()

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun
    ) -> list[Document]:
        await asyncio.sleep(SEARCH)
        return self._found()


def run(quick: bool = False) -> list[Row]:
    rounds = 5 if quick else 15
    question, context = {"question": "How is the fan cleaned?"}, {"max_segments": 1}
    rows = []
    # calls that must follow one another, calls in all
    for mode, chain, calls in (("paper", 3, PASSAGES + 2), ("reflect", 4, 4)):
        graph = build_self_rag(Five(), Timed(), mode=mode)  # type: ignore[arg-type]
        taken: dict[str, list[float]] = {"sync": [], "async": []}
        graph.invoke(question, context=context)  # type: ignore[arg-type]
        paths: list[float] = []
        for _ in range(rounds):
            start = time.perf_counter()
            for seconds in [SEARCH] + [MODEL] * chain:
                time.sleep(seconds)
            paths.append(time.perf_counter() - start)
            start = time.perf_counter()
            state = graph.invoke(question, context=context)  # type: ignore[arg-type]
            taken["sync"].append(time.perf_counter() - start)
            taken["async"].append(asyncio.run(_alone(graph, question, context)))
            assert state["usage"]["calls"] == calls, state["usage"]
        note = f"{calls} calls, {state['usage']['tokens']} tokens a question"
        what = "one segment" if mode == "paper" else "one round"
        for form, seconds in taken.items():
            name = f"self-rag {mode}, {what}, {PASSAGES} passages, {form} / critical path"
            ratio = statistics.median(mine / path for mine, path in zip(seconds, paths, strict=True))
            rows.append(at_most(name, ratio, 1.05, note))
        serial = calls * MODEL + SEARCH
        faster = serial / statistics.median(taken["sync"])
        floor = 0.9 * serial / (chain * MODEL + SEARCH)
        rows.append(at_least(f"self-rag {mode}: one call after the other / this", faster, floor))
    return rows


async def _alone(graph: Any, question: dict[str, Any], context: dict[str, Any]) -> float:
    begun = time.perf_counter()
    await graph.ainvoke(question, context=context)
    return time.perf_counter() - begun


if __name__ == "__main__":
    for row in run():
        print(row)
