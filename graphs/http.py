"""Middleware before LangGraph's own server: an error for keys that would be lost, and tools that answer in words.

The server drops in silence what a run's context, its input or an edit of a thread names and the graph does not have.
Its endpoint ``/mcp`` (each graph a tool) answers with the ``repr`` of the whole state, and with ``/a2a`` the name of an
error's class stands for the error.
"""

import ast
import json
import os
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from typing import Any

from httpx import HTTPStatusError
from langgraph_sdk import get_client
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from graphs.parts import check_index
from rag_kit import errors
from rag_kit.concurrency.bridge import run_in_thread
from rag_kit.documents.fields import did_you_mean
from rag_kit.errors import InvalidInputError, RagKitError
from rag_kit.graphs.context import PlainRagContext

KEYS = ("question", "answer", "status", "citations")
#: Errors whose message is for whoever asked; of others a tool gives the class alone.
SHOWN_ERRORS = {
    name for name, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, RagKitError)
}
#: How keys of ``configurable`` begin that are LangGraph's own.
RESERVED = ("__", "langgraph_", "thread_id", "run_id", "assistant_id", "graph_id", "checkpoint_")

# whether a request is, or was made for, a call of /mcp or /a2a: for these the server sends requests to itself
_in_tool: ContextVar[bool] = ContextVar("in_tool", default=False)
_schemas: dict[str, dict[str, Any]] = {}  # by the name of a graph


class AnswersTools:
    """Rewrites what ``/mcp`` answers to a call of a tool, and errors of its runs and of those of ``/a2a``."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on; rewrite the answer to a tool call, or to a run that a tool call makes."""
        path = scope["path"].rstrip("/") if scope["type"] == "http" else ""
        is_mcp = path.endswith("/mcp")
        is_run = _in_tool.get() and path.endswith(("/runs/wait", "/join"))
        if is_mcp or "/a2a/" in path:
            _in_tool.set(True)  # for this request, which has a context of its own
        if not is_run and not is_mcp:
            await self.app(scope, receive, send)
            return
        start, body = await answer_of(self.app, scope, receive)
        body = show_error(body) if is_run else rewrite_body(body)
        headers = [(name, value) for name, value in start["headers"] if name.lower() != b"content-length"]
        await send({**start, "headers": [*headers, (b"content-length", str(len(body)).encode())]})
        await send({"type": "http.response.body", "body": body})


async def answer_of(app: ASGIApp, scope: Scope, receive: Receive) -> tuple[Message, bytes]:
    """Return what an application answers: the message that starts it, and the whole body."""
    messages: list[Message] = []

    async def collect(message: Message) -> None:
        messages.append(message)

    await app(scope, receive, collect)
    start = next(message for message in messages if message["type"] == "http.response.start")
    return start, b"".join(message.get("body", b"") for message in messages)


def rewrite_body(body: bytes) -> bytes:
    """Put the run's answer into a tool call's in place of the state's ``repr``; return any other body as it is."""
    try:
        message = json.loads(body)
        [content] = message["result"]["content"]
        state = ast.literal_eval(content["text"])
        if messages := state.get("messages"):  # of a chat, whose last one is the answer
            details = messages[-1]["additional_kwargs"]
            state |= {**details, "question": details.get("asked"), "answer": messages[-1]["content"]}
        answer = {key: state.get(key) for key in KEYS}
        if waiting := state.get("__interrupt__"):  # nobody can reply within a call of a tool
            answer |= {"status": "clarify", "answer": waiting[0]["value"].get("question", "")}
    except (ValueError, SyntaxError, LookupError, TypeError, AttributeError):
        return body
    content["text"] = json.dumps(answer, ensure_ascii=False)
    return json.dumps(message, ensure_ascii=False).encode()


def show_error(body: bytes) -> bytes:
    """Put the message of an error of the kit beside its class in a run's result; return any other body as it is."""
    try:
        result = json.loads(body)
        error = result["__error__"]
        if error["error"] in SHOWN_ERRORS:
            error["error"] = f"{error['error']}: {error['message']}"
            body = json.dumps(result, ensure_ascii=False).encode()
    except (ValueError, LookupError, TypeError):
        pass
    return body


