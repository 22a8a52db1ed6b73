"""Line breaking for terminals, between words and between Chinese characters, also of streamed text."""

from __future__ import annotations

import re
from collections.abc import Callable

from rag_kit.documents.tables import columns

_WIDE = (
    "\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6"
)
#: What may open and what may follow a word or character; neither is parted from it, nor is a citation [1].
_OPEN, _CLOSE = "“‘（「『【〈《(\\[", "、。，．：；？！）」』】〉》”’…%)\\]}"
_PIECE = re.compile(
    rf"\n|[^\S\n]+|[{_OPEN}]*(?:[{_WIDE}]|[^\s{_WIDE}{_OPEN}{_CLOSE}]+|[{_OPEN}{_CLOSE}])(?:[{_CLOSE}]|\[\d*\]?)*"
)


class LineWriter:
    """Writes text that comes in pieces, and starts a new line where the next word would not fit.

    A word that is longer than a line is left to the terminal, so that a path or an address stays in one piece.

    Args:
        write: Takes what is ready.
        width: Columns of a line.
        indent: Stands before each line.

    Example:
        >>> out = []
        >>> lines = LineWriter(out.append, 20)
        >>> for text in ("The pump starts at", " 40 deg", "rees.[1]"):
        ...     lines.feed(text)
        >>> lines.end()
        >>> "".join(out).split("\\n")
        ['The pump starts at', '40 degrees.[1]']
    """

    def __init__(self, write: Callable[[str], object], width: int, indent: str = "") -> None:
        self._write = write
        self._width = max(width, 20)
        self._indent = indent
        self._column = 0
        self._blank = ""
        self._waiting = ""

    def feed(self, text: str) -> None:
        """Write all but the last word, which the next piece may continue."""
        pieces = _PIECE.findall(self._waiting + text)
        self._waiting = pieces.pop() if pieces and not pieces[-1].isspace() else ""
        self._place(pieces)

    def end(self) -> None:
        """Write the last word."""
        waiting, self._waiting = self._waiting, ""
        self._place([waiting] if waiting else [])

    def _place(self, pieces: list[str]) -> None:
        out = []
        for piece in pieces:
            if piece == "\n":
                out.append(piece)
                self._column, self._blank = 0, ""
            elif piece.isspace():
                self._blank += piece.expandtabs(4)
            else:
                out.append(self._before(columns(piece)) + piece)
        if out:
            self._write("".join(out))

    def _before(self, needed: int) -> str:
        blank, self._blank = self._blank, ""
        lead = ""
        if self._column and self._column + len(blank) + needed > self._width:
            lead, blank, self._column = "\n", "", 0
        if not self._column:
            blank = self._indent + blank
        self._column += len(blank) + needed
        return lead + blank


def fold(text: str, width: int, indent: str = "") -> list[str]:
    """Break a text into lines of at most ``width`` columns.

    Example:
        >>> fold("风扇在六十度时会启动。", 20)
        ['风扇在六十度时会启', '动。']
    """
    out: list[str] = []
    lines = LineWriter(out.append, width, indent)
    lines.feed(text)
    lines.end()
    return "".join(out).split("\n")
