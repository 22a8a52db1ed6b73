"""A question analysed: the terms that evidence is counted in, the kind of thing it asks for, the times it names."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import NamedTuple

from rag_kit.text.analysis import content_words
from rag_kit.text.evidence.times import Span, time_spans
from rag_kit.text.language import detect_language, fold, word_set

_HAN = re.compile(r"([\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]+)")
_LATIN = re.compile(r"[A-Za-z][A-Za-z0-9_.+-]*")
# words that ask, and particles: not expected in an answer
_ASKING = re.compile(
    r"请问|(?:是|有|叫做?|为)?(?:什么|哪些|哪[一个位种里儿年些名]|多少|如何|怎样|怎么样?|为何|何时|何处|何地|何人|谁|几)(?:样|时候|时间|地方)?"
    r"|[的了吗呢是在和与及而于由被把所其之以]"
)
_NAMED = re.compile(
    r"(?<=[\s(])[A-Z][\w'’.-]*|\b[A-Z]{2,}\b|[!-~]*\d[!-~]*|[“\"「《『]([^”\"」》』]{1,40})[”\"」》』]"
)
_DATE = re.compile(
    r"\b(?:1\d|20)\d{2}s?\b|\d+ ?[年月日]"
    r"|\b(?:jan|feb|mar|apr|may|june?|july?|aug|sept?|oct|nov|dec)(?:[a-z]*)\b(?= ?\d)",
    re.IGNORECASE,
)


# Frequent English words that frame a question ("What kind of ...", "Name the ..."), so that rarer ones decide.
_FRAME_WORDS = word_set(
    "name names named call called type types kind kinds sort many much year years date time times person people "
    "thing things term terms word words happen happened happens according following given mean means meant "
    "main long often number amount percentage example examples reason reasons way ways describe list "
    "difference differences considered known refer refers referred"
)


class Term(NamedTuple):
    """A term of a question."""

    key: str  # the normalised form that is looked for
    salience: float  # 1 for a plain word, 1.5 for names, numbers and identifiers, 0.3 for words that frame a question
    nominal: bool  # looks like a name, number or identifier
    date: bool  # is a part of a date


@lru_cache(maxsize=8192)
def terms(text: str) -> tuple[str, ...]:
    """Split text into terms, repeated ones kept, in order.

    Example:
        >>> terms("The Rhine floods 奥尔斯顿")
        ('rhine', 'flood', '奥尔', '尔斯', '斯顿')
    """
    keys: list[str] = []
    for place, part in enumerate(_HAN.split(fold(text))):
        pairs = [part[at : at + 2] for at in range(len(part) - 1)] or [part]
        keys.extend(pairs if place % 2 else content_words(part))
    return tuple(keys)


@lru_cache(maxsize=256)
def question_terms(text: str) -> tuple[Term, ...]:
    """The distinct terms of a question with their salience, in order.

    Example:
        >>> [(t.key, t.nominal) for t in question_terms("What colour is the flag of Chad?")]
        [('colour', False), ('flag', False), ('chad', True)]
    """
    dates = {key for match in _DATE.finditer(text) for key in terms(match.group())}
    named = {key for match in _NAMED.finditer(text) for key in terms(match.group())} - dates
    plain = text
    if _HAN.search(text):
        named |= {key for match in _LATIN.finditer(text) for key in terms(match.group())}
        plain = _ASKING.sub(" ", fold(text))
    keys = list(dict.fromkeys(terms(plain)))
    keys = [key for key in keys if len(key) > 1 or key.isascii()] or keys
    frames = _frame_terms()
    return tuple(
        Term(key, 1.5 if key in named else 0.3 if key in frames else 1.0, key in named, key in dates)
        for key in keys
    )


@cache
def _frame_terms() -> frozenset[str]:
    return frozenset(key for word in _FRAME_WORDS for key in content_words(word))


MAX_QUESTION = 4_000  # characters of a question that are read

_KINDS = {
    "when": (
        r"\bwhen\b|\b(?:what|which|whose)\s+(?:\w+\s+)?(?:years?|date|day|month|centur\w+|decade|era|season)\b"
        r"|\bhow long ago\b|何时|什么时[候间]|哪[一]?[年天日]|哪个?(?:世纪|年代|月)|几[年月日号]|(?:时间|日期|年份)是"
    ),
    "number": (
        r"\bhow (?:many|much|long|old|far|large|big|tall|high|often|fast|deep|wide|heavy)\b"
        r"|\b(?:what|which) (?:\w+\s+){0,2}(?:percent\w*|number|amount|proportion|population|distance|height|size|age"
        r"|price|cost|rate|score|length|temperature|speed|fraction|ratio)\b"
        r"|多[少大高长远久重宽深快]|几[个位次名人种届家座条部层所支]|第几|百分之几"
    ),
    "who": (
        r"\bwho(?:m|se)?\b|\b(?:what|which) (?:\w+\s+){0,2}(?:person|people|man|woman|player|actor|actress|king|queen"
        r"|president|leader|author|writer|scientist|artist|singer|director|coach|manager|founder|architect"
        r"|historian|general|emperor)\b|谁|哪位|何人|哪[个些一]人|什么人|哪名"
    ),
    "where": (
        r"\bwhere\b|\b(?:what|which) (?:\w+\s+)?(?:city|country|place|location|state|town|region|continent|river|area"
        r"|county|province|district|village|nation|island|street|building|university|school|college)\b"
        r"|哪里|哪儿|何处|何地|什么地[方点]|哪个?(?:国|城|省|市|县|州|地|区|岛|洲|大学)|位于"
    ),
    "why": (
        r"\bwhy\b|\b(?:what|which) (?:was|is|were|are)? ?(?:the )?(?:reasons?|cause)\b|为什么|为何|原因|缘何|为啥"
    ),
}
_KIND_PATTERNS = {kind: re.compile(pattern, re.IGNORECASE) for kind, pattern in _KINDS.items()}

_NUMBER = re.compile(
    r"\d+(?:[.,]\d+)*|[零一二两三四五六七八九十百千万亿]{1,9}(?=[个位次名人种年月日岁米里元届家座部条层所支%])"
    r"|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|twenty|thirty|forty|fifty|sixty|seventy"
    r"|eighty|ninety|hundred|thousand|million|billion|half|third|quarter|dozen|once|twice)\b",
    re.IGNORECASE,
)
_TIME = re.compile(
    r"\b1\d{3}\b|\b20\d{2}\b|\d+ ?(?:世纪|年|月|日)|[一二三四五六七八九十]+(?:世纪|年|月)"
    r"|\b\d{1,2}(?:st|nd|rd|th) century\b"
    r"|\b(?:january|february|march|april|june|july|august|september|october|november|december)\b"
    r"|\b\w+ century\b|\b(?:spring|summer|autumn|winter)\b|[唐宋元明清汉]朝|时期",
    re.IGNORECASE,
)
_NAME = re.compile(r"\b[A-Z][\w'’.-]*[a-z]\w*(?:\s+(?:of|the|de|von|van|der|la|le|[A-Z][\w'’.-]*))*")
_HAN_NAME = re.compile(
    r"[\u3400-\u9fff]+[·•・][\u3400-\u9fff]+|[（(][A-Za-z]"
    r"|(?<=[\u3400-\u9fff])\s?[A-Z][a-z]+|[A-Z][a-z]+(?=\s?[\u3400-\u9fff])"
)
_HAN_PLACE = re.compile(
    r"[\u3400-\u9fff]{1,6}[国省市县区州镇村乡岛洲山河江湖海路街城都港湾府郡]|[东南西北]部"
)
_CAUSE = re.compile(
    r"\b(?:because|due to|since|as a result|owing to|caused?|so that|in order to|reasons?|therefore|led to|thus|to)\b"
    r"|因|由于|为了|以便|所以|故|导致|使得",
    re.IGNORECASE,
)
#: What shows that a sentence holds something of a kind: patterns, and the characters at its start that they leave out.
OFFERED = {
    "number": ((_NUMBER, 0),),
    "when": ((_TIME, 0),),
    "who": ((_NAME, 1), (_HAN_NAME, 0)),
    "where": ((_NAME, 1), (_HAN_PLACE, 0)),
    "why": ((_CAUSE, 0),),
}


@dataclass(frozen=True)
class Question:
    """A question, analysed."""

    text: str
    language: str  # "en" or "zh"
    kind: str  # "who", "when", "where", "number", "why" or "other"
    terms: tuple[Term, ...]  # its content terms in order
    spans: tuple[Span, ...]  # the spans of time that it names
    keys: frozenset[str]  # the keys of its terms
    weights: Mapping[str, float]  # of its terms, together 1; 0 for dates, whose fit in time counts instead


@lru_cache(maxsize=256)
def analyse(text: str) -> Question:
    """Analyse a question.

    Example:
        >>> question = analyse("Who led Iceland from 1990 to 1994?")
        >>> question.kind, [term.key for term in question.terms][:2], question.spans
        ('who', ['led', 'iceland'], (Span(start=1990.0, end=1995.0),))
    """
    text = text[:MAX_QUESTION]
    kind = next((kind for kind, pattern in _KIND_PATTERNS.items() if pattern.search(text)), "other")
    terms, spans = question_terms(text), tuple(time_spans(text))
    salience = {term.key: 0.0 if spans and term.date else term.salience for term in terms}
    total = sum(salience.values()) or 1.0
    weights = {key: value / total for key, value in salience.items()}
    return Question(text, detect_language(text), kind, terms, spans, frozenset(weights), weights)
