"""Retrievers and graphs as multiples of their critical path: a model of 200 ms, a retriever of 50 ms.

The path is timed in the same round, as bare waits one after the other. The notes of async rows say the same ratio by
waits and own processor time alone, which other work on the machine does not stretch.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from dataclasses import dataclass, field
from typing import Any

from harness import Row, at_least, at_most, unshared_seconds
from langchain_core.messages import BaseMessage
from scripted import MODEL, PASSAGES, SEARCH, TEXT, Leaf, Model

from rag_kit.graphs import build_crag, build_self_rag
from rag_kit.graphs.evaluators.models import LLMEvaluator
from rag_kit.retrieval import (
    CompressionRetriever,
    ConversationalRetriever,
    DecompositionRetriever,
    HyDERetriever,
    MultiQueryRetriever,
    PointwiseReranker,
    Query2DocRetriever,
    RerankRetriever,
    RoutingRetriever,
    StepBackRetriever,
)
from rag_kit.retrieval.compression.compressors import ModelCompressor
from rag_kit.retrieval.rerank.model import ListwiseReranker

CONCURRENT = 100
QUESTION = "When does the pump start?"
HISTORY = [("user", "Who wrote Emma?"), ("assistant", "Jane Austen.")]
PASSAGE = '{"passages": ["A passage of several words that might answer."]}'
LONG = TEXT + " It is blue. It was made by hand. Nobody knows when. It hums at night."


@dataclass(frozen=True)
class Case:
    """One part, what it is asked, and the model calls and searches that must follow one another."""

    name: str
    part: Any
    models: int = 1
    searches: int = 1
    limit: float = 1.05
    given: Any = QUESTION
    keywords: dict[str, Any] = field(default_factory=dict)
    calls: int = 0  # model calls in all, where a serial loop would make them one by one

    @property
    def path(self) -> float:
        """Seconds of the bare waits."""
        return self.models * MODEL + self.searches * SEARCH

    def wait(self) -> float:
        """Seconds that the bare waits took."""
        begun = time.perf_counter()
        for seconds in [MODEL] * self.models + [SEARCH] * self.searches:
            time.sleep(seconds)
        return time.perf_counter() - begun

    def invoke(self) -> float:
        """Seconds of a blocking call."""
        begun = time.perf_counter()
        self.part.invoke(self.given, **self.keywords)
        return time.perf_counter() - begun

    async def ainvoke(self) -> float:
        """Seconds of a native call."""
        begun = time.perf_counter()
        await self.part.ainvoke(self.given, **self.keywords)
        return time.perf_counter() - begun


def rewriting() -> list[Case]:
    """The retrievers that ask a model first."""
    leaf, question = Leaf(), Model(reply='{"query": "Why is it so?"}')
    queries = '{"queries": ["one way to ask", "another way to ask", "a third way", "a fourth way"]}'
    many = '{"queries": [' + ", ".join(f'"way number {n} to ask"' for n in range(31)) + "]}"
    hyde = HyDERetriever.from_llm(Model(reply=PASSAGE), leaf, n=3)
    parts = DecompositionRetriever.from_llm(Model(reply=queries), leaf)
    serial = DecompositionRetriever.from_llm(Model(reply=_in_turn), leaf, mode="serial", n=3)
    talk = ConversationalRetriever.from_llm(question, leaf)
    draft = ConversationalRetriever.from_llm(Model(reply=PASSAGE), leaf, mode="answer")
    wide = MultiQueryRetriever.from_llm(Model(reply=many), leaf, n=31)
    return [
        Case("multi-query, 5 queries", MultiQueryRetriever.from_llm(Model(reply=queries), leaf, n=4)),
        Case("multi-query, 32 queries", wide, limit=1.10),
        Case("HyDE, 3 passages", hyde),
        Case("step-back", StepBackRetriever.from_llm(question, leaf)),
        Case("Query2Doc", Query2DocRetriever.from_llm(Model(reply=PASSAGE), leaf)),
        Case("decomposition, 4 parts", parts),
        Case("decomposition, 3 in turn", serial, models=5, searches=3),
        Case("conversation", talk, keywords={"history": HISTORY}),
        Case("conversation, draft answer", draft, keywords={"history": HISTORY}),
    ]


def _in_turn(messages: list[BaseMessage]) -> str:
    prompt = "".join(str(message.content) for message in messages)
    if "<task>answer</task>" in prompt:
        return "Something. [1]"
    return f'{{"queries": ["What is part {prompt.count("<turn")}?"]}}'


def choosing() -> list[Case]:
    """Rerankers, a compressor, and routing."""
    order = Model(reply='{"ranking": [2, 1, 3, 5, 4, 6, 8, 7, 10, 9]}')
    extractor = ModelCompressor(Model(reply='{"sentences": [1, 4]}'))
    windows = ListwiseReranker(order, window=10, step=5)
    sources = {f"source {number}": (Leaf(), f"about source {number}") for number in range(32)}
    return [
        *(Case(f"filter of {n} passages", _filter(n), limit=limit) for n, limit in ((10, 1.05), (32, 1.10))),
        Case(
            "extractor of 10 passages", CompressionRetriever(retriever=_long(10), compressor=extractor, k=10)
        ),
        Case("listwise, 3 windows", RerankRetriever(retriever=_long(20), reranker=windows, k=20), models=3),
        *(Case(f"routing, {n} sources", _routing(n), limit=limit) for n, limit in ((4, 1.05), (32, 1.10))),
        Case("routing by keywords", RoutingRetriever(sources=sources), models=0, given="about source 7"),
    ]


def _long(count: int) -> Leaf:
    return Leaf(count=count, text=LONG * 5, varied=False)


def _filter(count: int) -> RerankRetriever:
    grade = PointwiseReranker(Model(reply='{"relevant": true, "score": 0.8, "reason": "It says how."}'))
    return RerankRetriever(retriever=_long(count), reranker=grade, score_threshold=0.5, k=count)


def _routing(count: int) -> RoutingRetriever:
    sources = {f"source {number}": (Leaf(), f"about source {number}") for number in range(32)}
    choices = ", ".join(f'{{"name": "{name}", "reason": "r"}}' for name in list(sources)[:count])
    return RoutingRetriever.from_llm(Model(reply=f'{{"choices": [{choices}]}}'), sources, most=count)


def graphs() -> list[Case]:
    """CRAG over ten passages that a model grades one by one, and Self-RAG over five."""
    asked, once = {"question": QUESTION}, {"context": {"max_segments": 1}}
    five = Leaf(count=PASSAGES, k=PASSAGES, varied=False)
    paper, reflect = (build_self_rag(five, Model(), mode=mode) for mode in ("paper", "reflect"))
    return [
        Case("CRAG, 10 passages of one strip", crag(), 2, given=asked, calls=11),
        Case("CRAG, 10 passages of two strips", crag(LONG), 3, given=asked),
        Case("Self-RAG paper, 5 passages", paper, 3, given=asked, keywords=once, calls=7),
        Case("Self-RAG reflect, 5 passages", reflect, 4, given=asked, keywords=once),
    ]


def crag(text: str = TEXT, *, batch_size: int = 1, evaluator: Any = None, delay: float = 1.0) -> Any:
    """A CRAG graph over ten passages; the model grades unless an evaluator is given."""
    llm = Model(delay=MODEL * delay)
    leaf = Leaf(count=10, text=text, varied=False, delay=SEARCH * delay, k=10)
    return build_crag(leaf, llm, evaluator=evaluator or LLMEvaluator(llm, batch_size=batch_size))


def run(quick: bool = False) -> list[Row]:
    """Measure every case blocking and natively, then many calls at once."""
    rounds = 3 if quick else 15
    rows = [row for case in [*rewriting(), *choosing(), *graphs()] for row in _rows(case, rounds)]
    return [*rows, _together(rounds)]


def _rows(case: Case, rounds: int) -> list[Row]:
    case.invoke()
    asyncio.run(case.ainvoke())
    times = [(case.wait(), case.invoke(), asyncio.run(case.ainvoke())) for _ in range(rounds)]
    alone = min(unshared_seconds(case.ainvoke) for _ in range(3)) / case.path
    sync = statistics.median(mine / path for path, mine, _ in times)
    native = statistics.median(mine / path for path, _, mine in times)
    note = f"{alone:.2f} by waits and own processor time alone"
    rows = [
        at_most(f"{case.name}, sync / critical path", sync, case.limit),
        at_most(f"{case.name}, async / critical path", native, case.limit, note),
    ]
    if case.calls:
        serial = case.calls * MODEL + SEARCH
        faster = serial / statistics.median(mine for _, mine, _ in times)
        rows.append(
            at_least(f"{case.name}: one call after the other / sync", faster, 0.9 * serial / case.path)
        )
    return rows


def _together(rounds: int) -> Row:
    """A hundred HyDE calls on one event loop against one critical path."""
    retriever = HyDERetriever.from_llm(Model(reply=PASSAGE), Leaf())
    case = Case("HyDE", retriever)

    async def together() -> float:
        begun = time.perf_counter()
        await asyncio.gather(*(retriever.ainvoke(f"What is question {n}?") for n in range(CONCURRENT)))
        return time.perf_counter() - begun

    ratio = statistics.median(asyncio.run(together()) / case.wait() for _ in range(rounds))
    alone = min(unshared_seconds(together) for _ in range(rounds)) / case.path
    note = f"{alone:.2f} by waits and own processor time alone"
    return at_most(f"async, {CONCURRENT} HyDE calls at once / one critical path", ratio, 1.3, note)


if __name__ == "__main__":
    for row in run():
        print(row)
