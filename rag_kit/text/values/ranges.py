"""Two values beside each other that make one, or a range."""

from __future__ import annotations

import re

from rag_kit.text.values.value import Value

_MAX_BETWEEN = 7  # characters between two values that make one, or a range
_RANGE = re.compile(r"\s?(?:-|~|to|until|and|bis|und|至|到|和)\s?")
_AND = re.compile(r"\s?(?:and|und|和)\s?")
# what follows a day of a range, as in "July 13 to 31, 2026"; "5 May to 20 people" is none
_AFTER_DAY = re.compile(
    r"\s*(?:$|[,.;:)，。；）])|\s(?:the|and|or|in|at|on|for|of|is|are|was|were|will|inclusive|each|every)\b"
)
_JOINED = re.compile(r"\s?(?:,?\s?and\s|零|又|und\s)?\s?")


def join(text: str, first: Value, second: Value) -> list[Value]:
    """Join two neighbours to one value ("1 h 30 min"), or give the first the unit of the second ("5 to 10 days")."""
    between = text[first.end : second.start]
    if not between and first.amount == 1 and second.per and first.unit == second.per:  # 一日3次
        return [second]
    if len(between) > _MAX_BETWEEN:
        return [first, second]
    if _RANGE.fullmatch(between) and (second.key or second.dimension or not _AND.fullmatch(between)):
        first, second = _whole_dates(text, first, second)
    lacks_unit = not first.dimension and second.dimension and second.unit and not first.key
    if lacks_unit and _RANGE.fullmatch(between):
        unit = {name: getattr(second, name) for name in ("dimension", "unit", "per", "factor")}
        return [first._replace(**unit), second]
    may_add_up = first.dimension == second.dimension and first.unit and not first.per
    if may_add_up and 0 < second.base < first.factor and _JOINED.fullmatch(between):
        amount = first.amount + second.amount * second.factor / first.factor
        return [first._replace(end=second.end, amount=amount, per=second.per)]
    return [first, second]


def _whole_dates(text: str, first: Value, second: Value) -> tuple[Value, Value]:
    """Give a day at one end of a range the month of the other, and a date the year: 13 to 31 July, 2月10日至12日.

    Example:
        >>> from rag_kit.text.values.reading import find_values
        >>> [value.normal for value in find_values("13 to 31 July, 2月10日至12日")]
        ['date -07-13', 'date -07-31', 'date -02-10', 'date -02-12']
        >>> [value.normal for value in find_values("12 June to 4 September 2022")]
        ['date 2022-06-12', 'date 2022-09-04']
    """
    for date, other in ((first, second), (second, first)):
        year, _, rest = date.key.partition("-")  # 12 June to 4 September 2022
        is_later = rest > other.key[1:] if date is second else other.key[1:] > rest
        if (
            date.dimension == other.dimension == "date"
            and year
            and rest
            and other.key[:1] == "-"
            and is_later
        ):
            dated = other._replace(key=year + other.key, dated=True)
            return (dated, second) if date is second else (first, dated)
    for date, day in ((first, second), (second, first)):
        month, _, of_month = date.key.rpartition("-")
        if (
            date.dimension != "date"
            or "-" not in month
            or day.dimension not in ("", "ordinal", "calendar days")
        ):
            continue
        if day is second and not day.unit and not _AFTER_DAY.match(text, day.end):
            continue
        is_in_order = (day.amount > float(of_month)) == (day is second)  # July 13 to 31, and not July 13 to 5
        if is_in_order and day.amount < 32 and not day.per:
            key = f"{month}-{day.amount:02.0f}"
            dated = day._replace(dimension="date", key=key, amount=date.amount, unit="", factor=1.0)
            return (date, dated) if day is second else (dated, date)
    return first, second
