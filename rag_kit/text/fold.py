"""Folding: spellings that a searcher takes for the same text become the same string."""

from __future__ import annotations

import unicodedata

from rag_kit.text._traditional import SIMPLIFIED, TRADITIONAL

_DROPPED = "\u00ad\u200b\u200c\u200d\u2060\ufeff"  # soft hyphen, zero-width marks: invisible, yet split words
_AFTER_NFKC = {
    **{ord(old): new for old, new in zip(TRADITIONAL, SIMPLIFIED, strict=True)},
    **{ord(mark): "" for mark in _DROPPED},
    0x2019: "'",
    0x2018: "'",
    0x02BC: "'",
    0x2010: "-",
    0x2011: "-",
}


def fold(text: str) -> str:
    """Fold a text for matching: NFKC, case folding, traditional to simplified, no invisible marks.

    Full-width letters become plain ones, ligatures are taken apart, curly apostrophes become straight. The
    Chinese characters are mapped one by one, so the same word in either script gives the same string; folding
    twice changes nothing.

    Args:
        text: Any text.

    Returns:
        The folded text. Its length may differ from the original's.

    Example:
        >>> fold("ＧＰＴ－４ 漢語 Straße")
        'gpt-4 汉语 strasse'
    """
    if text.isascii():
        return text.lower()
    text = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    folded = text.translate(_AFTER_NFKC)
    if folded == text:
        return folded
    # Taking out an invisible mark can bring a letter and its accent together.
    return unicodedata.normalize("NFKC", folded)
