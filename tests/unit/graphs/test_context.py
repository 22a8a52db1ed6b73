"""`model` and `index` in a run's context: assistants differ by them; what is not allowed is refused."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import ConfigurableField
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.runtime import Runtime
from langgraph.types import Command
from support.graphs import BUILDERS, each_graph, fixed, go, in_turn, thread
from support.openai_server import OpenAIServer
from typing_extensions import TypedDict

from rag_kit.errors import BudgetExceededError, InvalidInputError, RagKitError
from rag_kit.graphs import as_chat, build_adaptive_rag, build_crag, build_plain_rag, uncompiled
from rag_kit.graphs import nodes as nodes_of_all
from rag_kit.graphs.crag.state import CragContext
from rag_kit.indexing import DocumentIndex
from rag_kit.models import chat_model
from rag_kit.retrieval import BM25Retriever, EnsembleRetriever

FAN, LAMP = "The fan starts at 60 degrees.", "The fan starts at 90 degrees."
ASKED: Any = {"question": "At how many degrees does the fan start?"}
both = pytest.mark.parametrize("native", [False, True], ids=["invoke", "ainvoke"])


@pytest.fixture(autouse=True)
def fresh_models() -> Iterator[None]:
    """No model is kept from one test for the next."""
    named: Any = (nodes_of_all._named_model, nodes_of_all._named_grader)
    for cached in named:
        cached.cache_clear()
    yield
    for cached in named:
        cached.cache_clear()


async def run(graph: Any, native: bool, **context: Any) -> Any:
    return await go(graph, native, ASKED, context=context)


@pytest.fixture
def web() -> Any:
    """A web search, and in its ``metadata`` the queries that left for it."""
    left: list[str] = []

    def search(query: str) -> str:
        """Search the web."""
        left.append(query)
        return "Nothing."

    made = tool(search)
    made.metadata = {"left": left}
    return made


def indexes(name: str) -> Any:
    """The retrievers that a graph of these tests has beside its own."""
    if name != "lamps":
        raise InvalidInputError(f"no index {name!r}; allowed: 'lamps'.")
    return fixed(LAMP)


@each_graph
async def test_another_index_is_searched(name: str, native: bool) -> None:
    """In every graph, for this run alone; a name that is not allowed ends it with the allowed ones."""
    graph = BUILDERS[name](fixed(FAN), chat_model("extractive"), indexes=indexes)
    assert "90" in (await run(graph, native, index="lamps"))["answer"]
    assert "60" in (await run(graph, native, index=" "))["answer"]
    with pytest.raises(InvalidInputError, match="allowed: 'lamps'"):
        await run(graph, native, index="pumps")
    alone = BUILDERS[name](fixed(FAN), chat_model("extractive"))
    with pytest.raises(InvalidInputError, match=r"this graph has one alone; .* indexes="):
        await run(alone, native, index="lamps")


@both
@pytest.mark.parametrize(
    "build", [build_plain_rag, build_crag, partial(build_adaptive_rag, classifier="rule")]
)
async def test_another_model_answers_and_grades(
    build: Any, native: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By its name, as `chat_model` takes it; its passages are graded by itself, and the note of extracts is gone."""

    def scripted(request: Any) -> Any:
        if "grade_passages" in request.prompt:
            return {"grades": [{"id": 1, "relevant": True, "score": 1.0, "reason": "r"}]}
        return f"{FAN}[1]"

    monkeypatch.setenv("OPENAI_API_KEY", "key")
    with OpenAIServer([scripted] * 9) as server:
        monkeypatch.setenv("RAG_KIT_BASE_URL", server.url)
        graph = build(fixed(FAN), chat_model("extractive"), output="full")
        result = await run(graph, native, model="openai:m")
        assert result["answer"] == f"{FAN}[1]" and result["usage"]["calls"] == len(server.requests) > 0
        assert not [note for note in result["notes"] if "extracts" in note]
        assert bool([one for one in server.requests if "grade_passages" in one.prompt]) == (
            build is not build_plain_rag
        )
        count = len(server.requests)
        own = await run(graph, native)
        assert len(server.requests) == count and [note for note in own["notes"] if "extracts" in note]


