"""Whether two texts are in different languages, so that their words cannot be compared."""

from __future__ import annotations

import re

from rag_kit.text.language import HAN
from rag_kit.text.stop_words import ENGLISH_EVIDENCE

_HAN = re.compile(f"[{HAN}]")
_KANA = re.compile("[\u3040-\u30ff]")
_LETTER = re.compile(r"[^\W\d_]")
_LATIN = re.compile("[a-z\u00c0-\u024f']+")
_WINDOW = 4000
_TERM = 3
"""Words in Latin letters that may be a name or a term, in any language."""
_LETTER_WORD = 4
"""Letters that weigh as much as one Chinese character."""
_ENGLISH, _FOREIGN = 0.15, 0.1
"""Shares of English function words: from the first a text is English, up to the second in another language."""
_ENOUGH = 8
"""Words from which a lack of English function words tells something."""
_SHARED = 0.2
"""Share of a statement's words in its passage from which both are in one language, if both are in Latin letters."""


def other_language(statement: str, passage: str) -> bool:
    """Whether a statement is in another language than its passage; False where one of them does not tell.

    Chinese, English, another language in Latin letters, and all other scripts are told apart.

    Example:
        >>> other_language("水壶保修三年。", "The kettle has a warranty."), other_language("Paris.", "这是巴黎。")
        (True, False)
    """
    stated, cited = _written_in(statement), _written_in(passage)
    if stated == cited or "" in (stated, cited):
        return False
    if {stated, cited} != {"en", "latin"}:
        return True
    words, known = _LATIN.findall(statement.lower()), set(_LATIN.findall(passage.lower()))
    return len(words) >= _ENOUGH and sum(word in known for word in words) < _SHARED * len(words)


def _written_in(text: str) -> str:
    text = text[:_WINDOW].lower()
    words = _LATIN.findall(text)
    latin = sum(map(len, words)) / _LETTER_WORD
    han, kana = len(_HAN.findall(text)), len(_KANA.findall(text))
    others = len(_LETTER.findall(text)) - sum(map(len, words)) - han
    if max(han, others) > latin:
        return "han" if han > others and kana * 5 <= han else "other"
    if len(words) <= _TERM:
        return ""
    share = sum(word in ENGLISH_EVIDENCE for word in words) / len(words)
    if share >= _ENGLISH:
        return "en"
    return "latin" if share <= _FOREIGN else ""
