"""Orders and numbers of documents that a question asks for: "the three latest"."""

from __future__ import annotations

import re
from dataclasses import dataclass

from rag_kit.query_construction.constructed import Sort
from rag_kit.query_construction.dates import NUMBERS, WORDS, chinese_number
from rag_kit.query_construction.fields import MetadataField, Schema
from rag_kit.query_construction.rules.numbers import KINDS

_N = rf"(?:\d{{1,3}}|{'|'.join(WORDS)}|fifteen|twenty)"
_H = r"(?:\d{1,3}|[一二三四五六七八九十两]{1,3})"
_UNIT = r"[篇个条项份部款台件本]"
_NOUN = (
    r"(?:(?:published|available|relevant|clinical|original|scientific|research|review)\s+)*"
    r"(?P<noun>(?:paper|article|study|work|publication|document|abstract|report|trial|record|result|entry|item|review|one)"
    r"(?P<several>s)?|(?P<ies>studies|entries))\b"
)
_COUNTED = rf"(?:的(?:(?P<n>{_H}){_UNIT})?)?"
_TIMES = [
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"\b(?P<word>newest|latest|most\s+recent|oldest|earliest)\s+first\b",
        rf"\b(?:the\s+|top\s+)?(?:(?P<n1>{_N})\s+)?(?P<word>latest|newest|most\s+recent(?:ly\s+published)?|oldest|earliest"
        rf"|most\s+current)(?:\s+(?P<n2>{_N}))?(?:\s+{_NOUN})?(?!\s+than)",
        rf"\b(?:the\s+)?last\s+(?P<n>{_N})\s+{_NOUN}",
        rf"(?P<word>最新|最近|最晚|最早|最旧|最老)(?:发表|出版|刊登)?的?"
        rf"(?:(?P<n>{_H}){_UNIT}(?:文章|论文|文献|研究|文档|报告)?|(?P<noun>文章|论文|文献|研究|文档|报告))",
        rf"(?:前|取)?(?P<n>{_H}){_UNIT}(?P<word>最新|最早|最近|最旧)",
    )
]
_SIZE = re.compile(
    rf"\b(?:the\s+)?(?:(?P<n1>{_N})\s+)?(?<!\bat\s)(?P<word>best|worst|highest|largest|biggest|greatest|longest|most|top|lowest|smallest|shortest|fewest|least)"
    rf"(?:\s+(?P<n2>{_N}))?[\s-]+(?P<name>[\w-]+)",
    re.IGNORECASE,
)
_UP = ("oldest", "earliest", "worst", "最早", "最旧", "最老", "lowest", "smallest", "shortest", "fewest",
       "least", "最低", "最少", "最小", "最短")  # fmt: skip
_ZH_MOST = rf"(?P<word>最高|最多|最大|最长|最低|最少|最小|最短){_COUNTED}"


def _most(words: str, zh: str) -> re.Pattern[str]:
    english = rf"\b(?:the\s+)?(?:(?P<n1>{_N})\s+)?(?:{words})(?:\s+(?P<n2>{_N}))?(?!\s+than)\b"
    return re.compile(rf"{english}|(?:{zh}){_COUNTED}", re.IGNORECASE)


_KINDS = (
    (KINDS[0], True, _most(r"cheapest|least\s+expensive", "最便宜")),
    (KINDS[0], False, _most(r"most\s+expensive|priciest|dearest|costliest", "最贵")),
)


@dataclass(frozen=True)
class Ordered:
    """An order, a number, and the place of the words that ask for them; ``noun`` is where their noun begins."""

    sort: Sort
    limit: int | None
    begin: int
    end: int
    noun: int


def find_order(text: str, schema: Schema) -> Ordered | None:
    """The order that a question asks for, if a field can give it."""
    ordered = [field for field in schema if field.ordered]
    if times := [field for field in ordered if field.temporal]:
        newest = max(times, key=lambda item: item.type == "date")
        for pattern in _TIMES:
            if match := pattern.search(text):
                return _ordered(match, newest)
    for kind, up, pattern in _KINDS:
        owners = [field for field in ordered if kind.fits(field)]
        if len(owners) == 1 and (match := pattern.search(text)):
            return _ordered(match, owners[0], up)
    for field in ordered:
        if match := re.search(rf"{re.escape(field.name)}{_ZH_MOST}", text):
            return _ordered(match, field)
    for match in _SIZE.finditer(text):
        for field in ordered:
            if match["name"].lower().rstrip("s") in _stems(field):
                return _ordered(match, field)
    return None


def _ordered(match: re.Match[str], field: MetadataField, up: bool | None = None) -> Ordered:
    groups = match.groupdict()
    number = groups.get("n") or groups.get("n1") or groups.get("n2")
    limit = (NUMBERS.get(number.lower()) or chinese_number(number) or None) if number else None
    noun = groups.get("noun")
    if noun and noun.isascii() and number is None and not (groups["several"] or groups["ies"]):
        limit = 1  # "the latest paper"
    ascending = (groups.get("word") or "latest").lower() in _UP if up is None else up
    start = match.start("noun") if noun else match.end()
    return Ordered(Sort(field.name, not ascending), limit, match.start(), match.end(), start)


def _stems(field: MetadataField) -> set[str]:
    """Words that name a field after "highest": its names, and "rated" for ``rating``."""
    names = [name.lower() for name in field.all_names]
    stems = {name.rstrip("s") for name in names} | {name + "d" for name in names}
    return stems | {name.removesuffix("ing") + "ed" for name in names}
