"""HTTP clients for OpenAI-compatible endpoints: no redirects, and an error where a stream ends without its end mark."""

from __future__ import annotations

import os
import re
from collections.abc import AsyncGenerator, Iterator, Mapping
from functools import lru_cache, partial
from typing import Any

import httpx2
import openai

_MAX_CLIENTS = 64
# In content the quotes and line ends of such a mark are escaped, so only the marks themselves fit.
_END_MARK = re.compile(
    rb'[\r\n]data: ?\[DONE\]|"finish_reason"\s*:\s*"[^"]|"error"\s*:\s*[{"]'
    rb'|"type"\s*:\s*"response\.(?:completed|incomplete|failed)"'
)
_MAX_MARK = 64


def with_http_clients(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of ``ChatOpenAI`` or ``OpenAIEmbeddings`` with the kit's HTTP clients, unless clients were given."""
    if settings.get("http_client") is not None or settings.get("http_async_client") is not None:
        return dict(settings)
    proxy = settings.get("openai_proxy", os.environ.get("OPENAI_PROXY")) or None
    unproxied = {} if proxy is None else {"openai_proxy": ""}  # the clients have it
    return {**settings, **unproxied, **_clients(settings.get("base_url"), proxy)}


@lru_cache(maxsize=_MAX_CLIENTS)
def _clients(base_url: str | None, proxy: str | None) -> dict[str, Any]:
    """The clients of an endpoint; its models share them, and so their open connections."""
    options: dict[str, Any] = {"follow_redirects": False, **({"proxy": proxy} if proxy else {})}
    return {
        "http_client": openai.DefaultHttpxClient(event_hooks={"response": [_watch]}, **options),
        "http_async_client": openai.DefaultAsyncHttpxClient(event_hooks={"response": [_awatch]}, **options),
    }


def _watch(response: httpx2.Response) -> None:
    """Have a stream of events read through a check of its end."""
    if _is_stream(response):
        response.iter_bytes = partial(_check_end, response, response.iter_bytes)  # type: ignore[method-assign]


async def _awatch(response: httpx2.Response) -> None:
    if _is_stream(response):
        response.aiter_bytes = partial(_acheck_end, response, response.aiter_bytes)  # type: ignore[method-assign]


def _is_stream(response: httpx2.Response) -> bool:
    return response.is_success and "event-stream" in response.headers.get("content-type", "")


def _check_end(response: httpx2.Response, read: Any, *args: Any) -> Iterator[bytes]:
    """Hand the stream on; a stream that breaks off raises at its end."""
    tail = b"\n"
    for piece in read(*args):
        tail = _end_of_stream(tail, piece)
        yield piece
    _require_end(response, tail)


async def _acheck_end(response: httpx2.Response, read: Any, *args: Any) -> AsyncGenerator[bytes]:
    tail = b"\n"
    async for piece in read(*args):
        tail = _end_of_stream(tail, piece)
        yield piece
    _require_end(response, tail)


def _end_of_stream(tail: bytes, piece: bytes) -> bytes:
    """What of the text so far may hold the beginning of an end mark; the mark itself, once it came."""
    text = tail + piece
    mark = _END_MARK.search(text)
    return mark[0] if mark else text[-_MAX_MARK:]


def _require_end(response: httpx2.Response, tail: bytes) -> None:
    """Raise an error of the connection where no end mark came."""
    if not _END_MARK.search(tail):
        raise httpx2.RemoteProtocolError(
            "the stream broke off: neither a finish_reason nor [DONE] came, so the answer is not whole",
            request=response.request,
        )
