"""The history of a thread under its caps: what is kept word for word, what goes into the summary."""

from __future__ import annotations

from collections.abc import Sequence

from rag_kit.graphs.nodes import rendered
from rag_kit.graphs.state import Turn
from rag_kit.prompts.rendering import Markup
from rag_kit.retrieval.conversational import MAX_SUMMARISED, summary_turn


def is_long(history: Sequence[Turn], summary: str, max_turns: int, max_chars: int) -> bool:
    """Whether a history has outgrown one of its caps.

    Example:
        >>> is_long([Turn(question="Why?", answer="So.")] * 3, "", max_turns=2, max_chars=1000)
        True
    """
    return len(history) > max_turns or _length(history) + len(summary) > max_chars


def summary_chars(max_chars: int) -> int:
    """Most characters of a summary: a quarter of what the history may have."""
    return max_chars // 4


def split(history: Sequence[Turn], max_turns: int, max_chars: int) -> tuple[list[Turn], list[Turn]]:
    """The older turns, to be summarised, and the newer ones: half of what the caps allow.

    Half, so that the model is asked for a summary every few turns and not at each. The newest turn stays, unless
    it is too long by itself.

    Example:
        >>> turns = [Turn(question=str(i), answer="a") for i in range(5)]
        >>> [turn["question"] for turn in split(turns, max_turns=4, max_chars=1000)[1]]
        ['3', '4']
    """
    first = len(history)
    while first and len(history) - first + 1 <= max(1, max_turns // 2):
        length = _length(history[first - 1 :])
        if length > max_chars // 2 and (len(history) - first or length > max_chars):
            break
        first -= 1
    return list(history[:first]), list(history[first:])


def shown_turns(history: Sequence[Turn], summary: str, max_chars: int | None = None) -> Markup:
    """Summary and turns for a prompt; where they do not fit, the newest turns do."""
    written = rendered(history, max_chars or MAX_SUMMARISED)
    return Markup("\n".join([summary_turn(summary), written])) if summary else written


def _length(history: Sequence[Turn]) -> int:
    return sum(len(turn["question"]) + len(turn["answer"]) for turn in history)
