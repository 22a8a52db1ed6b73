"""Clients of OpenAI-compatible endpoints: no redirects, bounds on each reply, no stream without its end mark."""

from __future__ import annotations

import math
import os
import re
import time
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from functools import lru_cache, partial
from itertools import count
from typing import Any

import httpx2
import openai

from rag_kit.concurrency.bridge import of_another_loop
from rag_kit.concurrency.steps import arun, run, timed_step
from rag_kit.errors import BudgetExceededError

from .calls import seconds_before_retry, wait
from .connection import PROXY, WEB_PAGE
from .failures import Failure, UnusableReplyError, classify, map_model_error

_MAX_CLIENTS = 64
# Clients read these once, when they are made.
_PROXIES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")
_VARIABLES = ("SSL_CERT_FILE", "SSL_CERT_DIR", *_PROXIES, *map(str.upper, _PROXIES))
# The end of a stream, such as data: [DONE] or "finish_reason": "stop"; within an answer such quotes are escaped.
_END_MARK = re.compile(
    rb'[\r\n]data: ?\[DONE\]|"finish_reason"\s*:\s*"[^"]|"error"\s*:\s*[{"]'
    rb'|"type"\s*:\s*"response\.(?:completed|incomplete|failed)"'
)
_MAX_MARK = 64  # bytes of an end mark
# By the last word of a path: a part of each usable reply. Without it (empty, null, an error with status 200) a client
# fails somewhere in its own code.
_PARTS = {
    "completions": re.compile(rb'"(?:message|delta)"\s*:\s*\{'),
    "embeddings": re.compile(rb'"data"\s*:\s*\[\s*\{'),
}
_MAX_JUDGED = 2**16  # bytes of a reply that may be without its part
_SENT = "rag_kit_sent"  # key of a request's extensions: when it was sent
MAX_REPLY = 128 * 2**20  # bytes, unpacked
_STREAM_TIMEOUTS = 10  # a streamed answer may take so many times the time-out of a request as a whole