def test_a_name_of_no_model_is_refused_before_the_run() -> None:
    """With what is allowed; blank, as Studio's form gives it, is none."""
    graph = build_plain_rag(fixed(FAN), chat_model("extractive"))
    for name, said in (("my-model", "PROVIDER:MODEL"), ("openai:", "names no model"), (7, "model")):
        with pytest.raises(InvalidInputError, match=said):
            graph.invoke(ASKED, context={"model": name})
    assert graph.invoke(ASKED, context={"model": ""})["status"] == "grounded"


def test_a_chat_takes_them_too() -> None:
    """The settings of a chat are those of its graph."""
    chat = as_chat(build_plain_rag(fixed(FAN), chat_model("extractive"), indexes=indexes))
    given: Any = {"messages": [("user", ASKED["question"])]}
    assert "90" in chat.invoke(given, context={"index": "lamps"})["messages"][-1].text


def test_a_parents_model_and_index_are_its_own() -> None:
    """A parent's context often has these names, for objects of its own."""

    @dataclass
    class Context:
        model: str = "my-model"
        index: str = "pumps"
        k: int = 1

    class State(TypedDict, total=False):
        question: str
        answer: str

    parent: Any = StateGraph(State, context_schema=Context)
    parent.add_node("rag", build_plain_rag(fixed(FAN), chat_model("extractive")))
    parent.add_edge(START, "rag")
    assert "60" in parent.compile().invoke(ASKED, context=Context())["answer"]


