"""Text: folding, analysis into index terms, sentences, language, in English and Chinese.

Importing this package loads no dictionary; the first Chinese text does.
"""

from __future__ import annotations

from rag_kit.text.analysis import Analyzer, content_words, default_analyzer, warm_up
from rag_kit.text.fold import fold
from rag_kit.text.language import Language, detect_language
from rag_kit.text.question import MAX_QUESTION_CHARS, check_question
from rag_kit.text.sentences import Sentence, sentences

__all__ = [
    "MAX_QUESTION_CHARS",
    "Analyzer",
    "Language",
    "Sentence",
    "check_question",
    "content_words",
    "default_analyzer",
    "detect_language",
    "fold",
    "sentences",
    "warm_up",
]
