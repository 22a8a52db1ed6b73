"""Graphs of the kit inside a parent graph that has a context of its own."""

from __future__ import annotations

import itertools
import operator
from dataclasses import dataclass
from typing import Annotated, Any

import pytest
from langchain_core.documents import Document
from langchain_core.runnables import RunnableConfig, RunnableLambda
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command
from pydantic import BaseModel
from support.crag import Marked, model
from support.graphs import BUILDERS, fixed, go, in_turn, thread
from typing_extensions import TypedDict

from rag_kit.errors import InvalidInputError
from rag_kit.graphs import as_chat, build_crag, build_plain_rag
from rag_kit.models import chat_model

FAN = Document("The fan starts at 60 degrees.", metadata={"file": "fan.md"})
ASKED = {"question": "At how many degrees does the fan start?"}


@dataclass
class DataclassContext:
    """A parent's: a setting of ours, one that is not set, and things of its own."""

    tenant: str = "acme"
    language: str = "zh"
    filter: dict[str, Any] | None = None
    unit_price: float = 0.5


class PydanticContext(BaseModel):
    tenant: str = "acme"
    language: str = "zh"
    filter: dict[str, Any] | None = None


class DictContext(TypedDict, total=False):
    tenant: str
    language: str


CONTEXTS = [
    (DataclassContext, DataclassContext()),
    (PydanticContext, PydanticContext()),
    (DictContext, {"tenant": "acme", "language": "zh"}),
]


class State(TypedDict, total=False):
    question: str
    answer: str
    status: str
    citations: list[Any]
    language: str


def parent(child: Any, schema: Any, *, called: bool, **options: Any) -> Any:
    """A parent that has the child as a node, or calls it in one, with the child's answer in its own state."""

    def sync(state: State, config: RunnableConfig) -> Any:
        return child.invoke({"question": state["question"]}, config)

    async def native(state: State, config: RunnableConfig) -> Any:
        return await child.ainvoke({"question": state["question"]}, config)

    graph = StateGraph(State, context_schema=schema)
    graph.add_node("rag", RunnableLambda(sync, native) if called else child)
    graph.add_edge(START, "rag")
    graph.add_edge("rag", END)
    return graph.compile(**options)


@pytest.mark.parametrize(
    ("name", "kind", "called", "native"),
    in_turn(
        (name, kind, called)
        for kind, called in itertools.product(range(len(CONTEXTS)), (False, True))
        for name in (BUILDERS if (kind, called) == (0, False) else ["plain"])
    ),
)
async def test_a_parents_context_is_no_obstacle(name: str, kind: int, called: bool, native: bool) -> None:
    """Each graph answers; a value that has the name of one of its settings is used, the rest is ignored."""
    schema, context = CONTEXTS[kind]
    child = BUILDERS[name](fixed(FAN), chat_model("extractive"), output="full")
    graph = parent(child, schema, called=called, checkpointer=InMemorySaver())
    options: Any = {"context": context}
    result = await go(graph, native, ASKED, thread(), **options)
    assert result["status"] == "grounded" and "60 degrees" in result["answer"]
    assert result["language"] == "zh"


@pytest.mark.parametrize("name", BUILDERS)
async def test_streams_pass_through_a_parent(name: str) -> None:
    """All modes at once, in both forms: the child's events and updates arrive under its namespace."""
    child = BUILDERS[name](fixed(FAN), chat_model("extractive"))
    graph = parent(child, DataclassContext, called=False)
    modes: Any = ["values", "updates", "messages", "custom"]
    options: Any = {"context": DataclassContext(), "stream_mode": modes, "subgraphs": True}
    sync = [(bool(path), mode) for path, mode, _ in graph.stream(ASKED, **options)]
    native = [(bool(path), mode) async for path, mode, _ in graph.astream(ASKED, **options)]
    for seen in (sync, native):
        assert {(True, "values"), (True, "updates"), (True, "custom"), (False, "updates")} <= set(seen)


@pytest.mark.parametrize("called", [False, True], ids=["node", "called"])
async def test_a_childs_question_to_a_person_waits_in_the_parent(called: bool) -> None:
    """CRAG asks before it looks outside, since the parent's context says so; the reply goes through the parent."""

    @dataclass
    class Context:
        tenant: str = "acme"
        approve_web: bool = True

    @tool
    def web(query: str) -> Any:
        """Search the web."""
        return [{"url": "https://a.example/x", "content": "The pump starts at 40 degrees."}]

    child = build_crag(fixed(FAN), model(), evaluator=Marked({"pump": 0.8}), web_search=web)
    graph = parent(child, Context, called=called, checkpointer=InMemorySaver())
    paused = graph.invoke({"question": "When does the pump start?"}, thread(), context=Context())
    assert paused["__interrupt__"][0].value["query"] == "pump start"
    result = await graph.ainvoke(Command(resume=True), thread(), context=Context())
    assert result["citations"][0]["source"] == "https://a.example/x"