def test_the_assemblies_open_indexes_below_a_root_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Folders inside it, however they are written; nothing beside it, no link out of it, nothing that is no folder."""
    parts = pytest.importorskip("graphs.parts", reason="the assemblies for Studio are not in the wheel")
    for name, text in (("root/lamps", LAMP), ("outside", FAN)):
        with DocumentIndex.create(tmp_path / name) as index:
            index.upsert([Document(text, id="1")])
    monkeypatch.delenv("RAG_KIT_INDEX", raising=False)
    monkeypatch.delenv("RAG_KIT_INDEX_ROOT", raising=False)
    with pytest.raises(InvalidInputError, match="RAG_KIT_INDEX_ROOT"):
        parts.named_index("lamps")
    monkeypatch.setenv("RAG_KIT_INDEX_ROOT", str(tmp_path / "root"))
    (tmp_path / "root" / "link").symlink_to(tmp_path / "outside")
    (tmp_path / "root" / "file").write_text("", encoding="utf-8")
    (tmp_path / "root" / "plain").mkdir()
    outside = ("../outside", str(tmp_path / "outside"), "link", "lamps/../../outside", ".", "lamps/..")
    for name in (*outside, "file", "pumps", "plain", "a\0b", "x" * 5000, "\ud800"):
        with pytest.raises(InvalidInputError, match=r"^context names the index .* does not hold\.$"):
            parts.named_index(name)
    with DocumentIndex.create(tmp_path / "root" / "broken"):
        pass
    for file in (tmp_path / "root" / "broken").rglob("*"):
        if file.is_file():
            file.write_bytes(b"no index")
    with pytest.raises(RagKitError) as broken:
        parts.named_index("broken")
    assert str(tmp_path) not in str(broken.value)
    assert (
        parts.check_index("lamps") == parts.check_index("./lamps") == (tmp_path / "root" / "lamps").resolve()
    )
    assert [found.page_content for found in parts.named_index("lamps").invoke("fan")] == [LAMP]


PLAIN_ID, THREAD, COMMANDS = "b5f3", "/threads/7/state", "/threads/7/commands"
KNOWN = {"input_schema": ["question"], "context_schema": ["k", "index"], "state_schema": ["answer"]}


def new_thread(values: Any) -> Any:
    """A request that makes a thread with a state."""
    return {"metadata": {"graph_id": PLAIN_ID}, "supersteps": [{"updates": [{"values": values}]}]}


def run_start(**params: Any) -> Any:
    """A command of the event stream that starts a run."""
    return {"id": 1, "method": "run.start", "params": {"assistant_id": PLAIN_ID, **params}}


@pytest.mark.parametrize(
    ("path", "request_", "said"),
    [
        ("/runs/wait", [1], None),
        ("/runs/wait", {"assistant_id": PLAIN_ID, "context": [1], "config": "k", "command": 1}, None),
        ("/runs/wait", {"assistant_id": ["x"], "context": {"kk": 1}}, None),
        ("/runs/wait", {"assistant_id": "another", "context": {"kk": 1}}, None),
        ("/runs/wait", {"assistant_id": PLAIN_ID, "context": {"k": 1}, "input": {"question": "?"}}, None),
        ("/runs/wait", {"assistant_id": PLAIN_ID, "context": {"kk": 1}}, "context has no setting 'kk'"),
        ("/runs/batch", [{}, {"assistant_id": PLAIN_ID, "context": {"kk": 1}}], "allowed: index, k."),
        ("/assistants/b5f3", {"context": {"indx": "a"}}, "did you mean 'index'"),
        ("/assistants", {"graph_id": PLAIN_ID, "context": {"index": "lamps"}}, "one alone"),
        ("/threads/7/runs", {"assistant_id": PLAIN_ID, "config": {"configurable": {"thread_id": "7"}}}, None),
        ("/threads/7/runs", {"assistant_id": PLAIN_ID, "config": {"configurable": {"kk": 1}}}, "'kk'"),
        ("/threads/7/runs", {"assistant_id": PLAIN_ID, "command": {"update": {"anser": ""}}}, "'answer'"),
        ("/runs/wait", {"assistant_id": PLAIN_ID, "input": {"question": "?", "k": 1}}, "in the context"),
        (THREAD, {"values": {"answer": ""}}, None),
        (THREAD, {"values": {"anser": ""}}, "values has no key 'anser' (did you mean 'answer'?)"),
        (THREAD, {"values": {"strip": ""}, "checkpoint": {"checkpoint_ns": "single:1"}}, None),
        ("/threads", {"metadata": {}}, None),
        ("/threads", new_thread({"answer": ""}), None),
        ("/threads", new_thread({"anser": ""}), "did you mean 'answer'"),
        (COMMANDS, run_start(input={"question": "?"}, config={"configurable": {"k": 1}}), None),
        (COMMANDS, run_start(context={"k": 1}), "config.configurable"),
        (COMMANDS, run_start(config={"configurable": {"kk": 1}}), "no setting 'kk'"),
        (COMMANDS, {"id": 1, "method": "input.respond", "params": {"update": {"anser": ""}}}, "'answer'"),
        ("/threads/8/state", {"values": {"anser": ""}}, None),  # of somebody else: the server refuses it
    ],
)
async def test_the_server_refuses_keys_that_would_be_lost(
    path: str, request_: Any, said: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By what the graph of an assistant has; what has another type, or no graph, is left to the server."""
    pytest.importorskip("langgraph_sdk")
    http = pytest.importorskip("graphs.http", reason="the assemblies for Studio are not in the wheel")
    from httpx import ASGITransport, AsyncClient
    from starlette.requests import Request
    from starlette.responses import JSONResponse

    async def server(scope: Any, receive: Any, send: Any) -> None:
        if scope["method"] == "GET":
            owned = scope["path"] == "/threads/7"
            thread = JSONResponse({"metadata": {"graph_id": PLAIN_ID}}, 200 if owned else 404)
            await thread(scope, receive, send)
        else:
            await JSONResponse(await Request(scope, receive).json())(scope, receive, send)

    async def schemas_of(assistant: Any) -> Any:
        known = {name: {"properties": dict.fromkeys(keys)} for name, keys in KNOWN.items()}
        return known if assistant == PLAIN_ID else {}

    monkeypatch.setattr(http, "schemas_of", schemas_of)
    monkeypatch.delenv("RAG_KIT_INDEX_ROOT", raising=False)
    transport = ASGITransport(http.RefusesUnknownKeys(server))
    async with AsyncClient(transport=transport, base_url="http://server") as client:
        replied = await client.post(path, json=request_)
        assert (replied.status_code, replied.json()) == (200, request_) or said in replied.json()["detail"]
        assert (replied.status_code == 422) == (said is not None)


