"""Questions of several facts: comparisons in parts, comparisons and descriptions step by step."""

from __future__ import annotations

import re
from typing import Any

from rag_kit.models.extractive.blocks import Prompt
from rag_kit.models.extractive.condense import topic_of
from rag_kit.text import detect_language, fold
from rag_kit.text.citations.decline import is_declined
from rag_kit.text.comparisons import entity_queries
from rag_kit.text.complexity import ROLES, ROLES_ZH

_PLACES = frozenset(
    {"capital", "headquarters", "birthplace", "hometown", "首都", "省会", "总部", "故乡", "出生地"}
)
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
