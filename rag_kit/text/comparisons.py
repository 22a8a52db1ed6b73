"""Questions that compare several things: which things, and one search for each. By rule, without a model."""

from __future__ import annotations

import re

from rag_kit.text.language import detect_language, fold

_MAX_ENTITIES = 8
_MAX_CHARS = 60
_MAX_WORDS = 8

_EN_JOIN = re.compile(
    r"\s*,\s*(?:and\s+|or\s+)?|\s+(?:and|or|vs\.?|versus|against|&|(?:(?:differ(?:ent)?|compare)\s+)?(?:to|with|from))\s+",
    re.I,
)
_EN_COMPARES = [
    re.compile(pattern, re.I)
    for pattern in (
        r"\b(?:compare\s+and\s+contrast|compare|contrast)\s+(?P<list>.+)$",
        r"\b(?:comparison|differences?|distinction|similarit(?:y|ies)|trade-?offs?)\s+(?:of|between)\s+(?P<list>.+)$",
        r"\bhow\s+(?:do|does|did|are|is)\s+(?P<list>.+?\s(?:differ(?:ent)?|compare)\s+(?:from|to|with)\s.+)$",
        r"\bhow\s+(?:do|does|did|are|is)\s+(?P<list>.+?)\s+(?:differ(?:ent)?|compare)\b",
        r"^(?:which|who|what)\b[^,:]*\b(?:\w+er|best|more\s\w+|most\s\w+)\b[^,:]*[,:]\s*(?P<list>.+\sor\s.+)$",
        r"^(?P<list>.+?\s(?:vs\.?|versus)\s.+)$",
    )
]
_EN_TOPIC = re.compile(
    r"^(?P<name>.+?),?\s+(?:in\s+terms\s+of|with\s+(?:respect|regard)\s+to|regarding|on|for|by|in|as)\s+(?P<topic>.+)$",
    re.I,
)
_EN_HEAD = re.compile(r"^(?P<head>.+\s(?:of|in|for|between))\s+(?P<name>.+)$", re.I)

_ZH_JOIN = re.compile(
    r"\s*(?:[、，,；;]\s*(?:以及|还有|和|与|及)?|以及|还有|还是|和|与|跟|及|或者|vs\.?)\s*", re.I
)
_ZH_COMPARES = [
    re.compile(r"(?:比较|对比|对照|区分)(?:一下|下)?\s*(?P<list>.+)$"),
    re.compile(
        r"^(?:请问|请)?(?P<list>.+?)\s*(?:之间|两者|三者)?\s*(?:的|有什么|有何|有哪些|存在什么)?(?:主要|本质)?(?:的)?"
        r"(?:区别|差异|差别|不同|异同|优劣|相比|对比).*$"
    ),
    # "which of them" follows other commas, too: in 2007年，他加盟哪个球队 nothing is compared
    re.compile(
        r"^(?:请问|请)?(?P<list>.*(?:、|和|与|跟|及|还是|或).+?)\s*(?:之间|两者|三者)?(?:中|里|的)?(?<!在)哪一?[个种家款].*$"
    ),
]
_ZH_TOPIC = re.compile(
    r"^(?P<name>.+?)(?:在(?P<area>.+?)(?:方面|上|中)?(?:的.*)?|的(?:[主要本质]*(?:区别|差异|差别|不同|异同|优劣).*|(?P<topic>.+)))$"
)


def entity_queries(question: str) -> list[tuple[str, str]]:
    """Find the 2 to 8 things that a question compares, in order, each with a search query for it alone.

    Empty if nothing is compared, or no rule finds what.

    Example:
        >>> entity_queries("Compare BM25, SPLADE and ColBERT in terms of memory use.")
        [('BM25', 'BM25 memory use'), ('SPLADE', 'SPLADE memory use'), ('ColBERT', 'ColBERT memory use')]
        >>> entity_queries("比较北京、上海和广州的房价")
        [('北京', '北京的房价'), ('上海', '上海的房价'), ('广州', '广州的房价')]
        >>> entity_queries("Who wrote Emma?")
        []
    """
    text = " ".join(question.split()).rstrip("?？.。!！ ")
    chinese = detect_language(text) == "zh"
    for pattern in _ZH_COMPARES if chinese else _EN_COMPARES:
        if match := pattern.search(text):
            break
    else:
        return []
    join = _ZH_JOIN if chinese else _EN_JOIN
    listed = match["list"].rsplit(": ", 1)[-1]  # "these two: BM25 and SPLADE" gives "BM25 and SPLADE"
    names = [name.strip() for name in join.split(listed)]
    pairs = _name_queries(names, chinese)
    distinct = {fold(name) for name, _ in pairs if _is_name(name)}
    return pairs if 2 <= len(distinct) == len(pairs) <= _MAX_ENTITIES else []


def _name_queries(names: list[str], chinese: bool) -> list[tuple[str, str]]:
    """Pair each name with its query; the last one may carry a topic for all, and the first one a head.

    ``["price of A", "B in May"]`` gives the queries "price of A May" and "price of B May".
    """
    *others, last = names
    head = topic = ""
    if match := (_ZH_TOPIC if chinese else _EN_TOPIC).match(last):
        last, *topics = match.groups()
        topic = next((found.strip() for found in topics if found), "")
    names = [*others, last]
    if not chinese and not any(map(_EN_HEAD.match, names[1:])) and (match := _EN_HEAD.match(names[0])):
        head, names[0] = match.groups()
    joiner = "的" if chinese else " "
    return [(name.strip(), joiner.join(filter(None, (head, name.strip(), topic)))) for name in names]


def missing_queries(pairs: list[tuple[str, str]], variants: list[str]) -> list[str]:
    """Return the queries of the things that no variant of the question names alone."""
    # Latin names must be whole words ("A" is not in "what"); Chinese text has no gaps between words.
    patterns = {name: rf"(?<![a-z0-9]){re.escape(fold(name))}(?![a-z0-9])" for name, _ in pairs}
    named = [[name for name in patterns if re.search(patterns[name], fold(variant))] for variant in variants]
    return [query for name, query in pairs if [name] not in named]


def _is_name(text: str) -> bool:
    return len(text) <= _MAX_CHARS and len(text.split()) <= _MAX_WORDS and any(map(str.isalnum, text))
