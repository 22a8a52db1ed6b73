"""Tasks on a question alone: keywords, other words, sources, what it needs, and what it means."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

from rag_kit.models.extractive.blocks import Prompt
from rag_kit.models.extractive.phrases import phrases
from rag_kit.text import content_words
from rag_kit.text.complexity import pointing_word, question_kind
from rag_kit.text.evidence.questions import FRAME_WORDS, analyse
from rag_kit.text.likeness import WordLikeness

_MAX_KEYWORDS = 3
_MAX_SOURCES = 100
_HAN = re.compile(r"[\u3400-\u9fff]")
_WORD = re.compile(r"[^\W_][\w'’.+-]*")
_FRAME_ZH = re.compile(
    r"请问|为什么|为何|什么时[候间]|何时|何地|何处|何人|什么|哪[一]?[个些里儿位年天种]|多少|多[大长高久远]|如何|怎样|怎么样?"
    r"|是不是|有没有|[谁吗呢吧的了是在有？?！!，,。]"
)
_SHARED = {"en": "It shares these words with the question: {}.", "zh": "与问题有相同的词：{}。"}
_WHICH = {"en": 'What does "{}" refer to?', "zh": "“{}”指的是什么？"}
_WHAT = {"en": "What is your question about? Please name it.", "zh": "请问您想查的是什么？请写出名称。"}


def web_query(prompt: Prompt) -> dict[str, list[str]]:
    """At most three keywords: what is quoted, names, then the rarest words, in the order of the question.

    Example:
        >>> web_query(Prompt("web_query", question="《红楼梦》的作者出生于哪一年？"))
        {'keywords': ['红楼梦', '作者']}
    """
    weights: dict[str, float] = {}
    for phrase in phrases(prompt.request):
        weights.setdefault(phrase.text, phrase.weight)
    best = sorted(weights, key=lambda text: -weights[text])[:_MAX_KEYWORDS]
    return {"keywords": [text for text in weights if text in best] or [prompt.request[:200]]}


def rewrite_query(prompt: Prompt) -> dict[str, str]:
    """The content words of the question, then the names among them, then its longest word: the first not tried yet.

    Example:
        >>> tried = "<queries>Who wrote the novel Emma?</queries>"
        >>> rewrite_query(Prompt("rewrite_query", question="Who wrote the novel Emma?", body=tried))
        {'query': 'wrote novel Emma'}
    """
    question = prompt.request
    tried = {_plain(line) for line in prompt.block("queries").splitlines()}
    if _HAN.search(question):
        words = _FRAME_ZH.sub(" ", question).split()
    else:
        words = [word.rstrip(".") for word in _WORD.findall(question)]
        words = [word for word in words if content_words(word) and word.lower() not in FRAME_WORDS]
    names = {term.key for term in analyse(question).terms if term.nominal}
    named = [word for word in words if names & set(content_words(word))]
    options = [" ".join(words), " ".join(named), max(words, key=len, default="")]
    return {"query": next((option for option in options if option and _plain(option) not in tried), question)}


def route(prompt: Prompt) -> dict[str, Any]:
    """The sources of the lines ``- "name": description`` that share words with the question, best first.

    Example:
        >>> listed = '- "tea": leaves and pots\\n- "cars": engines and wheels'
        >>> body = f"<sources>{listed}</sources><question>Which wheels are best?</question>"
        >>> [choice["name"] for choice in route(Prompt("route", user=body))["choices"]]
        ['cars']
    """
    last = replace(prompt, body=prompt.user)  # worked examples before it are not what is asked
    question = last.block("question")
    sources = _sources(last.block("sources"))
    likeness = WordLikeness([[name, text] for name, text in sources])
    scores = likeness.scores(question)
    best = sorted((place for place, score in enumerate(scores) if score > 0), key=lambda p: (-scores[p], p))
    reason = _SHARED[replace(prompt, question=question).language]
    return {
        "choices": [
            {
                "name": sources[place][0],
                "reason": reason.format(", ".join(likeness.shared_words(question, place))),
            }
            for place in best[: last.number("most", 1)]
        ]
    }


def classify_question(prompt: Prompt) -> dict[str, Any]:
    """What the question needs, by its wording."""
    return question_kind(prompt.request, has_history=bool(prompt.turns))._asdict()


def clarify_question(prompt: Prompt) -> dict[str, str]:
    """Ask back for what a question points to.

    Example:
        >>> clarify_question(Prompt("clarify_question", question="When does it start?"))
        {'query': 'What does "it" refer to?'}
    """
    word = pointing_word(prompt.question)
    return {"query": _WHICH[prompt.language].format(word) if word else _WHAT[prompt.language]}


def _sources(text: str) -> list[tuple[str, str]]:
    """Name and description of each line."""
    sources = []
    for line in text.splitlines()[:_MAX_SOURCES]:
        try:
            name, end = json.JSONDecoder().raw_decode(line, line.index('"'))
        except ValueError:
            continue
        sources.append((str(name), line[end:].lstrip(": ")))
    return sources


def _plain(text: str) -> str:
    return " ".join(text.casefold().split()).rstrip("?？.。 ")
