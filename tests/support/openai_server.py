"""An OpenAI-compatible HTTP server on loopback, with scripted behaviour, for tests through the real client.

    with OpenAIServer([text("Hello.")]) as server:
        model = ChatOpenAI(model="test", base_url=server.url, api_key="sk-test")
        assert model.invoke("Hi").content == "Hello."
        assert server.chats[0].body["model"] == "test"

A script is a list; each chat request takes the next entry, and the last entry stays. An entry is

- a ``str``: an answer of that text; a ``dict``: an object, given as the request asks for it (the arguments of
  a tool call if tools were sent, else JSON text);
- a ``Reply`` from one of the functions below (``text``, ``tool``, ``refusal``, ``truncated``, ``error``, ``hang``,
  ``reset``, ``cut``, ``short``, ``stall``, ``whole``, ``redirect``), or from ``tokens``, which has log-probabilities
  for requests that ask for them;
- a callable that takes the ``Recorded`` request and returns any of these.

``refuse={"json_schema", "tools", "json_object", "stream_options", "logprobs"}`` answers 400 to requests that use these,
without taking from the script: a server of lesser abilities. ``key=`` makes every other key a 401 that
quotes the key it was given. Requests with ``stream: true`` are answered as server-sent events.
``/embeddings`` gives deterministic vectors and, like many compatible servers, takes strings only. ``/models``
lists one model.
"""

from __future__ import annotations

import hashlib
import json
import math
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class Recorded:
    """One request as it came in."""

    method: str
    path: str
    headers: dict[str, str]
    body: dict[str, Any]
    at: float

    @property
    def asks(self) -> str:
        """How the answer is wanted: ``"json_schema"``, ``"tools"``, ``"json_object"`` or ``"text"``."""
        kind = (self.body.get("response_format") or {}).get("type")
        if kind in ("json_schema", "json_object"):
            return str(kind)
        return "tools" if self.body.get("tools") else "text"

    @property
    def prompt(self) -> str:
        """All message texts, joined."""
        return "\n".join(str(message.get("content")) for message in self.body.get("messages", []))


@dataclass(frozen=True)
class Reply:
    """One request and the server's behaviour for it."""

    content: str | None = None
    value: Any = None
    tool_arguments: str | None = None
    tool_name: str | None = None  # of the tool that is called; the first one that was offered if None
    refusal: str | None = None
    finish: str = "stop"
    status: int = 200
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)
    delay: float = 0.0
    wire: str = "normal"  # "normal", "hang", "reset", "cut", "short", "stall", "whole"
    usage: bool = True
    tokens: tuple[tuple[str, dict[str, float]], ...] = ()


Entry = Reply | str | dict[str, Any] | Callable[[Recorded], Any]


def text(content: str, **changes: Any) -> Reply:
    """An answer of that text."""
    return replace(Reply(content=content), **changes)


def tokens(*pieces: str | tuple[str, dict[str, float]], **changes: Any) -> Reply:
    """An answer of these tokens, with log-probabilities if the request asks for them.

    A token is a text (probability 1) or a text with the probabilities of what might have stood there, its own too.
    """
    known = tuple((piece, {piece: 1.0}) if isinstance(piece, str) else piece for piece in pieces)
    return replace(Reply(content="".join(piece for piece, _ in known), tokens=known), **changes)


def tool(arguments: Any, **changes: Any) -> Reply:
    """A tool call with these arguments (an object, or a string that may be broken JSON)."""
    raw = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return replace(Reply(tool_arguments=raw, finish="tool_calls"), **changes)


def refusal(reason: str) -> Reply:
    """OpenAI's refusal field."""
    return Reply(refusal=reason)


def truncated(content: str) -> Reply:
    """Text that stops at the length limit."""
    return Reply(content=content, finish="length")


def error(status: int, message: str = "scripted error", *, code: str | None = None, **headers: str) -> Reply:
    """An error body; headers with ``_`` for ``-``: ``error(429, retry_after="1")``."""
    return Reply(
        status=status,
        body={"error": {"message": message, "type": "scripted", "code": code, "param": None}},
        headers={name.replace("_", "-"): value for name, value in headers.items()},
    )


