"""Tasks on a question: keywords, other words, its parts and steps, sources, what it needs, and what it means."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

from rag_kit.models.extractive.blocks import Prompt
from rag_kit.models.extractive.conversation import topic_of
from rag_kit.models.extractive.phrases import phrases
from rag_kit.text import content_words, detect_language, fold
from rag_kit.text.citations.decline import is_declined
from rag_kit.text.comparisons import entity_queries
from rag_kit.text.complexity import ROLES, ROLES_ZH, pointing_word, question_kind
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
_PLACES = {"capital", "headquarters", "birthplace", "hometown", "首都", "省会", "总部", "故乡", "出生地"}
_DESCRIBED = re.compile(
    rf"\bthe (?:[a-z][\w-]* )?(?P<role>{ROLES}) of (?:the )?"
    r"(?:[\"“][^\"”]+[\"”]|[A-Z0-9][\w'’.-]*(?: (?:(?:of|the|and) )?[A-Z0-9][\w'’.-]*)*|[a-z][\w-]*)"
)
_DESCRIBED_ZH = re.compile(
    rf"(?:《[^》]{{1,40}}》|[\u3400-\u9fffA-Za-z0-9·]{{2,16}}?)的(?P<role>{ROLES_ZH})(?=.{{2,}})"
)
_MEASURES = {
    "longer": "long", "taller": "tall", "higher": "high", "deeper": "deep", "wider": "wide", "larger": "large",
    "bigger": "large", "heavier": "heavy", "faster": "fast", "hotter": "hot", "older": "old", "farther": "far",
}  # fmt: skip
_THAN = re.compile(
    rf"^(?:is|are|was|were) (?P<a>[^?]{{1,60}}?) (?:much )?(?P<how>{'|'.join(_MEASURES)}) than (?P<b>[^?]{{1,60}})",
    re.I,
)
_THAN_ZH = re.compile(r"^(?P<a>.{1,20}?)比(?P<b>.{1,20}?)[更还]?(?P<how>[长高大重远快深宽])吗?[？?]?$")


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


def decompose(prompt: Prompt) -> dict[str, list[str]]:
    """A question about each thing that is compared; none for a question of another kind.

    Example:
        >>> decompose(Prompt("decompose", question="Is the Po longer than the Rhine?"))
        {'queries': ['How long is the Po?', 'How long is the Rhine?']}
    """
    return {"queries": _sides(prompt.request)}


def next_hop(prompt: Prompt) -> dict[str, Any]:
    """The next thing to search for: each side of a comparison, or what a description stands for and then the rest.

    A question of another kind is asked as it is, once.

    Example:
        >>> question = "Where was the director of Alien born?"
        >>> next_hop(Prompt("next_hop", question=question))
        {'done': False, 'query': 'Who is the director of Alien?'}
        >>> turns = (("user", "Who is the director of Alien?"), ("assistant", "Ridley Scott directed Alien."))
        >>> next_hop(Prompt("next_hop", question=question, turns=turns))["query"]
        'Where was Ridley Scott born?'
    """
    earlier = [fold(text) for role, text in prompt.turns if role == "user"]
    options = _sides(prompt.request) or _steps(prompt.request, prompt.turns)
    query = next((option for option in options if fold(option) not in earlier), "")
    return {"done": not query, "query": query}


def route(prompt: Prompt) -> dict[str, Any]:
    """The sources of the lines ``- "name": description`` that share words with the question, best first."""
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
    """Ask back for what a question points to: ``What does "it" refer to?``."""
    word = pointing_word(prompt.question)
    return {"query": _WHICH[prompt.language].format(word) if word else _WHAT[prompt.language]}


def _steps(question: str, turns: tuple[tuple[str, str], ...]) -> list[str]:
    """What the description in a question stands for, then the question with the name that was found for it."""
    chinese = detect_language(question) == "zh"
    match = (_DESCRIBED_ZH if chinese else _DESCRIBED).search(question)
    if match is None or len(match.group()) + 3 >= len(question):
        return [question]
    place = match["role"] in _PLACES
    if chinese:
        first = f"{match.group()}{'是哪里' if place else '是谁'}？"
    else:
        first = f"{'What' if place else 'Who'} is {match.group()}?"
    replies = [text for role, text in turns[1:2] if role == "assistant" and not is_declined(text)]
    name = topic_of(first, replies[0], person=True) if replies else ""
    if not name or fold(name) in fold(match.group()):
        return [first, question]
    return [first, question[: match.start()] + name + question[match.end() :]]


def _sides(question: str) -> list[str]:
    """A question about each thing that is compared: for its measure, where the comparison names one."""
    if match := _THAN.search(question):
        return [f"How {_MEASURES[match['how'].lower()]} is {name.strip()}?" for name in match.group("a", "b")]
    if match := _THAN_ZH.search(question):
        return [f"{name}有多{match['how']}？" for name in match.group("a", "b")]
    return [query for _, query in entity_queries(question)]


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
