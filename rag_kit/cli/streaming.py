"""An answer as it arrives: tokens are printed at once, a model's thinking is not."""

from __future__ import annotations

_OPEN, _CLOSE = "<think>", "</think>"


class AnswerStream:
    """Takes pieces of a streamed answer, gives back what may be shown so far.

    ``<think> ... </think>`` is left out, also when its tags are cut across pieces.

    Example:
        >>> stream = AnswerStream()
        >>> "".join(stream.feed(piece) for piece in ["<th", "ink>hm</thi", "nk>", "Yes", "."]) + stream.end()
        'Yes.'
    """

    def __init__(self) -> None:
        self._waiting = ""
        self._thinking = False
        self._shown = False

    def feed(self, piece: str) -> str:
        """Text that can be shown after this piece; what might be the start of a tag waits."""
        self._waiting += piece
        out = ""
        while True:
            tag = _CLOSE if self._thinking else _OPEN
            at = self._waiting.find(tag)
            if at < 0:
                break
            if not self._thinking:
                out += self._waiting[:at]
            self._waiting = self._waiting[at + len(tag) :]
            self._thinking = not self._thinking
        keep = _partial(self._waiting, _CLOSE if self._thinking else _OPEN)
        ready = self._waiting[: len(self._waiting) - keep]
        self._waiting = self._waiting[len(self._waiting) - keep :]
        if not self._thinking:
            out += ready
        return self._left_trimmed(out)

    def end(self) -> str:
        """What was still waiting; nothing when the stream stopped inside a thought."""
        rest, self._waiting = self._waiting, ""
        return "" if self._thinking else self._left_trimmed(rest)

    def _left_trimmed(self, text: str) -> str:
        if not self._shown:
            text = text.lstrip()
        self._shown = self._shown or bool(text)
        return text


def _partial(text: str, tag: str) -> int:
    """Length of the longest end of the text that is a beginning of the tag."""
    return next((n for n in range(min(len(tag) - 1, len(text)), 0, -1) if tag.startswith(text[-n:])), 0)
