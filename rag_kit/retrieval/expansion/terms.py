"""Terms to add to a question: those that are new, and those that it is about itself."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from rag_kit.text import fold
from rag_kit.text.language import CHINESE_EVIDENCE, ENGLISH_EVIDENCE, HAN
from rag_kit.text.segment import load_segmenter

MAX_CHARS = 80
TEMPLATES = {
    "en": ("What is {term}?", "How does {term} work?"),
    "zh": ("什么是{term}？", "{term}有什么作用？"),
}
_RUNS = re.compile(f"[{HAN}]+|[^\\W_{HAN}]+(?:[.'’+#_\\-]*[^\\W_{HAN}]+)*[+#]*")
_IS_HAN = re.compile(f"[{HAN}]")
_MOST_WORDS = 5


class Added(NamedTuple):
    """A term that is searched for besides, and its source: ``"model"``, ``"thesaurus"`` or ``"feedback"``."""

    text: str
    source: str


def new_terms(added: Sequence[Added], question: str) -> list[Added]:
    """Each term once, without those that stand in the question."""
    first: dict[str, Added] = {}
    for term in added:
        first.setdefault(fold(term.text), term)
    padded_question = f" {fold(question)} "
    return [term for key, term in first.items() if f" {key} " not in padded_question]


def key_phrases(question: str) -> list[str]:
    """What a question is about: the runs of words between function words and punctuation, each once."""
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