def hang(seconds: float = 60.0) -> Reply:
    """Say nothing for so long, then close. Closing the server ends it early."""
    return Reply(wire="hang", delay=seconds)


def reset() -> Reply:
    """Reset the connection (TCP RST) instead of answering."""
    return Reply(wire="reset")


def cut(content: str) -> Reply:
    """Stream half of the text, then break the connection off; without streaming, half of the body."""
    return Reply(content=content, wire="cut")


def short(content: str) -> Reply:
    """Stream half of the text, then end as if that were all, without an end mark."""
    return Reply(content=content, wire="short")


def whole(content: str, **changes: Any) -> Reply:
    """Answer in one piece of JSON, also where a stream was asked for."""
    return replace(Reply(content=content, wire="whole"), **changes)


def redirect(status: int, url: str) -> Reply:
    """Send the client elsewhere."""
    return Reply(status=status, body={}, headers={"Location": url})


def stall(content: str, seconds: float = 60.0) -> Reply:
    """Stream half of the text, then say nothing for so long, then the rest. Closing the server ends it early."""
    return Reply(content=content, wire="stall", delay=seconds)


class OpenAIServer:
    """The server; a context manager.

    Args:
        script: Entries as the module says; default: the text ``"ok"``.
        refuse: Abilities that it does not have.
        key: The only key it takes; None takes any.
        dimensions: Length of its embedding vectors.
        embeddings: What each request for embeddings gets, as ``script``; ``None``: its vectors.

    Attributes:
        url: Base address, with ``/v1``.
        requests: Everything that came in, in order.
    """

    def __init__(
        self,
        script: Iterable[Entry] = ("ok",),
        *,
        refuse: Iterable[str] = (),
        key: str | None = None,
        dimensions: int = 16,
        embeddings: Iterable[Reply | Callable[[Recorded], Reply | None] | None] = (None,),
    ) -> None:
        self.script = list(script)
        self.embeddings = list(embeddings)
        self.refuse = set(refuse)
        self.key = key
        self.dimensions = dimensions
        self.requests: list[Recorded] = []
        self.closing = threading.Event()
        self._next = 0
        self._next_embedding = 0
        self._lock = threading.Lock()
        self._http = _Server(("127.0.0.1", 0), _Handler)
        self._http.owner = self
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True)

    @property
    def url(self) -> str:
        """Base address for clients."""
        return f"http://127.0.0.1:{self._http.server_address[1]}/v1"

    @property
    def chats(self) -> list[Recorded]:
        """The chat requests, in order."""
        return [request for request in self.requests if request.path.endswith("/chat/completions")]

    @property
    def asked(self) -> list[str]:
        """How each chat request wanted its answer."""
        return [request.asks for request in self.chats]

    def __enter__(self) -> OpenAIServer:
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop; requests that hang end."""
        self.closing.set()
        self._http.shutdown()
        self._http.server_close()
        self._thread.join(5)

    def take_embedding(self, request: Recorded) -> Reply | None:
        """Return the reply to a request for embeddings, or None for its vectors."""
        with self._lock:
            entry = self.embeddings[min(self._next_embedding, len(self.embeddings) - 1)]
            self._next_embedding += 1
        return entry(request) if callable(entry) and not isinstance(entry, Reply) else entry

    def take(self, request: Recorded) -> Reply:
        """The next reply of the script."""
        with self._lock:
            entry: Any = self.script[min(self._next, len(self.script) - 1)]
            self._next += 1
        while callable(entry) and not isinstance(entry, Reply):
            entry = entry(request)
        if isinstance(entry, str):
            entry = text(entry)
        if isinstance(entry, dict):
            entry = tool(entry) if request.asks == "tools" else text(json.dumps(entry))
        return entry


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 64
    owner: OpenAIServer

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is part of the tests."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = 1 << 16  # head and body in one packet: else each answer waits 40 ms for an acknowledgement
    server: _Server

    def log_message(self, *args: Any) -> None:
        pass

    def do_GET(self) -> None:
        self._record({})
        self._json(200, {"object": "list", "data": [{"id": "test", "object": "model"}]})

    def do_POST(self) -> None:
        owner = self.server.owner
        length = int(self.headers.get("Content-Length") or 0)
        request = self._record(json.loads(self.rfile.read(length) or b"{}"))
        given = (self.headers.get("Authorization") or self.headers.get("api-key") or "").removeprefix(
            "Bearer "
        )
        if owner.key is not None and given != owner.key:
            reply = error(401, f"Incorrect API key provided: {given}. Bearer {given}", code="invalid_api_key")
            return self._json(401, reply.body)
        if request.path.endswith("/embeddings"):
            reply = owner.take_embedding(request)
            return self._embed(request) if reply is None else self._reply(request, reply)
        if not request.path.endswith("/chat/completions"):
            return self._json(404, error(404, f"no such path {request.path}").body)
        if request.asks in owner.refuse:
            return self._json(400, error(400, f"'{request.asks}' is not supported by this server").body)
        if "stream_options" in owner.refuse and "stream_options" in request.body:
            return self._json(400, error(400, "unknown field 'stream_options'").body)
        if "logprobs" in owner.refuse and request.body.get("logprobs"):
            return self._json(400, error(400, "'logprobs' is not supported by this server").body)
        self._reply(request, owner.take(request))

    def _record(self, body: dict[str, Any]) -> Recorded:
        request = Recorded(
            self.command, self.path.partition("?")[0], dict(self.headers.items()), body, time.monotonic()
        )
        self.server.owner.requests.append(request)
        return request

    def _reply(self, request: Recorded, reply: Reply) -> None:
        if reply.delay and reply.wire != "stall":
            self.server.owner.closing.wait(reply.delay)
        if reply.wire == "hang":
            self.close_connection = True
            return
        if reply.wire == "reset":
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.connection.close()
            self.close_connection = True
            return
        if reply.status != 200 or reply.body is not None:
            return self._json(reply.status, reply.body, reply.headers)
        message: dict[str, Any] = {"role": "assistant", "content": reply.content, "refusal": reply.refusal}
        if reply.tool_arguments is not None:
            offered = request.body.get("tools") or [{"function": {"name": "tool"}}]
            name = reply.tool_name or offered[0]["function"]["name"]
            function = {"name": name, "arguments": reply.tool_arguments}
            message["tool_calls"] = [{"id": "call_1", "type": "function", "function": function}]
        if request.body.get("stream") and reply.wire != "whole":
            return self._stream(request, reply, message)
        answer: dict[str, Any] = {
            "id": "chat-1",
            "object": "chat.completion",
            "created": 1,
            "model": request.body.get("model"),
            "choices": [
                {
                    "index": 0,
                    "message": message,
                    "finish_reason": reply.finish,
                    "logprobs": _logprobs(request, reply.tokens),
                }
            ],
        }
        if reply.usage:
            answer["usage"] = _usage(request, reply)
        if reply.wire == "cut":
            data = json.dumps(answer).encode()
            self._head(200, "application/json", {"Content-Length": str(len(data))})
            self.wfile.write(data[: len(data) // 2])
            self._break_off()
            return
        self._json(200, answer, reply.headers)

    def _stream(self, request: Recorded, reply: Reply, message: dict[str, Any]) -> None:
        kind = reply.headers.get("Content-Type", "text/event-stream")
        self._head(200, kind, {"Transfer-Encoding": "chunked"})
        content = message.pop("content") or ""
        size = max(1, len(content) // 8)
        pieces: list[dict[str, Any]] = [{**message, "content": ""}]
        if "tool_calls" in message:
            message["tool_calls"][0]["index"] = 0
        if reply.tokens:
            pieces += [{"content": piece} for piece, _ in reply.tokens]
        else:
            pieces += [{"content": content[i : i + size]} for i in range(0, len(content), size)]
        if reply.wire in ("cut", "short"):
            pieces = pieces[: len(pieces) // 2 + 1]
        for number, piece in enumerate(pieces):
            if reply.wire == "stall" and number == len(pieces) // 2 + 1:
                self.server.owner.closing.wait(reply.delay)
            choice: dict[str, Any] = {"index": 0, "delta": piece, "finish_reason": None}
            if reply.tokens and number:
                choice["logprobs"] = _logprobs(request, reply.tokens[number - 1 : number])
            self._event(request, [choice])
        if reply.wire == "cut":
            self._break_off()
            return
        if reply.wire == "short":
            return self._chunk(b"")
        self._event(request, [{"index": 0, "delta": {}, "finish_reason": reply.finish}])
        if (request.body.get("stream_options") or {}).get("include_usage"):
            self._event(request, [], _usage(request, reply))
        self._chunk(b"data: [DONE]\n\n")
        self._chunk(b"")

    def _event(self, request: Recorded, choices: list[Any], usage: Any = None) -> None:
        body = {
            "id": "chat-1",
            "object": "chat.completion.chunk",
            "created": 1,
            "model": request.body.get("model"),
            "choices": choices,
            "usage": usage,
        }
        self._chunk(b"data: " + json.dumps(body).encode() + b"\n\n")

    def _chunk(self, data: bytes) -> None:
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        self.wfile.flush()

    def _break_off(self) -> None:
        self.wfile.flush()
        self.connection.shutdown(socket.SHUT_RDWR)
        self.close_connection = True

    def _embed(self, request: Recorded) -> None:
        given = request.body.get("input")
        texts = [given] if isinstance(given, str) else given
        if not isinstance(texts, list) or not all(isinstance(each, str) for each in texts):
            return self._json(400, error(400, "input must be a string or an array of strings").body)
        size = self.server.owner.dimensions
        data = [
            {"object": "embedding", "index": i, "embedding": _vector(each, size)}
            for i, each in enumerate(texts)
        ]
        usage = {"prompt_tokens": len(texts), "total_tokens": len(texts)}
        self._json(200, {"object": "list", "model": request.body.get("model"), "data": data, "usage": usage})

    def _json(self, status: int, body: Any, headers: dict[str, str] | None = None) -> None:
        data = json.dumps(body).encode()
        given = {"Content-Type": "application/json", **(headers or {})}
        self._head(status, given.pop("Content-Type"), {"Content-Length": str(len(data)), **given})
        self.wfile.write(data)

    def _head(self, status: int, kind: str, headers: dict[str, str]) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()


def _usage(request: Recorded, reply: Reply) -> dict[str, int]:
    sent, given = _count_tokens(request.prompt), _count_tokens(reply.content or reply.tool_arguments or "")
    return {"prompt_tokens": sent, "completion_tokens": given, "total_tokens": sent + given}


def _count_tokens(text: str) -> int:
    """About as tokenizers do: a Chinese character is a token, else four characters are one."""
    wide = sum("\u2e80" <= sign <= "\uffef" for sign in text)
    return wide + (len(text) - wide) // 4 + 1


def _logprobs(request: Recorded, pieces: Iterable[tuple[str, dict[str, float]]]) -> dict[str, Any] | None:
    """Log-probabilities as OpenAI gives them: None unless asked for, at most ``top_logprobs`` alternatives."""
    if not request.body.get("logprobs"):
        return None
    most = int(request.body.get("top_logprobs") or 0)

    def entry(piece: str, probability: float) -> dict[str, Any]:
        return {"token": piece, "logprob": math.log(probability), "bytes": list(piece.encode())}

    content = []
    for piece, known in pieces:
        best = sorted(known.items(), key=lambda item: -item[1])[:most]
        top = [entry(*item) for item in best]
        content.append({**entry(piece, known.get(piece, 1.0)), "top_logprobs": top})
    return {"content": content, "refusal": None} if content else None


def _vector(content: str, size: int) -> list[float]:
    """Bag of hashed words, length 1: texts that share words are near each other."""
    vector = [0.0] * size
    for word in content.lower().split() or [content]:
        digest = hashlib.sha256(word.encode()).digest()
        vector[digest[0] % size] += 1.0
        vector[digest[1] % size] += 0.5
    norm = sum(x * x for x in vector) ** 0.5
    return [x / norm for x in vector]
