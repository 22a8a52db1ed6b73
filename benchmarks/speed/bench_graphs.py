"""CRAG over ten passages that a model of 200 ms grades: against the serial loop of the well-known tutorials and
against its own critical path; what the graph costs besides, against LangGraph nodes that do nothing; calls and
tokens of a question."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Any

from bench_rewriting import MODEL, SEARCH, Leaf, Model
from harness import Row, at_least, at_most, interleaved
from langchain_core.documents import Document
from langchain_core.messages import BaseMessage
from langchain_core.prompts import ChatPromptTemplate
from langgraph.graph import END, START, StateGraph
from typing_extensions import TypedDict

from rag_kit.graphs import build_crag
from rag_kit.graphs.crag.state import CragContext, CragState
from rag_kit.graphs.evaluators.base import Evaluator, Grading
from rag_kit.graphs.evaluators.models import LLMEvaluator
from rag_kit.graphs.running import Node
from rag_kit.graphs.state import QuestionInput

PASSAGES = 10
SHORT = "Passage {} tells about the pump. It starts at 40 degrees."
LONG = SHORT + " It is blue. It was made by hand. Nobody knows when. It hums at night."
QUESTION = {"question": "When does the pump start?"}
ONE = '{"relevant": true, "score": 0.9, "reason": "It says when."}'


class Passages(Leaf):
    """Ten passages after 50 ms."""

    text: str = SHORT

    def _found(self, query: str) -> list[Document]:
        return [Document(self.text.format(number), id=str(number)) for number in range(PASSAGES)]


def reply(messages: list[BaseMessage]) -> str:
    """The model's reply to each task."""
    task = str(messages[0].content).partition("<task>")[2].partition("</task>")[0]
    if task == "grade_passages":
        count = str(messages[-1].content).count("</passage>")
        one = '{{"id": {}, "relevant": true, "score": 0.9, "reason": "It says when."}}'
        return '{"grades": [' + ", ".join(one.format(number) for number in range(1, count + 1)) + "]}"
    return ONE if task == "grade_passage" else "It starts at 40 degrees. [1]"


def crag(text: str = SHORT, *, batch_size: int = 1) -> Any:
    """The kit's graph; the model grades."""
    llm = Model(reply=reply)
    return build_crag(
        Passages(text=text, k=PASSAGES), llm, evaluator=LLMEvaluator(llm, batch_size=batch_size)
    )


class LoopState(TypedDict, total=False):
    """State of the tutorials' graph."""

    question: str
    documents: list[Document]
    generation: str


def tutorial() -> Any:
    """The well-known form: retrieve, grade one document after the other, generate."""
    llm, found = Model(reply="yes"), Passages(k=PASSAGES)
    grader = (
        ChatPromptTemplate.from_messages([("system", "yes or no"), ("human", "{document} {question}")]) | llm
    )
    answer = ChatPromptTemplate.from_messages([("human", "{context} {question}")]) | llm

    def retrieve(state: LoopState) -> LoopState:
        return {"documents": found.invoke(state["question"])}

    def grade(state: LoopState) -> LoopState:
        kept = []
        for document in state["documents"]:
            values = {"question": state["question"], "document": document.page_content}
            if "yes" in str(grader.invoke(values).content):
                kept.append(document)
        return {"documents": kept}

    def generate(state: LoopState) -> LoopState:
        values = {"question": state["question"], "context": state["documents"]}
        return {"generation": str(answer.invoke(values).content)}

    graph = StateGraph(LoopState)
    for step in (retrieve, grade, generate):
        graph.add_node(step.__name__, step)  # type: ignore[type-var]
    graph.add_edge(START, "retrieve")
    graph.add_edge("retrieve", "grade")
    graph.add_edge("grade", "generate")
    graph.add_edge("generate", END)
    return graph.compile()


def timed(graph: Any) -> float:
    """Seconds of one question, blocking."""
    begun = time.perf_counter()
    graph.invoke(QUESTION)
    return time.perf_counter() - begun


async def atimed(graph: Any) -> float:
    """Seconds of one question, natively."""
    begun = time.perf_counter()
    await graph.ainvoke(QUESTION)
    return time.perf_counter() - begun


def run(quick: bool = False) -> list[Row]:
    """Measure."""
    return [*_against_the_loop(3 if quick else 7), *_glue(40 if quick else 200), *_costs()]