def test_a_value_that_is_not_allowed_is_named_with_the_way_out() -> None:
    """A filter or a cap that is no such thing is not left out in silence."""

    @dataclass
    class Context:
        filter: str = "public"

    graph = parent(build_plain_rag(fixed(FAN), chat_model("extractive")), Context, called=False)
    with pytest.raises(
        InvalidInputError, match=r"filter: .*parent graph's context \(Context\).*context=\{\}"
    ):
        graph.invoke(ASKED, context=Context())
    child = build_plain_rag(fixed(FAN), chat_model("extractive"))
    own = StateGraph(State, context_schema=Context)
    own.add_node("rag", lambda state: child.invoke({"question": state["question"]}, context={"k": 1}))
    own.add_edge(START, "rag")
    assert own.compile().invoke(ASKED, context=Context())["status"] == "grounded"


@pytest.mark.parametrize("name", BUILDERS)
def test_at_the_root_a_setting_that_is_none_is_refused(name: str) -> None:
    """Misspelled settings, and objects of another class, are errors where the graph is not inside another one."""
    graph = BUILDERS[name](fixed(FAN), chat_model("extractive"))
    with pytest.raises(InvalidInputError, match="did you mean 'language'"):
        graph.invoke(ASKED, context={"langage": "en"})
    with pytest.raises(InvalidInputError, match="give a dict"):
        graph.invoke(ASKED, context=DataclassContext())


MISPLACED = pytest.mark.parametrize(("name", "value"), [("filter", {"tenant": "acme"}), ("k", 1)])


@pytest.mark.parametrize(
    ("builder", "name", "value"),
    [*((builder, "filter", {"tenant": "acme"}) for builder in BUILDERS), ("plain", "k", 1)],
)
async def test_a_filter_in_the_input_is_refused(builder: str, name: str, value: Any) -> None:
    """LangGraph would drop it, and the passages of every tenant would be searched. The thread goes on afterwards."""
    retriever = fixed(FAN)
    graph = BUILDERS[builder](
        retriever, chat_model("extractive"), checkpointer=InMemorySaver(), output="full"
    )
    wrong, where = {**ASKED, name: value}, rf"^{name} was given in the input.*context={{\"{name}\": \.\.\.}}"
    for number in range(2):  # the second time in a thread that has turns
        with pytest.raises(InvalidInputError, match=where):
            graph.invoke(wrong, thread("1"))
        with pytest.raises(InvalidInputError, match=where):
            list(graph.stream(wrong, thread("1")))
        with pytest.raises(InvalidInputError, match=where):
            await graph.ainvoke(wrong, thread("2"))
        assert bool(retriever.queries) == bool(number)
        for result in (graph.invoke(ASKED, thread("1")), await graph.ainvoke(ASKED, thread("2"))):
            assert result["answer"].startswith("The fan starts at 60 degrees.")
            assert name not in result
    assert set(graph.get_input_jsonschema()["properties"]) == {"question"}


@pytest.mark.parametrize("builder", BUILDERS)
async def test_an_input_of_other_keys_is_refused_by_name(builder: str) -> None:
    """Also in a thread, whose last question would be asked again."""
    graph = BUILDERS[builder](fixed(FAN), chat_model("extractive"), checkpointer=InMemorySaver())
    graph.invoke(ASKED, thread("1"))
    with pytest.raises(InvalidInputError, match="no 'question'; it has 'query', which is unknown"):
        graph.invoke({"query": ASKED["question"]}, thread("1"))  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="no 'messages'; it has 'question'"):
        await as_chat(graph).ainvoke(ASKED, thread("2"))  # type: ignore[arg-type]


@dataclass
class Question:
    """An input that is an object, which is read by its attributes."""

    question: str
    filter: Any = None
    k: int | None = None


class Filtered(State, total=False):
    """The state of a parent that has keys of these names; its node gets them all."""

    filter: dict[str, Any] | None
    k: int | None


@pytest.mark.parametrize("native", [False, True], ids=["invoke", "ainvoke"])
@MISPLACED
async def test_a_filter_in_an_object_a_chat_or_a_parents_state_is_refused(
    name: str, value: Any, native: bool
) -> None:
    """As in the graph itself; without a value there is none."""
    rag = build_plain_rag(fixed(FAN), chat_model("extractive"))
    node: Any = StateGraph(Filtered)
    node.add_node("rag", rag)
    node.add_edge(START, "rag")
    chat: Any = {"messages": [("user", ASKED["question"])], name: value}
    for graph, given in (
        (rag, Question(ASKED["question"], **{name: value})),
        (as_chat(rag), chat),
        (node.compile(), {**ASKED, name: value}),
    ):
        with pytest.raises(InvalidInputError, match=f"{name} was given in the input.*call it inside a node"):
            await go(graph, native, given)
    assert (await go(rag, native, Question(ASKED["question"])))["status"] == "grounded"
    assert (await go(node.compile(), native, {**ASKED, name: None}))["status"] == "grounded"


def test_the_first_values_of_a_parents_reducers_ask_for_nothing() -> None:
    """A parent whose keys begin as an empty filter and a k of 0 runs as before."""

    class Reduced(State, total=False):
        filter: Annotated[dict[str, Any], operator.or_]
        k: Annotated[int, operator.add]

    graph = StateGraph(Reduced)
    graph.add_node("rag", build_plain_rag(fixed(FAN), chat_model("extractive")))
    graph.add_edge(START, "rag")
    assert graph.compile().invoke(ASKED)["status"] == "grounded"  # type: ignore[call-overload]
