"""A model's answer, checked field by field: what fits is kept, what can be mended is, the rest is dropped and noted."""

from __future__ import annotations

import math
import re
from datetime import date
from pathlib import Path
from typing import Any

from rag_kit.documents.filters import ORDER
from rag_kit.prompts.filter_schema import SelfQuery
from rag_kit.query_construction import clauses
from rag_kit.query_construction.clauses import Clause, ConstructedQuery, Sort
from rag_kit.query_construction.comparing import UnfitError, comparison_clause, day_in_format
from rag_kit.query_construction.cues import sorted_words
from rag_kit.query_construction.fields import MetadataField, Schema
from rag_kit.query_construction.reading import cut_repr, read_filter
from rag_kit.text.values.period import Period
from rag_kit.text.values.periods import RANGE_TO, find_periods
from rag_kit.text.values.reading import find_values

_MAX_YEAR = 9999
_MAX_LIMIT = 1_000
_MAX_QUERY = 2_000
_MAX_ITEMS = 100
_MAX_TEXT = 500
_MAX_NUMBER = 2**63  # stores keep whole numbers in 64 bits
_TABLE = Path(__file__).with_name("operators.txt").read_text(encoding="utf-8")
_OPERATORS = (line.split(": ", 1) for line in _TABLE.splitlines())
_OPERATOR_BY_NAME = {name: operator for operator, names in _OPERATORS for name in names.split()}
_NEGATED = ("$ne", "$nin", "$without")
_BOOLEANS = {
    **dict.fromkeys(("true", "yes", "y", "1", "是", "真", "对"), True),
    **dict.fromkeys(("false", "no", "n", "0", "否", "假", "不是"), False),
}
_MISFITS = {  # type of a field -> why a value does not fit
    "int": "no whole number",
    "float": "no number",
    "bool": "neither true nor false",
    "date": "no date",
    "str": "not among the values of the field",
}


def check_answer(answer: SelfQuery, question: str, schema: Schema, today: date) -> ConstructedQuery:
    """Check what a model answered.

    Only fields of the schema get through, under operators and with values of their type. All else is dropped, so that
    the filter gets wider, never narrower; an "or" with an unusable condition is dropped whole. ``repairs`` has every
    change; relative dates count from `today`.
    """
    checker = _Checker(schema, today)
    clause = read_filter(answer.filter, checker.make_clause, checker.repair)
    where, dropped = clauses.bound_filter(clause)
    if dropped is not None:
        checker.repair(dropped)
    limit = answer.limit
    if limit is not None and not 1 <= limit <= _MAX_LIMIT:
        checker.repair(f"dropped: limit {limit}: it must be from 1 to {_MAX_LIMIT:,}")
        limit = None
    query, sort = answer.query.strip()[:_MAX_QUERY], checker.sort(answer)
    return ConstructedQuery(question, query, where, sort, limit, "model", tuple(checker.repairs))