def _against_the_loop(rounds: int) -> list[Row]:
    loop, short, long = tutorial(), crag(), crag(LONG)
    path = SEARCH + 2 * MODEL  # retrieve, grade all, answer; with longer passages one more round, of strips
    for graph in (short, long):
        timed(graph)
        asyncio.run(atimed(graph))
    samples: dict[str, list[float]] = {name: [] for name in ("loop", "sync", "async", "long", "long async")}
    for _ in range(rounds):
        samples["loop"].append(timed(loop))
        samples["sync"].append(timed(short))
        samples["async"].append(asyncio.run(atimed(short)))
        samples["long"].append(timed(long))
        samples["long async"].append(asyncio.run(atimed(long)))
    # waits of a fixed length: what a busy machine adds is no cost of the graph, so the best round counts
    best = {name: min(values) for name, values in samples.items()}
    works = {"sync": _work(short, path), "long": _work(long, path + MODEL)}
    return [
        at_least("CRAG, 10 passages: serial loop of the tutorials / sync", best["loop"] / best["sync"], 4.7),
        at_least(
            "CRAG, 10 passages: serial loop of the tutorials / async", best["loop"] / best["async"], 4.7
        ),
        at_most(
            "CRAG, 10 passages of one strip, sync / critical path", best["sync"] / path, 1.05, works["sync"]
        ),
        at_most("CRAG, 10 passages of one strip, async / critical path", best["async"] / path, 1.05),
        at_most(
            "CRAG, 10 passages of two strips, sync / critical path",
            best["long"] / (path + MODEL),
            1.05,
            works["long"],
        ),
        at_most(
            "CRAG, 10 passages of two strips, async / critical path",
            best["long async"] / (path + MODEL),
            1.05,
        ),
    ]


def _work(graph: Any, path: float) -> str:
    """Processor time of one question, which hardly depends on how busy the machine is."""
    used = []
    for _ in range(5):
        begun = time.process_time()
        graph.invoke(QUESTION)
        used.append(time.process_time() - begun)
    return f"processor time {min(used) / path:.3f} of the path"


#: The nodes of a run whose action is "correct".
NODES = ("begin", "retrieve", "grade", "refine", "generate", "cite")


def _empty(kit: bool) -> Any:
    """As many nodes that do nothing: bare LangGraph, or each one a node of this kit."""

    def nothing(state: CragState) -> CragState:
        return {}  # type: ignore[typeddict-item]

    async def body(state: CragState, context: CragContext) -> Any:
        return {}

    graph = StateGraph(CragState, context_schema=CragContext, input_schema=QuestionInput)
    for number, name in enumerate(NODES):
        made: Any = Node(body, CragContext) if kit else nothing
        graph.add_node(name, made, defer=name == "generate")
        graph.add_edge(START if number == 0 else NODES[number - 1], name)
    graph.add_edge(NODES[-1], END)
    return graph.compile()


class Sure(Evaluator):
    """Sure of everything, at once."""

    name = "sure"

    async def grade(self, question: str, passages: Sequence[Document], language: str) -> Any:
        return [Grading(1.0, "sure") for _ in passages]


def _glue(rounds: int) -> list[Row]:
    bare, kit = _empty(False), _empty(True)
    full = build_crag(Passages(delay=0, k=PASSAGES), Model(reply=reply, delay=0), evaluator=Sure())
    times = interleaved(
        {
            "bare": lambda: bare.invoke(QUESTION),
            "kit": lambda: kit.invoke(QUESTION),
            "full": lambda: full.invoke(QUESTION),
        },
        repeats=rounds,
    )
    best = {name: min(values) for name, values in times.items()}
    whole = best["full"] / best["bare"]
    note = f"with retrieval, cutting, prompts, answer and citations: {whole:.2f}x"
    return [
        at_most(
            "nodes of this kit that do nothing / as many of LangGraph",
            best["kit"] / best["bare"],
            1.2,
            note,
        )
    ]


def _costs() -> list[Row]:
    """Calls and tokens of one question, by kind of grading; a row's ratio is against grading one by one."""
    used = {}
    for name, text, size in (
        ("10 passages of one strip, one call a passage", SHORT, 1),
        ("10 passages of one strip, 10 in a call", SHORT, 10),
        ("10 passages of two strips, one call a passage", LONG, 1),
        ("10 passages of two strips, 10 in a call", LONG, 10),
    ):
        used[name] = crag(text, batch_size=size).invoke(QUESTION)["usage"]
    rows = []
    names = list(used)
    for single, batch in ((names[0], names[1]), (names[2], names[3])):
        a, b = used[single], used[batch]
        note = f"{a['calls']} calls, {a['tokens']} tokens -> {b['calls']} calls, {b['tokens']} tokens"
        rows.append(
            at_most(f"calls of a question, {batch} / one by one", b["calls"] / a["calls"], 0.25, note)
        )
    return rows


if __name__ == "__main__":
    for row in run():
        print(row)
