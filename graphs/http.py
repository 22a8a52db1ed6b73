"""What the server's own MCP endpoint answers: question, answer, status and citations of a run, as JSON.

LangGraph's endpoint (``/mcp``, each graph a tool) answers with the ``repr`` of the whole state.
"""

import ast
import json

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

KEYS = ("question", "answer", "status", "citations")


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


app = Starlette(middleware=[Middleware(AnswersAsJson)])
