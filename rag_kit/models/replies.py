"""What a model's reply holds: its text without reasoning, a refusal, and how many tokens it took."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from rag_kit.errors import ModelOutputError

MAX_CHARS = 1_000_000
"""Twice what today's models can write in one answer, thoughts included."""
_THINK = "(?:think|thinking|thought|reasoning)>"
_END = re.compile(rf"</{_THINK}", re.IGNORECASE)
_THOUGHT = re.compile(rf"<{_THINK}.*?(?:</{_THINK}|\Z)", re.IGNORECASE | re.DOTALL)
_WIDE = re.compile(r"[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uffef]")
_MESSAGE_OVERHEAD = 4


def estimate_tokens(text: str) -> int:
    """Estimate a text's tokens where no usage is reported: one a CJK character, else one per four; good to 30%."""
    wide_chars = 0 if text.isascii() else len(_WIDE.findall(text))
    return wide_chars + (len(text) - wide_chars + 3) // 4


def used_tokens(value: Any, messages: Iterable[Any]) -> int:
    """Tokens in and out of one call: the ``usage_metadata`` of what the model gave, else an estimate."""
    reply = value.get("raw", value) if isinstance(value, dict) else value
    usage = getattr(reply, "usage_metadata", None) or {}
    if reported := (usage.get("input_tokens") or 0) + (usage.get("output_tokens") or 0):
        return int(reported)
    # Counting the reported number of a server that reports zeros would make a cap useless.
    tokens_in = sum(estimate_tokens(text_of(message)) + _MESSAGE_OVERHEAD for message in messages)
    # The arguments of tool calls are output as well.
    arguments = "".join(str(call.get("args")) for call in getattr(reply, "tool_calls", []))
    return tokens_in + estimate_tokens(text_of(reply) + arguments)


def was_cached(value: Any) -> bool:
    """Tell whether LangChain's cache gave the reply: it says then that the reply cost nothing."""
    usage = getattr(split_reply(value)[0], "usage_metadata", None) or {}
    return usage.get("total_cost") == 0


def text_of(message: Any) -> str:
    """The text of a message (its text blocks, joined), of a string, or of whatever else a model gives."""
    content = getattr(message, "content", message)
    if isinstance(content, list):
        parts = (part.get("text") if isinstance(part, dict) else part for part in content)
        return "".join(part for part in parts if isinstance(part, str))
    return "" if content is None else str(content)


def without_thinking(text: str) -> str:
    """Drop reasoning blocks, also one whose opening tag the server swallowed or whose end is missing."""
    return _END.split(_THOUGHT.sub("", text))[-1].strip()


def split_reply(reply: Any) -> tuple[Any, Any]:
    """The message that a model wrote, if there is one, and the value that its client parsed."""
    if isinstance(reply, dict) and {"raw", "parsed"} <= reply.keys():
        return reply["raw"], reply["parsed"]
    if hasattr(reply, "content"):
        return reply, (getattr(reply, "additional_kwargs", None) or {}).get("parsed")
    return None, reply


def written_text(reply: Any) -> str:
    """What a model wrote: the arguments of a tool call that is not valid JSON, else the text, else other arguments."""
    message, parsed = split_reply(reply)
    if message is None:
        return parsed if isinstance(parsed, str) else ""
    broken = [call.get("args") for call in getattr(message, "invalid_tool_calls", None) or []]
    valid = [call.get("args") for call in getattr(message, "tool_calls", None) or []]
    arguments = next((args for args in broken if args), None)
    return arguments or text_of(message) or (str(valid[0]) if valid else "")


def refusal_of(message: Any) -> str | None:
    """Why the model refused, if it is marked so; a ModelOutputError for an answer endless or nested too deeply."""
    _check_size(message)
    blocks = getattr(message, "content", None)
    refusals = [(getattr(message, "additional_kwargs", None) or {}).get("refusal")]
    for block in blocks if isinstance(blocks, list) else []:
        if isinstance(block, dict) and block.get("type") == "refusal":
            refusals.append(block.get("refusal") or "no reason given")
    if reason := next((text for text in refusals if isinstance(text, str) and text), None):
        return reason[:200]
    finish = (getattr(message, "response_metadata", None) or {}).get("finish_reason")
    filtered = finish == "content_filter" and not text_of(message).strip()
    return "stopped by the provider's content filter" if filtered else None


def _check_size(message: Any) -> None:
    """Refuse an endless answer before anything reads it, whether it is text or the arguments of a tool call."""
    size = len(text_of(message))
    try:
        for name in ("invalid_tool_calls", "tool_calls"):
            size += sum(len(str(call.get("args"))) for call in getattr(message, name, None) or [])
    except RecursionError:
        raise ModelOutputError("The model's answer is nested too deeply.") from None
    if size > MAX_CHARS:
        raise ModelOutputError(
            f"The model's answer has {size:,} characters; at most {MAX_CHARS:,} are read. Limit it "
            "(max_tokens=...), or use another model."
        )
