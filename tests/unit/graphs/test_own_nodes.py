"""Nodes of a user's own in the graphs of the kit, labels in drawings, and what ``invoke`` gives back."""

from __future__ import annotations

import logging
import time
from typing import Any, Literal

import pytest
from langchain_core.documents import Document
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import GraphRecursionError
from langgraph.graph import StateGraph
from langgraph.types import Command, interrupt
from pydantic import BaseModel
from support.graphs import BUILDERS, fixed, go, thread
from typing_extensions import TypedDict

from rag_kit.errors import BudgetExceededError, InvalidInputError
from rag_kit.graphs import Guards, build_crag, build_plain_rag, uncompiled
from rag_kit.graphs.crag.state import CragState
from rag_kit.graphs.evaluators.base import Evaluator
from rag_kit.graphs.evaluators.function import FunctionEvaluator
from rag_kit.models import chat_model

FAN = Document("The fan starts at 60 degrees.", metadata={"file": "fan.md"})
LOUD = Document("The fan is loud.", metadata={"file": "loud.md"})
ASKED: Any = {"question": "At how many degrees does the fan start?"}
GIVEN = {"question", "answer", "status", "citations", "documents", "notes", "usage"}


class Narrow(TypedDict):
    """The keys of the state that a node needs, as LangGraph's documents name them."""

    status: str


class Model(BaseModel):
    """The same as a Pydantic model."""

    answer: str


class Mine(CragState, total=False):
    """The graph's state and a key more."""

    approved: bool


def crag(**options: Any) -> Any:
    return build_crag(fixed(FAN, LOUD), chat_model("extractive"), **options)


@pytest.mark.parametrize("name", BUILDERS)
async def test_invoke_gives_the_answer_and_full_gives_the_state(name: str) -> None:
    """Seven keys whatever the graph; with output="full" the machinery too; streams and threads have it always."""
    build = BUILDERS[name]
    graph = build(fixed(FAN), chat_model("extractive"), checkpointer=InMemorySaver())
    assert set(graph.invoke(ASKED, thread())) == GIVEN == set(await graph.ainvoke(ASKED, thread("2")))
    assert graph.get_state(thread()).values["history"][0]["question"] == ASKED["question"]
    full = build(fixed(FAN), chat_model("extractive"), output="full")
    assert {*GIVEN, "search_query", "uncited", "history"} < set(full.invoke(ASKED))
    updates = list(graph.stream(ASKED, thread("3"), stream_mode="updates"))
    assert all(update for part in updates for update in part.values())  # no node is shown as null
    with pytest.raises(InvalidInputError, match="allowed: 'answer', 'full'"):
        build(fixed(FAN), chat_model("extractive"), output="all")


@pytest.mark.parametrize("guards", [Guards(), Guards(question=[lambda *_: None], answer=[lambda *_: None])])
@pytest.mark.parametrize("name", BUILDERS)
def test_conditional_edges_bear_their_labels(name: str, guards: Guards) -> None:
    """A drawing says for each way when it is taken."""
    drawn = BUILDERS[name](fixed(FAN), chat_model("extractive"), guards=guards).get_graph()
    assert [edge for edge in drawn.edges if edge.conditional]
    assert not [edge for edge in drawn.edges if edge.conditional and not edge.data]