class _Checker:
    """Makes conditions that fit their fields, and records what it changed."""

    def __init__(self, schema: Schema, today: date) -> None:
        self.schema = schema
        self.today = today
        self.repairs: list[str] = []

    def repair(self, text: str) -> None:
        """Record a change."""
        if text not in self.repairs and len(self.repairs) < 50:
            self.repairs.append(text[:300])

    def make_clause(self, name: str, operator: str, value: Any, negated: bool) -> Clause | None:
        """Make the clause of a condition; ``None``, with a repair recorded, if it does not fit the schema."""
        try:
            return self._make_comparison(name, operator, value, negated)
        except UnfitError as reason:
            self.repair(f"dropped: {name[:60]} {operator[:20]} {cut_repr(value)}: {reason}")
            return None

    def _find_field(self, name: str) -> MetadataField | None:
        """Return the field of a name; record a repair if it is not its exact name."""
        field = self.schema.find(name)
        if field is not None and field.name != name:
            self.repair(f"field {name[:60]!r} was read as {field.name}")
        return field

    def sort(self, answer: SelfQuery) -> Sort | None:
        """Make the order by a field; ``None``, with a repair recorded, if there is no such field."""
        if answer.sort_by is None:
            return None
        field = self._find_field(answer.sort_by)
        if field is not None and field.ordered:
            return Sort(field.name, answer.descending)
        why = "there is no such field" if field is None else "its values have no order"
        self.repair(f"dropped: sort by {answer.sort_by[:60]}: {why}")
        return None

    def _make_comparison(self, name: str, operator: str, value: Any, negated: bool) -> Clause | None:
        """Make a condition's clause, ``None`` if no value of a list fits; raise `UnfitError` if it is not allowed."""
        field = self._find_field(name)
        if field is None:
            raise UnfitError(f"there is no such field; allowed: {', '.join(self.schema.names[:20])}")
        operator = _OPERATOR_BY_NAME.get(re.sub("[ -]", "_", operator.strip().lower()).lstrip("$"), "")
        if not operator:
            raise UnfitError("there is no such operator; allowed: eq, ne, gt, gte, lt, lte, in, nin, contain")
        if value is None:
            if operator not in ("$eq", "$ne"):
                raise UnfitError("nothing is no value to compare with")
            return {field.name: {"$exists": operator == "$ne"}}
        items = value if isinstance(value, list) else [value]
        if not items:
            raise UnfitError("the list is empty")
        if operator == "$between":
            if len(items) != 2:
                raise UnfitError("it needs a list of two values, the least and the greatest")
            bounds = zip(("gte", "lte"), items, strict=True)
            return clauses.all_of([self._make_comparison(name, *bound, negated) or {} for bound in bounds])
        if operator in ORDER:
            is_ordered = field.ordered or field.temporal
            if not is_ordered or len(items) > 1:
                raise UnfitError("a list has no order" if is_ordered else "its values have no order")
            return comparison_clause(field, operator, self._fit(field, items[0]), negated=negated)
        excludes = operator in _NEGATED
        # Values are alternatives if they are joined by "or" once a "not" around them is carried inwards: the negation
        # of "A and B" is "not A or not B", so each negation turns it around.
        if field.many:
            is_or = operator in ("$in", "$ne", "$without")  # "not in" and "contains all" join by "and"
            values = self._fit_all(field, items, are_alternatives=is_or != negated)
            return self._make_list_clause(field, operator, values)
        if operator in ("$contains", "$without"):
            items = self._find_containing(field, items)
        values = self._fit_all(field, items, are_alternatives=excludes == negated)
        operator, join = ("$ne", clauses.all_of) if excludes else ("$eq", clauses.any_of)
        clause = join([comparison_clause(field, operator, item, negated=negated) for item in values])
        return clause and clauses.shorten_clause(clause)

    def _make_list_clause(self, field: MetadataField, operator: str, values: list[Any]) -> Clause | None:
        """Make the clause on a field that holds lists; ``None`` if no item fitted."""
        if operator in ("$eq", "$ne"):
            self.repair(f"{field.name} holds lists: {operator[1:]} was read as contains")
        join = clauses.any_of if operator in ("$in", "$nin") else clauses.all_of
        joined = join([{field.name: {"$contains": value}} for value in values])
        return clauses.none_of(joined) if joined and operator in _NEGATED else joined

    def _find_containing(self, field: MetadataField, items: list[Any]) -> list[Any]:
        """Return the known values that contain one of the items: stores cannot search for a part of a text."""
        if field.type != "str":
            self.repair(f"{field.name} holds no lists: contains was read as eq")
            return items
        parts = [part for item in items if (part := str(item).strip().strip("%*").casefold())]
        values = [value for value in field.values if any(part in str(value).casefold() for part in parts)]
        if not field.complete or not values or len(values) > _MAX_ITEMS:
            raise UnfitError("a part of a text can be looked for only where all values are known")
        self.repair(f"{field.name}: contains {cut_repr(items)} was read as one of {cut_repr(values)}")
        return values

    def _fit_all(self, field: MetadataField, items: list[Any], *, are_alternatives: bool) -> list[Any]:
        """Convert values to the field's form; a value that does not fit is dropped, with a repair recorded.

        `UnfitError` is raised instead if it is the only one, or if they are alternatives ("A or B"): the other
        alternatives alone would hide what is asked for.
        """
        if len(items) > _MAX_ITEMS:
            if are_alternatives:
                raise UnfitError(f"more than {_MAX_ITEMS} values")
            self.repair(f"{field.name}: the first {_MAX_ITEMS} of {len(items)} values were kept")
        values: dict[Any, None] = {}
        for item in items[:_MAX_ITEMS]:
            try:
                values[self._fit(field, item)] = None
            except UnfitError as reason:
                if are_alternatives or len(items) == 1:
                    raise
                self.repair(f"dropped: {field.name} {cut_repr(item)}: {reason}")
        return list(values)

    def _fit(self, field: MetadataField, value: Any) -> Any:
        """Convert a value to the field's form, a date or year maybe to a `Period`; `UnfitError` if it does not fit."""
        if field.temporal or field.type == "date":
            fitted = self._read_time(field, value)
        elif field.type == "bool":
            fitted = value if isinstance(value, bool) else _BOOLEANS.get(str(value).strip().lower())
        elif field.type == "str":
            fitted = _to_known_text(field, value)
        else:
            fitted = _to_number(field, value)
        if fitted is None:
            raise UnfitError(f"{cut_repr(value)} is {_MISFITS[field.type]}")
        if not isinstance(fitted, Period):
            if type(fitted) is not type(value) or fitted != value:
                self.repair(f"{field.name}: {cut_repr(value)} was read as {cut_repr(fitted)}")
            return fitted
        if fitted.is_open:  # 03/04/2020
            self.repair(f"{field.name}: {cut_repr(value)} was read as {fitted.start}, with the day first")
        if not field.many:
            return fitted
        if fitted.grain != "day":
            raise UnfitError("a list of dates can be searched for single days alone")
        return day_in_format(fitted.start, field.date_format)

    def _read_time(self, field: MetadataField, value: Any) -> Any:
        """Return the year or `Period` that a value names, or its seconds if the field stores these; else ``None``."""
        number = _to_number(field, value)
        if isinstance(value, float) and isinstance(number, float):
            # 2003.5 is no day, but has its place among years
            return number if field.is_year or field.date_format == "timestamp" else None
        if field.is_year and isinstance(number, int) and number <= _MAX_YEAR:
            return number
        text = str(value if number is None else number)
        period = None if isinstance(value, bool) else parse_period(text, self.today)
        return number if period is None and field.date_format == "timestamp" else period


