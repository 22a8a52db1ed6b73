"""Costs of retrievers and graphs besides their models and searches, as multiples of bare LangChain and LangGraph."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from bench_critical_path import LONG, PASSAGE, QUESTION, crag
from harness import Row, at_least, at_most, interleaved
from langchain_core.documents import Document
from langchain_core.output_parsers import StrOutputParser
from langgraph.graph import END, START, StateGraph
from scripted import TEXT, Leaf, Model

from rag_kit.graphs.crag.state import CragContext, CragState
from rag_kit.graphs.evaluators.base import Evaluator, Grading
from rag_kit.graphs.running import Node
from rag_kit.graphs.state import QuestionInput
from rag_kit.prompts import load_prompt
from rag_kit.retrieval import (
    DecompositionRetriever,
    EnsembleRetriever,
    Query2DocRetriever,
    StepBackRetriever,
)
from rag_kit.retrieval.call import Call
from rag_kit.retrieval.fusion import Search, merge

#: The nodes of a CRAG run whose action is "correct".
NODES = ("begin", "retrieve", "grade", "refine", "generate", "cite")


def run(quick: bool = False) -> list[Row]:
    """Measure."""
    return [*_retrievers(150 if quick else 450), *_union(), _nodes(40 if quick else 200), *_batches()]


def _retrievers(repeats: int) -> list[Row]:
    """Cost of a call over its model calls and searches, without any delay in these."""
    leaf, model = Leaf(delay=0), Model(reply='{"query": "Why is it so?"}', delay=0)
    queries = '{"queries": ["one way to ask", "another way to ask", "a third way", "a fourth way"]}'
    chain = load_prompt("step_back") | model | StrOutputParser()
    parts = DecompositionRetriever.from_llm(Model(reply=queries, delay=0), leaf)
    rows = []
    for name, retriever, searches in (
        ("step-back", StepBackRetriever.from_llm(model, leaf), 2),
        ("Query2Doc", Query2DocRetriever.from_llm(Model(reply=PASSAGE, delay=0), leaf), 1),
        ("decomposition, 4 parts", parts, 5),
    ):
        functions: dict[str, Callable[[], object]] = {
            "chain": partial(chain.invoke, {"question": "Why?"}),
            "model": partial(model.invoke, "Why?"),
            "leaf": partial(leaf.invoke, "Why?"),
            "call": partial(retriever.invoke, QUESTION),
        }
        best = {key: min(each) for key, each in interleaved(functions, repeats).items()}
        glue = best["call"] - best["model"] - searches * best["leaf"]
        rows.append(
            at_most(f"glue of a call, {name} / bare prompt | model | parser", glue / best["chain"], 3)
        )
    return rows


def _union() -> list[Row]:
    """1,000 documents in 5 lists, joined to the best 10, against LangChain's union."""
    from langchain_classic.retrievers.multi_query import _unique_documents

    rows = []
    for name, ids in (("with ids", True), ("without ids", False)):
        documents = [
            Document(f"text number {n} " + "word " * 60, id=str(n) if ids else None, metadata={"page": n})
            for n in range(1000)
        ]
        found = [Search(f"q{n}", "variant", documents=documents[n * 200 : n * 200 + 200]) for n in range(5)]
        call = Call(
            EnsembleRetriever(retrievers=[Leaf()]), "q", k=10, filter=None, config={}, run_manager=None
        )
        functions: dict[str, Callable[[], object]] = {
            "LangChain": partial(_unique_documents, documents),
            "rag_kit": partial(merge, found, call),
        }
        best = {key: min(each) for key, each in interleaved(functions, 3).items()}
        ratio = best["LangChain"] / best["rag_kit"]
        rows.append(at_least(f"union of 1,000 documents {name}, LangChain / rag_kit", ratio, 500))
    return rows


def _empty(kit: bool) -> Any:
    """A graph of nodes that do nothing: bare LangGraph, or each one a node of this kit."""

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


def _nodes(repeats: int) -> Row:
    asked, full = {"question": QUESTION}, crag(evaluator=Sure(), delay=0)
    functions = {"bare": _empty(False), "kit": _empty(True), "full": full}
    calls = {name: partial(graph.invoke, asked) for name, graph in functions.items()}
    best = {name: min(values) for name, values in interleaved(calls, repeats).items()}
    note = f"with retrieval, cutting, prompts, answer and citations: {best['full'] / best['bare']:.2f}x"
    name = "nodes of this kit that do nothing / as many of LangGraph"
    return at_most(name, best["kit"] / best["bare"], 1.2, note)


def _batches() -> list[Row]:
    """Calls of one question that grades ten passages in a call, against grading one by one."""
    rows = []
    for name, text in (("one strip", TEXT), ("two strips", LONG)):
        graphs = [crag(text, batch_size=size, delay=0) for size in (1, 10)]
        one, ten = (graph.invoke({"question": QUESTION})["usage"] for graph in graphs)
        note = f"{one['calls']} calls, {one['tokens']} tokens -> {ten['calls']} calls, {ten['tokens']} tokens"
        ratio = ten["calls"] / one["calls"]
        rows.append(
            at_most(f"calls of a question, 10 passages of {name} in a call / one by one", ratio, 0.25, note)
        )
    return rows


if __name__ == "__main__":
    for row in run():
        print(row)