async def test_a_websocket_refuses_commands_that_would_lose_something() -> None:
    """As the endpoint for them does; the others, and what is no command, go on to the server."""
    pytest.importorskip("langgraph_sdk")
    http = pytest.importorskip("graphs.http", reason="the assemblies for Studio are not in the wheel")
    given = [json.dumps(run_start(context={"k": 1})), "[", json.dumps({"id": 2, "method": "agent.getTree"})]
    messages = iter({"type": "websocket.receive", "text": text} for text in given)
    passed, sent = [], []

    async def server(scope: Any, receive: Any, send: Any) -> None:
        passed.extend([(await receive())["text"], (await receive())["text"]])

    async def receive() -> Any:
        return next(messages)

    async def send(message: Any) -> None:
        sent.append(json.loads(message["text"]))

    await http.RefusesUnknownKeys(server)(
        {"type": "websocket", "path": "/threads/7/stream/events"}, receive, send
    )
    assert passed == given[1:] and [(one["id"], one["type"]) for one in sent] == [(1, "error")]


def test_tools_are_told_errors_of_the_kit() -> None:
    """The message of an error that is for whoever asked; of any other the class alone."""
    pytest.importorskip("langgraph_sdk")
    http = pytest.importorskip("graphs.http", reason="the assemblies for Studio are not in the wheel")
    for error, told in (("InvalidInputError", "InvalidInputError: k is 0"), ("KeyError", "KeyError")):
        body = json.dumps({"__error__": {"error": error, "message": "k is 0"}}).encode()
        assert json.loads(http.show_error(body))["__error__"]["error"] == told
    assert http.show_error(b'{"answer": 1}') == b'{"answer": 1}' and http.show_error(b"[") == b"["


@pytest.mark.parametrize(
    ("message", "waiting", "told"),
    [
        (
            {"content": "60.[1]", "additional_kwargs": {"asked": "When?", "status": "grounded"}},
            {},
            "grounded",
        ),
        # the run waits for a person before it answers, so that the last message is the user's
        ({"content": "It?", "additional_kwargs": {}}, {"question": "Which one?"}, "clarify"),
    ],
)
def test_a_chat_answers_a_call_of_a_tool(message: Any, waiting: Any, told: str) -> None:
    """The last message is the answer, unless the run waits."""
    pytest.importorskip("langgraph_sdk")
    http = pytest.importorskip("graphs.http", reason="the assemblies for Studio are not in the wheel")
    state = {"messages": [message], **({"__interrupt__": [{"value": waiting}]} if waiting else {})}
    body = json.dumps({"result": {"content": [{"type": "text", "text": repr(state)}]}}).encode()
    [content] = json.loads(http.rewrite_body(body))["result"]["content"]
    answer = json.loads(content["text"])
    assert list(answer) == ["question", "answer", "status", "citations"] and answer["status"] == told
    assert answer["answer"] == waiting.get("question", message["content"])


TENANTS = [
    Document(
        f"The fan of {tenant} starts at {degrees} degrees.", metadata={"tenant": tenant, "degrees": degrees}
    )
    for tenant, degrees in (("ann", 40), ("ann", 50), ("bob", 60))
]
OF_ANN: Any = {"filter": {"tenant": "ann"}}


class DownOnce(BaseRetriever):
    """A retriever that fails until it is up, then finds the passages of the tenants."""

    is_down: bool = True

    def _get_relevant_documents(self, query: str, *, run_manager: Any, **bound: Any) -> list[Document]:
        if self.is_down:
            raise LookupError("down")  # which no node tries again
        return BM25Retriever.from_documents(TENANTS).invoke(query, **bound)


def of_tenants(build: Any = build_plain_rag) -> Any:
    """A graph over the passages of both tenants, with threads."""
    return build(
        BM25Retriever.from_documents(TENANTS), chat_model("extractive"), checkpointer=InMemorySaver()
    )


def seen(result: Any) -> list[str]:
    """The fans of the passages that a run saw."""
    return sorted(f"{item.metadata['tenant']} {item.metadata['degrees']}" for item in result["documents"])


