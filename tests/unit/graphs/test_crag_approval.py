"""A person approves, refuses or edits the query before it leaves for the web."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command
from support.crag import Marked, model
from support.graphs import fixed, go, in_turn, thread

from rag_kit.graphs.crag.build import build_crag
from rag_kit.graphs.guards import Guards, Refusal

QUESTION = {"question": "When does it start?"}
ASKED = {"approve_web": True}
PUMP = Document("The pump starts at 40 degrees.", metadata={"file": "pump.md"})


class Run:
    """A graph with approval, what it searched for and what its model was asked."""

    def __init__(self, pump: float, *, guards: Guards | None = None) -> None:
        self.queries: list[str] = []

        @tool
        def web(query: str) -> Any:
            """Search the web."""
            self.queries.append(query)
            return [{"url": "https://a.example/x", "content": "The fan starts at 60 degrees."}]

        self.llm = model()
        self.judge = Marked({"pump": pump, "fan": 0.8})
        self.retriever = fixed(PUMP)
        self.graph: Any = build_crag(
            self.retriever,
            self.llm,
            evaluator=self.judge,
            web_search=web,
            guards=guards,
            checkpointer=InMemorySaver(),
            output="full",
        )

    async def go(self, given: Any, native: bool) -> dict[str, Any]:
        return dict(await go(self.graph, native, given, thread(), context=ASKED))


REPLIES: list[tuple[Any, list[str]]] = [
    (True, ["pump start"]),
    ("yes", ["pump start"]),
    ({"query": "  fan\nstart  "}, ["fan start"]),
    (False, []),
    ("no", []),
    ("fan start", []),
    ("yes, but not this", []),
    ("好的。", ["pump start"]),
    ({"query": "no"}, ["no"]),
    ({"query": 7}, []),
    ("ＮＯ", []),
    ("不用了。", []),
    (None, []),
    (7, []),
    ("", []),
    ("OK!", ["pump start"]),
    ({"type": "reject"}, []),
    ({"approve": True}, []),
    ({"approved": False}, []),
    ({"approved": False, "query": "fan start"}, []),
    ({"approved": "no"}, []),
    ({"approved": True}, ["pump start"]),
    ({"approved": True, "query": None}, ["pump start"]),
    ({"approved": True, "query": ""}, ["pump start"]),
    ({"query": "fan start", "reason": "shown"}, ["fan start"]),
    ({"query": ""}, []),
    ('{"approved": false}', []),
    ('{"approved": true, "query": "风扇"}', ["风扇"]),
    ('{"type": "reject"}', []),
    ("{}", []),
    ({"query": "fan\0 start\ud800"}, ["fan\ufffd start\ufffd"]),
]


@pytest.mark.parametrize(("reply", "searched", "native"), in_turn(REPLIES))
async def test_the_reply_decides_what_leaves(reply: Any, searched: list[str], native: bool) -> None:
    """Nothing leaves before the reply; a refusal declines, and the notes say so."""
    run = Run(-0.9)
    paused = await run.go(QUESTION, native)
    [asked] = paused["__interrupt__"]
    assert asked.value == {"query": "pump start", "reason": "Nothing that was retrieved fits the question."}
    assert run.queries == []
    # LangGraph takes a bare None for no reply at all
    done = await run.go(Command(resume=reply if reply is not None else {"query": None}), native)
    assert run.queries == searched
    assert done["web_query"] == (searched[0] if searched else "")
    assert (done["status"] == "declined") == (not searched)
    assert any("web: not searched" in note for note in done["notes"]) == (not searched)
    assert run.llm.tasks().count("web_query") == 1
    assert len(run.retriever.queries) == 1


@pytest.mark.parametrize("native", [False, True])
async def test_ambiguous_waits_with_the_answer_and_refines_once(native: bool) -> None:
    """While the person thinks, what was refined stays; the answer is made once, from both sources."""
    run = Run(0.1)
    paused = await run.go(QUESTION, native)
    assert paused["__interrupt__"]
    assert run.llm.tasks() == ["web_query"]
    judged = len(run.judge.asked)
    done = await run.go(Command(resume=True), native)
    assert run.llm.tasks() == ["web_query", "answer"]
    assert len(run.judge.asked) == judged + 1
    assert len(done["documents"]) == 2
    assert done["usage"]["calls"] == 2


async def test_an_edited_query_passes_the_guards() -> None:
    """A guard may mask or refuse what a person typed, as it may a question."""

    def check(text: str, config: Any) -> Any:
        return Refusal("No.", reason="policy") if "secret" in text else text.replace("Smith", "[name]")

    for reply, searched in (("Smith pump", ["[name] pump"]), ("secret pump", [])):
        run = Run(-0.9, guards=Guards(question=[check]))
        await run.go(QUESTION, False)
        done = await run.go(Command(resume={"query": reply}), False)
        assert run.queries == searched
        assert "secret" not in str(done["notes"]) and done["web_query"] == "".join(searched)


async def test_a_new_question_may_take_the_place_of_a_reply() -> None:
    """Who asks something else on the thread is not stuck, and nothing left."""
    run = Run(-0.9)
    await run.go(QUESTION, False)
    paused = await run.go({"question": "When does the other pump start?"}, False)
    assert len(paused["__interrupt__"]) == 1
    done = await run.go(Command(resume=True), False)
    assert done["question"] == "When does the other pump start?"
    assert run.queries == ["pump start"]


@pytest.mark.parametrize("native", [False, True])
async def test_without_a_checkpointer_nobody_is_waited_for_and_nothing_leaves(native: bool) -> None:
    """The run ends with an answer and a note, and not half way."""
    run = Run(-0.9)
    run.graph = run.graph.copy({"checkpointer": None})
    done = await run.go(QUESTION, native)
    assert "__interrupt__" not in done and run.queries == []
    assert (done["status"], done["web_query"]) == ("declined", "")
    assert any("without a checkpointer" in note for note in done["notes"])
