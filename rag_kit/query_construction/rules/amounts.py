"""Dates and numbers that a question compares with a field."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple

from rag_kit.query_construction import cues
from rag_kit.query_construction.comparing import MonthsField, months_fields
from rag_kit.query_construction.cues import singular
from rag_kit.query_construction.fields import MetadataField, Schema
from rag_kit.text.values.forms import NUMBER
from rag_kit.text.values.periods import LISTED, RANGE_TO, NamedPeriod, TextSpan
from rag_kit.text.values.reading import find_values
from rag_kit.text.values.units import is_money
from rag_kit.text.values.value import CALENDAR, Value

_NO_NUMBERS = (*CALENDAR, "ordinal")
Spans = Sequence[TextSpan]
_MAX_NUMBERS = 64
_NAME_REACH = 60  # characters before a date in which a field may be named
_LINK = r"(?:\s*(?:is|are|was|were|has|of|score|value|a|an|at|than|the|with|[=:]|为|是|在|的)\b|\s*[=:])*\s*$"
_OR_MORE = re.compile(r"\s*(?:or\s+(?:more|fewer|less|higher|lower)\b|\+|-)?\s*", re.IGNORECASE)


class AmountKind(NamedTuple):
    """A kind of quantity: words in the names of its fields, and patterns before and after its numbers."""

    names: str
    before: str
    after: str


_PRICE = AmountKind(
    "price cost fee amount salary wage rent budget 价 费 金额 薪 工资 成本 租金 预算",
    r"\b(?:cost(?:s|ing)?|priced|cheaper|more\s+expensive)",
    "块",  # and all currencies of the reader of values
)
_KINDS = (
    _PRICE,
    AmountKind("rating score star 评分 得分 分数", r"\b(?:rated|scored)", r"stars?\b|points?\b|[星分](?!钟)"),
    AmountKind("age 年龄", r"\baged", r"years?[\s-]+old\b|周?岁"),
)


@dataclass(frozen=True, eq=False)
class Amount(TextSpan):
    """A date or number in a text, and the field that it belongs to."""

    value: Any
    field: MetadataField
    name_begin: int  # where the field's name before it begins; its own begin without a name
    parts: tuple[MonthsField, ...] = ()  # of a date: the fields of quarters and months


def find_amounts(text: str, schema: Schema, periods: list[NamedPeriod], taken: Spans) -> list[Amount]:
    """Find dates and numbers that belong to a field, outside of what is `taken`, in order."""
    free = [period for period in periods if not period.overlaps(taken)]
    dates = _with_shared_fields(text, [_date_amount(text, schema, period) for period in free])
    bare_years = [period for period in free if period.bare]
    other_dates = [period for period in free if not period.bare]
    numbers = _find_numbers(text, schema, [*taken, *other_dates], bare_years)
    # "a price over 1000": after the name of a numeric field it is no year
    dates = [date for date in dates if not date.overlaps(numbers)]
    return sorted([*dates, *numbers], key=lambda amount: amount.begin)


def _with_shared_fields(text: str, dates: Sequence[Amount]) -> list[Amount]:
    """Give both dates of a range or list one field: in "from 2023 to June 2024" that of June, which is a date."""
    shared = list(dates)
    for index, (first, last) in enumerate(pairwise(dates)):
        listed = LISTED if first.field.type == last.field.type else cues.RANGE_AND  # 2024年或2025年到期
        is_joined = any(pattern.fullmatch(text, first.end, last.begin) for pattern in (RANGE_TO, listed))
        if is_joined and first.field is not last.field:
            field = first.field if first.field.type == "date" and last.field.type != "date" else last.field
            shared[index : index + 2] = [replace(first, field=field), replace(last, field=field)]
    return shared


def _date_amount(text: str, schema: Schema, named: NamedPeriod) -> Amount:
    """Match a date with its field: one named right after it, else the last named before it, else by its type."""
    before = text[max(0, named.begin - _NAME_REACH) : named.begin]
    after = text[named.end : named.end + _NAME_REACH].lstrip("及以之前后内间 ")
    parts, period = months_fields(schema), named.period
    if period.end == date.max:  # "since June 2020" has no end
        needs_date = period.grain != "years"
    else:  # a field of years, with those of quarters and months, may be enough
        needs_date = not period.consists_of(12, *(part.months for part in parts))

    def rank(field: MetadataField) -> tuple[int, bool, bool]:
        name = _date_name(field)
        name_ends = [len(text)] if name.match(after) else [match.end() for match in name.finditer(before)]
        has_fitting_type = (field.type == "date") == needs_date
        return max(name_ends, default=0), has_fitting_type, needs_date and field.type == "str"

    times = [field for field in schema if field.temporal]
    if parts and not (times and period.has_year):  # June, of whatever year
        period = replace(period, has_year=False)
        return Amount(named.begin, named.end, period, parts[-1].field, named.begin, parts)
    return Amount(named.begin, named.end, period, max(times, key=rank), named.begin, parts)


def _date_name(field: MetadataField) -> re.Pattern[str]:
    """Make the pattern of what names a field of dates: "expires" or "expiring" for `expires`, 到期 for 到期日."""
    stem = re.sub(r"(?<=.)(?:[\s_](?:date|time|day|at|on)|日期?|时间)$", "", field.name.lower())
    if not stem.isascii():
        return re.compile(re.escape(stem), re.IGNORECASE)
    ending = r"(?:ing|e?[sd]|e|y)"
    root = re.sub(rf"{ending}$", "", stem)  # "expir"
    return re.compile(rf"\b{_name_pattern(root)}{ending}?\b", re.IGNORECASE)


def _find_numbers(text: str, schema: Schema, taken: Spans, years: Spans) -> list[Amount]:
    """Find the numbers of fields; one that may be one of the `years` needs a field's name before it, or a measure."""
    fields = [field for field in schema if field.ordered and not field.temporal]
    numerals = _find_numerals(text, taken) if fields else []
    amounts = [_number_amount(text, value, span, fields, span.overlaps(years)) for value, span in numerals]
    # in "between 5 and 7 years old" the field of one number is that of the other
    for index, ((low, left), (high, right)) in enumerate(pairwise(numerals)):  # values with their spans
        first, second = amounts[index : index + 2]
        between = text[first.end if first else left.end : right.begin]
        is_range = RANGE_TO.fullmatch(between) or cues.RANGE_AND.fullmatch(_without_cue(between))
        if is_range and first is None and second is not None:
            amounts[index] = Amount(left.begin, left.end, _number(low), second.field, left.begin)
        elif is_range and second is None and first is not None:
            amounts[index + 1] = Amount(right.begin, right.end, _number(high), first.field, right.begin)
    return [amount for amount in amounts if amount is not None]


