"""Orders and numbers of documents that a question asks for: "the three latest"."""

from __future__ import annotations

import re
from dataclasses import dataclass

from rag_kit.query_construction.constructed import Sort
from rag_kit.query_construction.dates import NUMBERS, chinese_number
from rag_kit.query_construction.fields import Schema
from rag_kit.query_construction.words import Span

_N = rf"(?P<n>\d{{1,3}}|{'|'.join(NUMBERS)})"
_H = r"(?P<n>\d{1,3}|[一二三四五六七八九十两]{1,3})[篇个条项份部款台件本]"
_NOUN = (
    r"(?P<noun>(?:paper|article|study|work|publication|document|abstract|report|trial|record|result|item|review)s?\b"
    r"|studies\b)"
)
_ZH_NOUN = r"文章|论文|文献|研究|文档|报告"
_TIMES = [
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"\b(?:the\s+)?(?:{_N}\s+)?(?P<word>latest|newest|most\s+recent|oldest|earliest)(?:\s+(?:first\b|{_NOUN}))?(?!\s+than)",
        rf"\b(?:the\s+)?last\s+{_N}\s+{_NOUN}",
        rf"(?P<word>最新|最近|最早|最旧)(?:发表|出版)?的?(?:{_H}|(?={_ZH_NOUN}))(?P<noun>{_ZH_NOUN})?",
    )
]
_ASCENDING = ("oldest", "earliest", "最早", "最旧")


@dataclass(frozen=True, eq=False)
class Order(Span):
    """An order and a number that a text asks for; ``noun`` is where their noun begins."""

    sort: Sort
    limit: int | None
    noun: int


def find_order(text: str, schema: Schema) -> Order | None:
    """The order that a question asks for, if a field can give it."""
    times = [field for field in schema if field.temporal]
    match = next((match for pattern in _TIMES if (match := pattern.search(text))), None)
    if match is None or not times:
        return None
    number, noun, word = (match.groupdict().get(name) for name in ("n", "noun", "word"))
    limit = (NUMBERS.get(number.lower()) or chinese_number(number) or None) if number else None
    if number is None and noun and noun.isascii() and not noun.endswith("s"):
        limit = 1  # "the latest paper"
    field = max(times, key=lambda field: field.type == "date")
    sort = Sort(field.name, (word or "latest").lower() not in _ASCENDING)
    return Order(*match.span(), sort, limit, match.start("noun") if noun else match.end())