def parse_period(text: str, today: date) -> Period | None:
    """Read a date or range such as ``"2020年5月"``, ``"Q2 to Q3 2020"``, ``"last year"``; ``None`` if it is none."""
    text = re.sub(r"^(\d{4})(\d\d)(\d\d)(?=[T ]|$)", r"\1-\2-\3", text.strip())  # 20200501T100000Z
    # "the year" before a date, the time after it: 2020-05-01T10:00:00Z
    text = re.sub(r"(?i)^(?:the|in|on|year|the year)\s+|(?<=-\d\d)[T ]\d\d:?\d\d.*$", "", text)
    named = find_periods(text, today)
    if not named:
        return None
    first, last = named[0], named[-1]
    if first.begin > 0 or last.end < len(text) or not first.period.has_year:
        return None
    if first is last:
        return first.period
    return first.period.through(last.period) if RANGE_TO.fullmatch(text, first.end, last.begin) else None


def _read_number(text: str) -> int | float | None:
    """Read a text that is a number ("1,200", "2.5 million", 五千); ``None`` if it is none, or more than one."""
    text = text.strip()
    if re.fullmatch(r"[-+]?\d{1,40}", text):
        return int(text)
    values = find_values(text[:80])
    is_number = len(values) == 1 and not values[0].dimension and values[0].end - values[0].start == len(text)
    return values[0].amount if is_number else None


def _to_number(field: MetadataField, value: Any) -> int | float | None:
    """Return a value as a finite number, 3.0 as 3 unless the field holds floats; ``None`` for any other value."""
    number = _read_number(value) if isinstance(value, str) else value
    if isinstance(number, float) and field.type != "float" and number.is_integer():
        number = int(number)
    if isinstance(number, bool) or not isinstance(number, (int, float)):
        return None
    is_kept = math.isfinite(number) if isinstance(number, float) else abs(number) < _MAX_NUMBER
    return number if is_kept else None


def _to_known_text(field: MetadataField, value: Any) -> str | None:
    """Return the field's value that has the words of a text, whatever their order and case.

    If no value or several have them: ``None`` if `field.values` has all that may occur, else the text as it is.
    """
    text = str(value).strip()
    if isinstance(value, bool) or not text or len(text) > _MAX_TEXT:
        return None
    if not field.values or text in field.values:
        return text
    similar = {str(known) for known in field.values if sorted_words(str(known)) == sorted_words(text)}
    same = {known for known in similar if known.casefold() == text.casefold()} or similar
    if len(same) == 1:
        return same.pop()
    return None if field.complete else text
