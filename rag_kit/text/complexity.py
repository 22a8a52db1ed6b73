"""Classification of a question by its wording: talk, one search, several, or a question back; and what it compares.

By rule, without a model, in English and Chinese.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from rag_kit.text.analysis import content_words
from rag_kit.text.language import detect_language, fold


class QuestionKind(NamedTuple):
    """Kinds of questions by what they need."""

    intent: str  # "chat" (talk), "question", or "unclear" (what it refers to is unknown)
    complexity: str  # "none" (nothing to look up), "single" (one search) or "multi" (several facts)
    reason: str  # why, in one short sentence, in the language of the question


# intent, complexity, and the reason in English and Chinese
_KINDS = {
    "chat": ("chat", "none", "It is a greeting, or about this conversation.", "这是寒暄，或谈的是对话本身。"),
    "unclear": ("unclear", "single", "It refers to something that was not named.", "所指的对象没有说明。"),
    "comparison": ("question", "multi", "It compares several things.", "它比较几个事物。"),
    "single": ("question", "single", "It asks for one thing.", "它只问一件事。"),
}
_CHAT = re.compile(
    r"(?:hi|hello|hey|good (?:morning|afternoon|evening|day))(?: there| all)?|great|ok(?:ay)?|(?:good)?bye"
    r"|(?:many )?thank(?:s| you)(?: very much| a lot)?|how are you(?: today)?|who are you|what can you do(?: for me)?"
    r"|(?:你|您)好呀?|大家好|(?:早上|下午|晚上)好|(?:非常|多)?(?:谢谢|感谢)(?:你|您)?(?:的帮助)?|好的?|再见|(?:你|您)是谁"
    r"|(?:你|您)(?:会|能)(?:做|干)(?:些)?什么",
    re.IGNORECASE,
)
_ENDS = " \t\n.!?,;:。！？，、；：~～…)("
_REPLY = re.compile(r"[(（][^()（）]+[)）]\s*$")
_POINTER = re.compile(
    r"\b(?:he|she|him|her|his|hers|they|them|theirs?|its?)\b|\bthe (?:former|latter|other one|same)\b"
    r"|\b(?:this|that|these|those)(?=\s*(?:[?.!,]|$|(?:ones?|is|was|are|were|do|does|did|mean|work)\b))"
    r"|^(?:那么?|请问)?[，,]?(?:[它他她]们?|[这那](?:个|种|些|件|款|家|位|本|部|里|(?=[是有在怎什多为]))|前者|后者)",
    re.IGNORECASE,
)
# an English name, letters in capitals or inside Chinese text, a figure, what is quoted
_NAMED = re.compile(
    r"(?<=\S )[A-Z][\w'’-]*[a-z]|\b[A-Z]{2,}\w*|\d|[\"“「《『]"
    r"|(?<=[\u3400-\u9fff])[A-Za-z]{2,}|[A-Za-z]{2,}(?=[\u3400-\u9fff])"
)
_FRAGMENT = re.compile(
    r"(?:and|but|or|so|then)\b.{0,25}|(?:what|how) about\b.{0,25}|tell me more|那么?.{0,8}呢|然后呢|还有吗|继续",
    re.IGNORECASE,
)
_MAX_CHARS, _MAX_TALK = 500, 100  # the patterns look no further, so that no text keeps them busy


def question_kind(question: str, *, has_history: bool = False) -> QuestionKind:
    """Classify a question by what it needs.

    Talk is known by its wording as a whole. What points back without a history to point to is unclear. What compares
    several things needs several facts. All else asks for one thing; a question whose hidden steps do not show in its
    words is not noticed. One that ends with a remark in brackets has been made clear by it, and with a history it may
    refer to that.

    Example:
        >>> question_kind("Hello!").complexity
        'none'
        >>> question_kind("When does it start?").intent
        'unclear'
        >>> question_kind("When does it start?", has_history=True).complexity
        'single'
        >>> [question_kind(q).complexity for q in ("What is the difference between BM25 and SPLADE?", "谁写了《家》？")]
        ['multi', 'single']
    """
    text = " ".join(question[:_MAX_CHARS].split())
    parts = [part.strip(_ENDS) for part in re.split(r"[.!?,;。！？，；~～]+", text[:_MAX_TALK])]
    parts = [part for part in parts if part]
    if parts and all(map(_CHAT.fullmatch, parts)):
        name = "chat"
    elif not has_history and not _REPLY.search(text) and points_back(text):
        name = "unclear"
    else:
        name = "comparison" if entity_queries(text) else "single"
    intent, complexity, english, chinese = _KINDS[name]
    return QuestionKind(intent, complexity, chinese if detect_language(text) == "zh" else english)


def points_back(question: str, max_words: int = 2) -> bool:
    """Tell whether a question points at something it does not name, or names nothing to search for.

    A pronoun in a question of more than ``max_words`` content words is taken to stand for one of these.

    Example:
        >>> [points_back(text) for text in ("When does it start?", "And in 2020?", "Does Ada know that she won?")]
        [True, True, False]
    """
    text = " ".join(question[:_MAX_CHARS].split())
    words = content_words(text.strip(_ENDS))
    if not words or _FRAGMENT.fullmatch(text.strip(_ENDS)):
        return True
    return len(words) <= max_words and _POINTER.search(text) is not None and not _NAMED.search(text)


_MAX_ENTITIES = 8
_MAX_NAME_CHARS, _MAX_NAME_WORDS = 60, 8

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
    matches = (pattern.search(text) for pattern in (_ZH_COMPARES if chinese else _EN_COMPARES))
    match = next(filter(None, matches), None)
    if match is None:
        return []
    listed = match["list"].rsplit(": ", 1)[-1]  # "these two: BM25 and SPLADE" gives "BM25 and SPLADE"
    names = [name.strip() for name in (_ZH_JOIN if chinese else _EN_JOIN).split(listed)]
    pairs = _name_queries(names, chinese)
    are_short = all(
        len(name) <= _MAX_NAME_CHARS and len(name.split()) <= _MAX_NAME_WORDS for name, _ in pairs
    )
    distinct = {fold(name) for name, _ in pairs if any(map(str.isalnum, name))}
    return pairs if are_short and 2 <= len(distinct) == len(pairs) <= _MAX_ENTITIES else []


def _name_queries(names: list[str], chinese: bool) -> list[tuple[str, str]]:
    """Pair each name with its query; the last one may carry a topic for all, and the first one a head.

    ``["price of A", "B in May"]`` gives the names "A" and "B" and their queries "price of A May", "price of B May".
    """
    *others, last = names
    head = topic = ""
    if match := (_ZH_TOPIC if chinese else _EN_TOPIC).match(last):
        last, *topics = match.groups()
        topic = next((group.strip() for group in topics if group), "")
    names = [*others, last]
    has_own_heads = any(map(_EN_HEAD.match, names[1:]))
    if not chinese and not has_own_heads and (match := _EN_HEAD.match(names[0])):
        head, names[0] = match.groups()
    joiner = "的" if chinese else " "
    return [(name.strip(), joiner.join(filter(None, (head, name.strip(), topic)))) for name in names]


def missing_queries(pairs: list[tuple[str, str]], variants: list[str]) -> list[str]:
    """Return the queries of the things that no variant of the question names alone; `pairs` are things and queries."""
    # Latin names must be whole words ("A" is not in "what"); Chinese text has no gaps between words.
    patterns = {name: rf"(?<![a-z0-9]){re.escape(fold(name))}(?![a-z0-9])" for name, _ in pairs}
    named = [[name for name in patterns if re.search(patterns[name], fold(variant))] for variant in variants]
    return [query for name, query in pairs if [name] not in named]
