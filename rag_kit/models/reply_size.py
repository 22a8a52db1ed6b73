"""How long an answer may be. What is longer is refused before anything reads it."""

from __future__ import annotations

from typing import Any

from rag_kit.errors import ModelOutputError

from .tokens import text_of

MAX_CHARS = 1_000_000
"""Twice what today's models can write in one answer, thoughts included."""


def check_size(message: Any) -> None:
    """Refuse an endless answer, whether it is text or the arguments of a tool call.

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
    calls = [
        *(getattr(message, "invalid_tool_calls", None) or []),
        *(getattr(message, "tool_calls", None) or []),
    ]
    for call in calls:
        size += chars_in(call.get("args") if isinstance(call, dict) else call)
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
