"""Text: folding, analysis into index terms, sentences, language, in English and Chinese.

Importing this package loads no dictionary; the first Chinese text does.
"""

from __future__ import annotations

from rag_kit.text.analysis import Analyzer, content_words, default_analyzer
from rag_kit.text.language import check_question, detect_language, fold
from rag_kit.text.sentences import sentences

__all__ = [
    "Analyzer",
    "check_question",
    "content_words",
    "default_analyzer",
    "detect_language",
    "fold",
    "sentences",
]
