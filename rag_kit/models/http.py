"""HTTP clients for the OpenAI-compatible endpoints of chat and embedding models.

They follow no redirect to another host, raise where a stream ends without its end mark, and accept a plain JSON answer
to a request for a stream.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import AsyncIterator, Iterator, Mapping
from functools import lru_cache
from typing import Any

import httpx2
import openai

from .redact import origin_of

_MOST_REDIRECTS = 5
_MOST_CLIENTS = 64
# In content the quotes and line ends of such a mark are escaped, so only the marks themselves fit.
_END = re.compile(
    rb'[\r\n]data: ?\[DONE\]|"finish_reason"\s*:\s*"[^"]|"error"\s*:\s*[{"]'
    rb'|"type"\s*:\s*"response\.(?:completed|incomplete|failed)"'
)
_LONGEST_MARK = 64
_DROPPED = ("content-encoding", "content-length", "transfer-encoding")


def with_http_clients(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of ``ChatOpenAI`` or ``OpenAIEmbeddings`` with the kit's HTTP clients, unless clients were given."""
    if settings.get("http_client") is not None or settings.get("http_async_client") is not None:
        return dict(settings)
    proxy = settings.get("openai_proxy", os.environ.get("OPENAI_PROXY")) or None
    unproxied = {} if proxy is None else {"openai_proxy": ""}  # the clients have it
    return {**settings, **unproxied, **_clients(settings.get("base_url"), proxy)}


@lru_cache(maxsize=_MOST_CLIENTS)
def _clients(base_url: str | None, proxy: str | None) -> dict[str, Any]:
    """The clients of an endpoint; its models share them, and so their open connections."""
    return {
        "http_client": _Client(proxy=proxy) if proxy else _Client(),
        "http_async_client": _AsyncClient(proxy=proxy) if proxy else _AsyncClient(),
    }


class _Client(openai.DefaultHttpxClient):
    def send(self, request: httpx2.Request, *, stream: bool = False, **options: Any) -> httpx2.Response:
        options["follow_redirects"] = False  # the loop below follows them
        streams = stream and _asks_for_stream(request)  # a redirected request cannot be read
        for _ in range(_MOST_REDIRECTS):
            response = super().send(request, stream=stream, **options)
            if (following := response.next_request) is None:
                break
            response.read()
            if _leaves(request.url, following.url):
                return _refused(request, response.status_code, following.url)
            request = following
        whole = not streams or response.status_code != 200
        return response if whole else _rebuilt(request, response, _Stream(response))


class _AsyncClient(openai.DefaultAsyncHttpxClient):
    async def send(self, request: httpx2.Request, *, stream: bool = False, **options: Any) -> httpx2.Response:
        options["follow_redirects"] = False
        streams = stream and _asks_for_stream(request)
        for _ in range(_MOST_REDIRECTS):
            response = await super().send(request, stream=stream, **options)
            if (following := response.next_request) is None:
                break
            await response.aread()
            if _leaves(request.url, following.url):
                return _refused(request, response.status_code, following.url)
            request = following
        whole = not streams or response.status_code != 200
        return response if whole else _rebuilt(request, response, _AsyncStream(response))


class _Body:
    """Reads the body of a streamed response: raises where the end mark is missing, makes events of plain JSON."""

    def __init__(self, response: httpx2.Response) -> None:
        self._request = response.request
        self._json: list[bytes] = []
        self._tail = b""
        self._seen = False

    def read(self, piece: bytes) -> bytes:
        """What to hand on for a piece."""
        if self._json or (
            not self._tail and piece.lstrip()[:1] in (b"{", b"[")
        ):  # no line of a stream begins so
            self._json.append(piece)
            return b""
        if not self._seen and (self._tail or piece.strip()):
            text = (self._tail or b"\n") + piece
            self._seen = _END.search(text) is not None
            self._tail = text[-_LONGEST_MARK:]
        return piece

    def end(self) -> bytes:
        """What to hand on at the end."""
        if self._json:
            return _events_of(b"".join(self._json))
        if not self._seen:
            raise httpx2.RemoteProtocolError(
                "the stream broke off: neither a finish_reason nor [DONE] came, so the answer is not whole",
                request=self._request,
            )
        return b""


class _Stream(httpx2.SyncByteStream):
    def __init__(self, response: httpx2.Response) -> None:
        self._response = response

    def __iter__(self) -> Iterator[bytes]:
        body = _Body(self._response)
        yield from map(body.read, self._response.iter_bytes())
        yield body.end()

    def close(self) -> None:
        self._response.close()


class _AsyncStream(httpx2.AsyncByteStream):
    def __init__(self, response: httpx2.Response) -> None:
        self._response = response

    async def __aiter__(self) -> AsyncIterator[bytes]:
        body = _Body(self._response)
        async for piece in self._response.aiter_bytes():
            yield body.read(piece)
        yield body.end()

    async def aclose(self) -> None:
        await self._response.aclose()


def _leaves(before: httpx2.URL, after: httpx2.URL) -> bool:
    """Whether a redirect goes to another host or port, or from https to http."""
    same = (before.scheme, before.host, before.port) == (after.scheme, after.host, after.port)
    upgraded = (after.scheme, after.host, before.port, after.port) == ("https", before.host, None, None)
    return not same and not upgraded


def _refused(request: httpx2.Request, status: int, target: httpx2.URL) -> httpx2.Response:
    """The redirect itself as the answer, with what to do in the place where servers put their messages."""
    message = (
        f"{origin_of(str(request.url))} redirects to {origin_of(str(target))}, which is not followed: it would get "
        "questions, passages and the key. If that endpoint is meant, set its address (base_url, RAG_KIT_BASE_URL or "
        "RAG_KIT_EMBEDDING_BASE_URL)"
    )
    error = {"message": message, "type": "redirect", "code": "redirect", "param": None}
    return httpx2.Response(status, json={"error": error}, request=request)


def _asks_for_stream(request: httpx2.Request) -> bool:
    try:
        return json.loads(request.content).get("stream") is True
    except (ValueError, AttributeError, RecursionError):
        return False


def _rebuilt(request: httpx2.Request, response: httpx2.Response, stream: Any) -> httpx2.Response:
    headers = [
        (name, value) for name, value in response.headers.multi_items() if name.lower() not in _DROPPED
    ]
    return httpx2.Response(200, headers=headers, request=request, stream=stream)


def _events_of(body: bytes) -> bytes:
    """A whole answer, or a failure, as the events of a stream."""
    try:
        answer = json.loads(body)
        for choice in () if "error" in answer else answer["choices"]:
            message = choice.pop("message")
            calls = [{"index": number, **call} for number, call in enumerate(message.get("tool_calls") or ())]
            choice["delta"] = {**message, **({"tool_calls": calls} if calls else {})}
        answer["object"] = "chat.completion.chunk"
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        answer = {
            "error": {"message": "the endpoint answered a request for a stream with JSON that is no answer"}
        }
    return b"data: " + json.dumps(answer).encode() + b"\n\ndata: [DONE]\n\n"