@each_graph
async def test_a_run_that_died_goes_on_with_the_filter_of_its_turn(name: str, native: bool) -> None:
    """Who takes it up need not know the filter; one of their own holds besides, and a new turn begins without."""
    retriever = DownOnce()
    graph = BUILDERS[name](retriever, chat_model("extractive"), checkpointer=InMemorySaver())
    for number, context, expected in (
        ("1", None, {"ann 40", "ann 50"}),
        ("2", {"filter": None, "k": 5}, {"ann 40", "ann 50"}),
        ("3", {"filter": {"degrees": {"$gt": 45}}}, {"ann 50"}),
    ):
        retriever.is_down = True
        with pytest.raises(LookupError, match="down"):
            graph.invoke(ASKED, thread(number), context=OF_ANN)
        retriever.is_down = False
        resumed = await go(graph, native, None, thread(number), context=context)
        assert {*seen(resumed)} <= expected and resumed["documents"]
    assert "bob 60" in seen(graph.invoke({"question": "Does the fan of bob start?"}, thread("3")))


@pytest.mark.parametrize(
    ("build", "context"),
    [(build_crag, {"approve_web": True}), (build_adaptive_rag, {"single": {"approve_web": True}})],
)
def test_a_refusal_needs_no_approve_web_again(build: Any, context: Any, web: Any) -> None:
    """A person was asked, so nothing leaves against their word, whatever the reply's own context lacks."""
    tea, saver = fixed("Tea is hot."), InMemorySaver()
    graph = build(tea, chat_model("extractive"), web_search=web, checkpointer=saver)
    assert "__interrupt__" in graph.invoke(ASKED, thread(), context=context)
    graph.invoke(Command(resume=False), thread())
    assert web.metadata["left"] == []


def test_a_chat_that_pauses_goes_on_with_its_filter() -> None:
    """Also where it pauses before the graph inside has begun."""
    chat = as_chat(of_tenants())
    asked: Any = {"messages": [("user", ASKED["question"])]}
    chat.invoke(asked, thread(), context=OF_ANN, interrupt_before=["rag"])
    answer = chat.invoke(None, thread())["messages"][-1]
    assert "ann" in answer.text and "bob" not in answer.text


def test_a_node_of_ones_own_reads_the_filter_of_its_turn() -> None:
    """From LangGraph's runtime, in a run that was resumed without any context."""
    filters = []

    def own(state: Any, runtime: Runtime[Any]) -> Any:
        filters.append(runtime.context.filter)
        return {"documents": TENANTS[:1]}

    graph = uncompiled(build_plain_rag(fixed(FAN), chat_model("extractive")))
    graph.replace_node("retrieve", own)
    made = graph.compile(InMemorySaver())
    made.invoke(ASKED, thread(), context=OF_ANN, interrupt_before=["retrieve"])
    made.invoke(None, thread())
    assert filters == [OF_ANN["filter"]]


def test_a_run_from_before_its_first_step_is_given_its_context_again() -> None:
    """There nothing of it is kept yet: without a context it is refused, and not run without the filter."""
    graph = of_tenants()
    graph.invoke(ASKED, thread(), context=OF_ANN)
    first = list(graph.get_state_history(thread()))[-1]
    with pytest.raises(InvalidInputError, match="give its context again"):
        graph.invoke(None, first.config)
    assert seen(graph.invoke(None, first.config, context=OF_ANN)) == ["ann 40", "ann 50"]
    assert "bob 60" in seen(graph.invoke(None, first.config, context={}))


@pytest.mark.parametrize(
    ("first", "then", "expected"),
    [
        (OF_ANN, None, {"ann 40", "ann 50"}),
        ({"single": OF_ANN}, {"single": {"k": 5}}, {"ann 40", "ann 50"}),
        ({"single": OF_ANN}, {"single": {"filter": {"degrees": {"$gt": 45}}}}, {"ann 50"}),
        (OF_ANN, {"single": {"filter": {"tenant": "bob"}}}, set()),
        (OF_ANN, {"filter": {}, "single": {"filter": None}}, {"ann 40", "ann 50"}),
        ({**OF_ANN, "single": {"filter": {"degrees": {"$lt": 45}}}}, None, {"ann 40"}),
    ],
)
def test_all_filters_of_the_single_step_hold(first: Any, then: Any, expected: set[str]) -> None:
    """Filters of the turn and of the reply, the common one and CRAG's own; its other settings are merged."""
    graph = of_tenants(build_adaptive_rag)
    graph.invoke({"question": "When does it start?"}, thread(), context=first)
    assert {*seen(graph.invoke(Command(resume="the fan"), thread(), context=then))} == expected