class RefusesUnknownKeys:
    """Answers 422 where a run, an assistant or an edit of a thread names what its graph does not have."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check requests that make or change runs, assistants, crons and threads; pass all others on."""
        if scope["type"] == "websocket":
            await self.app(scope, self.allowed_commands(scope, receive, send), send)
            return
        is_change = scope["type"] == "http" and scope["method"] in ("POST", "PATCH", "PUT")
        parts = scope["path"].strip("/").split("/") if is_change else []
        if not is_thread_edit(parts) and not {"runs", "assistants", "crons"} & {*parts}:
            await self.app(scope, receive, send)
            return
        messages = [await receive()]
        while messages[-1].get("more_body"):
            messages.append(await receive())
        try:
            request = json.loads(b"".join(message.get("body", b"") for message in messages))
        except ValueError:  # the server itself refuses it
            request = None
        problem = await self.find_problem(request, parts, scope)
        if problem is None:
            await self.app(scope, replaying(messages, receive), send)
        elif _in_tool.get():
            error = {"error": f"InvalidInputError: {problem}", "message": problem}
            await JSONResponse({"__error__": error})(scope, receive, send)
        else:
            await JSONResponse({"detail": problem, **refusal_of(request, problem)}, 422)(scope, receive, send)

    async def find_problem(self, request: Any, parts: list[str], scope: Scope) -> str | None:
        """Return an error if a request has keys that the server would drop, else None; ``parts`` are of its path."""
        if is_thread_edit(parts) and parts[-1] == "commands":
            return await self.find_unknown_in_command(request, scope)
        if is_thread_edit(parts):
            return await self.find_unknown_edit(request, scope, is_new=len(parts) == 1)
        assistant = parts[-1] if "assistants" in parts else None
        if scope["method"] == "PATCH" and "crons" in parts:
            assistant = await assistant_of(parts[-1])
        return await find_unknown_setting(request, assistant)

    def allowed_commands(self, scope: Scope, receive: Receive, send: Send) -> Receive:
        """Make a ``receive`` for a thread's websocket that holds back commands with unknown keys, and refuses them."""

        async def allowed() -> Message:
            while True:
                message = await receive()
                try:
                    command = json.loads(message.get("text") or "null")
                except ValueError:  # the server itself refuses it
                    command = None
                problem = await self.find_unknown_in_command(command, scope)
                if problem is None:
                    return message
                await send({"type": "websocket.send", "text": json.dumps(refusal_of(command, problem))})

        return allowed

    async def find_unknown_in_command(self, command: Any, scope: Scope) -> str | None:
        """Return an error if a command (``run.start``, ``input.respond``) has keys that the server would drop."""
        params = part_of(command, "params")
        if params.get("context"):
            return "context is not read here; give its settings as config.configurable, or make an assistant of them."
        if not params:
            return None
        run = {**params, "command": {"update": params.get("update")}}  # as a request over HTTP has it
        if not isinstance(params.get("assistant_id"), str) and part_of(params, "update"):
            run["assistant_id"] = assistant_in(await self.thread_of(scope))
        return await find_unknown_setting(run)

    async def find_unknown_edit(self, request: Any, scope: Scope, *, is_new: bool) -> str | None:
        """Return an error for a key of an edit, or of a new thread's states, that is not in the graph's state."""
        edits = [request]
        if is_new:  # {"supersteps": [{"updates": [edit, ...]}, ...]}
            steps = request.get("supersteps") if isinstance(request, dict) else None
            updates = [step.get("updates") for step in steps or () if isinstance(step, dict)]
            edits = [edit for each in updates if isinstance(each, list) for edit in each]
        thread = request if is_new else await self.thread_of(scope)
        for edit in edits:
            if part_of(edit, "checkpoint").get("checkpoint_ns"):
                continue  # of a graph that is a node of the thread's: its schemas are not known here
            schemas = await schemas_of(assistant_in(thread))
            for problem in unknown("values", part_of(edit, "values"), schemas, "state_schema"):
                return problem
        return None

    async def thread_of(self, scope: Scope) -> Any:
        """Return the thread of a path, if whoever asks may read it."""
        path = "/".join(scope["path"].split("/")[:3])  # /threads/ID
        headers = [(name, value) for name, value in scope["headers"] if not name.startswith(b"content-")]
        request = {**scope, "type": "http", "method": "GET", "headers": headers}
        request |= {"path": path, "raw_path": path.encode(), "query_string": b""}

        async def receive_nothing() -> Message:
            return {"type": "http.request", "body": b"", "more_body": False}

        start, body = await answer_of(self.app, request, receive_nothing)
        return json.loads(body) if start["status"] == 200 else None


def is_thread_edit(parts: list[str]) -> bool:
    """Tell whether a path is that of new threads, of a thread's state or of a command to it."""
    return parts[:1] == ["threads"] and (len(parts) == 1 or parts[-1] in ("state", "commands"))


