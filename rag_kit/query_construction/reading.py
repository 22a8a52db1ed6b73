"""The shapes in which models write a filter, read as one clause; what is not understood is dropped, and noted."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from rag_kit.prompts.filter_schema import LOGIC, NOT, Scalar, join_of
from rag_kit.query_construction import clauses
from rag_kit.query_construction.clauses import Clause

# names that models give to the keys of conditions and groups
_FIELD = ("field", "attribute", "field_name", "column", "key")
_OPERATOR = ("operator", "comparator", "op", "comparison", "cmp")
_VALUE = ("value", "values", "val", "operand")
_PARTS = ("conditions", "arguments", "filters", "clauses", "operands")
_MAX_DEPTH = 8

Parts = list[Clause | None]  # None: a condition or group that cannot be used
#: Makes the clause of a field, an operator and a value, None if it cannot; the last argument: whether it is negated.
Check = Callable[[str, str, Any, bool], Clause | None]


def read_filter(value: Any, check: Check, repair: Callable[[str], None]) -> Clause | None:
    """Read a filter in any usual shape; None if nothing in it can be used. `repair` gets each change as a text.

    It may have the names of the kit's own form or LangChain's (``comparator``, ``attribute``, ``arguments``), be a
    list, or a mapping as in MongoDB, such as ``{"year": {"$gte": 2010}}``.
    """
    return next(iter(_Reader(check, repair).read_joined("and", [value], False, 0)), None)


@dataclass(frozen=True)
class _Reader:
    """Reads conditions and groups, each with whether it is ``negated``: below a "not"."""

    check: Check
    repair: Callable[[str], None]

    def read_joined(self, word: Any, value: Any, negated: bool, depth: int) -> Parts:
        """Read the parts of a group, a list or a mapping, and join them by a word that means and, or, or not."""
        join = join_of(word)
        items = [item for item in value if join_of(item) != "and"] if isinstance(value, list) else [value]
        # [a, "or", b] and [{"field": ..., "logic": "or"}, b] leave open which conditions the word is about
        is_open = len(items) > 1 and any(_is_word(item) or _has_word(item) for item in items)
        if join is None or is_open:
            return self._drop(value, "how its conditions are joined is not clear; allowed: and, or, not")
        inner_negated = negated != (join == "not")
        parts_of_items = [self.read(item, inner_negated, depth) for item in items]
        # the entries of {"$or": {"year": 2010, "topic": "sleep"}} are alternatives; of any other item all must hold
        if join != "or" or not isinstance(value, Mapping):
            parts_of_items = [self._join("and", parts, inner_negated) for parts in parts_of_items]
        return self._join(join, [part for parts in parts_of_items for part in parts], negated)

    def _join(self, word: str, parts: Parts, negated: bool) -> Parts:
        """Join parts into one; a single part needs no "and" or "or".

        A part of an "and" that cannot be used is left out alone. An "or" with such a part is left out whole: its other
        parts alone would keep out documents that were asked for. If ``negated``, it is the reverse.
        """
        if not parts or (len(parts) == 1 and word != "not"):
            return parts
        usable = [part for part in parts if part is not None]
        are_alternatives = (word == "or") != negated
        if usable and len(usable) < len(parts) and are_alternatives:
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
        """Negate parts that must hold together, and that were read with the opposite of `negated`, as below a "not"."""
        return self._join("not", self._join("and", parts, not negated), negated)

    def _drop(self, value: Any, why: str) -> Parts:
        self.repair(f"dropped: {cut_repr(str(value)[:60])}: {why}")
        return [None]

    def read(self, value: Any, negated: bool, depth: int) -> Parts:
        """Read the conditions and groups in a filter of any shape; all of them must hold."""
        if depth > _MAX_DEPTH:
            return self._drop("a group", f"it is nested deeper than {_MAX_DEPTH} levels")
        if isinstance(value, BaseModel):  # a client may have made the class of the form
            value = value.model_dump()
        if isinstance(value, list):
            return self.read_joined("and", value, negated, depth + 1)
        if not isinstance(value, Mapping):
            # true or false, like null, holds no condition that would be lost
            is_empty = value is None or value == "" or isinstance(value, bool)
            return [] if is_empty else self._drop(value, "it is no form of a filter")
        entries = {str(name): operand for name, operand in value.items()}
        key = _field_key(entries)
        has_parts = any(isinstance(entries.get(name), (list, Mapping)) for name in _PARTS)
        flags: Sequence[str] = NOT
        if not (key or has_parts):  # a mapping of fields: one of them alone may be named so
            flags = ("not", "$not") if len(entries) > 1 else ()
        if any(entries.pop(name) for name in flags if isinstance(entries.get(name), bool)):
            return self._none_of(self.read(entries, not negated, depth), negated)
        if key is not None:
            return self._read_condition(entries.pop(key), entries, negated, depth)
        if has_parts:
            parts, word = _take(entries, _PARTS), _take(entries, LOGIC + _OPERATOR)
            if why := _not_understood(entries):
                return self._drop(value, why)
            return self.read_joined("and" if word is None else word, parts, negated, depth + 1)
        return self._read_entries(entries, negated, depth)

    def _read_condition(self, field: str, entries: dict[str, Any], negated: bool, depth: int) -> Parts:
        """Read ``{"operator": "gt", "value": 2010}`` or ``{"$gt": 2010}`` of a field; drop it if it has another key."""
        whole = {field: {**entries}}
        operator = _take(entries, _OPERATOR)
        # a value that is null asks for documents without the field, one that was left out for nothing
        has_value = not entries.keys().isdisjoint(_VALUE)
        operand = _take(entries, _VALUE)
        operands: dict[str, Any] = {}
        if operator is None and not has_value:  # then its operators are keys
            operands = {name: entries.pop(name) for name in [*entries] if name not in LOGIC}
        if not has_value and not operands:
            return self._drop(whole, "it has no value")
        if why := _not_understood(entries):
            return self._drop(whole, why)
        if not operands:
            return self._condition(field, "eq" if operator is None else operator, operand, negated)
        parts: Parts = []
        for name, each in operands.items():
            parts += self._read_operator(field, name, each, negated, depth)
        return parts

    def _read_operator(self, field: str, name: str, operand: Any, negated: bool, depth: int) -> Parts:
        """Read an entry ``operator: value``, or ``not: {operator: value}``."""
        if join_of(name) == "not" and isinstance(operand, Mapping):
            return self._none_of(self.read({"field": field, **operand}, not negated, depth + 1), negated)
        return self._condition(field, name, operand, negated)

    def _read_entries(self, entries: dict[str, Any], negated: bool, depth: int) -> Parts:
        """Read entries ``name: operand``: "$and" with a group, a field with operators or with its value."""
        parts: Parts = []
        for name, operand in entries.items():
            if join_of(name) and isinstance(operand, (list, Mapping)):
                parts += self.read_joined(name, operand, negated, depth + 1)
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


def _field_key(entries: Any) -> str | None:
    """Return the key of a condition that names its field; None if it is no condition."""
    marks = ("field", "attribute", *_OPERATOR, *_VALUE)  # a key such as "column" may be a field of the schema
    if not isinstance(entries, Mapping) or entries.keys().isdisjoint(marks):
        return None
    return next((name for name in _FIELD if isinstance(entries.get(name), str)), None)


def _is_word(item: Any) -> bool:
    """Tell whether an entry of a list is a word that may join the others, and no condition such as "year > 2010"."""
    return isinstance(item, str) and not re.search(r"[<>=≤≥\d]", item)


def _has_word(item: Any) -> bool:
    """Tell whether a condition has a word in it that joins it to others by anything but "and"."""
    return _field_key(item) is not None and any(not _says_nothing(name, item.get(name)) for name in LOGIC)


def _says_nothing(name: str, operand: Any) -> bool:
    """Tell whether an entry adds nothing to a condition or group: an empty one, or an "and"."""
    return not operand or (name in LOGIC and join_of(operand) == "and")


def _not_understood(entries: dict[str, Any]) -> str:
    """Return why the entries left over make a condition or group unreadable; "" if they say nothing."""
    unread = [name for name, operand in entries.items() if not _says_nothing(name, operand)]
    return f"its key {unread[0][:40]!r} is not understood" if unread else ""


def _take(entries: dict[str, Any], names: Sequence[str]) -> Any:
    """Remove the first entry with one of these names that is not null, and return its value; None if there is none."""
    name = next((name for name in names if entries.get(name) is not None), None)
    return None if name is None else entries.pop(name)


def _plain_value(value: Any) -> Any:
    """Return a scalar or None; some models write dates as objects."""
    if isinstance(value, Mapping):
        value = value.get("date", "")
    return value if isinstance(value, Scalar) or value is None else str(value)


def cut_repr(value: Any) -> str:
    """Write a value for a message, cut."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
