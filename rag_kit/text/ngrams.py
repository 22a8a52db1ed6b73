"""Character n-grams as index terms: for misspelled words, parts of words, and Chinese without a dictionary."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

from rag_kit.errors import InvalidInputError
from rag_kit.text.analysis import TERMS_VERSION, StoredAnalyzer
from rag_kit.text.language import CLOSE, SPECIAL, fold

_LONGEST = 8
_CACHE_LIMIT = 200_000  # distinct words remembered per analyzer
_LONGEST_CACHED = 64  # characters of a word that is worth remembering
_RUNS = re.compile(f"[{CLOSE}]+|[^\\W_{CLOSE}]+")


@dataclass(unsafe_hash=True)
class CharacterNgrams(StoredAnalyzer):
    """Turns a text into the n-grams of its words' characters.

    A word is taken with a space on both sides, so that its beginning and end count. Scripts without spaces (Chinese,
    kana, Hangul, Thai...) are cut into n-grams of their own, shorter sizes, without marks at the ends. Case, width, and
    traditional or simplified characters do not matter. What is shorter than all sizes is a term as a whole.

    Example:
        >>> CharacterNgrams(sizes=[3], close_sizes=[2])("The cat 北京大学")
        [' th', 'the', 'he ', ' ca', 'cat', 'at ', '北京', '京大', '大学']
    """

    _constants: ClassVar = {"version": TERMS_VERSION, "kind": "characters"}
    sizes: Iterable[int] = (3, 4)  # lengths of the n-grams of spaced scripts, 2 to 8
    close_sizes: Iterable[int] = (1, 2)  # of scripts without spaces, 1 to 8

    def __post_init__(self) -> None:
        self.sizes = _check_sizes("sizes", self.sizes, 2)
        self.close_sizes = _check_sizes("close_sizes", self.close_sizes, 1)
        self._grams_of: dict[str, tuple[str, ...]] = {}

    def __call__(self, text: str) -> list[str]:
        """Return the n-grams of a text, repeats kept."""
        if not isinstance(text, str):
            raise InvalidInputError(f"a text to analyse must be a str, not {type(text).__name__}.")
        grams: list[str] = []
        for word in _RUNS.findall(fold(text)):
            grams += self._grams_of.get(word) or self._cut(word)
        return grams

    def _cut(self, word: str) -> tuple[str, ...]:
        """Cut a word into n-grams, and remember them for its next occurrence."""
        spaced = not SPECIAL.match(word)
        text, sizes = (f" {word} ", self.sizes) if spaced else (word, self.close_sizes)
        grams = tuple(text[n : n + size] for size in sizes for n in range(len(text) - size + 1)) or (text,)
        if len(word) <= _LONGEST_CACHED:
            if len(self._grams_of) >= _CACHE_LIMIT:
                self._grams_of.clear()
            self._grams_of[word] = grams
        return grams


def _check_sizes(name: str, sizes: Any, min_size: int) -> tuple[int, ...]:
    """Sort the lengths of n-grams, each once; refuse one that is not allowed."""
    lengths = list(sizes) if isinstance(sizes, Iterable) and not isinstance(sizes, (str, bytes)) else [sizes]
    if not lengths or any(type(size) is not int or not min_size <= size <= _LONGEST for size in lengths):
        allowed = f"whole numbers from {min_size} to {_LONGEST}"
        raise InvalidInputError(f"{name}={sizes!r} is not allowed; give {allowed}.")
    return tuple(sorted(set(lengths)))
