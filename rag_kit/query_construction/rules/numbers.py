"""Numbers that a question compares with a numeric field, which its name, a unit or a word such as "costs" says."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import islice, pairwise
from typing import NamedTuple

from rag_kit.query_construction.dates import NUMBERS, chinese_number
from rag_kit.query_construction.fields import MetadataField, Schema
from rag_kit.query_construction.rules import cues
from rag_kit.query_construction.rules.comparisons import Amount
from rag_kit.query_construction.words import parse_number, singular

_NUMBER = re.compile(
    r"(?<![A-Za-z0-9_.])(?:[$€£¥]\s?)?(?P<figures>\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?)(?![\d.]*[a-z_]*[a-z]\d)"
    r"(?:\s?(?P<scale>thousand\b|million\b|k\b|[千万亿]))?"
    r"|(?<![第年月一-十])(?P<han>[一二三四五六七八九十百千万两]{1,7})"
    rf"|\b(?P<word>{'|'.join(NUMBERS)})\b",
    re.IGNORECASE,
)
_MAX_NUMBERS = 64
_SCALES = {"thousand": 1e3, "k": 1e3, "million": 1e6, "千": 1e3, "万": 1e4, "亿": 1e8}
_LINK = r"(?:\s*(?:is|are|was|were|has|of|score|value|a|an|at|than|the|with|[=:]|为|是|在|的)\b|\s*[=:])*\s*$"
_OPENING = re.compile(r"(?:\bbetween|\bfrom|介于|在)\s*$", re.IGNORECASE)
_OR_MORE = re.compile(r"\s*(?:or\s+(?:more|fewer|less|higher|lower)\b|\+|-)?\s*", re.IGNORECASE)


class Kind(NamedTuple):
    """A kind of quantity: words in a field's name, and patterns of what stands before and after its numbers."""

    names: str
    before: str
    after: str


_KINDS = (
    Kind(
        "price cost fee amount salary wage rent budget 价 费 金额 薪 工资 成本 租金 预算",
        r"\b(?:cost(?:s|ing)?|priced|cheaper|more\s+expensive)",
        r"(?:us\s+)?dollars?\b|usd\b|euros?\b|eur\b|pounds?\b|yuan\b|rmb\b|cny\b|[$€£¥元块]|美元|欧元|人民币",
    ),
    Kind("rating score star 评分 得分 分数", r"\b(?:rated|scored)", r"stars?\b|points?\b|[星分](?!钟)"),
    Kind("age 年龄", r"\baged", r"years?[\s-]+old\b|周?岁"),
)


class _Owner(NamedTuple):
    """The field that a number is of, where the words before it begin, and where number and unit end."""

    field: str
    begin: int
    end: int


def find_numbers(
    text: str, schema: Schema, taken: Sequence[tuple[int, int]], years: Sequence[tuple[int, int]] = ()
) -> list[Amount]:
    """Numbers that say of which numeric field they are, outside of what is `taken`.

    What may be one of the `years` is a number only where its field stands before it, or its currency.
    """
    fields = [
        field for field in schema if field.type in ("int", "float") and not field.many and not field.is_year
    ]
    matches = list(islice(_NUMBER.finditer(text), _MAX_NUMBERS)) if fields else []
    matches = [match for match in matches if not any(a < match.end() and match.start() < b for a, b in taken)]
    owners = [_field_of_number(text, match, fields, match.span("figures") in years) for match in matches]
    # in "between 5 and 7 years old" the field of one number is that of the other
    for place, (one, other) in enumerate(pairwise(matches)):
        first, second = owners[place : place + 2]
        between = text[first.end if first else one.end() : other.start()]
        alike = (one.span("figures") in years) == (other.span("figures") in years)
        if cues.RANGE_TO.fullmatch(between) or (alike and cues.RANGE_AND.fullmatch(_without_cue(between))):
            owners[place] = first or (second and _Owner(second.field, *one.span()))
            owners[place + 1] = second or (first and _Owner(first.field, *other.span()))
    return [
        Amount(match.start(), owner.end, _number_of(match), owner.field, owner.begin)
        for match, owner in zip(matches, owners, strict=True)
        if owner is not None
    ]


