"""The text of an answer, how long it may be, and how many tokens a call took: as reported, else estimated."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from rag_kit.errors import ModelOutputError

MAX_CHARS = 1_000_000
"""Twice what today's models can write in one answer, thoughts included."""
_WIDE = re.compile(r"[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uffef]")
_MESSAGE_OVERHEAD = 4


def estimate_tokens(text: str) -> int:
    """Estimate the tokens of a text: a token per CJK character, else one per four characters.

    Good to about 30% for common tokenizers; used only where the provider reports no usage.

    Example:
        >>> estimate_tokens("retrieval-augmented"), estimate_tokens("检索增强")
        (5, 4)
    """
    wide = 0 if text.isascii() else len(_WIDE.findall(text))
    return wide + (len(text) - wide + 3) // 4


def used_tokens(value: Any, sent: Iterable[Any]) -> int:
    """Tokens in and out of one call.

    Args:
        value: What the model gave; the ``usage_metadata`` of a message is taken if it has any.
        sent: The messages that were sent.
    """
    message = value.get("raw", value) if isinstance(value, dict) else value
    usage = getattr(message, "usage_metadata", None) or {}
    if reported := (usage.get("input_tokens") or 0) + (usage.get("output_tokens") or 0):
        return int(reported)
    # Counting the reported number of a server that reports zeros would make a cap useless.
    tokens_in = sum(estimate_tokens(text_of(each)) + _MESSAGE_OVERHEAD for each in sent)
    # The arguments of tool calls are output as well.
    arguments = "".join(str(call.get("args")) for call in getattr(message, "tool_calls", []))
    return tokens_in + estimate_tokens(text_of(message) + arguments)


def text_of(message: Any) -> str:
    """The text of a message (its text blocks, joined), of a string, or of whatever else a model gives."""
    content = getattr(message, "content", message)
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        parts = (part.get("text") if isinstance(part, dict) else part for part in content)
        return "".join(part for part in parts if isinstance(part, str))
    return "" if content is None else str(content)


def check_size(message: Any) -> None:
    """Refuse an endless answer before anything reads it, whether it is text or the arguments of a tool call.

    Raises:
        ModelOutputError: It is longer than a million characters.

    Example:
        >>> check_size("x" * 2_000_000)
        Traceback (most recent call last):
            ...
        rag_kit.errors.ModelOutputError: The model's answer has 2,000,000 characters; at most 1,000,000 are read. \
Limit it (max_tokens=...), or use another model.
    """
    size = len(text_of(message))
    for name in ("invalid_tool_calls", "tool_calls"):
        size += sum(chars_in(call.get("args")) for call in getattr(message, name, None) or [])
    if size > MAX_CHARS:
        raise ModelOutputError(
            f"The model's answer has {size:,} characters; at most {MAX_CHARS:,} are read. Limit it "
            "(max_tokens=...), or use another model."
        )


def chars_in(value: Any) -> int:
    """Characters of plain JSON, about; it may be nested to any depth.

    Example:
        >>> chars_in({"ab": ["c", 1, None]})
        11
    """
    size, left = 0, [value]
    while left:
        each = left.pop()
        if isinstance(each, str):
            size += len(each)
            continue
        size += 2
        if isinstance(each, dict):
            left += [*each, *each.values()]
        elif isinstance(each, list | tuple):
            left += each
    return size
