"""Requests to a tracker: bounded in time, size and attempts; no key in what goes wrong."""

from __future__ import annotations

import json
import random
import re
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar
from urllib.parse import urlsplit, urlunsplit

from rag_kit._redact import redact
from rag_kit.concurrency import fan_out_map
from rag_kit.documents import clean_text
from rag_kit.errors import BranchError, ConfigurationError, InvalidInputError, TrackingError
from rag_kit.evaluation.tracking.answers import Answer
from rag_kit.evaluation.tracking.options import check_limits

S = TypeVar("S")
_AGAIN = frozenset({408, 425, 429, 500, 502, 503, 504})
#: Answers that speak of what was sent, and not of the tracker: other entries may still be taken.
_OF_ENTRY = frozenset({400, 413, 422})
_MAX_BYTES = 256_000_000
_MAX_WAIT = 10.0
_SHOWN = 300


class Refused(TrackingError):
    """The tracker refused one entry; it may take others."""


class Server:
    """A tracker's REST API.

    Args:
        tool: Its name, for messages.
        url: Base address, http or https.
        headers: Headers of every request.
        secrets: Texts that must not show in a message.
        advice: What to do where the key is refused.
        timeout: Seconds that one request may take, its retries included.
        max_retries: Most retries of a request, for answers such as 429 and 503 and broken connections.
        deadline: Seconds for all requests together.

    Raises:
        InvalidInputError: If the address or a limit is not allowed.
        ConfigurationError: If a key has characters that no key has.
    """

    def __init__(
        self,
        tool: str,
        url: str,
        *,
        headers: Mapping[str, str],
        secrets: Sequence[str | None],
        advice: str,
        timeout: float = 30.0,
        max_retries: int = 2,
        deadline: float | None = None,
    ) -> None:
        import httpx

        self.tool = tool
        self.timeout = check_limits(timeout, max_retries, deadline)
        parts = urlsplit(url) if isinstance(url, str) else None
        if parts is None or parts.scheme not in ("http", "https") or not parts.hostname:
            raise InvalidInputError(
                f"url is {redact(repr(url))[:100]}; give an address such as http://localhost:6006"
            )
        self._secrets = [each for each in (*secrets, parts.password) if each]
        for each in self._secrets:
            if not isinstance(each, str):
                raise InvalidInputError(f"the key for {tool} is a {type(each).__name__}; give a text")
            if not re.fullmatch(r"[\x21-\x7e]+", each):
                raise ConfigurationError(
                    f"the key for {tool} holds blanks, line ends or letters that no key has; {advice}"
                )
        for name, value in headers.items():
            if not isinstance(value, str) or not value.isascii() or not value.isprintable():
                raise InvalidInputError(f"what is given for {tool}'s {name} is no line of ASCII characters")
        self.url = shown_url(url)
        self._max_retries = max_retries
        self._ends = None if deadline is None else time.monotonic() + deadline
        self._advice = advice
        self._client = httpx.Client(
            base_url=url.rstrip("/"),
            headers={"Accept": "application/json", **headers},
            follow_redirects=False,
        )

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        params: Any = None,
        content: bytes | None = None,
        again: bool = True,
        allow: Sequence[int] = (),
        later: Sequence[int] = (),
    ) -> Answer:
        """One request, tried again where that may help.

        Args:
            method: HTTP method.
            path: Path below the base address.
            body: Sent as JSON.
            params: Of the query; lists repeat a name.
            content: Raw bytes instead of JSON.
            again: Whether the request may be sent twice; if not, only a connection that was not made is tried again.
            allow: Statuses that are an answer and not an error.
            later: Statuses that time may change, besides the usual ones.

        Raises:
            TrackingError: If it is refused, no answer comes in time, or it is no JSON.
        """
        import httpx

        ends = time.monotonic() + self.timeout
        if self._ends is not None:
            ends = min(ends, self._ends)
        data = json.dumps(body, allow_nan=False).encode("ascii") if body is not None else content
        attempt = 0
        while True:
            problem: TrackingError
            wait = None
            try:
                answer = self._send(method, path, params, data, body is not None, ends)
            except (httpx.TimeoutException, _TooSlow):
                raise self._too_slow(method, path) from None
            except httpx.ConnectError as error:
                problem = self._unreachable(error)
            except httpx.HTTPError as error:
                problem = self._unreachable(error)
                if not again:
                    raise problem from None
            else:
                if answer.status in allow:
                    return answer
                if 200 <= answer.status < 300:
                    if isinstance(
                        answer.value, str
                    ):  # a page for people, or half an answer: nothing was done
                        raise answer.complain("the answer is no JSON")
                    return answer
                problem = self._refused(method, path, answer)
                if answer.status not in (*_AGAIN, *later) or (not again and answer.status != 429):
                    raise problem
                wait = _retry_after(answer.headers.get("retry-after"))
            wait = min(_MAX_WAIT, 0.25 * 2**attempt + random.random() * 0.1) if wait is None else wait
            attempt += 1
            if attempt > self._max_retries or time.monotonic() + wait >= ends:
                raise problem
            time.sleep(wait)

    def each(self, function: Callable[[S], None], items: Sequence[S], max_concurrency: int) -> None:
        """Apply a function to items side by side; the first error ends it.

        Raises:
            TrackingError: What a request raised.
        """
        try:
            fan_out_map(function, items, max_concurrency=max_concurrency)
        except BranchError as error:
            if isinstance(error.__cause__, TrackingError):
                raise error.__cause__ from None
            raise

    def hide(self, text: str) -> str:
        """A text that may be shown: no key, no control characters, not too long."""
        for secret in self._secrets:
            text = text.replace(secret, "***")
        text = clean_text(redact(text)).replace("\n", " ")
        return text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."

    def wrong(self, method: str, path: str, status: int, value: Any, what: str) -> TrackingError:
        """The error for an answer that cannot be understood."""
        return TrackingError(
            f"{self.tool} at {self.url} answered {status} to {method} {self.hide(path)}, but {self.hide(what)}: "
            f"{self._said(value)}; see that the address is that of its API, not of a page for people, and its version "
            "one that this guide names",
            status,
        )

    def _send(
        self, method: str, path: str, params: Any, data: bytes | None, is_json: bool, ends: float
    ) -> Answer:
        left = ends - time.monotonic()
        if left <= 0:
            raise _TooSlow
        headers = (
            {"Content-Type": "application/json" if is_json else "application/octet-stream"} if data else {}
        )
        with self._client.stream(
            method, path, params=params, content=data, headers=headers, timeout=left
        ) as response:
            received = bytearray()
            for piece in response.iter_bytes():
                received += piece
                if time.monotonic() > ends:
                    raise _TooSlow
                if len(received) > _MAX_BYTES:
                    what = f"the answer has more than {_MAX_BYTES:,} bytes"
                    raise self.wrong(method, path, response.status_code, _value(bytes(received[:1000])), what)
            found = {name.lower(): value for name, value in response.headers.items()}
            status, value = response.status_code, _value(bytes(received))
            return Answer(status, value, found, partial(self.wrong, method, path, status, value))

    def _said(self, value: Any) -> str:
        """An answer's value, shortened and without keys."""
        try:
            said = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        except RecursionError:
            said = "a deeply nested value"
        return self.hide(said) if said else "''"

    def _too_slow(self, method: str, path: str) -> TrackingError:
        return TrackingError(
            f"{self.tool} at {self.url} did not answer {method} {path} in time (timeout={self.timeout:g} s); "
            "raise timeout or deadline, or write again later: what is there is not written twice"
        )

    def _unreachable(self, error: Exception) -> TrackingError:
        return TrackingError(
            f"{self.tool} at {self.url} cannot be reached ({type(error).__name__}: {self.hide(str(error))}); "
            "see that it runs and that the address is right, then write again"
        )

    def _refused(self, method: str, path: str, answer: Answer) -> TrackingError:
        status = answer.status
        text = f"{self.tool} at {self.url} answered {status} to {method} {path}: {self._said(answer.value)}"
        if status in (401, 403):
            return TrackingError(f"{text}. {self._advice}", status)
        if status == 429:
            return TrackingError(f"{text}. Write again later, or with a lower max_concurrency", status)
        if 300 <= status < 400:
            to = self.hide(shown_url(answer.headers.get("location", "")))
            return TrackingError(f"{text}. It redirects to {to!r}; give that address", status)
        if status == 404:
            return TrackingError(f"{text}. See that the address is that of its API", status)
        if status in _OF_ENTRY:
            return Refused(text, status)
        return TrackingError(f"{text}. Write again later: what is there is not written twice", status)


class _TooSlow(Exception):
    """The time of a request is over."""


def shown_url(url: str) -> str:
    """An address without user, password, query and fragment.

    Example:
        >>> shown_url("https://me:pw@host:1/a?key=abc")
        'https://host:1/a'
    """
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path.rstrip("/"), "", ""))


def _value(data: bytes) -> Any:
    if not data:
        return None
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return data[: 4 * _SHOWN].decode("utf-8", "replace")


def _retry_after(header: str | None) -> float | None:
    """Seconds that the tracker asks to wait; a date is not read."""
    try:
        seconds = float(header) if header else None
    except ValueError:
        return None
    return seconds if seconds is not None and 0 <= seconds < 1e6 else None