def test_a_cap_is_raised_to_its_default() -> None:
    """A setting that the resuming call names takes the place of the turn's."""
    graph = build_plain_rag(fixed(FAN), chat_model("extractive"), checkpointer=InMemorySaver())
    with pytest.raises(BudgetExceededError, match="max_calls"):
        graph.invoke(ASKED, thread(), context={"max_calls": 0})
    assert "60" in graph.invoke(None, thread(), context={"max_calls": 100})["answer"]


def test_what_a_form_gives_at_its_default_undoes_no_setting_of_the_turn() -> None:
    """The filter, the index and the approval hold; caps and numbers are those that it gives."""
    kept = {"filter": {"tenant": "ann"}, "index": "lamps", "approve_web": True, "max_calls": 3, "k": 2}
    form = CragContext(**dict(CragContext()))
    continued = form.continued(kept)
    assert (continued.filter, continued.index, continued.approve_web) == (kept["filter"], "lamps", True)
    assert (continued.max_calls, continued.k) == (100, None)


def test_a_number_of_numpy_in_a_filter_is_kept() -> None:
    """As Python's, which any checkpointer can store."""
    graph = of_tenants()
    wanted = {"degrees": {"$in": [np.int64(40), np.float64(60.0)]}}
    assert seen(graph.invoke(ASKED, thread(), context={"filter": wanted})) == ["ann 40", "bob 60"]


OF_BOB: Any = {"filter": {"tenant": "bob"}}


@pytest.mark.parametrize(("name", "turn", "native"), in_turn((n, turn) for turn in (1, 2) for n in BUILDERS))
async def test_an_edit_before_the_first_node_keeps_the_turn(name: str, turn: int, native: bool) -> None:
    """The filter of the turn holds, whatever the edit holds but another question; edits stay; so it is in a fork."""
    graph = of_tenants(BUILDERS[name])
    if turn == 2:
        graph.invoke(ASKED, thread(), context=OF_BOB)
    paused = graph.invoke(ASKED, thread(), context=OF_ANN, interrupt_before="*")
    assert not paused.get("documents")
    start = graph.get_state(thread()).config
    edits: Any = (
        {"notes": ["seen by Eve"]},
        {"notes": ["and by Zoe"]},
        graph.get_state(thread()).values,
        ASKED,
    )
    for config in (thread(), start):  # the pause, then a fork from that step of the past
        for edit in edits:
            config = graph.update_state(config, edit)
        resumed = await go(graph, native, None, config, context={})
        assert {*seen(resumed)} <= {"ann 40", "ann 50"} and resumed["documents"]
        assert resumed["notes"][:2] == ["seen by Eve", "and by Zoe"]


@pytest.mark.parametrize("turn", [1, 2])
def test_an_edit_before_the_first_node_keeps_the_turn_of_a_chat(turn: int) -> None:
    """A message that is no question leaves the filter."""
    chat, asked = as_chat(of_tenants()), {"messages": [("user", ASKED["question"])]}
    if turn == 2:
        chat.invoke(asked, thread(), context=OF_BOB)
    chat.invoke(asked, thread(), context=OF_ANN, interrupt_before=["rag"])
    chat.update_state(thread(), {"messages": [("assistant", "One moment.")]})
    assert "ann" in chat.invoke(None, thread())["messages"][-1].text


@both
@pytest.mark.parametrize("way", ["edit", "same question", "goto"])
async def test_a_question_that_comes_by_an_edit_begins_a_turn(way: str, native: bool) -> None:
    """The settings of the turn before go with it; those of the call that takes it up hold until its end."""
    graph = of_tenants()
    graph.invoke(ASKED, thread(), context=OF_ANN)
    edit = ASKED if way == "same question" else {"question": "When does the fan start, at how many degrees?"}
    going_on: Any = Command(goto="condense", update=edit)
    config = thread()
    if way != "goto":
        going_on, config = None, graph.update_state(thread(), edit, as_node="__start__")
        with pytest.raises(InvalidInputError, match="came by an edit"):
            graph.invoke(None, config)
    await go(graph, native, going_on, config, context=OF_BOB, interrupt_before=["retrieve"])
    assert seen(graph.invoke(None, thread())) == ["bob 60"]


