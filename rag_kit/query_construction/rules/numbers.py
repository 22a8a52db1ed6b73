"""Numbers that a question compares with a numeric field, which its name, a unit or a word such as "cheaper" says."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from rag_kit.query_construction.dates import NUMBERS, chinese_number
from rag_kit.query_construction.fields import MetadataField, Schema
from rag_kit.query_construction.rules import cues
from rag_kit.query_construction.rules.spans import Span
from rag_kit.query_construction.words import parse_number, singular

_WORDS = {
    word: number
    for word, number in NUMBERS.items()
    if number > 1 and " " not in word and word not in ("few", "several", "hundred")
}
_NUMBER = re.compile(
    r"(?<![A-Za-z0-9_.])(?:[$€£¥]\s?)?(?P<plain>\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?)(?![\d.]*[a-z_]*[a-z]\d)"
    r"(?:\s?(?P<scale>thousand\b|million\b|k\b|[千万亿]))?"
    r"|(?<![第年月一-十])(?P<han>[一二三四五六七八九十百千万两]{1,7})"
    rf"|\b(?P<word>{'|'.join(sorted(_WORDS, key=len, reverse=True))})\b",
    re.IGNORECASE,
)
_MOST = 64  # numbers that are looked at
_SCALES = {"thousand": 1e3, "k": 1e3, "million": 1e6, "千": 1e3, "万": 1e4, "亿": 1e8}
_LINK = r"(?:\s*(?:is|are|was|were|has|of|score|value|a|an|the|with|[=:]|为|是|在|的)\b|\s*[=:])*\s*"
_OPENING = re.compile(r"(?:\bbetween|\bfrom|介于|在)\s*$", re.IGNORECASE)
_NEVER = r"(?!)"


class Kind(NamedTuple):
    """A kind of quantity: words in a field's name, and patterns of its units, verbs and comparatives."""

    names: str
    units: str
    verbs: str = _NEVER
    more: str = _NEVER
    less: str = _NEVER

    def fits(self, field: MetadataField) -> bool:
        """Whether a field is of this kind, by its names."""
        known, words = self.names.split(), _name_words(field)
        return any(word in words or (not word.isascii() and word in "".join(words)) for word in known)


KINDS = (
    Kind(
        "price cost fee amount salary wage rent fare budget 价 费 金额 薪 工资 成本 租金 预算",
        r"(?:us\s+)?dollars?\b|usd\b|bucks?\b|euros?\b|eur\b|pounds?\b|gbp\b|yuan\b|rmb\b|cny\b|yen\b|[$€£¥元块]|美元|欧元|人民币",
        r"\b(?:cost(?:s|ing)?|priced)",
        r"more\s+expensive|dearer|pricier|costlier",
        r"cheaper|less\s+expensive",
    ),
    Kind("rating score star 评分 得分 分数", r"stars?\b|points?\b|[星分](?!钟)", r"\b(?:rated|scored)"),
    Kind("age 年龄", r"(?:years?|yrs?)[\s-]+(?:old|of\s+age)\b|周?岁", r"\baged", "older", "younger"),
)
_OR_MORE = re.compile(r"\s*(?P<more>or\s+(?:more|fewer|less|higher|lower)\b|\+|-)?\s*", re.IGNORECASE)


def find_numbers(
    text: str, schema: Schema, taken: Sequence[tuple[int, int]], years: Sequence[tuple[int, int]] = ()
) -> list[Span]:
    """Numbers that say of which numeric field they are, outside of what is `taken`.

    What may be one of the `years` is a number only where its field stands before it, or its currency.
    """
    fields = [
        field for field in schema if field.type in ("int", "float") and not field.many and not field.is_year
    ]
    found: list[Span] = []
    owner: _Owner | None = None
    previous: re.Match[str] | None = None
    for match in _matches(text, taken) if fields else ():
        year = match.span("plain") in years
        mine = _owner(text, match, fields, year)
        if not match["plain"] and (mine is None or not _has_cue(text, match.start(), mine.end)):
            continue  # 三 and "one" are in much that is no number
        if previous is not None:
            between = text[owner.end if owner else previous.end() : match.start()]
            same = year == (previous.span("plain") in years)
            to, and_ = cues.RANGE_TO.fullmatch(between), cues.RANGE_AND.fullmatch(_without_cue(between))
            if mine is None and owner is not None and same and (to or and_):
                mine = _Owner(owner.field, None, match.start(), match.end())
            elif mine is not None and owner is None and (to or (and_ and same)):
                found.append(Span(*previous.span(), _value(previous), mine.field.name))
        if mine is not None:
            where = (match.start(), mine.end)
            found.append(Span(*where, _value(match), mine.field.name, mine.operator, mine.begin))
        owner, previous = mine, match
    return found


