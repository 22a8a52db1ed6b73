"""Texts cut into tokens that are compared: Chinese by character or by word, everything else by word."""

from __future__ import annotations

import re
from functools import cache
from typing import Any, Literal

from rag_kit.errors import InvalidInputError
from rag_kit.text import fold
from rag_kit.text._patterns import SPECIAL, unicode_runs
from rag_kit.text.language import HAN
from rag_kit.text.segment import load_segmenter

Unit = Literal["characters", "words"]
UNITS = ("characters", "words")

_HAN = re.compile(f"[{HAN}]+")


@cache
def _pattern() -> re.Pattern[str]:
    return re.compile(rf"({unicode_runs().pattern})|[^\w\s]|_")


class Tokenizer:
    """Cuts a text into tokens; case, width and traditional against simplified characters do not matter.

    Args:
        unit: Whether Chinese is cut into ``"characters"`` or, by jieba, into ``"words"``. Words of other scripts and
            numbers are always one token; kana, Hangul and Thai are cut by character.
        punctuation: Whether each mark is a token; else marks are left out.

    Raises:
        InvalidInputError: If the unit is another.

    Example:
        >>> Tokenizer()("我们去公园，on 3.5 legs.")
        ['我', '们', '去', '公', '园', ',', 'on', '3.5', 'legs', '.']
        >>> Tokenizer("words", punctuation=False)("我们去公园，on 3.5 legs.")
        ['我们', '去', '公园', 'on', '3.5', 'legs']
    """

    def __init__(self, unit: Unit = "characters", *, punctuation: bool = True) -> None:
        if unit not in UNITS:
            raise InvalidInputError(f"tokens={unit!r:.80} is not allowed; give one of {', '.join(UNITS)}")
        self._cut = load_segmenter() if unit == "words" else list
        self._pattern = _pattern()
        self.unit, self.punctuation = unit, bool(punctuation)

    def __call__(self, text: str) -> list[str]:
        """The tokens, in order."""
        found: list[str] = []
        for match in self._pattern.finditer(fold(text)):
            token = match[0]
            if match[1] is None:
                if self.punctuation:
                    found.append(token)
            elif _HAN.match(token):
                found.extend(self._cut(token))
            elif SPECIAL.match(token):
                found.extend(token)
            else:
                found.append(token)
        return found

    def settings(self) -> dict[str, Any]:
        """As plain JSON."""
        return {"tokens": self.unit, "punctuation": self.punctuation}
