"""One condition that a question names; those on a field that is missing, and on a quarter of a year."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from rag_kit.query_construction.clauses import Clause
from rag_kit.query_construction.dates import FIRST, Period
from rag_kit.query_construction.fields import MetadataField, Schema
from rag_kit.query_construction.words import simplified


@dataclass(frozen=True, eq=False)
class Atom:
    """One condition, and where its words stand, cue words ("published after") included.

    Attributes:
        where: The condition, without the negation.
        negated: It must not hold.
        exclusive: A document can meet only one such condition on the field: "in 2010 and 2012" means either.
        denial: What holds instead if it is negated, where that is more than "not".
        measured: It compares with a date or number.
    """

    begin: int
    end: int
    field: str
    where: Clause
    negated: bool = False
    exclusive: bool = False
    denial: Clause | None = None
    measured: bool = False


_UNDATED = (
    r"\b(?:without|with\s+no|lacking|missing)\s+(?:a\s+|any\s+|the\s+)?(?:known\s+)?(?:publication\s+)?(?:years?|dates?)\b"
    r"|\b(?:with\s+an?\s+|whose\s+)?(?:unknown|missing)\s+(?:publication\s+)?(?:year|date)\b"
    r"|\b(?:whose\s+|where\s+|the\s+|and\s+)*(?:publication\s+)?(?:year|date)\s+(?:is\s+)?(?:unknown|missing|absent|not\s+(?:known|given|stated))\b"
    r"|\bundated\b|没有(?:发表|出版)?(?:年份|日期)|年份(?:缺失|不明|未知)"
)
# what may follow, so that "without a rating above 4" and "with no author Smith" are not meant
_STOP = r"(?=\s*(?:$|[,.;:?!)]|(?:and|or|but|from|by|in|since|after|before|that|which|yet|at\s+all)\b))"
_ZH_STOP = r"(?=\s*(?:$|[的、，,。？?！!]|或|且|并|和))"


def find_missing(text: str, schema: Schema, time: MetadataField | None) -> list[Atom]:
    """Conditions on what is not there: "undated", "with no rating", 没有作者; flags have none, for they are negated.

    Dates are compared with the field `time`.
    """
    found: list[Atom] = []
    for field in schema:
        match = None if field.type == "bool" else _missing(field, field is time).search(text)
        if match and not any(match.start() < one.end and one.begin < match.end() for one in found):
            found.append(Atom(*match.span(), field.name, {field.name: {"$exists": False}}))
    return found


@lru_cache(maxsize=256)
def _missing(field: MetadataField, time: bool) -> re.Pattern[str]:
    patterns = [_UNDATED] if time else []
    for written in field.all_names:
        name = r"[\s_-]+".join(map(re.escape, re.split(r"[\s_-]+", simplified(written))))
        stem = re.sub(r"(?:ing|ees?|ers?|ors?|e)$", "", written)  # "unassigned" is of the assignee
        un = rf"un{stem}e?d\b" if len(stem) >= 3 and stem.isalpha() else "(?!)"
        patterns += [
            rf"\b(?:without|lacking|missing|(?:with|having|have|has)\s+no)\s+(?:an?\s+|any\s+|the\s+)?(?:known\s+)?{name}s?\b{_STOP}",
            rf"\b(?:whose\s+|where\s+|the\s+|with\s+)?{name}s?\s+(?:is\s+|are\s+)?(?:unknown|missing|absent|empty|null|not\s+(?:known|given|stated|set))\b",
            rf"\b(?:no\s+{name}s?(?=\s*(?:$|[,.;:?!)]|(?:and|or|but)\b))|{un})",
            rf"\b(?:with\s+an?\s+)?(?:unknown|missing)\s+{name}\b{_STOP}",
            rf"(?:没有|缺少|缺失|无){name}{_ZH_STOP}|{name}(?:为空|缺失|不明|未知|为无)",
        ]
    return re.compile("|".join(patterns), re.IGNORECASE)


_QUARTER = re.compile(r"(?:(Q[1-4])|([1-4])Q|第?([1-4一二三四])季度?|(\w+)\s+quarter)", re.IGNORECASE)
_QUARTERS = re.compile(r"quarter|季度|^qtr$", re.IGNORECASE)


def quarter_of(period: Any, schema: Schema) -> Clause | None:
    """The condition on the field of quarters that a quarter of a year is, besides its year; ``None`` without one."""
    if not isinstance(period, Period) or period.grain != "quarter":
        return None
    wanted = (period.start.month + 2) // 3
    for field in schema:
        if not field.many and field.type == "int" and _QUARTERS.search(field.name):
            return {field.name: {"$eq": wanted}}
        quarters = {_quarter(value): value for value in field.values}
        if not field.many and field.type == "str" and wanted in quarters and None not in quarters:
            return {field.name: {"$eq": quarters[wanted]}}
    return None


def _quarter(value: Any) -> int | None:
    match = _QUARTER.fullmatch(str(value).strip())
    return FIRST.get(next(group for group in match.groups() if group).lower()) if match else None