@pytest.mark.parametrize("way", ["edit", "goto"])
def test_a_question_that_comes_by_an_edit_of_a_chat_begins_a_turn(way: str) -> None:
    """As in the graph inside."""
    chat = as_chat(of_tenants())
    chat.invoke({"messages": [("user", ASKED["question"])]}, thread(), context=OF_ANN)
    edit: Any = {"messages": [("user", "When does the fan start, at how many degrees?")]}
    going_on: Any = Command(goto="rag", update=edit)
    config = thread()
    if way == "edit":
        going_on, config = None, chat.update_state(thread(), edit, as_node="__start__")
        with pytest.raises(InvalidInputError, match="came by an edit"):
            chat.invoke(None, config)
    assert "bob" in chat.invoke(going_on, config, context=OF_BOB)["messages"][-1].text


def test_a_question_that_a_node_rewrites_is_of_the_same_turn() -> None:
    """A node of one's own may mend it; the settings of the turn stay."""
    graph = uncompiled(of_tenants())
    graph.insert_node("mend", lambda state: {"question": "The fan?"}, before="condense")
    made = graph.compile(InMemorySaver())
    made.invoke(ASKED, thread(), context=OF_ANN, interrupt_before=["mend"])
    assert seen(made.invoke(None, thread())) == ["ann 40", "ann 50"]


@both
@pytest.mark.parametrize("inner", ["plain", "crag"])
async def test_a_graph_in_a_node_has_the_filter_of_the_turn(inner: str, native: bool) -> None:
    """Also where the run paused before that node, and went on without a context."""
    searching = BM25Retriever.from_documents(TENANTS)
    graph = uncompiled(build_plain_rag(searching, chat_model("extractive"), output="full"))
    graph.replace_node("retrieve", BUILDERS[inner](searching, chat_model("extractive")))
    made = graph.compile(InMemorySaver())
    for number, context in (("1", OF_ANN), ("2", None)):
        made.invoke(ASKED, thread(number), context=context, interrupt_before=["retrieve"])
        resumed = await go(made, native, None, thread(number))
        tenants = {one.split()[0] for one in seen(resumed)}
        assert tenants == ({"ann"} if context else {"ann", "bob"})
    again: Any = graph.compile(InMemorySaver())
    parts = [ns for ns, _ in again.stream(ASKED, thread(), stream_mode="updates", subgraphs=True)]
    assert any(ns and ns[0].startswith("retrieve:") for ns in parts)


def test_a_graph_in_a_node_leaves_the_settings_of_the_turn(web: Any) -> None:
    """Also one that gives its whole state: a person is still asked before anything leaves."""
    tea, llm = fixed("Tea is hot."), chat_model("extractive")
    graph = uncompiled(build_crag(tea, llm, web_search=web, output="full"))
    graph.replace_node("retrieve", build_plain_rag(tea, llm, output="full"))
    made = graph.compile(InMemorySaver())
    made.invoke(ASKED, thread(), context={"approve_web": True}, interrupt_after=["retrieve"])
    assert "__interrupt__" in made.invoke(None, thread()) and web.metadata["left"] == []
    assert made.get_state(thread()).values["history"] == []


def test_a_graph_in_the_place_of_a_first_node_gives_what_later_ones_need() -> None:
    """The language of the turn is its own, too."""
    llm, tea = chat_model("extractive"), fixed("Tea is hot.")
    graph = uncompiled(build_plain_rag(tea, llm, output="full"))
    graph.replace_node("condense", build_plain_rag(tea, llm, output="full"))
    assert "Tea is hot." in graph.compile().invoke({"question": "Is tea hot?"})["answer"]


