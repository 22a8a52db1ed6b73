"""Which of the values that a text mentions it asks for: a value in doubt is no condition."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum

from rag_kit.query_construction.fields import Schema
from rag_kit.query_construction.rules import cues
from rag_kit.query_construction.rules.atoms import Atom
from rag_kit.query_construction.rules.remainder import remainder
from rag_kit.query_construction.rules.values import Named
from rag_kit.text import content_words

_DOCUMENTS = re.compile(
    r"\b(?:papers?|articles?|studies|works|publications?|documents?|abstracts?|records|reports|files|literature|entries|"
    r"anything|everything|items)\b|论文|文章|文献|文档|文件|研究(?:[？?。]?$|有|中)|资料",
    re.IGNORECASE,
)
_ORDER = re.compile(
    r"^\s*(?:please\s+|could\s+you\s+|can\s+you\s+)?(?:show|find|list|give|get|fetch|search|retrieve|return|look)\b"
    r"|(?:^|[.;:?!])\s*(?:only\s+)?(?:exclude|filter|limit|restrict)\b"
    r"|\b(?:I|we)\s+(?:want|need|would\s+like|am\s+looking)\b|请?(?:查找|查一下|检索|搜索|列出|找出|给出|给我)|我[要想]",
    re.IGNORECASE,
)
_ASKS = re.compile(
    r"[?？]|^\s*(?:what|which|who|whom|whose|when|where|why|how|is|are|was|were|do|does|did|has|have|had|can|could|"
    r"will|would|should|may)\b|[什怎何吗呢]|多少|哪|几|是否|有没有",
    re.IGNORECASE,
)


class Purpose(Enum):
    """What a text is for.

    Attributes:
        DOCUMENTS: Documents of a kind ("papers on stroke", "red phones"): what it names is a condition.
        TOPIC: An answer about a topic and little else ("how is asthma treated?"): entries of lists are conditions.
        DATED: An answer about a time ("what is known about stroke since 2010?"): entries of lists that it is plainly
            about are conditions.
        ANSWER: Any other answer, or a statement: what it names is what it speaks of.
    """

    DOCUMENTS = "documents"
    TOPIC = "topic"
    DATED = "dated"
    ANSWER = "answer"


@dataclass(frozen=True)
class Mention:
    """A value that a text names.

    Attributes:
        item: The value and its place.
        atom: The condition that it would be.
        marked: Something says that it is a value: "tagged", a quotation mark, the field's name.
        explicit: The field's name, or quotation marks on both sides.
        topical: It is written as the value is, negated, or what the text is about ("on stroke").
    """

    item: Named
    atom: Atom
    marked: bool
    explicit: bool
    topical: bool


def purpose(text: str, understood: Sequence[tuple[int, int]], schema: Schema, measured: bool) -> Purpose:
    """Whether a text asks for documents, by a word for documents or as nothing else is said, or for an answer.

    Args:
        text: The question.
        understood: Where its conditions and the values that it names stand.
        schema: The fields; their names say nothing more.
        measured: Whether a date or number is compared.

    Example:
        >>> texts = ("Sleep papers", "Sleep, please", "Sleep disorders: a new scale")
        >>> [purpose(text, [(0, 5)], Schema(), False).value for text in texts]
        ['documents', 'documents', 'answer']
    """
    if _DOCUMENTS.search(text) or _ORDER.search(text):
        return Purpose.DOCUMENTS
    names = [re.escape(name) for field in schema for name in field.all_names]
    found = [match.span() for name in names for match in re.finditer(name, text, re.IGNORECASE)]
    rest = content_words(remainder(text, sorted([*understood, *found]))[1])
    said = [word for word in rest if word.isascii() or len(word) > 1]
    little = len(said) < 2
    if not said or ((measured or little) and not _ASKS.search(text)):
        return Purpose.DOCUMENTS
    if little:
        return Purpose.TOPIC
    return Purpose.DATED if measured else Purpose.ANSWER


def chosen(text: str, schema: Schema, mentions: Sequence[Mention], why: Purpose) -> list[Atom]:
    """The conditions among the values that a text mentions."""
    any_marked = any(mention.marked for mention in mentions)
    kept: list[Atom] = []
    for mention in mentions:
        item, atom = mention.item, mention.atom
        field = schema.get(item.field)
        topics = field is not None and field.many
        if why is Purpose.DATED and topics:
            keep = mention.explicit or (item.sure and mention.topical)
        elif why is Purpose.DOCUMENTS or (why is Purpose.TOPIC and topics):
            keep = mention.marked or (item.sure and (mention.topical or not any_marked))
        else:
            # a document has one company, so its name says which documents; a topic says that of none
            keep = mention.explicit or (item.name and not topics)
            if atom.negated and cues.POSSESSION.match(text, item.end):
                # "not in Acme's usual business" is about Acme
                atom = replace(atom, begin=item.begin, end=item.end, negated=False)
        if keep:
            kept.append(atom)
    return kept
