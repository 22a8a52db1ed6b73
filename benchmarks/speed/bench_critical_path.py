"""Retrievers and graphs as multiples of their critical path: a model of 200 ms, a retriever of 50 ms.

The path is timed in the same round, as bare waits one after the other. The notes of async rows say the same ratio by
waits and own processor time alone, which other work on the machine does not stretch. Then: how many calls CRAG makes
where its evaluator grades ten passages in a call, beside one call each.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from dataclasses import dataclass, field
from typing import Any

from harness import Row, at_most, timed, unshared_seconds
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
    RerankRetriever,
    RoutingRetriever,
)
from rag_kit.retrieval.compression.compressors import ModelCompressor
from rag_kit.retrieval.rerank.model import ListwiseReranker

CONCURRENT = 100
QUESTION = "When does the pump start?"
HISTORY = [("user", "Who wrote Emma?"), ("assistant", "Jane Austen.")]
PASSAGE = '{"passages": ["A passage of several words that might answer."]}'
ALONE = "{:.2f} by waits and own processor time alone"
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

    @property
    def path(self) -> float:
        """Seconds of the bare waits."""
        return self.models * MODEL + self.searches * SEARCH

    def wait(self) -> None:
        """Wait as the path does."""
        for seconds in [MODEL] * self.models + [SEARCH] * self.searches:
            time.sleep(seconds)

    def invoke(self) -> object:
        """Call it blocking."""
        return self.part.invoke(self.given, **self.keywords)

    async def ainvoke(self) -> object:
        """Call it natively."""
        return await self.part.ainvoke(self.given, **self.keywords)


def rewriting() -> list[Case]:
    """The retrievers that ask a model first."""
    leaf = Leaf()
    queries = '{"queries": ["one way to ask", "another way to ask", "a third way", "a fourth way"]}'
    many = '{"queries": [' + ", ".join(f'"way number {n} to ask"' for n in range(31)) + "]}"
    serial = DecompositionRetriever.from_llm(Model(reply=_in_turn), leaf, mode="serial", n=3)
    wide = MultiQueryRetriever.from_llm(Model(reply=many), leaf, n=31)
    talk = ConversationalRetriever.from_llm(Model(reply='{"query": "Why is it so?"}'), leaf)
    return [
        Case("multi-query, 5 queries", MultiQueryRetriever.from_llm(Model(reply=queries), leaf, n=4)),
        Case("multi-query, 32 queries", wide, limit=1.10),
        Case("HyDE, 3 passages", HyDERetriever.from_llm(Model(reply=PASSAGE), leaf, n=3)),
        Case("decomposition, 4 parts", DecompositionRetriever.from_llm(Model(reply=queries), leaf)),
        Case("decomposition, 3 in turn", serial, models=5, searches=3),
        Case("conversation", talk, keywords={"history": HISTORY}),
    ]


def _in_turn(messages: list[BaseMessage]) -> str:
    prompt = "".join(str(message.content) for message in messages)
    if "<task>answer</task>" in prompt:
        return "Something. [1]"
    return f'{{"queries": ["What is part {prompt.count("<turn")}?"]}}'


def choosing() -> list[Case]:
    """Rerankers, a compressor, and routing."""
    grade = PointwiseReranker(Model(reply='{"relevant": true, "score": 0.8, "reason": "It says how."}'))
    order = Model(reply='{"ranking": [2, 1, 3, 5, 4, 6, 8, 7, 10, 9]}')
    extractor = ModelCompressor(Model(reply='{"sentences": [1, 4]}'))
    windows = ListwiseReranker(order, window=10, step=5)
    sources = {f"source {number}": (Leaf(), f"about source {number}") for number in range(32)}
    choices = ", ".join(f'{{"name": "{name}", "reason": "r"}}' for name in sources)
    routing = RoutingRetriever.from_llm(
        Model(reply=f'{{"choices": [{choices}]}}'), sources, most=len(sources)
    )
    filtering = RerankRetriever(retriever=_long(32), reranker=grade, score_threshold=0.5, k=32)
    compressing = CompressionRetriever(retriever=_long(10), compressor=extractor, k=10)
    return [
        Case("filter of 32 passages", filtering, limit=1.10),
        Case("extractor of 10 passages", compressing),
        Case("listwise, 3 windows", RerankRetriever(retriever=_long(20), reranker=windows, k=20), models=3),
        Case("routing, 32 sources", routing, limit=1.10),
    ]


def _long(count: int) -> Leaf:
    return Leaf(count=count, text=LONG * 5, varied=False)


def graphs() -> list[Case]:
    """CRAG over ten passages that a model grades one by one, and Self-RAG over five."""
    asked, once = {"question": QUESTION}, {"context": {"max_segments": 1}}
    five = Leaf(count=PASSAGES, k=PASSAGES, varied=False)
    paper, reflect = (build_self_rag(five, Model(), mode=mode) for mode in ("paper", "reflect"))
    return [
        Case("CRAG, 10 passages of one strip", crag(TEXT), 2, given=asked),
        Case("CRAG, 10 passages of two strips", crag(LONG), 3, given=asked),
        Case("Self-RAG paper, 5 passages", paper, 3, given=asked, keywords=once),
        Case("Self-RAG reflect, 5 passages", reflect, 4, given=asked, keywords=once),
    ]


def crag(text: str, *, batch_size: int = 1, delay: float = 1.0) -> Any:
    """A CRAG graph over ten passages, which the model grades."""
    llm = Model(delay=MODEL * delay)
    leaf = Leaf(count=10, text=text, varied=False, delay=SEARCH * delay, k=10)
    return build_crag(leaf, llm, evaluator=LLMEvaluator(llm, batch_size=batch_size))


def run(quick: bool = False) -> list[Row]:
    """Measure every case blocking and natively, then many calls at once."""
    rounds = 3 if quick else 15
    rows = [row for case in [*rewriting(), *choosing(), *graphs()] for row in _rows(case, rounds)]
    return [*rows, _together(rounds), *_batches()]


def _rows(case: Case, rounds: int) -> list[Row]:
    case.invoke()
    asyncio.run(case.ainvoke())
    ways = (case.wait, case.invoke, lambda: asyncio.run(case.ainvoke()))
    times = [[timed(way)[0] for way in ways] for _ in range(rounds)]
    alone = min(unshared_seconds(case.ainvoke) for _ in range(3)) / case.path
    sync = statistics.median(mine / path for path, mine, _ in times)
    native = statistics.median(mine / path for path, _, mine in times)
    return [
        at_most(f"{case.name}, sync / critical path", sync, case.limit),
        at_most(f"{case.name}, async / critical path", native, case.limit, ALONE.format(alone)),
    ]


def _together(rounds: int) -> Row:
    """A hundred HyDE calls on one event loop against one critical path."""
    retriever = HyDERetriever.from_llm(Model(reply=PASSAGE), Leaf())
    case = Case("HyDE", retriever)

    async def together() -> None:
        await asyncio.gather(*(retriever.ainvoke(f"What is question {n}?") for n in range(CONCURRENT)))

    times = [(timed(lambda: asyncio.run(together()))[0], timed(case.wait)[0]) for _ in range(rounds)]
    ratio = statistics.median(mine / path for mine, path in times)
    alone = min(unshared_seconds(together) for _ in range(rounds)) / case.path
    name = f"async, {CONCURRENT} HyDE calls at once / one critical path"
    return at_most(name, ratio, 1.3, ALONE.format(alone))


def _batches() -> list[Row]:
    """Calls of one question that grades ten passages in a call, against grading one by one."""
    rows = []
    for name, text in (("one strip", TEXT), ("two strips", LONG)):
        graphs = [crag(text, batch_size=size, delay=0) for size in (1, 10)]
        one, ten = (graph.invoke({"question": QUESTION})["usage"] for graph in graphs)
        note = f"{one['calls']} calls, {one['tokens']} tokens -> {ten['calls']} calls, {ten['tokens']} tokens"
        title = f"calls of a question, 10 passages of {name} in a call / one by one"
        rows.append(at_most(title, ten["calls"] / one["calls"], 0.25, note))
    return rows
