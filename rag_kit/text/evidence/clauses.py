"""Clauses by their numbers: those that a question names, and the marks with which sentences begin."""

from __future__ import annotations

import re
from typing import NamedTuple

from rag_kit.text.values.numbers import read_any
from rag_kit.text.values.reading import find_values

_FIGURES = r"\d{1,3}(?:\.\d{1,3})*"
_NAMED = (
    r"第\s?(?P<han>[\d零一二三四五六七八九十百]{1,6})\s?(?P<unit>[章节条款])"
    rf"|(?:\b(?P<word>article|section|clause|chapter)s?|(?P<sign>§))\s?(?P<number>{_FIGURES})"
)
_REFERENCE = re.compile(rf"{_NAMED}|(?P<dotted>\d{{1,3}}(?:\.\d{{1,3}})+)(?=\s?[条款节])", re.IGNORECASE)
_MARK = re.compile(
    rf"[#\s]*(?:{_NAMED}|(?P<dotted>\d{{1,3}}(?:\.\d{{1,3}})+)(?=\s)|(?P<item>\d{{1,3}})[.、)）](?=\D)"
    r"|[(（][\d一二三四五六七八九十]{1,3}[)）]|[一二三四五六七八九十]{1,3}、)",
    re.IGNORECASE,
)
_HEADING = re.compile(rf"(?:{_NAMED})(?:[\s:：.]+[^\s\d,，。；;：:]\D{{0,30}})?", re.IGNORECASE)
_RANKS = {"章": 0, "节": 1, "条": 2, "款": 3, "": 4}


class Clause(NamedTuple):
    """A clause: its number, and how deep it lies among others; an article or section as 条, an item of a list 4."""

    number: str
    rank: int

    def is_same(self, asked: Clause) -> bool:
        """Tell whether this is what a question asks for; the figures of an article may stand alone."""
        return self.number == asked.number and (self.rank == asked.rank or (self.rank, asked.rank) == (4, 2))


def clauses_named(text: str) -> list[Clause]:
    """List the clauses that a text names anywhere.

    Example:
        >>> clauses_named("合同第十五条和5.3条"), clauses_named("What does Article 9 say?")
        ([Clause(number='15', rank=2), Clause(number='5.3', rank=5)], [Clause(number='9', rank=2)])
    """
    return [_clause(match) for match in _REFERENCE.finditer(text)]


def without_clauses(text: str) -> str:
    """Remove from a question the clauses that it names, and what asks for their content."""
    return _REFERENCE.sub(" ", text)


def clause_begun(text: str) -> Clause | None:
    """Return the clause that a sentence or heading begins, None if it begins with another word."""
    match = _MARK.match(text)
    return _clause(match) if match and match.lastgroup else None


def heads_clause(line: str) -> bool:
    """Tell whether a line is the heading of a clause: its number, and few words without a stop or figures."""
    return _HEADING.fullmatch(line) is not None


def without_mark(sentence: str) -> str:
    """Remove the number of a clause or item before a sentence, which is no value that it states.

    Example:
        >>> without_mark("2.1 The fee is 90 EUR."), without_mark("第二条 服务费用"), without_mark("2.5 kW suffice.")
        (' The fee is 90 EUR.', ' 服务费用', '2.5 kW suffice.')
    """
    mark = _MARK.match(sentence)
    if not mark or any(value.start < mark.end() < value.end for value in find_values(sentence)[:1]):
        return sentence
    return sentence[mark.end() :]


def _clause(match: re.Match[str]) -> Clause:
    """Read the number and the rank of a clause."""
    groups = match.groupdict()
    if groups["han"]:
        return Clause(f"{read_any(groups['han']) or 0:.0f}", _RANKS[groups["unit"]])
    number = groups["number"] or groups["dotted"] or groups.get("item") or ""
    is_item = not (groups["number"] or groups["dotted"])
    return Clause(number, 4 + number.count(".") if is_item or "." in number else _RANKS["条"])
