"""Which of the values that a text mentions it asks for: a value in doubt is no condition."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from rag_kit.query_construction.fields import Schema
from rag_kit.query_construction.rules import cues
from rag_kit.query_construction.rules.atoms import Atom
from rag_kit.query_construction.rules.joining import carries_on
from rag_kit.query_construction.rules.values import NamedValue
from rag_kit.query_construction.words import Span, simplified
from rag_kit.text import content_words

_DOCUMENTS = re.compile(
    r"\b(?:papers?|articles?|studies|works|publications?|documents?|abstracts?|records|reports|files|literature|entries|"
    r"anything|everything|items)\b|论文|文章|文献|文档|文件|研究(?:[？?。]?$|有|中)|资料",
    re.IGNORECASE,
)
_ORDER = re.compile(
    r"^\s*(?:please\s+|(?:could|can)\s+you\s+)?(?:show|find|list|give|get|fetch|search|retrieve|return|look)\b"
    r"|(?:^|[.;:?!])\s*(?:only\s+)?(?:exclude|filter|limit|restrict)\b"
    r"|\b(?:I|we)\s+(?:want|need|would\s+like|am\s+looking)\b|查找|检索|搜索|列出|找出|给出|给我|我[要想]",
    re.IGNORECASE,
)
_ASKS = re.compile(
    r"[?？]|^\s*(?:what|which|who|whom|whose|when|where|why|how|is|are|was|were|do|does|did|has|have|had|can|could|"
    r"will|would|should|may)\b|[什怎何吗呢]|多少|哪|几|是否|有没有",
    re.IGNORECASE,
)
Purpose = Literal["documents", "topic", "answer"]


def purpose_of(text: str, understood: Sequence[Span], schema: Schema, measured: bool) -> Purpose:
    """What a text asks for.

    "documents": documents of a kind ("papers on stroke", "red phones"), so that every value that it names is a
    condition. "topic": an answer about little else, or about a time ("what is known about stroke since 2010?"), so
    that entries of lists count if it is plainly about them. "answer": any other answer, or a statement.

    Example:
        >>> texts = ("Sleep papers", "Sleep, please", "Sleep disorders: a new scale")
        >>> [purpose_of(text, [Span(0, 5)], Schema(), False) for text in texts]
        ['documents', 'documents', 'answer']
    """
    if _DOCUMENTS.search(text) or _ORDER.search(text):
        return "documents"
    names = [re.escape(name) for field in schema for name in field.all_names]
    places = [Span(*match.span()) for name in names for match in re.finditer(name, text, re.IGNORECASE)]
    rest = content_words(cues.remainder(text, [*understood, *places])[1])
    words = [word for word in rest if word.isascii() or len(word) > 1]
    if len(words) > 1 and not measured:
        return "answer"
    return "topic" if words and _ASKS.search(text) else "documents"


def read_values(
    text: str, values: Sequence[NamedValue], others: Sequence[Span], purpose: Purpose
) -> list[Atom]:
    """The conditions among the values that a text names; no cue reaches over `others`, which it names too."""
    mentions: list[Atom] = []
    atoms: list[Atom] = []
    for value in values:
        floor = cues.floor_of(value, [*others, *mentions[-1:]])
        left = text[floor : value.begin]
        name = name_before(left, value.field.all_names)
        atom = _read_negation(text, value, floor, name, mentions[-1] if mentions else None)
        mentions.append(atom)
        # a document has one company, so its name says which documents; a topic says that of none
        about_one = purpose == "answer" or (purpose == "topic" and not value.field.many)
        if about_one and atom.negated and cues.POSSESSION.match(text, value.end):
            atom = _atom(value, value, negated=False)  # "not in Acme's usual business" is about Acme
        quoted = left[-1:] in (*cues.OPENING,) and text[value.end : value.end + 1] in cues.CLOSING
        topical = value.exact or atom.negated or cues.TOPIC.search(left)
        sure = value.sure and (purpose == "documents" or topical)
        if quoted or name or (value.name and not value.field.many if about_one else sure):
            atoms.append(atom)
    return atoms


def _read_negation(
    text: str, value: NamedValue, floor: int, name: re.Match[str] | None, previous: Atom | None
) -> Atom:
    """The condition that a value would be, with the words that deny it; `name` is its field's, where that is named."""
    begin, end, negated = cues.with_negation(text, floor, value.begin, value.end)
    if begin == value.begin and name:  # "with no author Smith"
        begin, _, before = cues.with_negation(text, floor, floor + name.start(), value.end)
        begin, negated = (begin, True) if before else (value.begin, negated)
    if previous and previous.negated and carries_on(text[previous.end : value.begin]):
        negated = True
    return _atom(value, Span(begin, end), negated)


def _atom(value: NamedValue, span: Span, negated: bool) -> Atom:
    """The condition on the field of a value; of a flag that is denied, that it is off."""
    if isinstance(value.value, bool):
        return Atom(span.begin, span.end, value.field, "$eq", value.value != negated)
    operator = "$contains" if value.field.many else "$eq"
    return Atom(span.begin, span.end, value.field, operator, value.value, negated=negated)


def name_before(left: str, names: Sequence[str]) -> re.Match[str] | None:
    """A field's name where it ends a text, light words aside."""
    link = r"(?:\W|[为是]|\b(?:is|are|as|of|contains?|includes?|in)\b)*+"
    patterns = (rf"(?<![A-Za-z0-9_]){re.escape(simplified(name))}{link}$" for name in names)
    return next((match for pattern in patterns if (match := re.search(pattern, left, re.IGNORECASE))), None)
