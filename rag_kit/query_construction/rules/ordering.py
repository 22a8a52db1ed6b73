"""Orders and numbers of documents that a question asks for: "the three latest"."""

from __future__ import annotations

import re
from dataclasses import dataclass

from rag_kit.query_construction.constructed import Sort
from rag_kit.query_construction.date_patterns import NUMBERS, WORDS
from rag_kit.query_construction.dates import chinese_number
from rag_kit.query_construction.fields import MetadataField, Schema
from rag_kit.query_construction.rules.quantities import KINDS

_N = rf"(?:\d{{1,3}}|{'|'.join(WORDS)}|fifteen|twenty)"
_H = "一二三四五六七八九十两"
_NOUN = (
    r"(?:(?:published|available|relevant|clinical|original|scientific|research|review)\s+)*"
    r"(?P<noun>papers?|articles?|stud(?:y|ies)|works?|publications?|documents?|abstracts?|reports?|trials?|records?|"
    r"results?|entry|entries|items?|reviews?|ones?)\b"
)
_EN = re.compile(
    rf"\b(?:the\s+|top\s+)?(?:(?P<n1>{_N})\s+)?(?P<word>latest|newest|most\s+recent(?:ly\s+published)?|oldest|earliest|most\s+current)"
    rf"(?:\s+(?P<n2>{_N}))?(?:\s+{_NOUN})?(?!\s+than)",
    re.IGNORECASE,
)
_LAST = re.compile(rf"\b(?:the\s+)?last\s+(?P<n>{_N})\s+{_NOUN}", re.IGNORECASE)
_FIRST_SORT = re.compile(r"\b(?P<word>newest|latest|most\s+recent|oldest|earliest)\s+first\b", re.IGNORECASE)
_ZH = re.compile(
    rf"(?P<word>最新|最近|最晚|最早|最旧|最老)(?:发表|出版|刊登)?的?(?:(?P<n>\d{{1,3}}|[{_H}]{{1,3}})(?P<unit>篇|个|条|项|份|部)"
    r"(?:文章|论文|文献|研究|文档|报告)?|(?P<noun>文章|论文|文献|研究|文档|报告))"
)
_ZH_TAIL = re.compile(
    rf"(?:前|取)?(?P<n>\d{{1,3}}|[{_H}]{{1,3}})(?:篇|个|条|项|份)(?P<word>最新|最早|最近|最旧)"
)
_SIZE = re.compile(
    rf"\b(?:the\s+)?(?:(?P<n1>{_N})\s+)?(?<!\bat\s)(?P<word>highest|largest|biggest|greatest|longest|most|top|lowest|smallest|shortest|fewest|least)"
    rf"(?:\s+(?P<n2>{_N}))?[\s-]+(?P<name>[\w-]+)",
    re.IGNORECASE,
)
_UP = ("oldest", "earliest", "最早", "最旧", "最老", "lowest", "smallest", "shortest", "fewest",
       "least", "最低", "最少", "最小", "最短")  # fmt: skip
_COUNTED = rf"(?:的(?:(?P<n>\d{{1,3}}|[{_H}]{{1,3}})(?:篇|个|条|项|份|部|款|台|件|本))?)?"
_ZH_MOST = rf"(?P<word>最高|最多|最大|最长|最低|最少|最小|最短){_COUNTED}"


def _most(words: str, zh: str = r"(?!)") -> re.Pattern[str]:
    return re.compile(
        rf"\b(?:the\s+)?(?:(?P<n1>{_N})\s+)?(?:{words})(?:\s+(?P<n2>{_N}))?(?!\s+than)\b|(?:{zh}){_COUNTED}",
        re.IGNORECASE,
    )


_KINDS = (
    (KINDS[0], True, _most(r"cheapest|least\s+expensive", "最便宜")),
    (KINDS[0], False, _most(r"most\s+expensive|priciest|dearest|costliest", "最贵")),
    (KINDS[1], False, _most(r"(?:best|highest|top)[\s-]+rated", "最受好评")),
    (KINDS[1], True, _most(r"(?:worst|lowest)[\s-]+rated")),
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
    """The order that a question asks for, if a field can give it.

    Example:
        >>> found = find_order("the three latest papers on sleep", Schema.of([{"name": "year", "type": "int"}]))
        >>> found.sort.field, found.sort.descending, found.limit
        ('year', True, 3)
    """
    times = [field for field in schema if field.temporal]
    if times:
        field = max(times, key=lambda item: item.type == "date")
        for pattern in (_FIRST_SORT, _EN, _LAST, _ZH, _ZH_TAIL):
            if match := pattern.search(text):
                return _ordered(match, field)
    for kind, up, pattern in _KINDS:
        owners = [candidate for candidate in schema if candidate.ordered and kind.fits(candidate)]
        if len(owners) == 1 and (match := pattern.search(text)):
            return _ordered(match, owners[0], up=up)
    for candidate in schema:
        if candidate.ordered and (match := re.search(rf"{re.escape(candidate.name)}{_ZH_MOST}", text)):
            return _ordered(match, candidate)
    for match in _SIZE.finditer(text):
        name = match["name"].lower().rstrip("s")
        for candidate in schema:
            if candidate.ordered and name in _stems(candidate):
                return _ordered(match, candidate)
    return None


def _ordered(match: re.Match[str], field: MetadataField, up: bool | None = None) -> Ordered:
    groups = match.groupdict()
    word = (groups.get("word") or "latest").lower()
    number = groups.get("n") or groups.get("n1") or groups.get("n2")
    limit = (NUMBERS.get(number.lower()) or chinese_number(number) or 1) if number else None
    noun = (groups.get("noun") or "").lower()
    if limit is None and noun in ("paper", "article", "study", "work", "publication", "document", "abstract", "report",
                                  "trial", "record", "result", "entry", "item", "review", "one"):  # fmt: skip
        limit = 1
    start = match.start("noun") if noun else match.end()
    return Ordered(
        Sort(field.name, word not in _UP if up is None else not up),
        limit or None,
        match.start(),
        match.end(),
        start,
    )


def _stems(field: MetadataField) -> set[str]:
    names = [field.name, *field.aliases]
    return {name.lower().rstrip("s") for name in names} | {
        form for name in names for form in (name.lower() + "d", name.lower().removesuffix("ing") + "ed")
    }
