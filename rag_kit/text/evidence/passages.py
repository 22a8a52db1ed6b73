"""Passages cut into the sentences that may answer; headings, titles and table headers are context of them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

from rag_kit.text.evidence.terms import Term, question_terms, terms
from rag_kit.text.evidence.times import Span, time_spans
from rag_kit.text.language import detect_language
from rag_kit.text.sentences import Sentence, sentences

MAX_SENTENCES = 400
"""Sentences looked at together; what follows is left out, so that time is bounded."""

_MAX_HEADING = 100
_MAX_TITLE = 500
_STOPS = ".!?。！？…;；:："
_HEADING = re.compile(r"#{1,6}\s")
_DELIMITER = re.compile(r"\|(?:\s*:?-+:?\s*\|)+")


@dataclass(frozen=True)
class PassageText:
    """A passage as far as evidence is counted in it: its number, its text and its title."""

    number: int
    text: str
    title: str = ""


def passage_text(number: int, text: str, metadata: Mapping[str, Any]) -> PassageText:
    """A passage whose title is what the metadata name as title and heading.

    Example:
        >>> passage_text(1, "Text.", {"title": "Emma", "heading": "Plot", "page": 3}).title
        'Emma\\nPlot'
    """
    names = (metadata.get("title"), metadata.get("heading"))
    return PassageText(number, text, "\n".join(name[:_MAX_TITLE] for name in names if isinstance(name, str)))


def found_names(question: Question, passages: Sequence[PassageText]) -> float:
    """Share of the question's names that some passage holds; 1 where it has none.

    Example:
        >>> from rag_kit.text.evidence.passages import analyse
        >>> plan = analyse("What is the file size of the ENTERPRISE plan?")
        >>> found_names(plan, [PassageText(1, "The maximum file size of a plan is 10 MB.")])
        0.0
    """
    names = [t.key for t in question.terms if t.nominal and not any(c.isdigit() for c in t.key)]
    if not names:
        return 1.0
    words = frozenset(key for one in passages for key in terms(f"{one.title}\n{one.text}"))
    return sum(name in words or any(_akin(name, key) for key in words) for name in names) / len(names)


def _akin(name: str, key: str) -> bool:
    """Whether two stems are forms of one name: German and Germany, California and Californian."""
    short, long = sorted((name, key), key=len)
    return len(short) >= max(4, len(long) - 3) and long.startswith(short)


class Row(NamedTuple):
    """A sentence, the position of its passage, its terms, and the header of the table that it is a row of."""

    text: str
    place: int
    terms: frozenset[str]
    header: str = ""


def read_rows(passages: Sequence[PassageText]) -> tuple[list[Row], list[frozenset[str]]]:
    """The sentences of the passages, and for each passage the terms of its titles and headings."""
    rows: list[Row] = []
    titles: list[frozenset[str]] = []
    for place, passage in enumerate(passages):
        title = set(terms(passage.title))
        for text, header, heading in _lines(passage):
            keys = frozenset(terms(text))
            if heading:
                title |= keys
            elif len(rows) < MAX_SENTENCES:
                rows.append(Row(text, place, keys, header))
        titles.append(frozenset(title))
    # a heading in the middle of a passage is an answer only where there is nothing else
    return [row for row in rows if not _HEADING.match(row.text)] or rows, titles


def is_question(text: str) -> bool:
    """Whether a sentence is a question."""
    return text.rstrip("\"'”’」』)）").endswith(("?", "？"))


def _lines(passage: PassageText) -> Iterator[tuple[str, str, bool]]:
    """Each sentence of a passage, the header of its table, and whether it is a heading."""
    titles = {line.strip() for line in passage.title.splitlines()}
    first_line, _, below = passage.text.partition("\n")
    body = below if first_line.strip() in titles and below.strip() else passage.text
    spans = sentences(body)
    header = ""
    for index, span in enumerate(spans):
        text = span.text.strip()
        if not text.startswith("|"):
            header = ""
        elif _DELIMITER.fullmatch(text):
            continue
        elif _opens_table(spans, index):
            header = text
            continue
        if text:
            heading = text in titles or _is_heading(body, text, span.end, first=index == 0)
            yield text, header, heading and len(spans) > 1


def _opens_table(spans: Sequence[Sentence], index: int) -> bool:
    below = [span.text.strip() for span in spans[index + 1 : index + 3]]
    return len(below) == 2 and _DELIMITER.fullmatch(below[0]) is not None and below[1].startswith("|")


def _is_heading(passage: str, text: str, end: int, *, first: bool) -> bool:
    """A Markdown heading, or a short first line without a full stop."""
    if text.startswith("#"):
        return True
    alone = passage[end : end + 2].lstrip(" ").startswith("\n")
    return first and alone and len(text) <= _MAX_HEADING and text[-1:] not in _STOPS


MAX_QUESTION = 4_000
"""Characters of a question that are read."""

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


_OFFERED = {
    "number": (_NUMBER,),
    "when": (_DATE,),
    "who": (_NAME, _HAN_NAME),
    "where": (_NAME, _HAN_PLACE),
    "why": (_CAUSE,),
}


@dataclass(frozen=True)
class Question:
    """A question, analysed.

    Attributes:
        text: The question as asked.
        language: ``"en"`` or ``"zh"``.
        kind: ``"who"``, ``"when"``, ``"where"``, ``"number"``, ``"why"`` or ``"other"``.
        terms: Its content terms in order.
        spans: The spans of time that it names.
        keys: The keys of its terms.
    """

    text: str
    language: str
    kind: str
    terms: tuple[Term, ...]
    spans: tuple[Span, ...]
    keys: frozenset[str]

    @cached_property
    def salience(self) -> dict[str, float]:
        """How much each term pins the question down; 0 for dates, whose fit in time counts instead of their words."""
        return {term.key: 0.0 if self.spans and term.date else term.salience for term in self.terms}

    def share(self, keys: Iterable[str]) -> float:
        """Share of the salience that these of its terms hold."""
        return sum(self.salience[key] for key in keys) / (sum(self.salience.values()) or 1.0)


@lru_cache(maxsize=256)
def analyse(text: str) -> Question:
    """Analyse a question.

    Example:
        >>> question = analyse("Who led Iceland from 1990 to 1994?")
        >>> question.kind, [term.key for term in question.terms][:2], question.spans
        ('who', ['led', 'iceland'], (Span(start=1990.0, end=1995.0),))
    """
    text = text[:MAX_QUESTION]
    kind = next((kind for kind, pattern in _KIND_PATTERNS if pattern.search(text)), "other")
    terms = question_terms(text)
    keys = frozenset(term.key for term in terms)
    return Question(text, detect_language(text), kind, terms, tuple(time_spans(text)), keys)


def offers(kind: str, sentence: str, question: str) -> bool:
    """Whether a sentence has something of the asked kind that the question does not name.

    Example:
        >>> offers("number", "It has 76 rooms.", "How many rooms does it have?")
        True
        >>> offers("number", "It has rooms.", "How many rooms does it have?")
        False
    """
    asked = "" if kind == "why" else question.casefold()
    for pattern in _OFFERED.get(kind, ()):
        # the first word of a sentence has a capital in any case
        text = sentence[1:] if pattern is _NAME else sentence
        if any(not asked or match.group().casefold() not in asked for match in pattern.finditer(text)):
            return True
    return False
