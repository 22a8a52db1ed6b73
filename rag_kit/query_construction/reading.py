"""The shapes in which models write a filter, read as one clause; what is not understood is dropped, and noted."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from rag_kit.prompts.filter_schema import LOGIC, NOT, Scalar, join_of
from rag_kit.query_construction import clauses
from rag_kit.query_construction.clauses import Clause

# names that models give to the keys of conditions and groups
_FIELD = ("field", "attribute", "field_name", "column", "key")
_OPERATOR = ("operator", "comparator", "op", "comparison", "cmp")
_VALUE = ("value", "values", "operand")
_PARTS = ("conditions", "arguments", "filters", "clauses", "operands")
_MAX_DEPTH = 8
# further words in the place of a join that ask for all conditions, or for nothing
_PLAIN = {
    *(
        "must",
        "match all",
        "filter",
        "filters",
        "intersection",
        "intersect",
        "eq",
        "equals",
        "equal",
        "==",
        "=",
    ),
    *("null", "nil", "n/a", "na", "undefined", "无", "空"),
}
# words of a join that turns even a single condition around
_NEGATES = re.compile(
    r"\b(?:nand|nor|not?|unless|except|but|without|never|at most|exclude\w*|excluding)\b|[除非不无没]|至多|最多",
    re.I,
)
# words of a join that is not "and", known or not
_OTHER_JOIN = re.compile(
    r"\b(?:xn?or|nand|n?or|not?|unless|except|but|without|never|n?either|none|any|some|exactly|only|most|least|fewer|"
    r"one|optional|should|alternatively|otherwise|exclu\w+|disjunction|union)\b|[异恰仅只除非不无没至任或之择选互]",
    re.IGNORECASE,
)

Parts = list[Clause | None]  # None: a condition or group that cannot be used
#: Makes the clause of a field, an operator and a value, None if it cannot; the last argument: whether it is negated.
Check = Callable[[str, str, Any, bool], Clause | None]


def read_filter(value: Any, check: Check, repair: Callable[[str], None]) -> Clause | None:
    """Read a filter in any usual shape; None if nothing in it can be used. `repair` gets each change as a text.

    It may have the names of the kit's own form or LangChain's (``comparator``, ``attribute``, ``arguments``), be a
    list, or a mapping as in MongoDB, such as ``{"year": {"$gte": 2010}}``.

    Example:
        >>> def check(field, operator, value, negated):
        ...     return {field: {"$" + operator: value}}
        >>> read_filter([{"attribute": "year", "comparator": "gt", "value": 2010}], check, print)
        {'year': {'$gt': 2010}}
        >>> read_filter("year > 2010", check, print)
        dropped: 'year > 2010': it is no form of a filter
    """
    reader = _Reader(check, repair)
    return next(iter(reader.join("and", reader.read(value, False), False)), None)


@dataclass(frozen=True)
class _Reader:
    """Reads conditions and groups, each with whether it is ``negated``: below a "not"."""

    check: Check
    repair: Callable[[str], None]

    def join(self, word: str, parts: Parts, negated: bool) -> Parts:
        """Join parts into one; a single part needs no "and" or "or". Under another word several are left out.

        A part of an "and" that cannot be used is left out alone. An "or" with such a part is left out whole: its other
        parts alone would keep out documents that were asked for. If ``negated``, it is the reverse.
        """
        if not parts or (len(parts) == 1 and word != "not" and not _NEGATES.search(word)):
            return parts
        if word not in ("and", "or", "not"):
            return self._drop(word, "how it joins its conditions is not clear; allowed: and, or, not")
        usable = [part for part in parts if part is not None]
        if usable and len(usable) < len(parts) and (word == "or") != negated:
            self.repair(
                f"dropped: all {len(parts)} conditions of {'a negated ' if negated else 'an '}{word!r}: one of them "
                "could not be used, and the others alone would hide what it asks for"
            )
            return [None]
        if word == "and":
            return [clauses.all_of(usable)]
        joined = clauses.any_of(usable)
        return [clauses.none_of(joined) if joined and word == "not" else joined]

    def _none_of(self, parts: Parts, negated: bool) -> Parts:
        """Negate parts that must hold together; each was read with `negated` turned around, as below a "not"."""
        return self.join("not", self.join("and", parts, not negated), negated)

    def _drop(self, value: Any, why: str) -> Parts:
        self.repair(f"dropped: {cut_repr(str(value)[:60])}: {why}")
        return [None]

    def read(self, value: Any, negated: bool, depth: int = 0) -> Parts:
        """Read the conditions and groups in a filter of any shape; all of them must hold."""
        if depth > _MAX_DEPTH:
            return self._drop("a group", f"it is nested deeper than {_MAX_DEPTH} levels")
        if isinstance(value, BaseModel):  # a client may have made the class of the form
            value = value.model_dump()
        if isinstance(value, list):
            return self._read_list(None, value, negated, depth)
        if not isinstance(value, Mapping):
            # true or false, like null, holds no condition that would be lost
            is_empty = value is None or value == "" or isinstance(value, bool)
            return [] if is_empty else self._drop(value, "it is no form of a filter")
        entries = {str(name): operand for name, operand in value.items()}
        has_field = any(isinstance(entries.get(name), str) for name in _FIELD)
        if has_field and not entries.keys().isdisjoint(("field", "attribute", *_OPERATOR, *_VALUE)):
            said = [
                entries.pop(name) for name in LOGIC if not _is_unclear(entries.get(name)) and name in entries
            ]
            flags = [*_take_flags(entries, NOT), "not" in map(join_of, said)]
            read = self._read_condition
        elif any(isinstance(entries.get(name), (list, Mapping)) for name in _PARTS):
            flags = _take_flags(entries, NOT)
            read = self._read_group
        else:
            flags = _take_flags(entries, ("not", "$not")) if len(entries) > 1 else []
            read = self._read_entries
        if sum(flags) % 2 == 0:  # none of the flags says "not", or two do and cancel each other
            return read(entries, value, negated, depth)
        return self._none_of(read(entries, value, not negated, depth), negated)

    def _read_condition(self, entries: dict[str, Any], whole: Any, negated: bool, depth: int) -> Parts:
        """Read ``{"field": "year", "operator": "gt", "value": 2010}``; a condition with an unknown key is dropped."""
        field = entries.pop(next(name for name in _FIELD if isinstance(entries.get(name), str)))
        operator, has_value = _take(entries, _OPERATOR), not entries.keys().isdisjoint(_VALUE)
        operand, why = _take(entries, _VALUE), _not_understood(entries)
        has_neither = operator is None and not has_value
        if why and has_neither:  # its operators are keys: {"field": "year", ">=": 2010}
            pairs = entries.items()
            return [part for pair in pairs for part in self._read_operator(field, *pair, negated, depth)]
        if why or has_neither:
            return self._drop(whole, why or "it has no value")
        return self._condition(field, "eq" if operator is None else operator, operand, negated)

    def _read_operator(self, field: str, name: str, operand: Any, negated: bool, depth: int) -> Parts:
        """Read an entry ``operator: value``, or ``not: {operator: value}``."""
        if join_of(name) == "not" and isinstance(operand, Mapping):
            return self._none_of(self.read({"field": field, **operand}, not negated, depth + 1), negated)
        return self._condition(field, name, operand, negated)

    def _read_group(self, entries: dict[str, Any], whole: Any, negated: bool, depth: int) -> Parts:
        """Read ``{"logic": "or", "conditions": [...]}``; a group with an unknown key is dropped."""
        parts, word = _take(entries, _PARTS), _take(entries, LOGIC + _OPERATOR)
        if why := _not_understood(entries):
            return self._drop(whole, why)
        return self._read_list(word and str(word), parts, negated, depth)

    def _read_list(self, join: str | None, value: Any, negated: bool, depth: int) -> Parts:
        """Read the parts of a group; `join` joins them, else a word in the list, else "and".

        The word may be between the parts (``[a, "or", b]``) or inside them (``[a, {"field": ..., "logic": "or"}]``).
        """
        is_list = isinstance(value, list)
        if is_list and value and _is_join(value[0]) and not _joins(value[0]):  # ["filters", a, b]
            self._drop(value[0], "it is no form of a filter")
            value = value[1:]
        items = [entry for entry in value if not _is_join(entry)] if is_list else [value]
        conditions = [item for item in items if isinstance(item, Mapping) and "field" in item]
        named = [
            condition.get(name) for condition in conditions for name in LOGIC if _joins(condition.get(name))
        ]
        between = _joins_of(filter(_is_join, value)) if is_list else []
        inside = [join for join in _joins_of(named) if join != "not"]
        words = {*between, *inside, *_joins_of([join])}
        # "a or b" has one word between, or one in each, or in all but the first or last
        if len(words) > 1 or (not join and words and max(len(between), len(inside)) < len(items) - 1):
            return self._drop(value, "how its conditions are joined is not clear")
        word = next(iter(words), None) or "and"
        is_negated = negated != (word == "not")
        read = [self.read(item, is_negated, depth + 1) for item in items]
        if isinstance(value, Mapping) and word not in ("and", "not"):
            return self.join(word, read[0], negated)  # {"$or": {"year": 2010, "topic": "sleep"}}
        if word != "and":
            read = [self.join("and", parts, is_negated) for parts in read]
        return self.join(word, [part for parts in read for part in parts], negated)

    def _read_entries(self, entries: dict[str, Any], whole: Any, negated: bool, depth: int) -> Parts:
        """Read entries ``name: operand``: "$and" with a group, a field with operators or with its value."""
        parts: Parts = []
        for name, operand in entries.items():
            if join_of(name) and isinstance(operand, (list, Mapping)):
                parts += self._read_list(name, operand, negated, depth + 1)
            elif isinstance(operand, Mapping) and "date" not in operand:
                parts += self.read({**operand, "field": name}, negated, depth + 1)
            else:
                operator = "in" if isinstance(operand, list) and len(operand) > 1 else "eq"
                parts += self._condition(name, operator, operand, negated)
        return parts

    def _condition(self, field: str, operator: Any, value: Any, negated: bool) -> Parts:
        """Read a condition on a plain value or a list of them."""
        plain = [_plain_value(item) for item in value] if isinstance(value, list) else _plain_value(value)
        if isinstance(plain, list) and not all(isinstance(item, Scalar) for item in plain):
            return self._drop({field: {operator: value}}, "its list holds more than plain values")
        return [self.check(field, str(operator), plain, negated)]


def _is_join(entry: Any) -> bool:
    """Tell whether an entry of a list is a word that joins the others, known or not."""
    return isinstance(entry, str) and (join_of(entry) is not None or entry.replace(" ", "").isalpha())


def _joins_of(words: Iterable[Any]) -> list[str]:
    """Return the joins that words mean, one that is not known as it is; those that are no text are left out."""
    texts = [word for word in words if isinstance(word, str) and word.strip()]
    return [join_of(text) or ("and" if _plain_words(text) in _PLAIN else text.lower()) for text in texts]


def _joins(word: Any) -> bool:
    """Tell whether a word joins conditions, by a join that is known or not; "filter" and "first" do not."""
    return join_of(word) is not None or _is_unclear(word)


def _is_unclear(word: Any) -> bool:
    """Tell whether a word stands for a join other than "and", "or" and "not"."""
    if not isinstance(word, str) or join_of(word) or _plain_words(word) in _PLAIN:
        return False
    return bool(_OTHER_JOIN.search(_plain_words(word)))


def _plain_words(word: str) -> str:
    """Write a word in small letters, with a blank for each hyphen and underscore."""
    return re.sub(r"[\s_-]+", " ", word.strip().lower().lstrip("$"))


def _take(entries: dict[str, Any], names: Sequence[str]) -> Any:
    """Remove the entries of some names; return the first value that is not null."""
    name = next((name for name in names if entries.get(name) is not None), None)
    return None if name is None else entries.pop(name)


def _take_flags(entries: dict[str, Any], names: Sequence[str]) -> list[bool]:
    """Remove the entries of some names that are true or false; return their values."""
    return [entries.pop(name) for name in names if isinstance(entries.get(name), bool)]


def _not_understood(entries: dict[str, Any]) -> str:
    """Return why the entries left over make a condition or group unreadable; "" if they say nothing."""
    left = [name for name, operand in entries.items() if operand not in (None, "", [], {})]
    return f"its key {left[0][:40]!r} is not understood" if left else ""


def _plain_value(value: Any) -> Any:
    """Return a scalar or None; some models write dates as objects."""
    if isinstance(value, Mapping):
        value = value.get("date", "")
    return value if isinstance(value, Scalar) or value is None else str(value)


def cut_repr(value: Any) -> str:
    """Write a value for a message, cut."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
