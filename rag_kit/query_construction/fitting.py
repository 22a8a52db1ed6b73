"""A condition as a model states it, made to fit its field: operator, type and value."""

from __future__ import annotations

import math
from datetime import date
from typing import Any

from rag_kit.query_construction.clauses import ORDER, Clause, all_of, any_of, compared, none_of
from rag_kit.query_construction.dates import Period, parse_period, stored
from rag_kit.query_construction.fields import MetadataField
from rag_kit.query_construction.words import parse_number, same_words, short

_MAX_ITEMS = 100
_MAX_TEXT = 500
_NAMES = {
    "$eq": "= == eq equal equals is $eq equal_to on at 等于 是 为",
    "$ne": "!= <> ne neq not_equal not_equals not_equal_to is_not $ne not 不等于 不是",
    "$gt": "> gt greater greater_than more_than after above later_than $gt over exceeds 大于 晚于 超过",
    "$gte": ">= gte ge at_least since from greater_than_or_equal greater_or_equal $gte ≥ min 不小于 至少",
    "$lt": "< lt less less_than before below earlier_than under $lt 小于 早于 少于",
    "$lte": "<= lte le at_most until up_to less_than_or_equal less_or_equal $lte ≤ max 不大于 至多",
    "$in": "in any_of one_of is_in $in 属于",
    "$nin": "nin not_in none_of $nin is_not_in 不属于",
    "$contains": "contain contains has includes include $contains contains_any like ilike $like substring 包含 含有",
    "$without": "does_not_contain not_contains not_contain $not_contains excludes without 不包含",
}
_BY_NAME = {name: operator for operator, names in _NAMES.items() for name in names.split()}
_BOOLEANS = {
    **dict.fromkeys(("true", "yes", "y", "1", "是", "真", "对"), True),
    **dict.fromkeys(("false", "no", "n", "0", "否", "假", "不是"), False),
}


class UnfitError(Exception):
    """A condition that its field cannot have; the message says why."""