def _find_numerals(text: str, taken: Spans) -> list[tuple[Value, TextSpan]]:
    """Find numbers outside of what is `taken`, each with the span of its numeral: "20" of "20 km"."""
    # the key of a year is digits alone, that of any other date or name is not
    numbers = [
        value
        for value in find_values(text)
        if value.key.isdecimal() or (not value.key and value.dimension not in _NO_NUMBERS)
    ]
    numerals: list[tuple[Value, TextSpan]] = []
    for value in numbers[:_MAX_NUMBERS]:
        numeral = NUMBER.match(text, value.start)
        span = TextSpan(value.start, numeral.end() if numeral else value.end)
        if not span.overlaps(taken):
            numerals.append((value, span))
    return numerals


def _number(value: Value) -> int | float:
    """Return the number of a value, whole if it is."""
    return int(value.amount) if value.amount.is_integer() else value.amount


def _number_amount(
    text: str, value: Value, span: TextSpan, fields: list[MetadataField], may_be_year: bool
) -> Amount | None:
    """Match a number with a field, by the words before it or the unit after it; ``None`` if none or several match."""
    begin, end = span.begin, span.end
    by_unit = [*_fields_by_unit(text, value, end, fields, may_be_year)]
    unit_field, end = by_unit[0] if len(by_unit) == 1 else (None, end)
    reach_begin = max(0, begin - cues.REACH)
    left = text[reach_begin:begin]
    left_without_cue = _without_cue(left)
    # 三 and "one" are in many words that are no numbers: without a digit there must be a cue such as "at least"
    has_digit = text[begin:end].lstrip("-+$€£¥ ")[:1].isdigit()
    has_cue = left_without_cue != left or any(cue.match(text, end) for cue, _ in cues.RIGHT)
    if not (has_digit or has_cue):
        return None
    left_without_opening = cues.BETWEEN.sub("", cues.FROM.sub("", left_without_cue))
    for field in fields:
        for words in (left_without_opening, left):
            if match := _patterns_of(field).before.search(words):
                return Amount(begin, end, _number(value), field, reach_begin + match.start())
    return Amount(begin, end, _number(value), unit_field, begin) if unit_field else None


