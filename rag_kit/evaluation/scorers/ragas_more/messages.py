"""An agent's conversation in Ragas's own classes; call these when Ragas is imported."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from rag_kit.evaluation.scorers.tool_messages import ToolUse, read_messages


def ragas_messages(messages: Sequence[Any]) -> list[Any]:
    """Messages as plain dicts as Ragas's; system messages, which Ragas does not know, are left out.

    Raises:
        InvalidInputError: If one is no message.
    """
    from ragas.messages import AIMessage, HumanMessage, ToolMessage

    kinds: dict[str, Any] = {"human": HumanMessage, "ai": AIMessage, "tool": ToolMessage}
    return [
        kinds[turn.speaker](
            content=turn.text, **({"tool_calls": ragas_calls(turn.calls)} if turn.calls else {})
        )
        for turn in read_messages(messages)
        if turn.speaker in kinds
    ]


def ragas_calls(calls: Iterable[ToolUse]) -> list[Any]:
    """Tool calls as Ragas's."""
    from ragas.messages import ToolCall

    return [ToolCall(name=call.name, args=dict(call.args)) for call in calls]
