"""Character n-grams as index terms: for misspelled words, parts of words, and Chinese without a dictionary."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

from rag_kit.errors import InvalidInputError
from rag_kit.text.analysis import TERMS_VERSION, StoredAnalyzer
from rag_kit.text.language import CLOSE, SPECIAL, fold

# lengths of the n-grams of words, and of runs in scripts without spaces
_SIZES = {"sizes": [3, 4], "close_sizes": [1, 2]}
_LONGEST_CACHED = 64  # characters of a word that is worth remembering
_RUNS = re.compile(f"[{CLOSE}]+|[^\\W_{CLOSE}]+")


@dataclass(unsafe_hash=True)
class CharacterNgrams(StoredAnalyzer):
    """Turns a text into the n-grams of its words' characters.

    A word is taken with a space on both sides, so that its beginning and end count, and cut into three and four
    characters. Scripts without spaces (Chinese, kana, Hangul, Thai...) are cut into one and two, without marks at the
    ends. Case, width, and traditional or simplified characters do not matter.

    Example:
        >>> CharacterNgrams()("The 北京")
        [' th', 'the', 'he ', ' the', 'the ', '北', '京', '北京']
    """

    _constants: ClassVar = {"version": TERMS_VERSION, "kind": "characters", **_SIZES}

    def __call__(self, text: str) -> list[str]:
        """Return the n-grams of a text, repeats kept."""
        if not isinstance(text, str):
            raise InvalidInputError(f"a text to analyse must be a str, not {type(text).__name__}.")
        grams: list[str] = []
        for word in _RUNS.findall(fold(text)):
            grams += _cut(word) if len(word) <= _LONGEST_CACHED else _cut.__wrapped__(word)
        return grams


@lru_cache(200_000)
def _cut(word: str) -> tuple[str, ...]:
    """Cut a word into n-grams."""
    text, kind = (word, "close_sizes") if SPECIAL.match(word) else (f" {word} ", "sizes")
    return tuple(text[n : n + size] for size in _SIZES[kind] for n in range(len(text) - size + 1))
