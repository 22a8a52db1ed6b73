"""Which of the values that a text mentions it asks for: a value in doubt is no condition."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from rag_kit.query_construction.clauses import Clause
from rag_kit.query_construction.fields import Schema
from rag_kit.query_construction.rules import cues
from rag_kit.query_construction.rules.atoms import Atom
from rag_kit.query_construction.rules.joining import carries_on
from rag_kit.query_construction.rules.values import Named
from rag_kit.query_construction.words import remainder, simplified
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
Purpose = Literal["documents", "topic", "answer"]


def purpose(text: str, understood: Sequence[tuple[int, int]], schema: Schema, measured: bool) -> Purpose:
    """What a text asks for.

    "documents": documents of a kind ("papers on stroke", "red phones"), so that every value that it names is a
    condition. "topic": an answer about little else, or about a time ("what is known about stroke since 2010?"), so
    that entries of lists count if it is plainly about them. "answer": any other answer, or a statement.

    Example:
        >>> texts = ("Sleep papers", "Sleep, please", "Sleep disorders: a new scale")
        >>> [purpose(text, [(0, 5)], Schema(), False) for text in texts]
        ['documents', 'documents', 'answer']
    """
    if _DOCUMENTS.search(text) or _ORDER.search(text):
        return "documents"
    names = [re.escape(name) for field in schema for name in field.all_names]
    found = [match.span() for name in names for match in re.finditer(name, text, re.IGNORECASE)]
    rest = content_words(remainder(text, sorted([*understood, *found]))[1])
    said = [word for word in rest if word.isascii() or len(word) > 1]
    if said and not measured and len(said) > 1:
        return "answer"
    return "topic" if said and _ASKS.search(text) else "documents"


class Mentions:
    """The values that a text names, each as the condition that it would be; `places` are those of its comparisons."""

    def __init__(
        self, text: str, schema: Schema, named: Sequence[Named], places: Sequence[tuple[int, int]]
    ) -> None:
        self._text = text
        self._fields = {field.name: field for field in schema}
        self._found: list[tuple[Named, Atom, bool, bool]] = []
        for item in named:
            ends = [one[1].end for one in self._found] + [end for _, end in places if end <= item.begin]
            self._add(item, max([0, item.begin - cues.REACH, *ends]))

    @property
    def sure(self) -> list[tuple[int, int]]:
        """Where values stand that are no ordinary words."""
        return [(atom.begin, atom.end) for item, atom, _, _ in self._found if item.sure]

    def conditions(self, why: Purpose) -> list[Atom]:
        """The conditions among the values."""
        kept: list[Atom] = []
        for item, atom, explicit, topical in self._found:
            if why == "documents":
                keep = item.sure
            elif why == "topic" and self._fields[item.field].many:
                keep = item.sure and topical
            else:
                # a document has one company, so its name says which documents; a topic says that of none
                keep = item.name and not self._fields[item.field].many
                if atom.negated and cues.POSSESSION.match(self._text, item.end):
                    atom = self._atom(item)  # "not in Acme's usual business" is about Acme
            if keep or explicit:
                kept.append(atom)
        return kept

    def _add(self, item: Named, before: int) -> None:
        """Read what stands around a value, from a place before it on: what denies it, and what says it is a value."""
        text = self._text
        left = text[before : item.begin]
        name = name_before(left, self._fields[item.field].all_names)
        # "with no author Smith"
        denied = cues.NEGATED.search(left) or (name and cues.NEGATED.search(left[: name.start()]))
        excluded = cues.EXCLUDED_AFTER.match(text, item.end)
        negated = bool(denied or excluded)
        if self._found and self._found[-1][1].negated:
            negated = negated or carries_on(text[self._found[-1][1].end : item.begin])
        begin = before + denied.start() if denied else item.begin
        atom = self._atom(item, begin, excluded.end() if excluded else item.end, negated)
        quoted = left[-1:] in (*cues.OPENING,) and text[item.end : item.end + 1] in cues.CLOSING
        topical = item.exact or negated or cues.TOPIC.search(left) is not None
        self._found.append((item, atom, quoted or name is not None, topical))

    def _atom(self, item: Named, begin: int = -1, end: int = -1, negated: bool = False) -> Atom:
        begin, end = (item.begin, item.end) if begin < 0 else (begin, end)
        if isinstance(item.value, bool):
            return Atom(begin, end, item.field, {item.field: {"$eq": item.value != negated}})
        many = self._fields[item.field].many
        where: Clause = {item.field: {"$contains" if many else "$eq": item.value}}
        return Atom(begin, end, item.field, where, negated, exclusive=not many)


def name_before(left: str, names: Sequence[str]) -> re.Match[str] | None:
    """A field's name where it ends a text, light words aside."""
    link = r"(?:\W|[为是]|\b(?:is|are|as|of|contains?|includes?|in)\b)*+"
    patterns = (rf"(?<![A-Za-z0-9_]){re.escape(simplified(name))}{link}$" for name in names)
    return next((match for one in patterns if (match := re.search(one, left, re.IGNORECASE))), None)