def _matches(text: str, taken: Sequence[tuple[int, int]]) -> Iterator[re.Match[str]]:
    found = _NUMBER.finditer(text)
    return islice(
        (one for one in found if not any(a < one.end() and one.start() < b for a, b in taken)), _MOST
    )


class _Owner(NamedTuple):
    """The field that a number is of, a comparison, where the words for them begin, where number and unit end."""

    field: MetadataField
    operator: str | None
    begin: int
    end: int


def _owner(text: str, match: re.Match[str], fields: Sequence[MetadataField], year: bool) -> _Owner | None:
    begin, end = match.span()
    skipped = max(0, begin - cues.REACH)
    left = text[skipped:begin]
    unit = _by_unit(text, begin, end, fields, counted=not year)
    stop = unit[1] if unit else end
    if (found := _by_word(left, fields)) and found[1] is not None:
        return _Owner(found[0], found[1], skipped + found[2], stop)
    left = _OPENING.sub("", _without_cue(left))
    for field in fields:
        for name in map(_name_pattern, field.all_names):
            if named := re.search(rf"(?<![a-z0-9]){name}{_LINK}$", left, re.IGNORECASE):
                return _Owner(field, None, skipped + named.start(), stop)
    if found := _by_word(left, fields):
        return _Owner(found[0], None, skipped + found[2], stop)
    return _Owner(unit[0], None, begin, stop) if unit else None


def _by_unit(
    text: str, begin: int, end: int, fields: Sequence[MetadataField], *, counted: bool
) -> tuple[MetadataField, int] | None:
    """The one field whose unit stands at a number, and where the unit ends; `counted`: "20 words" is word_count."""
    more = _OR_MORE.match(text, end)
    start = more.end() if more else end
    after = text[start : start + 40]
    word = re.match(r"[a-z]+", after, re.IGNORECASE)
    found = []
    for field in fields:
        length = 0
        if counted and word and singular(word.group().lower()) in _name_words(field):
            length = word.end()
        elif after[:1] > "\u3400" and any(name.startswith(after[:1]) for name in field.all_names):
            length = 1  # 30页 is of 页数
        for kind in KINDS if not length else ():
            if kind.fits(field) and (unit := re.match(kind.units, after, re.IGNORECASE)):
                length = unit.end()
            elif kind is KINDS[0] and kind.fits(field) and text[begin] in "$€£¥":
                found.append((field, end))
        if length:
            # the words of "20 or more pages" say how it is compared
            found.append((field, end if more and more["more"] else start + length))
    return found[0] if len(found) == 1 else None


def _by_word(left: str, fields: Sequence[MetadataField]) -> tuple[MetadataField, str | None, int] | None:
    """The one field that "cheaper than", "rated" or "costs" is of, the comparison, and where the words begin."""
    for kind, owners in ((kind, [field for field in fields if kind.fits(field)]) for kind in KINDS):
        words = (
            (rf"\b(?:{kind.more})\s+than", "$gt"),
            (rf"\b(?:{kind.less})\s+than", "$lt"),
            (kind.verbs, None),
        )
        for pattern, operator in words if len(owners) == 1 else ():
            ended = rf"(?:{pattern})(?:\s+(?:at|a|an|the|with|as|is|are))*\s*$"
            if match := re.search(ended, left, re.IGNORECASE):
                return owners[0], operator, match.start()
    return None


def _without_cue(left: str) -> str:
    """The text before "more than", "at most", ">=" and their like, if it ends with one."""
    found = next((cue for pattern, _ in cues.LEFT if (cue := pattern.search(left))), None)
    return left[: found.start()] + " " if found else left


def _has_cue(text: str, begin: int, end: int) -> bool:
    left = text[max(0, begin - cues.REACH) : begin]
    before = any(pattern.search(left) for pattern, _ in cues.LEFT)
    return before or any(pattern.match(text, end) for pattern, _ in cues.RIGHT)


def _value(match: re.Match[str]) -> int | float | None:
    if match["han"]:
        return chinese_number(match["han"])
    if match["word"]:
        return _WORDS[match["word"].lower()]
    number = parse_number(match["plain"])
    if number is None or not match["scale"]:
        return number
    scaled = number * _SCALES[match["scale"].lower()]
    return int(scaled) if scaled == int(scaled) else scaled


def _name_words(field: MetadataField) -> set[str]:
    """The words of a field's names, in the singular."""
    return {singular(word) for name in field.all_names for word in re.split(r"[\W_]+", name.lower()) if word}


def _name_pattern(name: str) -> str:
    pattern = r"[\s_\-]+".join(map(re.escape, re.split(r"[\s_\-]+", name)))
    return (pattern[:-1] if pattern.endswith("s") and len(pattern) > 3 else pattern) + "s?"
