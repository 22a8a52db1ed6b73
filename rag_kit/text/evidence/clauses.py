"""Clauses by their numbers: those that a question names, and the mark with which a sentence begins."""

from __future__ import annotations

import re
from typing import NamedTuple

from rag_kit.text.values.numbers import read_any
from rag_kit.text.values.reading import find_values

_NAMED = (
    r"第\s?(?P<han>[\d零一二三四五六七八九十百]{1,6})\s?(?P<unit>[章节条])"
    r"|(?P<word>\b(?:article|section|clause)\b|§)\s?(?P<number>\d{1,3}(?:\.\d{1,3})*)"
)
#: A clause that a text names anywhere: 第十五条, 5.3条, Article 9.
REFERENCE = re.compile(rf"{_NAMED}|(?P<bare>\d{{1,3}}(?:\.\d{{1,3}})+)\s?条", re.IGNORECASE)
#: A line that is the heading of a clause: its number, and a few words without a stop or figures.
HEADING = re.compile(rf"(?:{_NAMED})(?:[\s:：.]+[^\s\d,，。；;：:][^\d,，。；;：:.]{{0,30}})?", re.IGNORECASE)
_MARK = re.compile(
    rf"[#\s]*(?:{_NAMED}|(?P<bare>\d{{1,3}}(?:\.\d{{1,3}})+(?=\s)|\d{{1,3}}(?=[.、)）]\D))[.、)）]?"
    r"|[(（][\d一二三四五六七八九十]{1,3}[)）]|[一二三四五六七八九十]{1,3}、)",
    re.IGNORECASE,
)
_OUTER_FIRST = "章节条"


class Clause(NamedTuple):
    """A clause of a contract or law: its unit (章, 节, 条, an English word or "") and its number."""

    unit: str
    number: str

    def is_among(self, asked: tuple[Clause, ...]) -> bool:
        """Tell whether it is one of the `asked` clauses; "3.2" and "Article 3" may be written without their unit."""
        wanted = {one for one in asked if one.number == self.number}
        return self in wanted or any(
            not self.unit and ("." in one.number or one.unit.isascii()) for one in wanted
        )

    def closes(self, other: Clause) -> bool:
        """Tell whether this clause ends another one where it begins: it is no part of that."""
        if self.unit:
            return not other.unit or _OUTER_FIRST.find(self.unit) <= _OUTER_FIRST.find(other.unit)
        return not other.unit and self.number.count(".") <= other.number.count(".")


def clauses_named(text: str) -> tuple[Clause, ...]:
    """List the clauses that a text names."""
    return tuple(filter(None, map(_clause, REFERENCE.finditer(text))))


def clause_begun(text: str) -> Clause | None:
    """Return the clause or item that a sentence or heading begins."""
    match = _MARK.match(text)
    return _clause(match) if match else None


def without_mark(sentence: str) -> str:
    """Remove the number of a clause or item before a sentence: it is no value that the sentence states.

    Example:
        >>> without_mark("2.1 The fee is 90 EUR."), without_mark("第二条 服务费用"), without_mark("2.5 kW suffice.")
        (' The fee is 90 EUR.', ' 服务费用', '2.5 kW suffice.')
    """
    mark = _MARK.match(sentence)
    if not mark or any(value.start < mark.end() < value.end for value in find_values(sentence)[:1]):
        return sentence
    return sentence[mark.end() :]


def _clause(match: re.Match[str]) -> Clause | None:
    number = match["number"] or match["bare"] or (f"{read_any(match['han']):.0f}" if match["han"] else "")
    return Clause(match["unit"] or (match["word"] or "").lower(), number) if number else None