def _fields_by_unit(
    text: str, value: Value, end: int, fields: list[MetadataField], may_be_year: bool
) -> Iterator[tuple[MetadataField, int]]:
    """Yield each field whose unit follows a number that ends at `end` ("20 pages"), with the end of the unit."""
    or_more = _OR_MORE.match(text, end)
    unit_begin = or_more.end() if or_more else end
    has_or_more = bool(text[end:unit_begin].strip())
    for field in fields:
        patterns = _patterns_of(field)
        pattern = patterns.measure if may_be_year else patterns.unit
        if match := pattern.match(text, unit_begin):
            # the "or more" of "20 or more pages" is read as a comparison later
            yield field, end if has_or_more else match.end()
        elif is_money(value.dimension) and _is_kind(field, _PRICE):
            yield field, max(end, value.end)


class _FieldPatterns(NamedTuple):
    """Patterns before and after the numbers of a field; after a possible year only `measure` counts."""

    before: re.Pattern[str]
    unit: re.Pattern[str]
    measure: re.Pattern[str]


@lru_cache(maxsize=256)
def _patterns_of(field: MetadataField) -> _FieldPatterns:
    """Make the patterns by which numbers belong to a field: "20 words" to word_count, "rated 4" to a rating."""
    kinds = [kind for kind in _KINDS if _is_kind(field, kind)]
    name = _name_pattern(field.name)
    if field.name.endswith("s"):
        name = name.removesuffix("?")  # "pages: 12" is a number of pages, "page 12" one of them
    before = "|".join([rf"(?<![a-z0-9]){name}", *(kind.before for kind in kinds)])
    measures = [kind.after for kind in kinds]
    words = "|".join(map(_name_pattern, _name_words(field)))
    initials = [re.escape(field.name[0])] if field.name > "\u3400" else []  # "20页" for 页数
    return _FieldPatterns(
        re.compile(rf"(?:{before}){_LINK}", re.IGNORECASE),
        re.compile("|".join([*measures, rf"(?:{words})\b", *initials]), re.IGNORECASE),
        re.compile("|".join(measures) or "(?!)", re.IGNORECASE),  # (?!) matches nothing
    )


def _is_kind(field: MetadataField, kind: AmountKind) -> bool:
    """Tell by its name whether a field is of a kind."""
    words = _name_words(field)
    joined = "".join(words)
    return any(name in words or (not name.isascii() and name in joined) for name in kind.names.split())


def _without_cue(left: str) -> str:
    """Cut "more than", "at most", ">=" and their like off the end of a text."""
    for pattern, _ in cues.LEFT:
        if cue := pattern.search(left):
            return left[: cue.start()] + " "
    return left


def _name_words(field: MetadataField) -> set[str]:
    """Return the words of a field's name, in the singular."""
    return {singular(word) for word in re.split(r"[\W_]+", field.name.lower()) if word}


def _name_pattern(name: str) -> str:
    """Make a pattern for a field's name, in the singular or plural, with blanks or underscores."""
    return r"[\s_\-]+".join(map(re.escape, re.split(r"[\s_\-]+", name.removesuffix("s")))) + "s?"
