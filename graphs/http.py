"""Middleware before LangGraph's own server: answers over MCP as JSON, and an error for settings that do not exist.

LangGraph's endpoint ``/mcp`` (each graph a tool) answers with the ``repr`` of the whole state, and a run's context
loses in silence what the graph has no setting for.
"""

import ast
import json
import os

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from graphs.parts import check_index
from rag_kit.concurrency.bridge import run_in_thread
from rag_kit.documents.fields import did_you_mean
from rag_kit.errors import InvalidInputError
from rag_kit.graphs.adaptive.state import AdaptiveContext
from rag_kit.graphs.context import PlainRagContext
from rag_kit.graphs.conversational.nodes import ConversationalContext
from rag_kit.graphs.crag.state import CragContext
from rag_kit.graphs.self_rag.shared import SelfRagContext

KEYS = ("question", "answer", "status", "citations")
SETTINGS = {
    "plain_rag": PlainRagContext,
    "crag": CragContext,
    "self_rag": SelfRagContext,
    "self_rag_reflect": SelfRagContext,
    "conversational_rag": ConversationalContext,
    "adaptive_rag": AdaptiveContext,
    "chat": AdaptiveContext,
}


class AnswersAsJson:
    """Rewrites what ``/mcp`` answers to a call of a tool; everything else passes as it is."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, and what comes back of ``/mcp`` through `rewrite_body`."""
        if scope["type"] != "http" or not scope["path"].rstrip("/").endswith("/mcp"):
            await self.app(scope, receive, send)
            return
        messages: list[Message] = []

        async def collect(message: Message) -> None:
            messages.append(message)

        await self.app(scope, receive, collect)
        start = next(message for message in messages if message["type"] == "http.response.start")
        body = rewrite_body(b"".join(message.get("body", b"") for message in messages))
        headers = [(name, value) for name, value in start["headers"] if name.lower() != b"content-length"]
        await send({**start, "headers": [*headers, (b"content-length", str(len(body)).encode())]})
        await send({"type": "http.response.body", "body": body})


def rewrite_body(body: bytes) -> bytes:
    """The answer to a tool call with the run's answer in place of its state; any other body as it is."""
    try:
        message = json.loads(body)
        [content] = message["result"]["content"]
        state = ast.literal_eval(content["text"])
        answer = {key: state.get(key) for key in KEYS}
        if waiting := state.get("__interrupt__"):  # nobody can reply within a call of a tool
            answer |= {"status": "clarify", "answer": waiting[0]["value"].get("question", "")}
    except (ValueError, SyntaxError, LookupError, TypeError, AttributeError):
        return body
    content["text"] = json.dumps(answer, ensure_ascii=False)
    return json.dumps(message, ensure_ascii=False).encode()


class RefusesUnknownSettings:
    """Answers 422 where the context of a run or an assistant has a setting that its graph, or none, has."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Look into requests that carry a context; pass all others on."""
        changes = scope["type"] == "http" and scope["method"] in ("POST", "PATCH", "PUT")
        if not changes or not {"runs", "assistants", "crons"} & {*scope["path"].split("/")}:
            await self.app(scope, receive, send)
            return
        body, messages = b"", []
        while not messages or messages[-1].get("more_body"):
            messages.append(await receive())
            body += messages[-1].get("body", b"")
        problem = await run_in_thread(find_unknown_setting, body)  # it may look into a folder
        if problem is None:
            await self.app(scope, replaying(messages, receive), send)
        else:
            await JSONResponse({"detail": problem}, 422)(scope, receive, send)


def replaying(messages: list[Message], receive: Receive) -> Receive:
    """A ``receive`` that gives these messages first."""
    left = iter(messages)

    async def again() -> Message:
        message = next(left, None)
        return await receive() if message is None else message

    return again


def find_unknown_setting(body: bytes) -> str | None:
    """Find what is wrong with the context in a request; None where nothing is, or the server will say it."""
    try:
        request = json.loads(body)
    except ValueError:
        return None
    for one in request if isinstance(request, list) else [request]:
        context = one.get("context") if isinstance(one, dict) else None
        if not isinstance(context, dict):
            continue
        graph = one.get("graph_id") or one.get("assistant_id")
        known = isinstance(graph, str) and graph in SETTINGS
        schemas = [SETTINGS[graph]] if known else list(SETTINGS.values())
        allowed = {name for schema in schemas for name in schema.model_fields}
        for name in context:
            if name not in allowed:
                listed = ", ".join(sorted(allowed))
                return f"context has no setting {name!r}{did_you_mean(name, sorted(allowed))}; allowed: {listed}."
        try:
            for name in ("model", "index"):
                value = context.get(name)
                named = getattr(PlainRagContext(**{name: value}), name)
                if name == "index" and named and named != os.environ.get("RAG_KIT_INDEX", "").strip():
                    check_index(named)
        except InvalidInputError as error:
            return str(error)
    return None


app = Starlette(middleware=[Middleware(RefusesUnknownSettings), Middleware(AnswersAsJson)])