def replaying(messages: list[Message], receive: Receive) -> Receive:
    """Make a ``receive`` that returns these messages again, before new ones."""
    remaining = iter(messages)

    async def receive_again() -> Message:
        message = next(remaining, None)
        return await receive() if message is None else message

    return receive_again


async def schemas_of(assistant: Any) -> dict[str, Any]:
    """Return the schemas of the graph of an assistant, which may be named by its graph; {} for an unknown one."""
    from langgraph_api.graph import get_assistant_id

    if not isinstance(assistant, str):
        return {}
    client, assistant_id = get_client(url=None), get_assistant_id(assistant)
    try:
        graph = (await client.assistants.get(assistant_id))["graph_id"]
        if graph not in _schemas:
            _schemas[graph] = dict(await client.assistants.get_schemas(assistant_id))
    except HTTPStatusError:  # the server itself refuses it
        return {}
    return _schemas[graph]


async def assistant_of(cron: str) -> str | None:
    """Return the id of the assistant that a cron runs, if the cron is among the last thousand."""
    crons = await get_client(url=None).crons.search(limit=1000)
    return next((each["assistant_id"] for each in crons if each["cron_id"] == cron), None)


async def find_unknown_setting(request: Any, assistant: str | None = None) -> str | None:
    """Return what is wrong with a run, a list of runs or an assistant (in the path: its id), or None."""
    for run in request if isinstance(request, list) else [request]:
        if not isinstance(run, dict) or not run.keys() & {"context", "config", "input", "command"}:
            continue
        schemas = await schemas_of(run.get("graph_id") or run.get("assistant_id") or assistant)
        for problem in problems(run, schemas):
            return problem
        context = run.get("context")
        if isinstance(context, dict) and (problem := await run_in_thread(find_bad_name, context)):
            return problem
    return None


def problems(request: Mapping[str, Any], schemas: Mapping[str, Any]) -> Iterator[str]:
    """Yield an error for each key that a run or an assistant names and its graph does not have."""
    configurable = part_of(request.get("config"), "configurable")
    settings = {key: value for key, value in configurable.items() if not key.startswith(RESERVED)}
    yield from unknown("configurable", settings, schemas, "context_schema")
    yield from unknown("context", part_of(request, "context"), schemas, "context_schema")
    yield from unknown("command.update", part_of(request.get("command"), "update"), schemas, "state_schema")
    # chat front ends put keys of their own beside the messages
    if "messages" not in keys_of(schemas, "input_schema"):
        yield from unknown("input", part_of(request, "input"), schemas, "input_schema")


def assistant_in(thread: Any) -> Any:
    """Return the assistant, or the graph, that the metadata of a thread name."""
    metadata = part_of(thread, "metadata")
    return metadata.get("assistant_id") or metadata.get("graph_id")


def refusal_of(command: Any, problem: str) -> dict[str, Any]:
    """Return the answer to a refused command of the event stream; {} for any other request."""
    if not isinstance(command, dict) or "method" not in command:
        return {}
    return {"type": "error", "id": command.get("id"), "error": "invalid_argument", "message": problem}


def part_of(given: Any, name: str) -> dict[str, Any]:
    """Return a part of a request that is an object; {} for a missing part, or one that the server will refuse."""
    part = given.get(name) if isinstance(given, dict) else None
    return part if isinstance(part, dict) else {}


def keys_of(schemas: Mapping[str, Any], name: str) -> set[str]:
    """Return the keys of the schema of this name."""
    return {*(schemas.get(name) or {}).get("properties", ())}


def unknown(where: str, given: Mapping[str, Any], schemas: Mapping[str, Any], name: str) -> Iterator[str]:
    """Yield an error for each key of a part of a request (``where``) that its schema does not have, if there is one."""
    allowed = sorted(keys_of(schemas, name))
    noun = "setting" if name == "context_schema" else "key"
    for key in given if allowed else ():
        if key in allowed:
            continue
        hint = did_you_mean(key, allowed)
        if where == "input" and key in keys_of(schemas, "context_schema"):
            hint = ", a setting, which belongs in the context"
        yield f"{where} has no {noun} {key!r:.80}{hint}; allowed: {', '.join(allowed)}."


def find_bad_name(context: Mapping[str, Any]) -> str | None:
    """Return what is wrong with the model or the index that a context names, else None; it may look into a folder."""
    try:
        PlainRagContext(model=context.get("model"))  # which checks the name
        index = PlainRagContext(index=context.get("index")).index
        if index and index != os.environ.get("RAG_KIT_INDEX", "").strip():
            check_index(index)
    except InvalidInputError as error:
        return str(error)
    return None


app = Starlette(middleware=[Middleware(RefusesUnknownKeys), Middleware(AnswersTools)])
