"""HTTP clients for the OpenAI-compatible endpoints of chat and embedding models.

They follow no redirect, and raise where a stream ends without its end mark.
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
        streams = stream and _asks_for_stream(request)
        response = super().send(request, stream=stream, **{**options, "follow_redirects": False})
        if response.next_request is not None:
            response.close()
            return _refused(request, response)
        return _rebuilt(request, response, _Stream(response)) if streams and response.is_success else response


class _AsyncClient(openai.DefaultAsyncHttpxClient):
    async def send(self, request: httpx2.Request, *, stream: bool = False, **options: Any) -> httpx2.Response:
        streams = stream and _asks_for_stream(request)
        response = await super().send(request, stream=stream, **{**options, "follow_redirects": False})
        if response.next_request is not None:
            await response.aclose()
            return _refused(request, response)
        return (
            _rebuilt(request, response, _AsyncStream(response))
            if streams and response.is_success
            else response
        )


class _EndMark:
    """Looks for the end mark in the pieces of a streamed response."""

    def __init__(self, request: httpx2.Request) -> None:
        self._request = request
        self._tail = b"\n"
        self._seen = False

    def read(self, piece: bytes) -> bytes:
        """The piece itself."""
        if not self._seen:
            text = self._tail + piece
            self._seen = _END.search(text) is not None
            self._tail = text[-_LONGEST_MARK:]
        return piece

    def check(self) -> None:
        """See that the mark came."""
        if not self._seen:
            raise httpx2.RemoteProtocolError(
                "the stream broke off: neither a finish_reason nor [DONE] came, so the answer is not whole",
                request=self._request,
            )


class _Stream(httpx2.SyncByteStream):
    def __init__(self, response: httpx2.Response) -> None:
        self._response = response

    def __iter__(self) -> Iterator[bytes]:
        mark = _EndMark(self._response.request)
        yield from map(mark.read, self._response.iter_bytes())
        mark.check()

    def close(self) -> None:
        self._response.close()


class _AsyncStream(httpx2.AsyncByteStream):
    def __init__(self, response: httpx2.Response) -> None:
        self._response = response

    async def __aiter__(self) -> AsyncIterator[bytes]:
        mark = _EndMark(self._response.request)
        async for piece in self._response.aiter_bytes():
            yield mark.read(piece)
        mark.check()

    async def aclose(self) -> None:
        await self._response.aclose()


def _refused(request: httpx2.Request, response: httpx2.Response) -> httpx2.Response:
    """The redirect itself as the answer, with what to do in the place where servers put their messages."""
    target = response.next_request.url if response.next_request else request.url
    message = (
        f"{origin_of(str(request.url))} redirects to {origin_of(str(target))}{target.path}, which is not followed: it "
        "would get questions, passages and the key. If that endpoint is meant, set its address (base_url, "
        "RAG_KIT_BASE_URL or RAG_KIT_EMBEDDING_BASE_URL)"
    )
    error = {"message": message, "type": "redirect", "code": "redirect", "param": None}
    return httpx2.Response(response.status_code, json={"error": error}, request=request)


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
