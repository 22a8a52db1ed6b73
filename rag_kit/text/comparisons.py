"""Questions that compare several things: which things, and one search for each. By rule, without a model."""

from __future__ import annotations

import re

from rag_kit.text.language import detect_language, fold

_MAX_ENTITIES = 8
_MAX_CHARS = 60
_MAX_WORDS = 8

_EN_JOIN = re.compile(
    r"\s*,\s*(?:and\s+|or\s+|vs\.?\s+|versus\s+)?|\s+(?:and|or|vs\.?|versus|with|to|against|from|&)\s+", re.I
)
_EN_COMPARES = (
    re.compile(r"\b(?:compare\s+and\s+contrast|compare|contrast)\s+(?P<list>.+)$", re.I),
    re.compile(
        r"\b(?:comparison|differences?|distinction|similarit(?:y|ies)|trade-?offs?)\s+(?:of|between|among)\s+(?P<list>.+)$",
        re.I,
    ),
    re.compile(
        r"\bhow\s+(?:do|does|did|are|is)\s+(?P<list>.+?)\s+(?:differ(?:ent)?|compare)\b(?P<more>.*)$", re.I
    ),
    re.compile(
        r"^(?:which|who|what)\b[^,:]*\b\w+(?:er|best|better|more\s\w+|most\s\w+)\b[^,:]*[,:]\s*(?P<list>.+\sor\s.+)$",
        re.I,
    ),
    re.compile(r"^(?P<list>.+?\s(?:vs\.?|versus)\s.+)$", re.I),
)
_EN_TOPIC = re.compile(
    r"^(?P<last>.+?),?\s+(?:in\s+terms\s+of|with\s+(?:respect|regard)\s+to|regarding|concerning|when\s+it\s+comes\s+to|"
    r"on|for|by|in|as)\s+(?P<topic>.+)$",
    re.I,
)
_EN_HEAD = re.compile(r"^(?P<head>.+\s(?:of|in|for|between))\s+(?P<entity>.+)$", re.I)

_ZH_JOIN = re.compile(
    r"\s*(?:[、，,；;]\s*(?:以及|还有|和|与|及)?|以及|还有|还是|和|与|跟|及|或者|vs\.?|VS\.?)\s*", re.I
)
_ZH_COMPARES = (
    re.compile(r"(?:比较|对比|对照|比一比|区分)(?:一下|下)?\s*(?P<list>.+)$"),
    re.compile(
        r"^(?P<list>.+?)\s*(?:之间|两者|三者)?\s*(?:的|有什么|有何|有哪些|有啥|存在什么|存在哪些)?(?:主要|本质|根本)?(?:的)?"
        r"(?:区别|差异|差别|不同|异同|优劣|相比|对比|哪一?[个种家款]|孰).*$"
    ),
)
_ZH_TOPIC = re.compile(r"^(?P<last>.+?)(?:在(?P<area>.+?)(?:方面|上|中)?(?:的.*)?|的(?P<topic>.+))$")
_ZH_OPENING = re.compile(r"^(?:请问|请|帮我|麻烦)+\s*")
_ZH_EMPTY_TOPIC = re.compile(r"^(?:主要|本质|根本)?(?:区别|差异|差别|不同|异同|优劣)")


def entity_queries(question: str) -> list[tuple[str, str]]:
    """The things that a question compares, and a search query for each alone.

    Args:
        question: Any question, in English or Chinese.

    Returns:
        ``(thing, query)`` pairs in the order of the question, 2 to 8; empty if nothing is compared, or it
        cannot be decided by rule.

    Example:
        >>> entity_queries("Compare BM25, SPLADE and ColBERT in terms of memory use.")
        [('BM25', 'BM25 memory use'), ('SPLADE', 'SPLADE memory use'), ('ColBERT', 'ColBERT memory use')]
        >>> entity_queries("比较北京、上海和广州的房价")
        [('北京', '北京的房价'), ('上海', '上海的房价'), ('广州', '广州的房价')]
        >>> entity_queries("Who wrote Emma?")
        []
    """
    text = " ".join(question.split()).rstrip("?？.。!！ ")
    pairs = _chinese(text) if detect_language(text) == "zh" else _english(text)
    names = {fold(name) for name, _ in pairs}
    return pairs if 2 <= len(names) == len(pairs) <= _MAX_ENTITIES else []


def uncovered(pairs: list[tuple[str, str]], variants: list[str]) -> list[str]:
    """The queries of those things that no variant is about alone.

    Example:
        >>> uncovered([("cats", "cats price"), ("dogs", "dogs price")], ["what cats cost", "cats or dogs"])
        ['dogs price']
    """
    # Latin names must stand as words ("A" is not in "what"); Chinese text has no gaps between words.
    named = [
        [
            name
            for name, _ in pairs
            if re.search(rf"(?<![a-z0-9]){re.escape(fold(name))}(?![a-z0-9])", fold(variant))
        ]
        for variant in variants
    ]
    return [query for name, query in pairs if [name] not in named]


def _english(text: str) -> list[tuple[str, str]]:
    for pattern in _EN_COMPARES:
        if match := pattern.search(text):
            listed = match["list"] + (match.groupdict().get("more") or "")
            items, topic = [item.strip() for item in _EN_JOIN.split(_without_colon(listed))], ""
            if tail := _EN_TOPIC.match(items[-1]):
                items[-1], topic = tail["last"], tail["topic"]
            head = _EN_HEAD.match(items[0])
            if head and not any(_EN_HEAD.match(item) for item in items[1:]):
                items[0] = head["entity"]  # "the price of A and B": the head belongs to each
            else:
                head = None
            before = f"{head['head']} " if head else ""
            return _checked([(item, f"{before}{item} {topic}".strip()) for item in items])
    return []


def _without_colon(text: str) -> str:
    """ "the following: A, B and C" -> the list alone."""
    return text.rsplit(":", 1)[-1].strip() if ":" in text else text


def _chinese(text: str) -> list[tuple[str, str]]:
    for pattern in _ZH_COMPARES:
        if match := pattern.search(_ZH_OPENING.sub("", text)):
            items, topic = [item.strip() for item in _ZH_JOIN.split(match["list"])], ""
            if tail := _ZH_TOPIC.match(items[-1]):
                items[-1], topic = tail["last"].strip(), (tail["area"] or tail["topic"] or "").strip()
            if _ZH_EMPTY_TOPIC.match(topic):
                topic = ""
            return _checked([(item, f"{item}的{topic}" if topic else item) for item in items])
    return []


def _checked(pairs: list[tuple[str, str]]) -> list[tuple[str, str]]:
    fine = all(
        name
        and len(name) <= _MAX_CHARS
        and len(name.split()) <= _MAX_WORDS
        and any(c.isalnum() for c in name)
        for name, _ in pairs
    )
    return pairs if fine else []
