"""Texts and values made fit for the page: no control characters, no keys, nothing endless, plain JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any

from rag_kit._redact import redact
from rag_kit.documents import clean_text, to_plain

MAX_TEXT = 20_000
"""Characters of one text; the rest is cut and counted. A page of 2,000 questions has to open on a phone."""


def cleaned(text: str) -> str:
    """A text whose control and bidirectional characters are visible escapes, cut to ``MAX_TEXT`` characters.

    Example:
        >>> cleaned("a\\x1b[31mb")
        'a\\\\x1b[31mb'
    """
    shown = clean_text(text.replace("\r\n", "\n"))
    return shown if len(shown) <= MAX_TEXT else f"{shown[:MAX_TEXT]} … (+{len(shown) - MAX_TEXT:,})"


def masked(text: str) -> str:
    """The same for what may hold a key: errors, reasons, settings. Keys are masked."""
    return _masked_short(text) if len(text) <= 100 else cleaned(redact(text))


@lru_cache(maxsize=4096)
def _masked_short(text: str) -> str:
    return cleaned(redact(text))  # names of fields and usual reasons come thousands of times


def plain(value: Any) -> Any:
    """Anything as plain JSON with keys masked."""
    return shaped(value, masked)


def shaped(value: Any, text: Callable[[str], str], depth: int = 0) -> Any:
    """Plain JSON with every text cleaned; what nests deeper than 12 levels becomes a text."""
    if depth == 0:
        value = to_plain(value)
    if isinstance(value, str):
        return text(value)
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if depth > 12:
        return text(str(value))
    if isinstance(value, Mapping):
        return {text(str(key)): shaped(item, text, depth + 1) for key, item in value.items()}
    if isinstance(value, Iterable):
        return [shaped(item, text, depth + 1) for item in value]
    return text(str(value))
