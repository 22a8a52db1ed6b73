"""One condition that a question names; those on a field that is missing, and on a quarter of a year."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from rag_kit.query_construction.clauses import Clause, all_of, comparison_clause, none_of
from rag_kit.query_construction.dates import QUARTERS, Period
from rag_kit.query_construction.fields import MetadataField, Schema
from rag_kit.query_construction.words import Span, simplify

_OPPOSITE = {"$eq": "$ne", "$gt": "$lte", "$gte": "$lt", "$lt": "$gte", "$lte": "$gt"}


@dataclass(frozen=True, eq=False)
class Condition(Span):
    """One condition, and where its words stand, cue words ("published after") included.

    Attributes:
        operator: ``$eq`` for "in 2010", ``$contains`` for a value of a list, ``$exists`` for "undated".
        value: A value of the field, a number or a ``Period``.
        high: The upper end of a range that begins with `value`.
        negated: It must not hold.
        quarter: The condition that must hold too, where a quarter of a year was named.
    """

    field: MetadataField
    operator: str
    value: Any
    high: Any = None
    negated: bool = False
    quarter: Clause | None = None

    @property
    def measured(self) -> bool:
        """Whether it compares with a date or number."""
        return isinstance(self.value, (int, float, Period)) and not isinstance(self.value, bool)

    @property
    def exclusive(self) -> bool:
        """Whether a document can meet one such condition only on the field: "in 2010 and 2012" means either."""
        return self.operator == "$eq" and self.field.type != "bool"

    @property
    def where(self) -> Clause:
        """The condition in the filter language."""
        if self.field.type == "bool" and self.operator == "$eq":
            return {self.field.name: {"$eq": self.value != self.negated}}
        operator = _OPPOSITE.get(self.operator, self.operator) if self.negated else self.operator
        clause = comparison_clause(self.field, operator, self.value, self.high)
        if self.negated:
            return none_of(clause) if operator == self.operator else clause
        quarter = self.quarter if operator == "$eq" and self.high is None else None
        return (quarter and all_of([clause, quarter])) or clause


# what may follow, so that "without a rating above 4" and "with no author Smith" are not meant
_STOP = r"(?=\s*(?:$|[,.;:?!)]|(?:and|or|but|from|by|in|about|since|after|before|that|which|yet|at\s+all)\b))"
_ZH_STOP = r"(?=\s*(?:$|[的、，,。？?！!]|或|且|并|和))"


def find_missing(text: str, schema: Schema, time: MetadataField | None) -> list[Condition]:
    """Conditions on what is not there: "undated", "with no rating", 没有作者; flags have none, for they are negated.

    Dates are compared with the field `time`.
    """
    conditions: list[Condition] = []
    for field in schema:
        match = None if field.type == "bool" else _missing_pattern(field, field is time).search(text)
        if match and not Span(*match.span()).overlaps(conditions):
            conditions.append(Condition(*match.span(), field, "$exists", False))
    return conditions


@lru_cache(maxsize=256)
def _missing_pattern(field: MetadataField, time: bool) -> re.Pattern[str]:
    """How a question says that documents have no value of a field: "without an author", "undated"."""
    names, patterns = list(field.all_names), []
    if time:
        names += ["year", "date", "publication year", "publication date", "年份", "日期"]
        patterns.append(r"\bundated\b")
    for name in names:
        written = r"[\s_-]+".join(map(re.escape, re.split(r"[\s_-]+", simplify(name))))
        stem = re.sub(r"(?:ing|ees?|ers?|ors?|e)$", "", name)  # "unassigned" is of the assignee
        patterns += [
            rf"\b(?:without|lacking|(?:(?:with|having|have|has)\s+)?(?:no|an?\s+(?:unknown|missing))|unknown|missing)"
            rf"\s+(?:an?\s+|any\s+|the\s+)?(?:known\s+)?{written}s?\b{_STOP}",
            rf"\b(?:(?:whose|where|the)\s+)*{written}s?\s+(?:is\s+)?(?:unknown|missing|absent|not\s+(?:known|given|stated|set))\b",
            rf"(?:没有|缺少|无)(?:发表|出版)?{written}{_ZH_STOP}|{written}(?:为空|缺失|不明|未知)",
        ]
        if len(stem) >= 3 and stem.isalpha():
            patterns.append(rf"\bun{stem}e?d\b")
    return re.compile("|".join(patterns), re.IGNORECASE)


_QUARTER = re.compile(r"(?:(Q[1-4]|[1-4]Q)|第?([1-4一二三四])季度?|(\w+)\s+quarter)", re.IGNORECASE)
_QUARTER_NAME = re.compile(r"quarter|季度|^qtr$", re.IGNORECASE)


def quarter_of(period: Any, schema: Schema) -> Clause | None:
    """The condition on the field of quarters that a quarter of a year is, besides its year; ``None`` without one."""
    if not isinstance(period, Period) or period.grain != "quarter":
        return None
    number = (period.start.month + 2) // 3
    for field in schema:
        if not field.many and field.type == "int" and _QUARTER_NAME.search(field.name):
            return {field.name: {"$eq": number}}
        quarters = {_quarter(value): value for value in field.values}
        if not field.many and field.type == "str" and number in quarters and None not in quarters:
            return {field.name: {"$eq": quarters[number]}}
    return None


def _quarter(value: Any) -> int | None:
    match = _QUARTER.fullmatch(str(value).strip())
    return QUARTERS.get(next(group for group in match.groups() if group).lower()) if match else None
