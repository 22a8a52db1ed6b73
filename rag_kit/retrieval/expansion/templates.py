"""Question templates: "What is {term}?" for the terms that a question is about."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from rag_kit.text import detect_language
from rag_kit.text.language import HAN
from rag_kit.text.segment import load_segmenter
from rag_kit.text.stop_words import CHINESE_EVIDENCE, ENGLISH_EVIDENCE

TEMPLATES = {
    "en": ("What is {term}?", "How does {term} work?"),
    "zh": ("什么是{term}？", "{term}有什么作用？"),
}
_RUNS = re.compile(f"[{HAN}]+|[^\\W_{HAN}]+(?:[.'’+#_\\-]*[^\\W_{HAN}]+)*[+#]*")
_IS_HAN = re.compile(f"[{HAN}]")
_MOST_WORDS = 5


def key_phrases(question: str) -> list[str]:
    """What a question is about: the runs of words between function words and punctuation.

    Returns:
        The phrases in the order of the question, each once, as the question writes them.

    Example:
        >>> key_phrases("What causes bit rot in an old hard disk?"), key_phrases("什么是深度学习？")
        (['causes bit rot', 'old hard disk'], ['深度学习'])
    """
    phrases: list[str] = []
    begin = end = words = 0
    for start, stop, stops in _words(question):
        joins = words and not question[end:start].strip() and words < _MOST_WORDS
        if words and (stops or not joins):
            phrases.append(question[begin:end])
            words = 0
        if not stops:
            begin = begin if words else start
            end = stop
            words += 1
    if words:
        phrases.append(question[begin:end])
    return [phrase for phrase in dict.fromkeys(phrases) if len(phrase) > 1]


def template_queries(templates: Sequence[str], terms: Sequence[str]) -> list[str]:
    """Each term in each template: all templates of the first term, then of the second...

    Example:
        >>> template_queries(["What is {term}?"], ["bit rot", "a disk"])
        ['What is bit rot?', 'What is a disk?']
    """
    return [template.replace("{term}", term) for term in terms for template in templates]


def templates_for(question: str) -> Sequence[str]:
    """The built-in templates in the language of a question."""
    return TEMPLATES[detect_language(question)]


def _words(text: str) -> Iterator[tuple[int, int, bool]]:
    """Start, end, and whether it is a function word, of each word."""
    for match in _RUNS.finditer(text):
        if not _IS_HAN.match(match[0]):
            yield match.start(), match.end(), match[0].lower().replace("’", "'") in ENGLISH_EVIDENCE
            continue
        at = match.start()
        for word in load_segmenter()(match[0]):
            yield at, at + len(word), word in CHINESE_EVIDENCE
            at += len(word)