def with_http_clients(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Add the kit's HTTP clients to the settings of ``ChatOpenAI`` or ``OpenAIEmbeddings``, unless given."""
    if settings.get("http_client") is not None or settings.get("http_async_client") is not None:
        return dict(settings)
    proxy = settings.get("openai_proxy", os.environ.get("OPENAI_PROXY")) or None
    # the kit's clients go through the proxy; LangChain refuses one of its own beside given clients
    no_second_proxy = {} if proxy is None else {"openai_proxy": ""}
    variables = tuple(map(os.environ.get, _VARIABLES))
    return {**settings, **no_second_proxy, **_clients(settings.get("base_url"), proxy, variables)}


@lru_cache(maxsize=_MAX_CLIENTS)
def _clients(base_url: str | None, proxy: str | None, variables: tuple[Any, ...]) -> dict[str, Any]:
    """Return the clients of an endpoint; its models share them, and so their open connections."""
    options: dict[str, Any] = {"follow_redirects": False, **({"proxy": proxy} if proxy else {})}
    return {
        "http_client": openai.DefaultHttpxClient(
            event_hooks={"request": [partial(_stamp, proxy)], "response": [_check_reply]}, **options
        ),
        "http_async_client": openai.DefaultAsyncHttpxClient(
            event_hooks={"request": [partial(_astamp, proxy)], "response": [_acheck_reply]}, **options
        ),
    }


class _OtherReply(UnusableReplyError, openai.OpenAIError):
    """A reply without the part that was asked for; the client does not try again after an error of its own."""


def _stamp(proxy: str | None, request: httpx2.Request) -> None:
    """Write into a request's extensions when it was sent, and the proxy that the settings name."""
    request.extensions.update({_SENT: time.monotonic(), PROXY: proxy})


async def _astamp(proxy: str | None, request: httpx2.Request) -> None:
    _stamp(proxy, request)


def _check_reply(response: httpx2.Response) -> None:
    """Refuse a web page; have any other reply checked while it is read: its size, its time, the end of a stream."""
    if response.is_success and "text/html" in response.headers.get("content-type", ""):
        # an error of this class is not tried again by the client
        raise openai.APIConnectionError(message=f"the reply is {WEB_PAGE}", request=response.request)
    response.iter_bytes = partial(_read_checked, response, response.iter_bytes)  # type: ignore[method-assign]


async def _acheck_reply(response: httpx2.Response) -> None:
    _check_reply(response)
    response.aiter_bytes = partial(_aread_checked, response, response.aiter_bytes)  # type: ignore[method-assign]


class _ReplyCheck:
    """Checks the size, the time, the end mark and the part asked for of a reply as its pieces come."""

    def __init__(self, response: httpx2.Response) -> None:
        self._response = response
        self._size, self._tail, self._begin = 0, b"\n", bytearray()
        self._is_stream = response.is_success and "event-stream" in response.headers.get("content-type", "")
        extensions = response.request.extensions
        timeout = (extensions.get("timeout") or {}).get("read")
        self._max_seconds = timeout and timeout * (_STREAM_TIMEOUTS if self._is_stream else 1)
        self._sent = extensions.get(_SENT, time.monotonic())

    def add(self, piece: bytes) -> None:
        """Count a piece; raise an error of the connection where the reply is too long, in bytes or in seconds."""
        self._size += len(piece)
        if self._size > MAX_REPLY:
            text = f"the reply has more than {MAX_REPLY // 2**20} MiB, unpacked"
            raise _problem(self._response, httpx2.RemoteProtocolError, text)
        if self._max_seconds and time.monotonic() - self._sent > self._max_seconds:
            text = f"the whole reply took over {self._max_seconds:g} s"
            raise _problem(self._response, httpx2.ReadTimeout, text)
        if self._is_stream:  # keep the end mark, else the last bytes, in which one may begin
            text_so_far = self._tail + piece
            mark = _END_MARK.search(text_so_far)
            self._tail = mark[0] if mark else text_so_far[-_MAX_MARK:]
        elif self._size <= _MAX_JUDGED:
            self._begin += piece

    def end(self) -> None:
        """Raise an error where a stream of events ends without its mark, or a reply has not what was asked for."""
        endpoint = self._response.request.url.path.rpartition("/")[2]  # "completions"
        needed_part = _PARTS.get(endpoint)
        is_judged = self._response.is_success and not self._is_stream and self._size <= _MAX_JUDGED
        if needed_part and is_judged and not needed_part.search(self._begin):
            # more than an error shows: it is cut after keys are masked, or half a key would pass
            text = " ".join(self._begin[:2000].decode(errors="replace").split())
            shown = f"it is not the JSON asked for: {text}" if text else "it is empty"
            raise _problem(self._response, _OtherReply, shown)
        if self._is_stream and not _END_MARK.search(self._tail):
            text = "the stream broke off: neither a finish_reason nor [DONE] came, so the answer is not whole"
            raise _problem(self._response, httpx2.RemoteProtocolError, text)


def _problem(response: httpx2.Response, error_class: Any, text: str) -> Exception:
    """Make an error of the request with its text as a note too: clients that wrap it drop the text, not the note."""
    error: Exception = error_class(text)
    error.request = response.request  # type: ignore[attr-defined]
    error.add_note(text)
    return error


def _read_checked(response: httpx2.Response, read: Any, *args: Any) -> Iterator[bytes]:
    """Yield the pieces that a method of the response reads, checked."""
    check = _ReplyCheck(response)
    for piece in read(*args):
        check.add(piece)
        yield piece
    check.end()


async def _aread_checked(response: httpx2.Response, read: Any, *args: Any) -> AsyncGenerator[bytes]:
    """Yield the pieces that an asynchronous method of the response reads, checked."""
    check = _ReplyCheck(response)
    async for piece in read(*args):
        check.add(piece)
        yield piece
    check.end()


class EmbeddingClient:
    """A stand-in for ``OpenAI(...).embeddings`` of a model: vectors in the order of their texts, the kit's errors.

    For ``AsyncOpenAI`` it gets ``arun`` in place of ``run``.

    A vector store asks the model by itself; only here its answers and failures are those of the kit's own calls. A
    request may take the model's time-out, or ``one_text`` seconds for one text if that is less. It is made again as
    often as the model's ``max_retries`` says after a failure of the server, never after a time-out.
    """

    def __init__(self, client: Any, model: Any, one_text: float, run: Callable[[Any], Any] = run) -> None:
        self._client, self._model, self._one_text, self._run = client, model, one_text, run

    def create(self, **arguments: Any) -> Any:
        """Ask for the vectors of texts."""
        return self._run(self._ask(**arguments))

    async def _ask(self, *, input: Any, **arguments: Any) -> Any:
        seconds: Any = self._model.request_timeout
        if not isinstance(seconds, int | float):  # none, or one for each part of a request
            seconds = None
        elif _is_single(input):
            seconds = min(seconds, self._one_text)
        send = partial(self._client.create, input=input, **arguments)
        if seconds:  # the client waits longer than the step, whose error names the seconds
            send = partial(send, timeout=seconds + 1)
        for attempt in count():
            try:
                return _in_order(await timed_step("The request", send, send, seconds), input)
            except BudgetExceededError:
                raise
            except Exception as error:
                # a retry opens a new connection; at last the caller may ask by the blocking client
                if of_another_loop(error) and self._run is arun:
                    if attempt < self._model.max_retries:
                        continue
                    raise
                failure = error
            mapped = map_model_error(failure, model=self._model)
            may_retry = attempt < self._model.max_retries and classify(failure) is not Failure.TIMEOUT
            await wait(seconds_before_retry(failure, mapped, attempt, may_retry=may_retry))


def _is_single(texts: Any) -> bool:
    """Tell whether the input of a request is one text, or one list of token numbers."""
    return isinstance(texts, str) or len(texts) == 1 or isinstance(texts[0], int)


def _in_order(response: Any, texts: Any) -> Any:
    """Sort the vectors of a reply by the numbers of their texts, if it gives them; check that each text has one."""
    numbers = [getattr(item, "index", None) for item in response.data]
    text_count = 1 if _is_single(texts) else len(texts)
    is_numbered = {*numbers} != {None}
    if not is_numbered:
        numbers = list(range(len(numbers)))
    if len(numbers) != text_count or {*numbers} != {*range(text_count)}:
        raise UnusableReplyError(f"it has vectors of the texts {numbers!s:.60}, where {text_count} were sent")
    for item in response.data:
        vector = item.embedding
        is_list = isinstance(vector, list) and vector and {*map(type, vector)} <= {float, int}
        if not is_list or not all(map(math.isfinite, vector)):
            raise UnusableReplyError("a vector in it is no list of finite numbers")
    if len(sizes := {len(item.embedding) for item in response.data}) > 1:
        raise UnusableReplyError(f"its vectors have different lengths: {sorted(sizes)!s:.60}")
    if is_numbered:
        response.data.sort(key=lambda item: item.index)
    return response
