"""From a question to a text and a filter without a model."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from functools import lru_cache
from itertools import pairwise
from typing import Any

from rag_kit.query_construction import cues
from rag_kit.query_construction.clauses import ConstructedQuery, Sort, bound_filter
from rag_kit.query_construction.comparing import months_fields
from rag_kit.query_construction.cues import longest_spans
from rag_kit.query_construction.fields import MetadataField, Schema
from rag_kit.query_construction.rules.amounts import Amount, find_amounts
from rag_kit.query_construction.rules.conditions import Condition, find_missing, find_unknown, join_conditions
from rag_kit.query_construction.rules.mentions import choose_mentions, is_explicit, purpose_of, read_mentions
from rag_kit.query_construction.rules.values import NamedValue, ValueIndex, is_common
from rag_kit.text import content_words
from rag_kit.text.values.numbers import NUMBER_WORDS, read_any
from rag_kit.text.values.period import Period
from rag_kit.text.values.periods import NamedPeriod, TextSpan, complete_years, find_periods
from rag_kit.text.values.reading import level

_MAX_QUESTION = 2_000
_N = rf"(?P<n>\d{{1,3}}|{NUMBER_WORDS})"
_H = r"(?P<n>\d{1,3}|[一二三四五六七八九十两]{1,3})[篇个条项份部款台件本](?![月季小星财工])"
_NOUN = (
    r"(?P<noun>(?:paper|article|study|work|publication|document|abstract|report|trial|record|result|item|review)s?\b"
    r"|studies\b)"
)
_ZH_NOUN = r"文章|论文|文献|研究|文档|文件|报告"
_ORDERS = [
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"\b(?:the\s+)?(?:{_N}\s+)?(?P<word>latest|newest|most\s+recent|oldest|earliest)(?:\s+(?:first\b|{_NOUN}))?(?!\s+than)",
        rf"\b(?:the\s+)?last\s+{_N}\s+{_NOUN}",
        rf"(?P<word>最新|最近|最早|最旧)(?:发表|出版)?(?:的?(?:{_H}|(?={_ZH_NOUN}))|(?<!最近)的)(?P<noun>{_ZH_NOUN})?",
    )
]
_ASCENDING = ("oldest", "earliest", "最早", "最旧")


class RuleConstructor:
    """Turns a question into text and filter by rule: no model, no network, deterministic.

    Values of the collection that the question names become conditions; so do dates and years ("after 2015",
    "between 2008 and 2011", "2015年以后", "the last five years"), and numbers next to the name of a numeric field.
    "not", "without", "except", "or", "either", 不, 除了, 或 are understood; "the three latest" gives order and limit.
    Where one thing of an or-list is no known value ("Stroke or insomnia"), the known ones make no condition: it would
    hide what was asked for. ``repairs`` names it. Relative dates count from `today`, by default the day of the call.
    """

    def __init__(self, *, today: date | None = None) -> None:
        self._today = today

    @staticmethod
    def named_values(schema: Schema, question: str) -> dict[str, list[Any]]:
        """Return the values of a schema that a question names, by field."""
        by_field: dict[str, list[Any]] = {}
        for named in _value_index(schema).find(unicodedata.normalize("NFKC", question)[:_MAX_QUESTION]):
            by_field.setdefault(named.field.name, []).append(named.value)
        return by_field

    def construct(self, question: str, schema: Schema) -> ConstructedQuery:
        """Turn a question into text and filter; conditions are read in its first 2,000 characters."""
        whole = unicodedata.normalize("NFKC", question)
        text = whole[:_MAX_QUESTION].rstrip()
        rest = whole[len(text) :]
        folded = level(text)
        conditions, order, used = _read(folded, schema, self._today or date.today())
        unknown = find_unknown(folded, conditions)
        untold = [condition for condition in conditions if condition.untold]
        conditions = [one for one in conditions if one not in unknown and one not in untold]
        where, bound_repair = bound_filter(join_conditions(folded, conditions))
        repairs = [
            f"dropped: {value.field.name} {text[value.begin : value.end][:60]!r}: the question also asks for "
            f"{word[:60]!r}, which is no known value, and the filter would hide it"
            for value, word in unknown.items()
        ]
        repairs += [f"dropped: {text[one.begin : one.end][:60]!r}: {one.untold}" for one in untold]
        repairs += [
            f"{one.field.name}: {text[one.begin : one.end][:60]!r} was read as {one.value.start}, with the day first"
            for one in conditions
            if isinstance(one.value, Period) and one.value.is_open
        ]
        repairs += [bound_repair] if bound_repair else []
        sort, limit = (order.sort, order.limit) if order else (None, None)
        # the content words of the question without its conditions
        words = set(content_words(cues.without_frame(cues.remainder(folded, [*used, *conditions]))))
        asks_for_time_alone = words and words <= {"happen", "occur", "发生"}  # "what happened in 2010"
        query = text if asks_for_time_alone else cues.remainder(text, [*used, *conditions])
        query = f"{query}{rest}".strip() if rest.strip() or words else ""
        return ConstructedQuery(question, query, where, sort, limit, repairs=tuple(repairs))


_value_index = lru_cache(maxsize=16)(ValueIndex)


def _read(text: str, schema: Schema, today: date) -> tuple[list[Condition], Order | None, list[TextSpan]]:
    """Return the conditions of a text, the order that it asks for, and the spans of that and of missing fields."""
    times = [field for field in schema if field.temporal]
    time = max(times, key=lambda field: field.type == "date", default=None)
    order, missing = find_order(text, time), find_missing(text, schema, time)
    used: list[TextSpan] = list(missing)
    if order:
        used.append(TextSpan(order.begin, order.noun_begin))
    values = [value for value in _value_index(schema).find(text) if not value.overlaps(used)]
    if order:
        used.append(order)  # with its noun, which could be a value until here: "the last three reports"
    values, amounts = _values_and_amounts(text, schema, today, values, used)
    mentions = read_mentions(text, sorted([*amounts, *values], key=lambda span: span.begin))
    comparisons = [condition for named, condition in mentions if isinstance(named, Amount)]
    understood = [*comparisons, *used, *(value for value in values if value.sure)]
    purpose = purpose_of(text, understood, schema, bool(comparisons or missing))
    if order is not None and order.noun_begin == order.end and purpose != "documents":
        order, used = None, list(missing)  # "the most recent treatment" is not a document
    conditions = [*missing, *choose_mentions(text, mentions, purpose)]
    return sorted(conditions, key=lambda condition: (condition.begin, condition.end)), order, used


def _values_and_amounts(
    text: str, schema: Schema, today: date, values: Sequence[NamedValue], used: Sequence[TextSpan]
) -> tuple[list[NamedValue], list[Amount]]:
    """Find values that are not part of a date, and dates and numbers that are not part of a value."""
    # "2010" is a year before it is the value of a text field
    values = [
        value
        for value in values
        if is_explicit(text, value)
        or not (text[value.begin : value.end].isdecimal() or cues.is_cited(text, value))
    ]
    has_time_field, parts = any(field.temporal for field in schema), months_fields(schema)
    periods: list[NamedPeriod] = []
    months_alone: list[NamedPeriod] = []  # months without a year, which no field of months can tell
    for period in _find_periods(text, today) if has_time_field or parts else ():
        # "in 1500 participants" has no year
        is_count = period.bare and cues.NOT_YEARS.match(text, period.end)
        is_no_date = period.period.grain == "year" and cues.is_no_date(text, period)
        is_year_without_field = not has_time_field and period.period.consists_of(12)
        has_year = period.period.has_year
        is_word = not has_year and is_common(text, period, text[period.begin : period.end])  # "may"
        if is_count or is_no_date or is_year_without_field or is_word or period.overlaps(used):
            continue
        if has_year or parts:
            periods.append(period)
        else:
            months_alone.append(period)
    # the Q2 of "Q2 2023" is read with its year, the 2010 of a value with that; a value comes before a month alone
    named = longest_spans([*periods, *values, *months_alone])
    values = [span for span in named if isinstance(span, NamedValue)]
    periods = [span for span in named if isinstance(span, NamedPeriod)]
    return values, find_amounts(text, schema, periods, [*values, *used])


def _find_periods(text: str, today: date) -> list[NamedPeriod]:
    """Find periods; months that are excepted from a year are of that year: "2024 except June and July"."""
    periods = find_periods(text, today)
    for index, (before, period) in enumerate(pairwise(periods), 1):
        _, _, is_negated = cues.with_negation(text, before.end, period.begin, period.end)
        if is_negated and before.period.grain == "year":
            periods[index] = period.with_year(before.period.start.year) or period
    return complete_years(text, periods)


@dataclass(frozen=True, eq=False)
class Order(TextSpan):
    """An order and a number that a text asks for: "the three latest reports"."""

    sort: Sort
    limit: int | None
    noun_begin: int  # where the noun "reports" begins; the end of the span without a noun


def find_order(text: str, time: MetadataField | None) -> Order | None:
    """Find the order that a question asks for, if there is a field `time` that gives it."""
    match = next(filter(None, (pattern.search(text) for pattern in _ORDERS)), None)
    if match is None or time is None:
        return None
    groups = match.groupdict()
    number, noun, word = groups.get("n"), groups.get("noun"), groups.get("word") or "latest"
    limit = None
    if number is not None:
        limit = int(read_any(number)) or None  # 0 is no limit
    elif noun and noun.isascii() and not noun.endswith("s"):
        limit = 1  # "the latest paper"
    sort = Sort(time.name, word.lower() not in _ASCENDING)
    return Order(*match.span(), sort, limit, match.start("noun") if noun else match.end())
