"""Keeps keys out of every text that leaves this layer."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import urlsplit

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
    for secret in sorted({*secrets, *environment}, key=len, reverse=True):
        text = text.replace(secret, MASK) if len(secret) >= MIN_SECRET else text
    return without_shapes(text)


def redact_inside(value: Any, secrets: Iterable[str] = ()) -> Any:
    """Copy JSON or a tuple with each string in it redacted.

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
    return {
        redact_inside(name, secrets): MASK
        if isinstance(item, str) and _SECRET_FIELD.search(str(name))
        else redact_inside(item, secrets)
        for name, item in value.items()
    }


def secrets_of(model: Any) -> list[str]:
    """Return the secret values of a model, also inside ``bind``: ``SecretStr`` fields, values of headers."""
    values: list[Any] = []
    for fields in map(vars, parts_of(model)):
        values += [item.get_secret_value() for item in fields.values() if hasattr(item, "get_secret_value")]
        bound = fields.get("kwargs")
        holders = (fields, bound) if isinstance(bound, dict) else (fields,)
        for headers in (holder.get(name) for holder in holders for name in _HEADERS):
            for key, value in headers.items() if isinstance(headers, Mapping) else ():
                if isinstance(value, str) and str(key).lower() not in _OPEN_HEADERS:
                    values += [value, value.rpartition(" ")[2]]  # "Bearer KEY"
    return [value for value in values if isinstance(value, str) and len(value) >= MIN_SECRET]


def short(text: str, secrets: Iterable[str] = ()) -> str:
    """One redacted line of at most 400 characters, for an error message."""
    line = " ".join("".join(c if c.isprintable() else " " for c in redact(text, secrets)).split())
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