def _field_of_number(
    text: str, match: re.Match[str], fields: Sequence[MetadataField], year: bool
) -> _Owner | None:
    begin, end = match.span()
    floor = max(0, begin - cues.REACH)
    left = text[floor:begin]
    unit = _by_unit(text, match, fields, year)
    stop = unit[1] if unit else end
    # 三 and "one" are in much that is no number
    if not match["figures"] and _without_cue(left) == left and not _has_cue_after(text, stop):
        return None
    bare = _OPENING.sub("", _without_cue(left))
    for field in fields:
        before = [kind.before for kind in _KINDS if _is_kind(field, kind)]
        named = [rf"(?<![a-z0-9])(?:{'|'.join(map(_name_pattern, field.all_names))}){_LINK}", bare]
        for pattern, words in (
            named,
            *([rf"{start}{_LINK}", part] for start in before for part in (bare, left)),
        ):
            if found := re.search(pattern, words, re.IGNORECASE):
                return _Owner(field.name, floor + found.start(), stop)
    return _Owner(unit[0], begin, stop) if unit else None


def _by_unit(
    text: str, match: re.Match[str], fields: Sequence[MetadataField], year: bool
) -> tuple[str, int] | None:
    """The one field whose unit stands at a number, and where the unit ends: "20 words" is word_count."""
    end = match.end()
    more = _OR_MORE.match(text, end)
    start = more.end() if more else end
    # the words of "20 or more pages" say how it is compared
    stays = more is not None and bool(more.group().strip())
    owners = []
    for field in fields:
        units = [kind.after for kind in _KINDS if _is_kind(field, kind)]
        if not year:
            units += [rf"(?:{'|'.join(map(_name_pattern, _name_words(field)))})\b"]
            units += [
                re.escape(name[0]) for name in field.all_names if name[:1] > "\u3400"
            ]  # 30页 is of 页数
        unit = re.compile("|".join(units) or "(?!)", re.IGNORECASE).match(text, start)
        if unit:
            owners.append((field.name, end if stays else unit.end()))
        elif text[match.start()] in "$€£¥" and _is_kind(field, _KINDS[0]):
            owners.append((field.name, end))
    return owners[0] if len(owners) == 1 else None


def _is_kind(field: MetadataField, kind: Kind) -> bool:
    """Whether a field is of a kind, by its names."""
    words = _name_words(field)
    return any(
        word in words or (not word.isascii() and word in "".join(words)) for word in kind.names.split()
    )


def _without_cue(left: str) -> str:
    """The text before "more than", "at most", ">=" and their like, if it ends with one."""
    cue = next((match for pattern, _ in cues.LEFT if (match := pattern.search(left))), None)
    return left[: cue.start()] + " " if cue else left


def _has_cue_after(text: str, end: int) -> bool:
    return any(pattern.match(text, end) for pattern, _ in cues.RIGHT)


def _number_of(match: re.Match[str]) -> int | float | None:
    """The number that a match writes in Chinese, as a word, or in figures with a scale: "2.5 million"."""
    if match["han"]:
        return chinese_number(match["han"])
    if match["word"]:
        return NUMBERS[match["word"].lower()]
    number = parse_number(match["figures"])
    if number is None or not match["scale"]:
        return number
    scaled = number * _SCALES[match["scale"].lower()]
    return int(scaled) if scaled == int(scaled) else scaled


def _name_words(field: MetadataField) -> set[str]:
    """The words of a field's names, in the singular."""
    return {singular(word) for name in field.all_names for word in re.split(r"[\W_]+", name.lower()) if word}


def _name_pattern(name: str) -> str:
    """A field's name in a text, in the singular or plural, with blanks or underscores."""
    return r"[\s_\-]+".join(map(re.escape, re.split(r"[\s_\-]+", name.removesuffix("s")))) + "s?"
