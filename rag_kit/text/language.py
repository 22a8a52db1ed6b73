"""Which language a text is in, a text folded for comparison, and what may be asked as a question."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from typing import Any, Literal

from rag_kit.errors import InvalidInputError
from rag_kit.text._traditional import SIMPLIFIED, TRADITIONAL
from rag_kit.text.stop_words import ENGLISH_EVIDENCE

Language = Literal["en", "zh"]

HAN = "\u3005\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_HAN = re.compile(f"[{HAN}]")
_KANA = re.compile("[\u3040-\u30ff]")
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?")
_WINDOW = 4000


def detect_language(text: str) -> Language:
    """Tell Chinese from everything else, by script and by grammar.

    Chinese questions are full of Latin terms ("使用 GPT-4o 和 LangChain 构建 RAG"), English ones may name a
    Chinese word. So Latin letters count against Chinese only where English function words hold them together.
    Japanese (kana) and every other script give ``"en"``, the language of the prompts used for them.

    Args:
        text: Any text; the first 4,000 characters decide.

    Returns:
        ``"zh"`` or ``"en"``.

    Example:
        >>> detect_language("GPT-4o 和 LangChain 有什么区别？"), detect_language("Who wrote 红楼梦?")
        ('zh', 'en')
    """
    if text.isascii():
        return "en"
    text = text[:_WINDOW]
    han = len(_HAN.findall(text))
    if not han or len(_KANA.findall(text)) * 5 > han:
        return "en"
    words = [word for word in _WORD.findall(_HAN.sub(" ", text)) if len(word) > 1]
    if any(word.lower() in ENGLISH_EVIDENCE for word in words):
        return "zh" if han >= 2 * len(words) else "en"
    return "zh" if han * 4 >= len(words) else "en"


_MIN_WORDS = 8
"""Words from which a lack of English function words tells something."""


def same_language(statement: str, passage: str) -> bool:
    """Whether two texts may be in one language, so that their words can be compared; True where one does not tell.

    Texts in different scripts are not, nor an English text and another one in its letters that share few words.

    Example:
        >>> same_language("水壶保修三年。", "The kettle has a warranty."), same_language("1,230", "A kettle.")
        (False, True)
    """
    scripts = {_script(statement[:_WINDOW]), _script(passage[:_WINDOW])} - {""}
    if len(scripts) > 1:
        return False
    stated, known = (_WORD.findall(text[:_WINDOW].lower()) for text in (statement, passage))
    if min(len(stated), len(known)) < _MIN_WORDS or 5 * len({*stated} & {*known}) >= len(stated):
        return True
    shares = [sum(word in ENGLISH_EVIDENCE for word in words) / len(words) for words in (stated, known)]
    return (shares[0] < 0.1) == (shares[1] < 0.1)


def _script(text: str) -> str:
    """The script of most letters, as Unicode names it; Chinese text may hold more Latin letters than others."""
    if detect_language(text) == "zh":
        return "CJK"
    names = (unicodedata.name(letter, "").split(" ")[0] for letter in text if letter.isalpha())
    scripts = Counter("KANA" if name in ("CJK", "HIRAGANA", "KATAKANA") else name for name in names)
    return scripts.most_common(1)[0][0] if scripts else ""


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


#: About what embedding models read (8,000 tokens); longer is a document, and no question about one.
MAX_QUESTION_CHARS = 32_000


def check_question(question: Any, *, example: str = "'How ...?'") -> str:
    """See that something can be asked.

    Args:
        question: What somebody gave as a question.
        example: How to give one, for the message.

    Returns:
        The question, unchanged.

    Raises:
        InvalidInputError: It is no string, holds white space only, or more than `MAX_QUESTION_CHARS` characters.

    Example:
        >>> check_question("Who?")
        'Who?'
        >>> check_question("why " * 10_000)
        Traceback (most recent call last):
        ...
        rag_kit.errors.InvalidInputError: question has 40,000 characters; at most 32,000 are allowed. ...
    """
    if not isinstance(question, str):
        raise InvalidInputError(f"question is a {type(question).__name__}; give a text, as in {example}.")
    if not question.strip():
        raise InvalidInputError(f"question is empty; give a text, as in {example}.")
    if len(question) > MAX_QUESTION_CHARS:
        raise InvalidInputError(
            f"question has {len(question):,} characters; at most {MAX_QUESTION_CHARS:,} are allowed. Ask for what "
            "matters, and put long texts into the index."
        )
    return question
