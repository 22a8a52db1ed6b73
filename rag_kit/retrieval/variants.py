"""What a model wrote as queries or passages -> the usable ones: same script, not empty, no repeats, not endless."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import zip_longest
from typing import Any

from rag_kit.text import detect_language, fold

_WINDOW = 2_000


def usable_variants(
    written: Iterable[str], question: str, *, most: int, max_chars: int
) -> tuple[list[str], list[str]]:
    """Keep the texts that are worth a search.

    Args:
        written: What the model wrote, the most useful first.
        question: The user's question.
        most: How many to keep.
        max_chars: Longest text that is kept, in characters.

    Returns:
        The texts kept, and one line for each dropped one that says why. Texts are the same if they differ only
        in case, width, punctuation, spacing, or simplified against traditional characters.

    Example:
        >>> usable_variants(["What is BM25?", "what is bm25", "BM25 ranking", "БМ25?"], "What is BM25?",
        ...                 most=3, max_chars=200)
        (['BM25 ranking'], ['repeats the question', 'repeats the question', 'another script'])
    """
    asked = folded(question)
    seen = {asked}
    script = script_of(question)
    kept: list[str] = []
    dropped: list[str] = []
    for text in written:
        text = " ".join(text.split()) if max_chars <= _WINDOW else text.strip()
        key = folded(text)
        if not key:
            dropped.append("empty")
        elif key in seen:
            dropped.append("repeats the question" if key == asked else "repeats another")
        elif len(text) > max_chars:
            dropped.append(f"longer than {max_chars} characters")
        elif script and (own := script_of(text)) and own != script:
            dropped.append("another script")
        elif len(kept) == most:
            dropped.append("more than asked for")
        else:
            seen.add(key)
            kept.append(text)
    return kept, dropped


def dropped_note(dropped: Sequence[str]) -> str:
    """One line about what was dropped.

    Example:
        >>> dropped_note(["empty", "another script", "empty"])
        'dropped 3 that the model wrote: 2 empty, 1 another script'
    """
    counted = ", ".join(f"{count} {why}" for why, count in Counter(dropped).items())
    return f"dropped {len(dropped)} that the model wrote: {counted}"


def texts_of(answers: Sequence[Any], field: str) -> list[str]:
    """The texts under a field of the answers: the first of each answer, then the second of each...

    Example:
        >>> texts_of([{"queries": ["a", "b"]}, {"queries": ["c"]}, {"queries": "d"}], "queries")
        ['a', 'c', 'd', 'b']
    """
    lists = []
    for answer in answers:
        value = answer.get(field) if isinstance(answer, Mapping) else getattr(answer, field, None)
        lists.append([value] if isinstance(value, str) else [str(item) for item in value or []])
    return [text for texts in zip_longest(*lists) for text in texts if text is not None]


def script_of(text: str) -> str:
    """The script a text is written in, by its sentences rather than by the names in it.

    Returns:
        ``"HAN"`` for Chinese, ``"JAPANESE"``, or the first word of the Unicode names of most letters
        (``"LATIN"``, ``"CYRILLIC"``, ``"HANGUL"``...); ``""`` if there is no letter.

    Example:
        >>> script_of("Who wrote 红楼梦?"), script_of("GPT-4o 有什么区别？"), script_of("Кто?"), script_of("42")
        ('LATIN', 'HAN', 'CYRILLIC', '')
    """
    if text.isascii():
        return "LATIN" if any(char.isalpha() for char in text) else ""
    if detect_language(text) == "zh":
        return "HAN"
    letters = Counter(_script(char) for char in text[:_WINDOW] if char.isalpha())
    if letters.get("JAPANESE"):
        return "JAPANESE"
    han = letters.pop("HAN", 0)  # Chinese names in a sentence that is not Chinese
    return max(letters, key=letters.__getitem__) if letters else "HAN" if han else ""


@lru_cache(maxsize=4096)
def _script(char: str) -> str:
    word = unicodedata.name(char, "?").split()[0]
    return {"HIRAGANA": "JAPANESE", "KATAKANA": "JAPANESE", "CJK": "HAN", "FULLWIDTH": "LATIN"}.get(
        word, word
    )


_NOT_KEPT = {code: None for code in range(128) if not (chr(code).isalnum() or chr(code) in "+#")}


def folded(text: str) -> str:
    """What two versions of one text share: letters and digits alone, and signs that matter in names (C++, C#).

    Example:
        >>> folded("What is C++?") == folded("what is ｃ++")
        True
    """
    if text.isascii():
        return text.lower().translate(_NOT_KEPT)
    return "".join(char for char in fold(text) if char.isalnum() or char in "+#")
