"""Tasks on a question and a conversation: what it needs, made complete, in other words, its parts."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from rag_kit.models.extractive.answering import MARKS
from rag_kit.models.extractive.blocks import Prompt
from rag_kit.text import content_words, fold, sentences
from rag_kit.text.analysis import load_segmenter
from rag_kit.text.asking import without_question_words
from rag_kit.text.citations.decline import is_declined
from rag_kit.text.complexity import entity_queries, points_back, question_kind

_MAX_KEYWORDS = 3
_MAX_QUERY = 1000  # characters
_POINTS_BACK = 6  # content words of a follow-up with a pronoun at most
_MOST_NAMES = 6
_WHO = re.compile(r"\bwho(?:m|se)?\b|谁", re.IGNORECASE)
_PERSON = re.compile(r"\b(?:s?he|him|hers?|his)\b|[他她]", re.IGNORECASE)
_PIECE = re.compile(r"(?P<han>[\u3400-\u9fff]+)|[^\W_](?:[^\W\u3400-\u9fff]|['’.+-])*")
_WHICH = {"en": "What is your question about?", "zh": "请问你想查的是什么？"}


def condense(prompt: Prompt) -> dict[str, str]:
    """Add to a question that points back, in brackets, the words of the last question that is complete.

    After "who" a question about a person has the names of the answer there.

    Example:
        >>> turns = (("user", "Who wrote Emma?"), ("assistant", "Jane Austen wrote it.[1]"))
        >>> condense(Prompt("condense", question="When did she die?", turns=turns))
        {'query': 'When did she die? (Jane Austen)'}
    """
    question = prompt.request
    complete = [
        position
        for position, (role, text) in enumerate(prompt.turns)
        if role == "user" and not points_back(text, _POINTS_BACK)
    ]
    if not complete or len(question) > _MAX_QUERY or not points_back(question, _POINTS_BACK):
        return {"query": question}
    _, earlier = prompt.turns[complete[-1]]
    words = _keywords(earlier)
    if _PERSON.search(question) and _WHO.search(earlier):
        words = _names_in(prompt.turns[complete[-1] + 1 :], words) or words
    form = "{}（{}）" if prompt.language == "zh" else "{} ({})"
    return {"query": form.format(question, " ".join(words))[:_MAX_QUERY]}


def _names_in(turns: Sequence[tuple[str, str]], question_words: Sequence[str]) -> list[str]:
    """Return the words that may be names in the first answer among some turns, but not in its question."""
    answer = next((text for role, text in turns if role == "assistant"), "")
    spans = sentences(MARKS.sub("", answer))
    if not spans or is_declined(answer):
        return []
    words = (word for word in _keywords(spans[0].text) if word[0].isupper() or not word.isascii())
    return [word for word in words if word not in question_words][:_MOST_NAMES]


def summarise_history(prompt: Prompt) -> str:
    """Write each question with the first sentence of its answer, the newest that fit ``max_chars``.

    Example:
        >>> turns = (("user", "Who wrote Emma?"), ("assistant", "Jane Austen.[1] She wrote six novels.[1]"))
        >>> summarise_history(Prompt("summarise_history", turns=turns))
        'Who wrote Emma? Jane Austen.'
    """
    lines: list[str] = []
    for role, text in prompt.turns:
        if role == "summary":
            lines += text.splitlines()
        elif role == "user":
            lines.append(" ".join(text.split()))
        elif lines and not is_declined(text):
            answer = [" ".join(sentence.text.split()) for sentence in sentences(MARKS.sub("", text))]
            lines[-1] += " " + next((sentence for sentence in answer if not sentence.startswith("#")), "")
    room = prompt.number("max_chars", 2_000)
    while len(lines) > 1 and sum(len(line) + 1 for line in lines) > room:
        del lines[0]
    return "\n".join(lines)[:room]


def classify_question(prompt: Prompt) -> dict[str, Any]:
    """Classify the question by its wording."""
    return question_kind(prompt.request, has_history=bool(prompt.turns))._asdict()


def retrieve_needed(prompt: Prompt) -> dict[str, str]:
    """Decide to look things up unless the question is small talk."""
    return {"retrieve": "no" if question_kind(prompt.question, has_history=True).intent == "chat" else "yes"}


def clarify_question(prompt: Prompt) -> dict[str, str]:
    """Ask what the question is about."""
    return {"query": _WHICH[prompt.language]}


def web_query(prompt: Prompt) -> dict[str, list[str]]:
    """Return the three longest content words, in the order of the question.

    Example:
        >>> web_query(Prompt("web_query", question="《红楼梦》的作者出生于哪一年？"))
        {'keywords': ['红楼梦', '作者', '生于']}
    """
    words = list(dict.fromkeys(_keywords(prompt.request)))
    best = sorted(words, key=len, reverse=True)[:_MAX_KEYWORDS]
    return {"keywords": [word for word in words if word in best] or [prompt.request[:200]]}


def rewrite_query(prompt: Prompt) -> dict[str, str]:
    """Return the content words of the question if they were not tried yet, else the question.

    Example:
        >>> tried = "<queries>Who wrote the novel Emma?</queries>"
        >>> rewrite_query(Prompt("rewrite_query", question="Who wrote the novel Emma?", body=tried))
        {'query': 'wrote novel Emma'}
    """
    words = " ".join(_keywords(prompt.request))
    tried = fold(prompt.block("queries")).splitlines()
    return {"query": words if words and fold(words) not in tried else prompt.request}


def decompose(prompt: Prompt) -> dict[str, list[str]]:
    """Return a question about each of the things that are compared; none for a question of another kind."""
    return {"queries": [query for _, query in entity_queries(prompt.request)]}


def next_hop(prompt: Prompt) -> dict[str, Any]:
    """Ask about the next of the things compared; a question without a comparison is asked once, as it is.

    Example:
        >>> next_hop(Prompt("next_hop", question="Compare BM25 and SPLADE in terms of memory."))
        {'done': False, 'query': 'BM25 memory'}
    """
    earlier = [fold(text) for role, text in prompt.turns if role == "user"]
    options = decompose(prompt)["queries"] or [prompt.request]
    query = next((option for option in options if fold(option) not in earlier), "")
    return {"done": not query, "query": query}


def _keywords(question: str) -> list[str]:
    """Return the words of a question that say what it is about, as they are written."""
    words: list[str] = []
    for match in _PIECE.finditer(without_question_words(question)):
        if match["han"]:
            words += load_segmenter()(match[0])
        else:
            words.append(re.sub(r"['’]s$|[.'’-]$", "", match[0]))  # "Emma's" -> "Emma"
    return [word for word in words if content_words(word)]
