"""The real LangGraph server, started offline and driven over loopback."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.slow
pytest.importorskip("langgraph_api", reason="the extra studio is not installed")


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index of the guide."""
    index = tmp_path_factory.mktemp("index") / "index"
    ingest = [sys.executable, "-m", "rag_kit.cli", "ingest", str(ROOT / "docs" / "guide"), "--quiet"]
    subprocess.run([*ingest, "--index", str(index), "--embedding-model", "none"], check=True, cwd=ROOT)
    return index


@pytest.fixture(scope="module")
def server(index: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The server, in a copy of what it needs, so that it leaves nothing here."""
    with served(tmp_path_factory.mktemp("studio"), index) as url:
        yield url


@contextmanager
def served(base: Path, index: Path | None, **variables: str) -> Iterator[str]:
    """``langgraph dev`` in a folder that holds a copy of the assemblies; gives the server's address."""
    shutil.copytree(ROOT / "graphs", base / "graphs")
    shutil.copy(ROOT / "langgraph.json", base)
    (base / "pyproject.toml").write_text('[project]\nname = "studio-app"\nversion = "0"\n')
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    environment = {
        **os.environ,
        **({"RAG_KIT_INDEX": str(index)} if index else {}),
        "LANGSMITH_TRACING": "false",
        "LANGGRAPH_NO_VERSION_CHECK": "true",
        "LANGGRAPH_CLI_NO_ANALYTICS": "1",
        **variables,
    }
    log = base / "server.log"
    with log.open("wb") as out:
        process = subprocess.Popen(
            [
                *(str(Path(sys.executable).with_name("langgraph")), "dev", "--no-browser", "--no-reload"),
                *("--host", "127.0.0.1", "--port", str(port)),
            ],
            cwd=base,
            env=environment,
            stdout=out,
            stderr=subprocess.STDOUT,
        )
    url = f"http://127.0.0.1:{port}"
    try:
        _wait_until_ready(process, url, log)
        yield url
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    assert "Heads up! LangGraph dev identified a synchronous blocking call" not in log.read_text(
        errors="replace"
    )


def _wait_until_ready(process: subprocess.Popen[bytes], url: str, log: Path) -> None:
    end = time.monotonic() + 90
    while time.monotonic() < end:
        if process.poll() is not None:
            break
        try:
            with urllib.request.urlopen(f"{url}/ok", timeout=2) as answer:
                if answer.status == 200:
                    return
        except OSError:
            time.sleep(0.3)
    raise AssertionError(f"the server did not start:\n{log.read_text(errors='replace')[-4000:]}")


@pytest.fixture(scope="module")
def client(server: str) -> Any:
    from langgraph_sdk import get_sync_client

    return get_sync_client(url=server)


# the chat takes messages, the others a question
GRAPHS = sorted(set(json.loads((ROOT / "langgraph.json").read_text(encoding="utf-8"))["graphs"]) - {"chat"})
QUESTION = "Which score does reciprocal rank fusion give a passage?"
every_graph = pytest.mark.parametrize("graph", GRAPHS)


def run(client: Any, graph: str, question: str, **options: Any) -> Any:
    """One run without a thread, to its end."""
    return client.runs.wait(None, graph, **{"input": {"question": question}, **options})


def test_the_graphs_of_the_kit_are_served() -> None:
    """Every builder has its assembly, Self-RAG one for each mode."""
    assert {"adaptive_rag", "conversational_rag", "crag", "plain_rag", "self_rag", "self_rag_reflect"} == {
        *GRAPHS
    }


@every_graph
def test_graph_is_listed_connected_and_described(client: Any, graph: str) -> None:
    """Non-null schemas, a form with the question only, described settings, edges between all nodes."""
    [assistant] = client.assistants.search(graph_id=graph)
    schemas = client.assistants.get_schemas(assistant["assistant_id"])
    for name in ("input_schema", "output_schema", "state_schema", "context_schema"):
        assert schemas[name], name
    assert list(schemas["input_schema"]["properties"]) == ["question"]
    drawn = client.assistants.get_graph(assistant["assistant_id"])
    names = {node["id"] for node in drawn["nodes"]}
    touched = {edge["source"] for edge in drawn["edges"]} | {edge["target"] for edge in drawn["edges"]}
    assert names == touched and len(names) >= 6
    settings = schemas["context_schema"]["properties"]
    for name, setting in settings.items():
        assert setting["description"], name
        # the two modes of Self-RAG share their settings, so some name nodes of the other mode
        assert setting["langgraph_nodes"] and (
            graph.startswith("self_rag") or set(setting["langgraph_nodes"]) <= names
        ), name
    assert [name for name, setting in settings.items() if setting.get("langgraph_type") == "prompt"]


@every_graph
def test_run_on_a_thread_streams_in_every_mode(client: Any, graph: str) -> None:
    """values, updates, messages-tuple and custom all arrive, and the answer is grounded."""
    thread = client.threads.create()["thread_id"]
    seen: dict[str, list[Any]] = {}
    for part in client.runs.stream(
        thread,
        graph,
        input={"question": QUESTION},
        stream_mode=["values", "updates", "messages-tuple", "custom"],
        stream_subgraphs=True,
    ):
        seen.setdefault(part.event.split("|")[0], []).append(part.data)
    assert "error" not in seen, seen.get("error")
    # candidates of Self-RAG compete, so none of them is streamed before one has won
    competing = graph.startswith("self_rag")
    assert {"values", "updates", "custom"} | (set() if competing else {"messages"}) <= set(seen)
    state = client.threads.get_state(thread)["values"]
    assert state["status"] == "grounded" and state["citations"][0]["quote"]
    assert state["question"] == QUESTION


def test_context_of_an_assistant_is_used(client: Any) -> None:
    """A second assistant with k = 1 gets one passage."""
    assistant = client.assistants.create("plain_rag", context={"k": 1}, name="one passage")
    result = run(client, assistant["assistant_id"], "What is a writer lock?")
    assert len(result["documents"]) == 1


@every_graph
def test_a_bad_input_gives_a_clear_error(client: Any, graph: str) -> None:
    """An empty question, and a setting out of range, fail the run; other keys in the input are refused."""
    parts = list(client.runs.stream(None, graph, input={"question": " "}, stream_mode="values"))
    assert any(part.event == "error" and "question" in json.dumps(part.data) for part in parts)
    parts = list(
        client.runs.stream(None, graph, input={"question": "What?"}, context={"k": 0}, stream_mode="values")
    )
    assert any(part.event == "error" and "greater than" in json.dumps(part.data) for part in parts), parts
    for given, said in (
        ({"question": "What?", "k": 1}, "'k', a setting, which belongs in the context"),
        ({"query": "What?"}, "input has no key 'query'"),
    ):
        with pytest.raises(Exception, match=said):
            run(client, graph, "", input=given)


def test_interrupt_and_resume(client: Any) -> None:
    """A question that refers to nothing is asked back; the reply goes on with the run."""
    thread = client.threads.create()["thread_id"]
    client.runs.wait(thread, "adaptive_rag", input={"question": "What about it?"})
    stopped = client.threads.get_state(thread)
    assert stopped["next"] and stopped["tasks"][0]["interrupts"], stopped["values"]
    client.runs.wait(thread, "adaptive_rag", command={"resume": QUESTION})
    state = client.threads.get_state(thread)
    assert not state["next"] and state["values"]["status"] == "grounded"
    assert "fusion" in state["values"]["answer"].lower() or state["values"]["citations"]


@pytest.mark.parametrize("graph", [graph for graph in GRAPHS if graph != "adaptive_rag"])
def test_an_edit_at_a_pause_is_followed(client: Any, graph: str) -> None:
    """``update_state`` over HTTP: the run goes on with the edit, of which nothing is left in a new turn."""
    thread = client.threads.create()["thread_id"]
    client.runs.wait(
        thread, graph, input={"question": "What is a writer lock?"}, interrupt_before=["retrieve"]
    )
    assert not client.threads.get_state(thread)["values"]["status"]
    with pytest.raises(Exception, match=r"no key 'serch_query' .did you mean 'search_query'"):
        client.threads.update_state(thread, {"serch_query": QUESTION})
    client.threads.update_state(thread, {"search_query": QUESTION, "standalone": QUESTION})
    assert client.threads.get_state(thread)["next"] == ["retrieve"]
    result = client.runs.wait(thread, graph, input=None)
    assert result["status"] == "grounded" and "fusion" in result["answer"].lower()
    client.threads.update_state(thread, {"history": {"__overwrite__": []}})
    first = "condense" if graph == "plain_rag" else "begin"
    client.runs.wait(thread, graph, input={"question": "And BM25?"}, interrupt_before=[first])
    values = client.threads.get_state(thread)["values"]
    assert not (values["history"] or values["standalone"] or values["search_query"] or values["guarded"])


@pytest.mark.parametrize(
    "edit", [{"question": f"{QUESTION} Please."}, {"turn_settings": {}}], ids=["question", "settings"]
)
def test_an_edit_loses_no_filter(client: Any, edit: Any) -> None:
    """The server gives an empty context for none, so the run is refused until it is given one, as in Python."""
    thread, paused = client.threads.create()["thread_id"], {"interrupt_before": ["retrieve"]}
    only: Any = {"filter": {"file": "en/answers.md"}}
    client.runs.wait(thread, "crag", input={"question": QUESTION}, context=only, **paused)
    client.threads.update_state(thread, edit)
    with pytest.raises(Exception, match="no settings are kept"):
        client.runs.wait(thread, "crag", input=None)
    files = {
        passage["metadata"]["file"]
        for passage in client.runs.wait(thread, "crag", input=None, context=only)["documents"]
    }
    assert files <= {"en/answers.md"}
    client.threads.update_state(thread, {"turn_settings": {}}, as_node="begin")
    assert client.runs.wait(thread, "crag", input=None, context={"filter": None})["status"] == "grounded"


def test_the_chat_over_messages(client: Any) -> None:
    """As Studio's chat and agent-chat-ui do it: messages in and out on a thread, the answer streamed once."""
    [assistant] = client.assistants.search(graph_id="chat")
    schemas = client.assistants.get_schemas(assistant["assistant_id"])
    assert list(schemas["input_schema"]["properties"]) == ["messages"]
    thread = client.threads.create()["thread_id"]
    for text in (QUESTION, "Hello!", "What is a writer lock?"):
        given = {"messages": [{"role": "user", "content": text}]}
        parts = list(
            client.runs.stream(
                thread, "chat", input=given, stream_mode=["messages-tuple", "values"], stream_subgraphs=True
            )
        )
        kept = [part.data for part in parts if part.event == "values"][-1]["messages"][-1]
        chunks = [part.data[0] for part in parts if part.event.split("|")[0] == "messages"]
        shown = [chunk for chunk in chunks if chunk["type"].startswith(("ai", "AI"))]
        assert "".join(chunk["content"] for chunk in shown) == kept["content"] != ""
        assert {chunk["id"] for chunk in shown} == {kept["id"]} and kept["usage_metadata"][
            "total_tokens"
        ] >= 0
    assert len(client.threads.get_state(thread)["values"]["messages"]) == 6


def test_the_chat_over_a2a(client: Any, server: str) -> None:
    """An agent of another kind sends a message and gets a task with the answer; the conversation goes on."""
    [assistant] = client.assistants.search(graph_id="chat")
    with urllib.request.urlopen(
        f"{server}/.well-known/agent-card.json?assistant_id={assistant['assistant_id']}", timeout=60
    ) as answer:
        assert json.load(answer)["name"]

    def send(text: str, **more: Any) -> dict[str, Any]:
        message = {"role": "user", "parts": [{"kind": "text", "text": text}], "messageId": text, **more}
        body = {"jsonrpc": "2.0", "id": "1", "method": "message/send", "params": {"message": message}}
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        url = f"{server}/a2a/{assistant['assistant_id']}"
        request = urllib.request.Request(url, json.dumps(body).encode(), headers)
        with urllib.request.urlopen(request, timeout=60) as answer:
            replied = json.load(answer)
        assert "result" in replied, replied
        return dict(replied["result"])

    task = send(QUESTION)
    assert task["status"]["state"] == "completed", task
    said = "".join(part["text"] for one in task["artifacts"] for part in one["parts"])
    assert "fusion" in said.lower() and "[1]" in said
    failed = send(" ")["status"]
    assert failed["state"] == "failed" and "question is empty" in failed["message"]["parts"][0]["text"]
    again = send("What is a writer lock?", contextId=task["contextId"])
    assert again["contextId"] == task["contextId"] and again["status"]["state"] == "completed"


def test_settings_that_do_not_exist_are_refused(client: Any) -> None:
    """As in Python: by name, with what is allowed; of an assistant too."""
    for context, said in (({"kk": 1}, "no setting 'kk'"), ({"max_hops": 2}, "no setting 'max_hops'")):
        with pytest.raises(Exception, match=f"{said}.*allowed: "):
            run(client, "crag", QUESTION, context=context)
        with pytest.raises(Exception, match=f"{said}.*allowed: "):
            client.assistants.create("crag", context=context)
    assert run(client, "adaptive_rag", QUESTION, context={"max_hops": 2, "k": 3})["status"] == "grounded"
    [own] = client.assistants.search(graph_id="crag", metadata={"created_by": "system"})
    for named in (own, client.assistants.create("crag", context={"k": 2})):
        assistant = named["assistant_id"]
        for wrong in ({"context": {"delta": 0.5}}, {"config": {"configurable": {"delta": 0.5}}}):
            with pytest.raises(Exception, match=r"no setting 'delta'; allowed: .*upper"):
                run(client, assistant, QUESTION, **wrong)
        with pytest.raises(Exception, match=r"no setting 'delta'; allowed: .*upper"):
            client.assistants.update(assistant, context={"delta": 0.5})
    cron: Any = client.crons.create("crag", schedule="0 0 1 1 *", input={"question": QUESTION})
    with pytest.raises(Exception, match=r"no setting 'delta'; allowed: .*upper"):
        client.crons.update(cron["cron_id"], context={"delta": 0.5})
    client.crons.delete(cron["cron_id"])


def test_facts_are_kept_where_nobody_signs_in(client: Any) -> None:
    """A context may name any user."""
    assert run(client, "conversational_rag", QUESTION, context={"user_id": "ann"})["status"] == "grounded"


def test_assistants_differ_by_model_and_index(client: Any, index: Path) -> None:
    """Names of models, and the index of the variable; others are refused when the assistant is made."""
    for context, said in (
        ({"model": "no-model"}, "The provider of the model"),
        ({"index": "/etc"}, "RAG_KIT_INDEX_ROOT"),
        ({"index": "../other"}, "RAG_KIT_INDEX_ROOT"),
    ):
        with pytest.raises(Exception, match=said):
            client.assistants.create("plain_rag", context=context)
        with pytest.raises(Exception, match=said):
            run(client, "crag", QUESTION, context=context)
    named = {"model": "extractive", "index": str(index)}
    for graph in ("plain_rag", "adaptive_rag"):
        assistant = client.assistants.create(graph, context=named, name="its own")
        assert run(client, assistant["assistant_id"], QUESTION)["status"] == "grounded"


def test_fork_from_history(client: Any) -> None:
    """A run is taken up again from before the answer, with other documents; the first stays as it was."""
    thread = client.threads.create()["thread_id"]
    first = client.runs.wait(thread, "plain_rag", input={"question": QUESTION})
    before = next(past for past in client.threads.get_history(thread, limit=20) if past["next"] == ["answer"])
    planted = [
        {**first["documents"][0], "page_content": "Reciprocal rank fusion gives a passage 1 / (60 + rank)."}
    ]
    fork = client.threads.update_state(
        thread, {"documents": planted}, checkpoint_id=before["checkpoint"]["checkpoint_id"]
    )
    again = client.runs.wait(thread, "plain_rag", input=None, checkpoint=fork["checkpoint"])
    assert "\nReciprocal rank fusion gives a passage 1 / (60 + rank).[1]" in again["answer"]
    assert again["answer"] != first["answer"] or first["documents"] != again["documents"]


@every_graph
def test_twenty_runs_at_once(server: str, graph: str) -> None:
    """Concurrent runs all end with the same answer."""
    import asyncio

    from langgraph_sdk import get_client

    async def all_runs() -> list[Any]:
        client = get_client(url=server)
        question = {"question": "What does rag-kit verify do?"}
        return await asyncio.gather(*(client.runs.wait(None, graph, input=question) for _ in range(20)))

    answers = {result["answer"] for result in asyncio.run(all_runs())}
    assert len(answers) == 1 and answers != {""}


def call_tool(url: str, name: str, **arguments: Any) -> dict[str, Any]:
    """The result of ``tools/call`` at the server's MCP endpoint."""
    message = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": name, "arguments": arguments},
    }
    request = urllib.request.Request(
        f"{url}/mcp",
        json.dumps(message).encode(),
        {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"},
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        replied = json.load(answer)
    assert "result" in replied, replied
    return dict(replied["result"])


@every_graph
def test_a_tool_call_over_mcp_gives_the_answer_as_json(server: str, graph: str) -> None:
    """Question, answer, status and citations, and nothing of the graph's machinery."""
    [content] = call_tool(server, graph, question=QUESTION)["content"]
    answer = json.loads(content["text"])
    assert list(answer) == ["question", "answer", "status", "citations"]
    assert answer["question"] == QUESTION and answer["status"] == "grounded"
    assert answer["citations"][0]["quote"] and answer["answer"]


def test_the_chat_is_a_tool_of_mcp_too(server: str) -> None:
    """It takes messages, and answers as the other graphs do."""
    messages = [{"role": "user", "content": QUESTION}]
    [content] = call_tool(server, "adaptive_rag_chat", messages=messages)["content"]
    [expected] = call_tool(server, "adaptive_rag", question=QUESTION)["content"]
    assert json.loads(content["text"]) == json.loads(expected["text"])


def test_a_question_back_and_an_error_over_mcp(server: str) -> None:
    """Nobody can reply within the call: the question back is the answer; what is wrong is said as the server does."""
    [content] = call_tool(server, "adaptive_rag", question="What about it?")["content"]
    answer = json.loads(content["text"])
    assert answer["status"] == "clarify" and answer["answer"].endswith("?")
    failed = call_tool(server, "crag", question=" ")
    assert failed["isError"] and "question is empty" in failed["content"][0]["text"]
    failed = call_tool(server, "crag", question=QUESTION, k=2)
    assert failed["isError"] and "input has no key 'k'" in failed["content"][0]["text"]


def test_a_model_that_fails_says_so(index: Path, tmp_path: Path) -> None:
    """Studio shows what the endpoint did, not that there was an internal error."""
    from langgraph_sdk import get_sync_client

    endpoint = {"RAG_KIT_BASE_URL": "http://127.0.0.1:9/v1", "OPENAI_API_KEY": "none"}
    with served(tmp_path, index, RAG_KIT_CHAT_MODEL="openai:m", **endpoint) as url:
        parts = get_sync_client(url=url).runs.stream(None, "plain_rag", input={"question": QUESTION})
        said = [json.dumps(part.data) for part in parts if part.event == "error"]
        assert said and "http://127.0.0.1:9 could not be reached" in said[0]


def test_without_an_index_it_starts_and_a_run_says_what_to_do(tmp_path: Path) -> None:
    """As straight from a fresh clone: each graph names the command that makes an index, at once."""
    from langgraph_sdk import get_sync_client

    with served(tmp_path, None) as url:
        client = get_sync_client(url=url)
        for graph in GRAPHS:
            parts = client.runs.stream(None, graph, input={"question": QUESTION}, stream_mode="values")
            said = [json.dumps(part.data) for part in parts if part.event == "error"]
            assert said and "There is no index in" in said[0] and "rag-kit ingest PATH --index" in said[0]
            assert "start the server again" in said[0]


def test_an_index_that_is_named_and_not_there_is_an_error(tmp_path: Path) -> None:
    """The server does not start, and says why."""
    with (
        pytest.raises(AssertionError, match=r"RAG_KIT_INDEX=.*nowhere.*There is no index in"),
        served(tmp_path, tmp_path / "nowhere"),
    ):
        pass


def test_variables_stand_in_a_file(index: Path, tmp_path: Path) -> None:
    """``.env`` names the index and a web search; it is the same file as ``.env.example``, filled in."""
    from langgraph_sdk import get_sync_client

    (tmp_path / "tools.py").write_text(
        "from langchain_core.tools import tool\n\n@tool\ndef web(query: str) -> str:\n"
        "    'Search the web.'\n    return 'The zorgle starts at 60 degrees, as the web says of the zorgle.'\n"
    )
    example = (ROOT / ".env.example").read_text(encoding="utf-8")
    (tmp_path / ".env").write_text(f"{example}\nRAG_KIT_INDEX={index}\nRAG_KIT_WEB_SEARCH=tools:web\n")
    with served(tmp_path, None, PYTHONPATH=str(tmp_path)) as url:
        client = get_sync_client(url=url)
        assert run(client, "plain_rag", QUESTION)["status"] == "grounded"
        found = run(
            client, "crag", "At how many degrees does the zorgle start?", context={"upper": 1.0, "lower": 1.0}
        )
        assert any("searched with web" in note for note in found["notes"]), found["notes"]
