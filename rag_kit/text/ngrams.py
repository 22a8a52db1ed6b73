"""Character n-grams as index terms: for misspelled words, parts of words, and Chinese without a dictionary."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from rag_kit.errors import InvalidInputError
from rag_kit.text._patterns import HANGUL, KANA, UNSPACED
from rag_kit.text.language import HAN, fold

_SETTINGS_VERSION = 1
_LONGEST = 8
_CACHE_LIMIT = 200_000  # distinct words remembered per analyzer
_KEPT = 64  # characters of a word that is worth remembering
_CLOSE = HAN + KANA + HANGUL + UNSPACED
_RUNS = re.compile(f"[{_CLOSE}]+|[^\\W_{_CLOSE}]+")
_IS_CLOSE = re.compile(f"[{_CLOSE}]")


class _Grams(dict[str, tuple[str, ...]]):
    """Remembers the n-grams of each short word."""

    def __init__(self, sizes: tuple[int, ...], close_sizes: tuple[int, ...]) -> None:
        super().__init__()
        self._sizes = sizes
        self._close_sizes = close_sizes

    def __missing__(self, word: str) -> tuple[str, ...]:
        if _IS_CLOSE.match(word):
            sizes = self._close_sizes
        else:
            sizes, word = self._sizes, f" {word} "
        grams = tuple(word[at : at + size] for size in sizes for at in range(len(word) - size + 1)) or (word,)
        if len(word) <= _KEPT:
            if len(self) >= _CACHE_LIMIT:
                self.clear()
            self[word.strip()] = grams
        return grams


class CharacterNgrams:
    """Turns a text into the n-grams of its words' characters.

    A word is taken with a space on both sides, so that its beginning and end count as such. Scripts that write
    no spaces between words (Chinese, kana, Hangul, Thai...) are cut into n-grams of their own, shorter sizes,
    without marks at the ends. Case, width, and traditional against simplified characters do not matter. What is
    shorter than all sizes is a term as a whole.

    Args:
        sizes: Lengths of the n-grams of spaced scripts, 2 to 8.
        close_sizes: Lengths of those of scripts without spaces, 1 to 8.

    Raises:
        InvalidInputError: A length is not allowed.

    Example:
        >>> CharacterNgrams(sizes=[3], close_sizes=[2])("The cat 北京大学")
        [' th', 'the', 'he ', ' ca', 'cat', 'at ', '北京', '京大', '大学']
    """

    def __init__(self, sizes: Iterable[int] = (3, 4), close_sizes: Iterable[int] = (1, 2)) -> None:
        self.sizes = _checked("sizes", sizes, 2)
        self.close_sizes = _checked("close_sizes", close_sizes, 1)
        self._grams = _Grams(self.sizes, self.close_sizes)

    def __call__(self, text: str) -> list[str]:
        """Analyse a text.

        Returns:
            Its n-grams, repeats kept.

        Raises:
            InvalidInputError: Not a string.
        """
        if not isinstance(text, str):
            raise InvalidInputError(f"a text to analyse must be a str, not {type(text).__name__}.")
        grams: list[str] = []
        extend, known = grams.extend, self._grams
        for word in _RUNS.findall(fold(text)):
            extend(known[word])
        return grams

    def settings(self) -> dict[str, Any]:
        """The settings as plain JSON, to be stored with an index."""
        return {
            "version": _SETTINGS_VERSION,
            "kind": "characters",
            "sizes": list(self.sizes),
            "close_sizes": list(self.close_sizes),
        }

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> CharacterNgrams:
        """Make the analyzer that :meth:`settings` described.

        Raises:
            InvalidInputError: The settings are of a newer version, or not settings at all.

        Example:
            >>> CharacterNgrams.from_settings(CharacterNgrams([4]).settings()).sizes
            (4,)
        """
        if not isinstance(settings, Mapping) or settings.get("version") != _SETTINGS_VERSION:
            raise InvalidInputError(
                f"n-gram settings {settings!r} are not of version {_SETTINGS_VERSION}; build the index again."
            )
        if set(settings) != {"version", "kind", "sizes", "close_sizes"} or settings["kind"] != "characters":
            raise InvalidInputError(f"n-gram settings {settings!r} are not what settings() gives.")
        return cls(settings["sizes"], settings["close_sizes"])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CharacterNgrams) and self.settings() == other.settings()

    def __hash__(self) -> int:
        return hash((self.sizes, self.close_sizes))

    def __repr__(self) -> str:
        return f"CharacterNgrams(sizes={self.sizes}, close_sizes={self.close_sizes})"


def _checked(name: str, sizes: Any, least: int) -> tuple[int, ...]:
    given = list(sizes) if isinstance(sizes, Iterable) and not isinstance(sizes, (str, bytes)) else [sizes]
    if not given or any(type(size) is not int or not least <= size <= _LONGEST for size in given):
        raise InvalidInputError(
            f"{name}={sizes!r} is not allowed; give whole numbers from {least} to {_LONGEST}."
        )
    return tuple(sorted(set(given)))
