"""Which of the values that a text mentions it asks for: a value in doubt is no condition."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from rag_kit.query_construction.clauses import Clause
from rag_kit.query_construction.fields import MetadataField, Schema
from rag_kit.query_construction.rules import cues
from rag_kit.query_construction.rules.atoms import Atom
from rag_kit.query_construction.rules.joining import carries_on
from rag_kit.query_construction.rules.values import NamedValue
from rag_kit.query_construction.words import simplified
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


def purpose_of(text: str, understood: Sequence[tuple[int, int]], schema: Schema, measured: bool) -> Purpose:
    """What a text asks for.

    "documents": documents of a kind ("papers on stroke", "red phones"), so that every value that it names is a
    condition. "topic": an answer about little else, or about a time ("what is known about stroke since 2010?"), so
    that entries of lists count if it is plainly about them. "answer": any other answer, or a statement.

    Example:
        >>> texts = ("Sleep papers", "Sleep, please", "Sleep disorders: a new scale")
        >>> [purpose_of(text, [(0, 5)], Schema(), False) for text in texts]
        ['documents', 'documents', 'answer']
    """
    if _DOCUMENTS.search(text) or _ORDER.search(text):
        return "documents"
    names = [re.escape(name) for field in schema for name in field.all_names]
    places = [match.span() for name in names for match in re.finditer(name, text, re.IGNORECASE)]
    rest = content_words(cues.remainder(text, sorted([*understood, *places]))[1])
    words = [word for word in rest if word.isascii() or len(word) > 1]
    if len(words) > 1 and not measured:
        return "answer"
    return "topic" if words and _ASKS.search(text) else "documents"


@dataclass(frozen=True)
class Mention:
    """A value that a text names, and the condition that it would be.

    Attributes:
        explicit: It stands in quotes, or after the name of its field.
        topical: It is denied, written as the value is, or named as the topic.
        many: Its field holds lists.
        owner: What follows belongs to it: "Acme's business".
    """

    value: NamedValue
    atom: Atom
    explicit: bool
    topical: bool
    many: bool
    owner: bool


def read_mentions(
    text: str, schema: Schema, values: Sequence[NamedValue], places: Sequence[tuple[int, int]]
) -> list[Mention]:
    """Read what stands around each value: what denies it, and what says that it is one; `places` are of comparisons."""
    fields = {field.name: field for field in schema}
    mentions: list[Mention] = []
    for value in values:
        ends = [mention.atom.end for mention in mentions] + [end for _, end in places if end <= value.begin]
        floor = max([0, value.begin - cues.REACH, *ends])
        before = mentions[-1].atom if mentions else None
        follows = before is not None and before.negated and carries_on(text[before.end : value.begin])
        mentions.append(_make_mention(text, value, fields[value.field], floor, follows))
    return mentions


def _make_mention(text: str, value: NamedValue, field: MetadataField, floor: int, denied: bool) -> Mention:
    left = text[floor : value.begin]
    name = name_before(left, field.all_names)
    # "with no author Smith"
    before = cues.NEGATED.search(left) or (name and cues.NEGATED.search(left[: name.start()]))
    after = cues.EXCLUDED_AFTER.match(text, value.end)
    negated = bool(denied or before or after)
    begin, end = floor + before.start() if before else value.begin, after.end() if after else value.end
    quoted = left[-1:] in (*cues.OPENING,) and text[value.end : value.end + 1] in cues.CLOSING
    return Mention(
        value,
        _atom(value, field.many, begin, end, negated),
        explicit=quoted or name is not None,
        topical=value.exact or negated or cues.TOPIC.search(left) is not None,
        many=field.many,
        owner=cues.POSSESSION.match(text, value.end) is not None,
    )


def _atom(value: NamedValue, many: bool, begin: int, end: int, negated: bool) -> Atom:
    if isinstance(value.value, bool):
        return Atom(begin, end, value.field, {value.field: {"$eq": value.value != negated}})
    where: Clause = {value.field: {"$contains" if many else "$eq": value.value}}
    return Atom(begin, end, value.field, where, negated, exclusive=not many)


def value_conditions(mentions: Sequence[Mention], purpose: Purpose) -> list[Atom]:
    """The conditions among the values that a text names."""
    atoms: list[Atom] = []
    for mention in mentions:
        value, atom = mention.value, mention.atom
        if purpose == "documents":
            meant = value.sure
        elif purpose == "topic" and mention.many:
            meant = value.sure and mention.topical
        else:
            # a document has one company, so its name says which documents; a topic says that of none
            meant = value.name and not mention.many
            if atom.negated and mention.owner:
                # "not in Acme's usual business" is about Acme
                atom = _atom(value, mention.many, value.begin, value.end, negated=False)
        if meant or mention.explicit:
            atoms.append(atom)
    return atoms


def name_before(left: str, names: Sequence[str]) -> re.Match[str] | None:
    """A field's name where it ends a text, light words aside."""
    link = r"(?:\W|[为是]|\b(?:is|are|as|of|contains?|includes?|in)\b)*+"
    patterns = (rf"(?<![A-Za-z0-9_]){re.escape(simplified(name))}{link}$" for name in names)
    return next((match for one in patterns if (match := re.search(one, left, re.IGNORECASE))), None)
