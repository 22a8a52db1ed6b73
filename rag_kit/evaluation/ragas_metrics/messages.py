"""An agent's conversation and expected tool calls, read from plain dicts, in Ragas's own classes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from rag_kit.errors import InvalidInputError

_KINDS = {
    "human": "HumanMessage", "user": "HumanMessage", "HumanMessageChunk": "HumanMessage",
    "ai": "AIMessage", "assistant": "AIMessage", "AIMessageChunk": "AIMessage",
    "tool": "ToolMessage", "function": "ToolMessage", "ToolMessageChunk": "ToolMessage",
    "system": "", "developer": "", "SystemMessageChunk": "",
}  # fmt: skip
_MOST = 10_000


def ragas_messages(messages: Sequence[Any]) -> list[Any]:
    """The message objects of Ragas for dicts with ``type`` (LangChain) or ``role``; system messages are left out.

    Raises:
        InvalidInputError: If one is no message, or they are more than 10,000; the message says which.
    """
    import ragas.messages

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
        name = _KINDS.get(kind) if isinstance(kind, str) else None
        if name is None:
            raise InvalidInputError(
                f"{where} has the type {kind!r:.40}; allowed are human, ai, tool and system"
            )
        calls = ragas_calls(message.get("tool_calls") or (), where) if name == "AIMessage" else []
        if name:
            extra = {"tool_calls": calls} if calls else {}
            found.append(getattr(ragas.messages, name)(content=_text(message.get("content")), **extra))
    return found


def ragas_calls(calls: Any, where: str) -> list[Any]:
    """The ``ToolCall`` objects of Ragas for dicts with ``name`` and ``args``, or in OpenAI's form with ``function``.

    Args:
        calls: The dicts.
        where: What the calls belong to, such as ``message 2``; error messages name it.

    Raises:
        InvalidInputError: If one is no tool call, or they are more than 10,000.
    """
    if isinstance(calls, (str, bytes, Mapping)) or not isinstance(calls, Sequence):
        raise InvalidInputError(f"the tool calls of {where} are {calls!r:.80}; give a list of calls")
    if len(calls) > _MOST:
        raise InvalidInputError(f"{where} has {len(calls):,} tool calls; at most {_MOST:,} are read")
    return [_call(call, where) for call in calls]


def _call(call: Any, where: str) -> Any:
    from ragas.messages import ToolCall

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
            return ToolCall(name=name, args=dict(args or {}))
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
