"""Whether a short text occurs in another one, as a person would see it."""

from __future__ import annotations

import re

from rag_kit.text import fold

# The marks of citations hold numbers that the answer does not state.
_CITATION = re.compile(r"[\[［【]\s{0,4}\d{1,4}(?:\s{0,4}[,，、;；–—~-]\s{0,4}\d{1,4}){0,20}\s{0,4}[\]］】]")
_HAN = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_SPACE_IN_HAN = re.compile(rf"(?<=[{_HAN}，。、；：！？])\s+|\s+(?=[{_HAN}，。、；：！？])")
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_WORD = re.compile(rf"[^\W{_HAN}]")


def plain(text: str) -> str:
    """A text as it is compared: folded, blanks made one, none beside Chinese, no commas within numbers.

    Example:
        >>> plain("Ｔhe  Rhine:\\n1,230 km"), plain("長 城 在 北京")
        ('the rhine: 1230 km', '长城在北京')
    """
    return _THOUSANDS.sub("", _SPACE_IN_HAN.sub("", " ".join(fold(text).split())))


def without_citations(text: str) -> str:
    """A text without marks such as ``[1]``.

    Example:
        >>> without_citations("It has 3 rooms [1, 2].")
        'It has 3 rooms .'
    """
    return _CITATION.sub("", text)


def occurs(wanted: str, text: str) -> bool:
    """Whether ``wanted`` stands in ``text``, not as a part of a longer word or number.

    Both are taken as ``plain`` gave them. Chinese has no blanks to look for: there any place counts.

    Example:
        >>> occurs("art", "a party"), occurs("art", "art, mostly"), occurs("3", "3.5 km"), occurs("长城", "万里长城在")
        (False, True, False, True)
    """
    if not wanted:
        return False
    start = text.find(wanted)
    while start >= 0:
        end = start + len(wanted)
        if not _joined(text, start) and not _joined(text, end):
            return True
        start = text.find(wanted, start + 1)
    return False


def _joined(text: str, place: int) -> bool:
    """Whether the characters before and at a place belong to one word or number."""
    if not 0 < place < len(text):
        return False
    before, after = text[place - 1], text[place]
    if _WORD.match(before) and _WORD.match(after):
        return True
    # a decimal point: 3 is not found in 3.5, nor 5 in it
    if before in ".," and after.isdigit() and place > 1 and text[place - 2].isdigit():
        return True
    return after in ".," and before.isdigit() and place + 1 < len(text) and text[place + 1].isdigit()
