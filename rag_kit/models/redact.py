"""Keeps keys out of every text that leaves this layer."""

from __future__ import annotations

import os
import re
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import quote, urlsplit

from rag_kit._redact import redact as without_shapes

from .runnables import parts_of

MASK = "***"
MIN_SECRET = 6
_SECRET_NAME = re.compile(r"(?i)(_|^)(api_?key|token|secret|password)$")
_SECRET_FIELD = re.compile(r"(?i)(^|[_-])(api[_-]?key|key|token|secret|password|passwd|authorization)$")
_HEADERS = ("default_headers", "extra_headers", "headers", "default_query")
_OPEN_HEADERS = frozenset({"accept", "content-type", "user-agent", "http-referer", "x-title"})
_MAX_LINE = 400


def redact(text: str, secrets: Iterable[str] = ()) -> str:
    """Replace whatever looks like a key, those of the environment and every known one by ``***``.

    Example:
        >>> redact("Incorrect API key provided: sk-abcdef123456. Use https://me:pw@host/v1")
        'Incorrect API key provided: ***. Use https://***@host/v1'
    """
    environment = [value for name, value in os.environ.items() if _SECRET_NAME.search(name)]
    known = [secret for secret in (*secrets, *environment) if len(secret) >= MIN_SECRET]
    forms = {form for secret in known for form in _forms(secret)}
    for form in sorted(forms, key=len, reverse=True):  # the longest first: a shorter one may be a part of it
        text = text.replace(form, MASK)
    return without_shapes(text)


def _forms(secret: str) -> tuple[str, ...]:
    """Return a secret as it is, in base64 and as a part of an address."""
    raw = secret.encode(errors="surrogatepass")
    return secret, b64encode(raw).decode().rstrip("="), quote(raw, safe="")


def redact_inside(value: Any, secrets: Iterable[str] = ()) -> Any:
    """Copy JSON or a tuple with each string in it redacted, and the whole value of a field with a secret's name.

    Example:
        >>> redact_inside({"message": ["no abcdef"], "status": 400, "api_key": "new"}, ["abcdef"])
        {'message': ['no ***'], 'status': 400, 'api_key': '***'}
    """
    secrets = list(secrets)
    if isinstance(value, str):
        return redact(value, secrets)
    if isinstance(value, list | tuple):
        items = [redact_inside(item, secrets) for item in value]
        return items if isinstance(value, list) else tuple(items)
    if not isinstance(value, dict):
        return value
    redacted = {}
    for name, item in value.items():
        holds_value = item is not None and not isinstance(item, bool)  # null and a flag are no secrets
        is_secret = holds_value and _SECRET_FIELD.search(str(name))
        redacted[redact_inside(name, secrets)] = MASK if is_secret else redact_inside(item, secrets)
    return redacted


def secrets_of(model: Any) -> list[str]:
    """Return the secret values of a model, also inside ``bind``: ``SecretStr`` fields, values of headers."""
    values: list[Any] = []
    for fields in map(vars, parts_of(model)):
        values += [item.get_secret_value() for item in fields.values() if hasattr(item, "get_secret_value")]
        values += _header_secrets(fields)
        if isinstance(fields.get("kwargs"), dict):
            values += _header_secrets(fields["kwargs"])
    return [value for value in values if isinstance(value, str) and len(value) >= MIN_SECRET]


def _header_secrets(fields: Mapping[str, Any]) -> Iterator[str]:
    """Yield the values of the headers that a model's fields or bound arguments name, but for harmless ones."""
    for headers in map(fields.get, _HEADERS):
        for name, value in headers.items() if isinstance(headers, Mapping) else ():
            if isinstance(value, str) and str(name).lower() not in _OPEN_HEADERS:
                yield value
                yield value.rpartition(" ")[2]  # "Bearer KEY"


def short(text: str, secrets: Iterable[str] = ()) -> str:
    """Return a text redacted, on one line of at most 400 characters, for an error message."""
    printable = "".join(c if c.isprintable() else " " for c in redact(text, secrets))
    line = " ".join(printable.split())
    return line if len(line) <= _MAX_LINE else line[: _MAX_LINE - 1] + "…"


def host_of(url: str | None) -> str | None:
    """Return the host of an address, without user, password, port and path."""
    try:
        return urlsplit(url if "//" in url else f"//{url}").hostname if url else None
    except ValueError:
        return None


def origin_of(url: str | None) -> str | None:
    """Return scheme, host and port of an address, without user, password, path and query."""
    if not url or not host_of(url):
        return None
    parts = urlsplit(url if "//" in url else f"//{url}")
    host = parts.netloc.rpartition("@")[2]
    return f"{parts.scheme}://{host}" if parts.scheme else host
