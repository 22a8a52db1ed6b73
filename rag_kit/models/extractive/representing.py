"""The tasks ``represent_summary``, ``represent_keywords`` and ``represent_tags``: sentences, phrases, marked lines."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from typing import Any

from rag_kit.models.extractive.blocks import Prompt
from rag_kit.models.extractive.phrases import phrases
from rag_kit.text import detect_language, sentences
from rag_kit.text.evidence.questions import terms

_SENTENCES = 2
_MAX_CHARS = 20_000
_LINE = re.compile(r"^[\s*#>|-]*([^\s:：*|][^:：\n]{0,39}?)\**\s*[:：]\s*(\S[^\n]{0,79})$", re.MULTILINE)


def represent_summary(prompt: Prompt) -> dict[str, Any]:
    """The two sentences of each passage that share most with the rest of it, in their order.

    Example:
        >>> from rag_kit.text.evidence.sentences import PassageText
        >>> text = "Hello. The pump cools the engine. The engine needs a pump. It rains. Bye."
        >>> represent_summary(Prompt("represent_summary", passages=(PassageText(1, text),)))
        {'passages': [{'id': 1, 'texts': ['The pump cools the engine. The engine needs a pump.']}]}
    """
    return _for_each_passage(prompt, lambda text: [_summary(text)])


def represent_keywords(prompt: Prompt) -> dict[str, Any]:
    """The phrases of each passage that occur most, names before plain words."""

    def keywords(text: str) -> list[str]:
        weights: dict[str, float] = {}
        for phrase in phrases(text):
            weights[phrase.text] = weights.get(phrase.text, 0.0) + phrase.weight
        return sorted(weights, key=lambda phrase: -weights[phrase])[: prompt.number("count", 8)]

    return _for_each_passage(prompt, keywords)


def represent_tags(prompt: Prompt) -> dict[str, Any]:
    """Lines such as ``Topic: pumps`` under one of the allowed names; and the language, where that is one."""
    allowed = {name.strip().casefold(): name.strip() for name in prompt.block("names").split(",")}

    def tagged_lines(text: str) -> list[str]:
        tags: dict[str, str] = {"language": detect_language(text)} if "language" in allowed else {}
        for match in _LINE.finditer(text):
            if (name := match[1].strip().casefold()) in allowed:
                tags.setdefault(name, match[2].strip())
        return [f"{allowed[name]}: {value}" for name, value in tags.items()]

    return _for_each_passage(prompt, tagged_lines)


def _for_each_passage(prompt: Prompt, work: Callable[[str], list[str]]) -> dict[str, Any]:
    rows = [{"id": passage.number, "texts": work(passage.text[:_MAX_CHARS])} for passage in prompt.passages]
    return {"passages": rows}


def _summary(text: str) -> str:
    """The sentences that share most terms with the others, in their order."""
    rows = [(sentence.text, set(terms(sentence.text))) for sentence in sentences(text)]
    if len(rows) <= _SENTENCES:
        return text.strip()
    spread = Counter(term for _, words in rows for term in words)
    # a sentence counts for the terms that it shares with others, a long one not for its length
    scores = [sum(spread[term] - 1 for term in words) / (len(words) + 5) for _, words in rows]
    best = sorted(range(len(rows)), key=lambda number: (-scores[number], number))[:_SENTENCES]
    return " ".join(rows[number][0].strip() for number in sorted(best))
