"""Keeps keys out of every text that leaves this layer."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import urlsplit

from .endpoint import parts_of

MASK = "***"
_SHAPES = (
    re.compile(r"\b(?:sk|pk|rk|gsk|xai|hf|ghp|pat|key|token)[-_][A-Za-z0-9_\-*.]{5,}[A-Za-z0-9_*]"),
    re.compile(r"(?i)(\b(?:bearer|basic)\s+)[A-Za-z0-9._~+/=\-]{6,}"),
    re.compile(
        r"(?i)((?:api[-_ ]?key|access[-_ ]?token|authorization|secret|password)[\"']?\s*[:=]\s*[\"']?)[^\s\"',;&}]{4,}"
    ),
    re.compile(r"(\w+://)[^\s/@]+(?=@)"),
)
_SECRET_NAME = re.compile(r"(?i)(_|^)(api_?key|token|secret|password)$")
SHORTEST = 6
_HEADERS = ("default_headers", "extra_headers", "headers", "default_query")
_OPEN_HEADERS = frozenset({"accept", "content-type", "user-agent", "http-referer", "x-title"})
_LONGEST = 400


def redact(text: str, secrets: Iterable[str] = ()) -> str:
    """Replace whatever looks like a key, and every known one, by ``***``.

    Args:
        text: Any text, such as a server's error message.
        secrets: Values that must not appear, as ``secrets_of`` gives them.

    Returns:
        The text without them.

    Example:
        >>> redact("Incorrect API key provided: sk-abcdef123456. Use https://me:pw@host/v1")
        'Incorrect API key provided: ***. Use https://***@host/v1'
    """
    for secret in sorted({*secrets, *_environment()}, key=len, reverse=True):
        text = text.replace(secret, MASK)
    for shape in _SHAPES:
        text = shape.sub(lambda match: (match.group(1) if match.re.groups else "") + MASK, text)
    return text


def secrets_of(model: Any) -> list[str]:
    """The secret values of a model, also of one inside ``bind``: ``SecretStr`` fields, and values of headers."""
    found: list[Any] = []
    for part in parts_of(model):
        fields = vars(part)
        found += [value.get_secret_value() for value in fields.values() if hasattr(value, "get_secret_value")]
        bound = fields.get("kwargs")
        for holder in (fields, bound if isinstance(bound, dict) else {}):
            for name in _HEADERS:
                headers = holder.get(name)
                for key, value in headers.items() if isinstance(headers, Mapping) else ():
                    if isinstance(value, str) and str(key).lower() not in _OPEN_HEADERS:
                        found += [value, value.rpartition(" ")[2]]  # "Bearer KEY"
    return [value for value in found if isinstance(value, str) and len(value) >= SHORTEST]


def short(text: str, secrets: Iterable[str] = ()) -> str:
    """One redacted line of at most 400 characters, for an error message."""
    line = " ".join("".join(c if c.isprintable() else " " for c in redact(text, secrets)).split())
    return line if len(line) <= _LONGEST else line[: _LONGEST - 1] + "…"


def host_of(url: str | None) -> str | None:
    """The host of an address, without user, password, port and path.

    Example:
        >>> host_of("https://me:pw@api.example.org:8443/v1")
        'api.example.org'
    """
    if not url:
        return None
    try:
        return urlsplit(url if "//" in url else f"//{url}").hostname
    except ValueError:
        return None


def origin_of(url: str | None) -> str | None:
    """Scheme, host and port of an address, without user, password, path and query.

    Example:
        >>> origin_of("https://me:pw@api.example.org:8443/v1?key=secret"), origin_of("http://[::1]:80/v1")
        ('https://api.example.org:8443', 'http://[::1]:80')
    """
    host = host_of(url)
    if not url or not host:
        return host
    parts = urlsplit(url if "//" in url else f"//{url}")
    try:
        port = f":{parts.port}" if parts.port is not None else ""
    except ValueError:
        port = ""
    scheme = f"{parts.scheme}://" if parts.scheme else ""
    return f"{scheme}[{host}]{port}" if ":" in host else f"{scheme}{host}{port}"


def _environment() -> list[str]:
    return [
        value for name, value in os.environ.items() if len(value) >= SHORTEST and _SECRET_NAME.search(name)
    ]
