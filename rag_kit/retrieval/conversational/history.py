"""The turns of a conversation as prompt text, and which of them are old enough to be summarised."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rag_kit.errors import InvalidInputError
from rag_kit.prompts.rendering import render_history
from rag_kit.prompts.tags import Markup, escape_tags

# Turns leave for the summary in groups, so that several questions in a row share one (cached) summary.
_GROUP = 4
_SUMMARY_SHARE = 4
MAX_SUMMARISED = 64_000


@dataclass(frozen=True)
class History:
    """What was said before a question.

    Attributes:
        turns: Each turn of user and assistant as a tagged block, oldest first.
        max_chars: Most characters that a prompt gets of it.

    Example:
        >>> messages = [("user", "Who wrote Emma?"), ("system", "Be kind."), ("user", "When?")]
        >>> History.of(messages, "When?", 100).turns
        ('<turn role="user">Who wrote Emma?</turn>',)
    """

    turns: tuple[str, ...]
    max_chars: int

    @classmethod
    def of(cls, messages: Any, question: str, max_chars: int) -> History:
        """Read messages in any usual form; the question itself at their end is no part of the history.

        Raises:
            InvalidInputError: If they are no list of messages.
        """
        messages = getattr(messages, "messages", messages)  # a ChatMessageHistory
        if messages is None:
            messages = []
        if isinstance(messages, (str, bytes)) or not isinstance(messages, Sequence):
            raise InvalidInputError(
                f"history is {type(messages).__name__}; it must be a list of messages, oldest first: LangChain "
                "messages, (role, text) pairs, or dicts with 'role' and 'content'."
            )
        turns = [block for item in messages if (block := str(render_history([item])))]
        if turns and turns[-1] == str(render_history([("user", question)])):
            turns.pop()
        return cls(tuple(turns), max_chars)

    @property
    def summary_chars(self) -> int:
        """Most characters of a summary."""
        return max(1, self.max_chars // _SUMMARY_SHARE)

    @property
    def is_long(self) -> bool:
        """Whether it does not fit as it is."""
        return _length(self.turns) > self.max_chars

    def parts(self) -> tuple[Sequence[str], Sequence[str]]:
        """The turns to summarise, and the newest ones, which fit beside the summary."""
        room = self.max_chars - self.summary_chars - len(summary_turn("")) - 1
        first = len(self.turns)
        while first and _length(self.turns[first - 1 :]) <= room:
            first -= 1
        grouped = -(-first // _GROUP) * _GROUP
        first = grouped if grouped < len(self.turns) else first
        return self.turns[:first], self.turns[first:]

    def text(self, summary: str | None = None) -> Markup:
        """The text for the prompt: a summary and the newest turns; without a summary the newest that fit."""
        if not self.is_long:
            return Markup("\n".join(self.turns))
        if summary:
            return Markup("\n".join([summary_turn(summary), *self.parts()[1]]))
        return _newest(self.turns, self.max_chars)

    def older(self) -> tuple[Markup, bool]:
        """What is to be summarised, and whether the oldest of it had to be left out."""
        older, _ = self.parts()
        text = _newest(older, MAX_SUMMARISED)
        return text, len(text) < _length(older)


def summary_turn(summary: str) -> str:
    """A summary as the first turn of what is left."""
    return f'<turn role="summary">{escape_tags(summary)}</turn>'


def _newest(turns: Sequence[str], room: int) -> Markup:
    """The newest turns that fit; of a newest one that is too long itself, the beginning."""
    kept: list[str] = []
    for turn in reversed(turns):
        room -= len(turn) + (1 if kept else 0)
        if room < 0:
            if not kept:
                closing = "</turn>"
                kept.append(turn[: max(0, len(turn) + room - len(closing))] + closing)
            break
        kept.append(turn)
    return Markup("\n".join(reversed(kept)))


def _length(turns: Sequence[str]) -> int:
    return sum(map(len, turns)) + max(0, len(turns) - 1)