class Fitting:
    """Makes conditions that fit their fields, and keeps a record of what it changed.

    Args:
        today: What relative dates count from.
    """

    def __init__(self, today: date) -> None:
        self.today = today
        self.repairs: list[str] = []

    def repair(self, text: str) -> None:
        """Record a change."""
        if text not in self.repairs and len(self.repairs) < 50:
            self.repairs.append(text[:300])

    def condition(self, field: MetadataField, operator: str, value: Any) -> Clause | None:
        """The condition under an operator of any common name; ``None`` for a list of which no entry fits.

        Raises:
            UnfitError: No condition can be made of it.

        Example:
            >>> Fitting(date(2026, 1, 1)).condition(MetadataField("pages", "int"), "at least", "1,200")
            {'pages': {'$gte': 1200}}
        """
        found = _BY_NAME.get(operator.strip().lower().replace(" ", "_").replace("-", "_"))
        if found is None:
            raise UnfitError("there is no such operator; allowed: eq, ne, gt, gte, lt, lte, in, nin, contain")
        if found == "$without":
            made = self._condition(field, "$contains", value)
            return made and none_of(made)
        return self._condition(field, found, value)

    def _condition(self, field: MetadataField, operator: str, value: Any) -> Clause | None:
        if value is None:
            if operator not in ("$eq", "$ne"):
                raise UnfitError("nothing is no value to compare with")
            return {field.name: {"$exists": operator == "$ne"}}
        items = value if isinstance(value, list) else [value]
        if not items:
            raise UnfitError("the list is empty")
        if operator in ORDER and (not field.ordered or len(items) > 1):
            if field.ordered and len(items) == 2 and operator == "$gte":
                low, high = (self._fit(field, item) for item in items)
                return all_of([compared(field, "$gte", low), compared(field, "$lte", high)])
            raise UnfitError("its values have no order" if not field.ordered else "a list has no order")
        if field.many:
            return self._in_list(field, operator, items)
        if operator == "$contains":
            if field.type == "str":
                return self._part_of_text(field, value)
            self.repair(f"{field.name} holds no lists: contains was read as eq")
            operator = "$eq"
        if operator in ("$in", "$nin") or len(items) > 1:
            return self._one_of(field, items, negated=operator in ("$nin", "$ne"))
        return compared(field, operator, self._fit(field, items[0]))

    def _in_list(self, field: MetadataField, operator: str, items: list[Any]) -> Clause | None:
        if operator in ("$eq", "$ne"):
            self.repair(f"{field.name} holds lists: {operator[1:]} was read as contains")
        parts: list[Clause] = [{field.name: {"$contains": value}} for value in self._usable(field, items)]
        joined = all_of(parts) if operator in ("$eq", "$contains") else any_of(parts)
        return none_of(joined) if joined and operator in ("$ne", "$nin") else joined

    def _one_of(self, field: MetadataField, items: list[Any], negated: bool) -> Clause | None:
        values = self._usable(field, items)
        plain = [value for value in values if not isinstance(value, Period)]
        word = "$ne" if negated else "$eq"
        parts = [compared(field, word, value) for value in values if isinstance(value, Period)]
        if len(plain) == 1:
            parts.append({field.name: {word: plain[0]}})
        elif plain:
            parts.append({field.name: {"$nin" if negated else "$in": plain}})
        return all_of(parts) if negated else any_of(parts)

    def _part_of_text(self, field: MetadataField, value: Any) -> Clause | None:
        """``contains`` on a text field: stores have no such search, so ``in`` the known values that match."""
        wanted = str(value).strip().strip("%*").casefold()
        found = [known for known in field.values if wanted and wanted in str(known).casefold()]
        if not field.complete or not found or len(found) > _MAX_ITEMS:
            raise UnfitError("a part of a text can be looked for only where all values are known")
        self.repair(f"{field.name}: contains {short(value)} was read as one of {short(found)}")
        return self._one_of(field, found, negated=False)

    def _usable(self, field: MetadataField, items: list[Any]) -> list[Any]:
        """The entries that fit; the others are recorded."""
        if len(items) > _MAX_ITEMS:
            self.repair(f"{field.name}: the first {_MAX_ITEMS} of {len(items)} values were kept")
        values: list[Any] = []
        for item in items[:_MAX_ITEMS]:
            try:
                value = self._fit(field, item)
                if isinstance(value, Period) and field.many:
                    value = stored(value.start, field.date_format)
            except UnfitError as reason:
                self.repair(f"dropped: {field.name} {short(item)}: {reason}")
                continue
            if isinstance(value, Period) and field.is_year and value.grain == "year":
                value = value.start.year
            if value not in values:
                values.append(value)
        return values

    def _fit(self, field: MetadataField, value: Any) -> Any:
        """A value as the field stores it, or the period to compare a field of dates or years with."""
        if field.type == "date" or field.is_year:
            made = self._time(field, value)
        elif field.type == "bool":
            made = value if isinstance(value, bool) else _BOOLEANS.get(str(value).strip().lower())
        elif field.type == "str":
            made = _text(field, value)
        else:
            made = _number(field, value)
        if made is None:
            raise UnfitError(f"{short(value)} is {_WHY[field.type]}")
        if isinstance(made, Period):
            if made.note:
                self.repair(f"{field.name}: {made.note}")
        elif type(made) is not type(value) or made != value:
            self.repair(f"{field.name}: {short(value)} was read as {short(made)}")
        return made

    def _time(self, field: MetadataField, value: Any) -> Any:
        number = _number(field, value)
        if field.is_year and isinstance(number, int) and number <= 9999:
            return number
        text = str(value if number is None else number)
        period = None if isinstance(value, bool) else parse_period(text, self.today)
        return number if period is None and field.date_format == "timestamp" else period


_WHY = {
    "int": "no whole number",
    "float": "no number",
    "bool": "neither true nor false",
    "date": "no date",
    "str": "not among the values of the field",
}


def _number(field: MetadataField, value: Any) -> int | float | None:
    number = parse_number(value) if isinstance(value, str) else value
    if isinstance(number, bool) or not isinstance(number, (int, float)) or not math.isfinite(number):
        return None
    if field.type != "float" and isinstance(number, float) and number.is_integer():
        number = int(number)
    return number if isinstance(number, float) or abs(number) < 2**63 else None


def _text(field: MetadataField, value: Any) -> str | None:
    """The text, or the one known value that differs in case, blanks, dashes, order or plural only."""
    text = str(value).strip()
    if isinstance(value, bool) or not text or len(text) > _MAX_TEXT:
        return None
    if not field.values or text in field.values:
        return text
    found = {str(known) for known in field.values if same_words(str(known)) == same_words(text)}
    exact = {known for known in found if known.casefold() == text.casefold()} or found
    if len(exact) == 1:
        return exact.pop()
    return None if field.complete else text