def test_a_graph_in_a_parent_that_goes_on_says_that_it_has_no_context() -> None:
    """A foreign parent keeps no settings, and may never have had any: a note says that no filter holds."""
    rag = build_plain_rag(BM25Retriever.from_documents(TENANTS), chat_model("extractive"))
    parent: Any = StateGraph(rag.builder.state_schema)
    parent.add_node("rag", rag)
    parent.add_edge(START, "rag")
    made = parent.compile(InMemorySaver())
    made.invoke(ASKED, thread(), context=OF_ANN, interrupt_before=["rag"])
    paused = made.get_state(thread()).config
    assert any("without a context" in note for note in made.invoke(None, thread())["notes"])
    assert seen(made.invoke(None, paused, context=OF_ANN)) == ["ann 40", "ann 50"]


def configured(number: str = "1", **settings: Any) -> Any:
    """A thread's config with settings of LangGraph's older kind."""
    return {"configurable": {**thread(number)["configurable"], **settings}}


@each_graph
async def test_settings_in_configurable_hold_as_on_the_server(name: str, native: bool) -> None:
    """Whole, as a stream, after a pause, as a node of a parent, and beside a filter of the context."""
    graph, of_bob = of_tenants(BUILDERS[name]), configured(**OF_BOB)
    assert seen(await go(graph, native, ASKED, of_bob)) == ["bob 60"]
    [*_, streamed] = graph.stream(ASKED, configured("2", **OF_ANN, k=1), stream_mode="values")
    assert len(seen(streamed)) == 1 and "bob 60" not in seen(streamed)
    graph.invoke(ASKED, configured("3", **OF_ANN), interrupt_after=list(graph.builder.nodes)[:1])
    narrower = configured("3", filter={"degrees": {"$gt": 45}})
    assert seen(await go(graph, native, None, narrower)) == ["ann 50"]
    assert seen(await go(graph, native, ASKED, configured("4", **OF_ANN), context=OF_BOB)) == []
    parent: Any = StateGraph(graph.builder.state_schema)
    parent.add_node("rag", BUILDERS[name](BM25Retriever.from_documents(TENANTS), chat_model("extractive")))
    parent.add_edge(START, "rag")
    made = parent.compile(InMemorySaver())
    made.invoke(ASKED, of_bob, interrupt_before=["rag"])
    result = await go(made, native, None, of_bob)
    assert "bob" in result["answer"] and not any("without a context" in note for note in result["notes"])


@both
async def test_fields_of_ones_own_in_configurable_stay_theirs(native: bool) -> None:
    """Keys that no setting has, values that it does not allow, and what configurable models call their fields."""
    other = configured(
        filters=1, k="few", model="gpt", max_tokens=1, language="de", filter={"tenant": {"$is": 1}}
    )
    result = await go(of_tenants(), native, ASKED, other)
    assert "bob 60" in seen(result) and any("is not the kit's" in note for note in result["notes"])
    assert any(
        "has 'filters', which is no setting (did you mean 'filter'?)" in note for note in result["notes"]
    )
    for name in ("filter", "filters"):
        field = ConfigurableField(id=name)
        own: Any = BM25Retriever.from_documents(TENANTS).configurable_fields(filter=field)
        for each in (own, EnsembleRetriever(retrievers=[own])):
            graph = build_plain_rag(each, chat_model("extractive"), output="full")
            result = await go(graph, native, ASKED, {"configurable": {name: OF_BOB["filter"]}})
            assert seen(result) == ["bob 60"] and "no setting" not in str(result["notes"])


@both
async def test_a_misspelt_setting_in_configurable_gets_a_note(native: bool) -> None:
    """Only what is spelt nearly as a setting: other keys are for other runnables."""
    graph = of_tenants(build_crag)
    near = {"fitler": "filter", "Filter": "filter", "maxcalls": "max_calls", "deadine": "deadline", "K": "k"}
    others = ["files", "tenant", "ks", "user_id", "temperature", "search_kwargs", "model"]
    # of LangGraph and of models, beside web_timeout, max_strips and strip_threshold
    others += ["assistant_id", "timeout", "max_retries", "score_threshold"]
    for key, meant in {**near, **dict.fromkeys(others)}.items():
        result = await go(graph, native, ASKED, configured(key, **{key: 1}))
        told = [note for note in result["notes"] if "which is no setting" in note]
        assert len(told) == (meant is not None) and all(f"{meant!r}" in note for note in told), key