@pytest.mark.parametrize("native", [False, True], ids=["invoke", "ainvoke"])
async def test_replaced_inserted_and_removed_without_a_warning(
    native: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """Another grader, a reranker, no web and an extra check at once; the graph that was given stays as it is."""

    def grade(state: CragState) -> dict[str, Any]:
        return {"action": "ambiguous"}

    def rerank(state: CragState) -> dict[str, Any]:
        return {"documents": [one for one in state["documents"] if "60" in one.page_content]}

    def stay_inside(state: CragState) -> dict[str, Any]:
        return {"notes": ["inside"]}

    def check(state: CragState) -> dict[str, Any]:
        return {"notes": [f"checked {state['answer']}"]}

    given = crag(evaluator=Never())
    with caplog.at_level(logging.WARNING):
        graph = uncompiled(given)
        graph.replace_node("grade", grade)
        graph.insert_node("rerank", rerank, after="retrieve")
        graph.insert_node("check", check, after="generate")
        graph.replace_node("rewrite_query", stay_inside)
        graph.remove_node("approve", "web_search", "select_external")
        made = graph.compile(InMemorySaver())
    assert not caplog.records
    result = await go(made, native, ASKED, thread())
    assert result["status"] == "grounded" and set(result) == GIVEN
    notes = result["notes"]
    assert "inside" in notes and "checked The fan starts at 60 degrees.[1]" in notes
    drawn = {(edge.source, edge.target): edge.data for edge in made.get_graph().edges}
    assert drawn["retrieve", "rerank"] is None and ("retrieve", "grade") not in drawn
    assert drawn["grade", "refine"] == "correct, ambiguous"
    assert "rerank" not in given.get_graph().nodes and "web_search" in given.get_graph().nodes


def Never() -> Evaluator:
    """An evaluator that finds every strip good; no lexical one, so gradings of passages would be used again."""
    return FunctionEvaluator(lambda question, passages: [0.9 for _ in passages])


def test_a_node_sees_what_its_class_names() -> None:
    """A part of the state as a dictionary, or as a Pydantic model, and no more."""
    graph = uncompiled(build_plain_rag(fixed(FAN), chat_model("extractive")))
    seen: list[Any] = []

    def narrow(state: Narrow) -> dict[str, Any]:
        seen.append(set(state))
        return {}

    def model(state: Model) -> None:
        seen.append(state.answer)

    graph.insert_node("model", model, after="answer")
    graph.insert_node("narrow", narrow, after="cite")
    assert graph.compile().invoke(ASKED)["status"] == "grounded"
    assert seen == ["The fan starts at 60 degrees.[1]", {"status"}]


@pytest.mark.parametrize("native", [False, True], ids=["invoke", "ainvoke"])
async def test_the_limits_hold_in_a_node_of_ones_own(native: bool) -> None:
    """It is counted, ended at the deadline, and a loop of it at the recursion limit."""

    def hang(state: CragState) -> dict[str, Any]:
        time.sleep(0.8)
        return {}

    def again(state: CragState) -> Command[Literal["generate"]]:
        return Command(goto="generate")

    slow, loop = uncompiled(crag()), uncompiled(crag())
    slow.insert_node("hang", hang, after="retrieve")
    with pytest.raises(BudgetExceededError, match="deadline"):
        await go(slow.compile(), native, ASKED, context={"deadline": 0.2})
    loop.replace_node("cite", again)
    loop.edges = {edge for edge in loop.edges if edge[0] != "cite"}
    with pytest.raises(GraphRecursionError, match="25"):
        await go(loop.compile(), native, ASKED)


def test_a_node_may_wait_for_a_person_and_keep_keys_of_its_own() -> None:
    """LangGraph's interrupt works in it, and a wider state adds its keys."""

    def approve(state: Mine) -> Any:
        return {"approved": interrupt({"answer": state["answer"]}), "notes": ["asked"]}

    graph = uncompiled(crag(output="full"))
    graph.insert_node("approve_answer", approve, after="generate")
    made = graph.compile(InMemorySaver())
    assert "60" in made.invoke(ASKED, thread())["__interrupt__"][0].value["answer"]
    result = made.invoke(Command(resume=True), thread())
    assert result["status"] == "grounded" and result["approved"] is True


def test_a_node_adds_turns_to_those_of_the_thread() -> None:
    """It gives the new ones alone, as a command too; earlier ones stay."""

    def cite(state: Any) -> Any:
        return {"history": [{"question": state["question"], "answer": "mine"}], "status": "grounded"}

    for action in (cite, lambda state: Command(update=cite(state))):
        graph = uncompiled(crag(output="full"))
        graph.replace_node("cite", action)
        made = graph.compile(InMemorySaver())
        for question in ("When does the fan start?", "Is tea hot?"):
            result = made.invoke({"question": question}, thread())
        assert len(result["history"]) == 2


def test_mistakes_are_named() -> None:
    """No such node, a taken name, a node that leads nowhere, a graph of another kind, an action that is none."""
    graph = uncompiled(crag())
    with pytest.raises(InvalidInputError, match=r"'grad' is no node \(did you mean 'grade'\?\)"):
        graph.replace_node("grad", lambda state: {})
    graph.add_node("mine", lambda state: {})
    with pytest.raises(InvalidInputError, match="'mine' leads nowhere: add_edge"):
        graph.compile()
    graph = uncompiled(crag())
    with pytest.raises(InvalidInputError, match="'grade' is the name of another node already; give one"):
        graph.insert_node("grade", lambda state: {}, after="retrieve")
    with pytest.raises(InvalidInputError, match=r"a RagGraph; give what .* or compile\(\) gave"):
        uncompiled(graph)  # type: ignore[arg-type]
    graph.remove_node("grade")  # nothing follows retrieve: no empty answer, but an error before the run
    with pytest.raises(InvalidInputError, match="'retrieve' leads nowhere: add_edge"):
        graph.compile()
    with pytest.raises(InvalidInputError, match="a CompiledStateGraph; give what a builder of this kit"):
        uncompiled(StateGraph(CragState).add_node("a", lambda s: s).set_entry_point("a").compile())
    graph = uncompiled(crag())
    graph.replace_node("grade", lambda state: {"action": "good"})
    with pytest.raises(
        InvalidInputError, match="the state has the action 'good'; allowed: correct, incorrect, ambiguous"
    ):
        graph.compile().invoke(ASKED)
    plain = uncompiled(build_plain_rag(fixed(FAN), chat_model("extractive")))
    plain.insert_node("wrong", lambda state: "text", after="retrieve")
    with pytest.raises(Exception, match="Expected dict"):
        plain.compile().invoke(ASKED)
