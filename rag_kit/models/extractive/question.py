"""What a question asks for: its language, its terms and their weight, the kind of answer, its time."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache

from rag_kit.models.extractive.terms import Term, question_terms
from rag_kit.models.extractive.timespan import Span, time_spans
from rag_kit.text import detect_language

_KINDS = (
    (
        "when",
        r"\bwhen\b|\b(?:what|which|whose)\s+(?:\w+\s+)?(?:years?|date|day|month|centur\w+|decade|era|season)\b"
        r"|\bhow long ago\b|何时|什么时[候间]|哪[一]?[年天日]|哪个?(?:世纪|年代|月)|几[年月日号]|(?:时间|日期|年份)是",
    ),
    (
        "number",
        r"\bhow (?:many|much|long|old|far|large|big|tall|high|often|fast|deep|wide|heavy)\b"
        r"|\b(?:what|which) (?:\w+\s+){0,2}(?:percent\w*|number|amount|proportion|population|distance|height|size|age"
        r"|price|cost|rate|score|length|temperature|speed|fraction|ratio)\b"
        r"|多[少大高长远久重宽深快]|几[个位次名人种届家座条部层所支]|第几|百分之几",
    ),
    (
        "who",
        r"\bwho(?:m|se)?\b|\b(?:what|which) (?:\w+\s+){0,2}(?:person|people|man|woman|player|actor|actress|king|queen"
        r"|president|leader|author|writer|scientist|artist|singer|director|coach|manager|founder|architect"
        r"|historian|general|emperor)\b|谁|哪位|何人|哪[个些一]人|什么人|哪名",
    ),
    (
        "where",
        r"\bwhere\b|\b(?:what|which) (?:\w+\s+)?(?:city|country|place|location|state|town|region|continent|river|area"
        r"|county|province|district|village|nation|island|street|building|university|school|college)\b"
        r"|哪里|哪儿|何处|何地|什么地[方点]|哪个?(?:国|城|省|市|县|州|地|区|岛|洲|大学)|位于",
    ),
    (
        "why",
        r"\bwhy\b|\b(?:what|which) (?:was|is|were|are)? ?(?:the )?(?:reasons?|cause)\b|为什么|为何|原因|缘何|为啥",
    ),
)
_KIND_PATTERNS = tuple((kind, re.compile(pattern, re.IGNORECASE)) for kind, pattern in _KINDS)

_NUMBER = re.compile(
    r"\d+(?:[.,]\d+)*|[零一二两三四五六七八九十百千万亿]{1,9}(?=[个位次名人种年月日岁米里元届家座部条层所支%])"
    r"|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|twenty|thirty|forty|fifty|sixty|seventy"
    r"|eighty|ninety|hundred|thousand|million|billion|half|third|quarter|dozen|once|twice)\b",
    re.IGNORECASE,
)
_DATE = re.compile(
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


@dataclass(frozen=True)
class Question:
    """A question, analysed.

    Attributes:
        text: The question as asked.
        language: ``"en"`` or ``"zh"``.
        kind: ``"who"``, ``"when"``, ``"where"``, ``"number"``, ``"why"`` or ``"other"``.
        terms: Its content terms in order.
        spans: The spans of time that it names.
    """

    text: str
    language: str
    kind: str
    terms: tuple[Term, ...]
    spans: tuple[Span, ...] = ()
    keys: frozenset[str] = field(default_factory=frozenset)


@lru_cache(maxsize=256)
def analyse(text: str) -> Question:
    """Analyse a question.

    Example:
        >>> question = analyse("Who led Iceland from 1990 to 1994?")
        >>> question.kind, [term.key for term in question.terms][:2], question.spans
        ('who', ['led', 'iceland'], (Span(start=1990.0, end=1995.0),))
    """
    kind = next((kind for kind, pattern in _KIND_PATTERNS if pattern.search(text)), "other")
    terms = question_terms(text)
    return Question(
        text=text,
        language=detect_language(text),
        kind=kind,
        terms=terms,
        spans=tuple(time_spans(text)),
        keys=frozenset(term.key for term in terms),
    )


def offers(kind: str, sentence: str, question: str) -> float:
    """How many things of the asked kind the sentence has that the question does not name: 0 to 1.

    Args:
        kind: The kind of answer, as in :class:`Question`.
        sentence: A sentence of a passage.
        question: The question's text.

    Example:
        >>> offers("number", "It has 76 rooms.", "How many rooms does it have?")
        1.0
        >>> offers("number", "It has rooms.", "How many rooms does it have?")
        0.0
    """
    if kind == "number":
        found = _new(_NUMBER, sentence, question)
    elif kind == "when":
        found = _new(_DATE, sentence, question)
    elif kind == "who":
        found = _new(_NAME, sentence[1:], question) + _new(_HAN_NAME, sentence, question)
    elif kind == "where":
        found = _new(_NAME, sentence[1:], question) + _new(_HAN_PLACE, sentence, question)
    elif kind == "why":
        found = len(_CAUSE.findall(sentence))
    else:
        found = 0
    return 1.0 if found else 0.0


def _new(pattern: re.Pattern[str], sentence: str, question: str) -> int:
    asked = question.casefold()
    return sum(1 for match in pattern.finditer(sentence) if match.group().casefold() not in asked)
