"""The regular expressions that cut a folded text into runs: words, Chinese, other unspaced scripts."""

from __future__ import annotations

import re
import unicodedata
from functools import cache

from rag_kit.text.language import HAN

KANA = "\u3040-\u3098\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff"
HANGUL = "\u1100-\u11ff\u3131-\u318e\uac00-\ud7a3"
UNSPACED = "\u0e01-\u0e4e\u0e81-\u0ece\u1000-\u1049\u1780-\u17d3"  # Thai, Lao, Burmese, Khmer
FIRST_UNSPACED = "\u0e01"  # the lowest code point of any of the above

SPECIAL = re.compile(f"[{HAN}{KANA}{HANGUL}{UNSPACED}]")

_NUMBER = r"[0-9]{1,3}(?:,[0-9]{3})+(?![0-9])(?:\.[0-9]+)?"
_JOIN = r"(?:[.'\-]|_+)"
_TAIL = r"(?:\+\+|\#(?![a-z0-9_]))?"  # c++, c#

ASCII_RUNS = re.compile(rf"{_NUMBER}|[a-z0-9]+(?:{_JOIN}[a-z0-9]+)*{_TAIL}")


@cache
def unicode_runs() -> re.Pattern[str]:
    """The pattern for texts beyond ASCII.

    Python's ``\\w`` leaves out combining marks, which would cut every Hindi or Arabic word to pieces; they are
    collected here from the Unicode tables (30 ms, once).

    Example:
        >>> unicode_runs().findall("हिन्दी 中文abc")
        ['हिन्दी', '中文', 'abc']
    """
    special = HAN + KANA + HANGUL + UNSPACED
    marks: list[list[int]] = []
    for code in range(0x300, 0x1E000):
        character = chr(code)
        if unicodedata.category(character)[0] != "M" or SPECIAL.match(character):
            continue
        if marks and marks[-1][1] == code - 1:
            marks[-1][1] = code
        else:
            marks.append([code, code])
    mark = "".join(f"{chr(a)}-{chr(b)}" for a, b in marks)
    word = rf"[^\W_{special}](?:[^\W_{special}]|[{mark}])*"
    return re.compile(
        rf"[{HAN}]+|[{KANA}]+|[{HANGUL}]+|[{UNSPACED}]+|{_NUMBER}|{word}(?:{_JOIN}{word})*{_TAIL}"
    )
