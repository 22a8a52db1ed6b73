"""Which language a text is in, as far as the kit has rules for it."""

from __future__ import annotations

import re
from typing import Literal

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
