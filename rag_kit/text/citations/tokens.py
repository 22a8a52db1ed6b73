"""Tokens for comparing a statement with its source: words, numbers and single Chinese characters."""

from __future__ import annotations

import re
from typing import NamedTuple

from rag_kit.text.analysis import content_words
from rag_kit.text.fold import fold

_TOKEN = re.compile(
    r"\d+(?:[.,]\d+)*|[^\W\d_]+(?:['’-][^\W\d_]+)*".replace(
        "[^\\W\\d_]", "[^\\W\\d_\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]"
    )
    + r"|[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]"
)
_HAN = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")
_COUNTING = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
    "seventeen eighteen nineteen twenty"
)
_NUMBER_WORDS = {word: str(number) for number, word in enumerate(_COUNTING.split())}


class Token(NamedTuple):
    """A token: its normal form, and whether it is a number, a capitalised word, or a Chinese character."""

    key: str
    number: bool
    name: bool
    han: bool


def tokens(text: str, *, limit: int = 1200) -> list[Token]:
    """The tokens of a text.

    Example:
        >>> [token.key for token in tokens("Ada paid $1,200 给他")]
        ['ada', 'paid', '1200', '给', '他']
    """
    found = []
    for match in _TOKEN.finditer(text):
        raw = match.group()
        key = fold(raw)
        number = raw[0].isdigit()
        if number:
            key = re.sub(r"(?<=\d),(?=\d{3}\b)", "", key)
        elif key in _NUMBER_WORDS:
            key, number = _NUMBER_WORDS[key], key not in ("one",)
        han = _HAN.match(raw) is not None
        name = not han and not number and raw[0].isupper() and bool(content_words(raw))
        found.append(Token(key, number, name, han))
        if len(found) >= limit:
            break
    return found


def evidence_keys(text: str) -> set[str]:
    """What coverage is counted in: stemmed content words, and pairs of Chinese characters.

    Example:
        >>> sorted(evidence_keys("Cats 睡觉了"))
        ['cat', '睡觉', '觉了']
    """
    keys: set[str] = set()
    for run in re.split(r"([\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]+)", text):
        if run and _HAN.match(run):
            simple = fold(run)
            keys.update([simple[i : i + 2] for i in range(len(simple) - 1)] or [simple])
        elif run:
            keys.update(content_words(run))
    return keys
