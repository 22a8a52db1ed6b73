"""Tool calls in the messages of an agent, and expected ones, as plain values."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from rag_kit.errors import InvalidInputError

Speaker = Literal["human", "ai", "tool", "system"]

_SPEAKERS: dict[str, Speaker] = {
    "human": "human", "user": "human", "HumanMessageChunk": "human",
    "ai": "ai", "assistant": "ai", "AIMessageChunk": "ai",
    "tool": "tool", "function": "tool", "ToolMessageChunk": "tool",
    "system": "system", "developer": "system", "SystemMessageChunk": "system",
}  # fmt: skip
_MOST = 10_000


@dataclass(frozen=True)
class ToolUse:
    """One call of a tool."""

    name: str
    args: Mapping[str, Any]


@dataclass(frozen=True)
class Turn:
    """One message: who speaks, the text, the tools called."""

    speaker: Speaker
    text: str
    calls: tuple[ToolUse, ...] = ()


def read_messages(messages: Sequence[Any]) -> list[Turn]:
    """Messages as plain dicts, with LangChain's ``type`` or with ``role``.

    Raises:
        InvalidInputError: If one is no message, or they are more than 10,000; the message says which.

    Example:
        >>> read_messages([{"role": "user", "content": "Weather?"}])
        [Turn(speaker='human', text='Weather?', calls=())]
    """
    if len(messages) > _MOST:
        raise InvalidInputError(
            f"the conversation has {len(messages):,} messages; at most {_MOST:,} are read"
        )
    found = []
    for number, message in enumerate(messages, start=1):
        where = f"message {number}"
        if not isinstance(message, Mapping):
            raise InvalidInputError(
                f"{where} is a {type(message).__name__}; give a dict with type and content"
            )
        kind = message.get("type") or message.get("role")
        speaker = _SPEAKERS.get(kind) if isinstance(kind, str) else None
        if speaker is None:
            raise InvalidInputError(
                f"{where} has the type {kind!r:.40}; allowed are human, ai, tool and system"
            )
        calls = message.get("tool_calls") if speaker == "ai" else None
        found.append(Turn(speaker, _text(message.get("content")), tuple(read_calls(calls or (), where))))
    return found


def calls_made(messages: Sequence[Any]) -> list[ToolUse]:
    """The tool calls of all messages of the model, in order.

    Raises:
        InvalidInputError: As `read_messages`.
    """
    return [call for turn in read_messages(messages) for call in turn.calls]


def read_calls(calls: Any, where: str) -> list[ToolUse]:
    """Tool calls as dicts with ``name`` and ``args``, or in OpenAI's form (``function``, arguments as JSON text).

    Raises:
        InvalidInputError: If one is no tool call, or they are more than 10,000.

    Example:
        >>> read_calls([{"function": {"name": "search", "arguments": '{"query": "tides"}'}}], "the reference")
        [ToolUse(name='search', args={'query': 'tides'})]
    """
    if isinstance(calls, (str, bytes, Mapping)) or not isinstance(calls, Sequence):
        raise InvalidInputError(f"the tool calls of {where} are {calls!r:.80}; give a list of calls")
    if len(calls) > _MOST:
        raise InvalidInputError(f"{where} has {len(calls):,} tool calls; at most {_MOST:,} are read")
    return [_call(call, where) for call in calls]


def _call(call: Any, where: str) -> ToolUse:
    inner = call.get("function", call) if isinstance(call, Mapping) else None
    if isinstance(inner, Mapping):
        name = inner.get("name")
        args = inner.get("args", inner.get("arguments"))
        if isinstance(args, str):
            try:
                args = json.loads(args or "{}")
            except (ValueError, RecursionError):
                name = None
        if isinstance(name, str) and name and (args is None or isinstance(args, Mapping)):
            return ToolUse(name, dict(args or {}))
    raise InvalidInputError(
        f"a tool call of {where} is {call!r:.120}; give a dict with name and args, such as "
        "{'name': 'search', 'args': {'query': 'tides'}}"
    )


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    if isinstance(content, Sequence) and not isinstance(content, bytes):
        texts = (block.get("text") if isinstance(block, Mapping) else block for block in content)
        return "\n".join(text for text in texts if isinstance(text, str))
    return ""
