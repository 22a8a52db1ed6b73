"""The form in which a model states a search text, a metadata filter, an order and a limit.

The form is lenient on purpose: each condition is checked by itself afterwards, so that one wrong field or value
does not lose the others. The shapes of LangChain and of Mongo are read too.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Union

from pydantic import field_validator, model_validator

from rag_kit.prompts.fields import Form, ask_for

MAX_DEPTH = 8
UNREADABLE = "unreadable"
"""The operator of what is not a condition; it is dropped, and noted, where conditions are checked."""
_JOINS = {"and": "and", "all": "and", "&&": "and", "or": "or", "any": "or", "||": "or"}
_JOINS |= {"not": "not", "nor": "not", "none": "not"}
# names that models give to the keys of conditions and groups
_FIELD = ("field", "attribute", "field_name", "column", "key")
_OPERATOR = ("operator", "comparator", "op", "comparison", "cmp")
_VALUE = ("value", "values", "operand")
_PARTS = ("conditions", "arguments", "filters", "clauses", "operands")
_LOGIC = ("join", "logic", "logical_operator", "combinator", "connector", "conjunction")
_NOT = ("not", "$not", "negate", "negated", "exclude")
_MAX_VALUES = 200

Scalar = str | int | float | bool
Value = Union[str, int, float, bool, list[Scalar], None]  # noqa: UP007 - read at run time


class FilterCondition(Form):
    """One comparison of a metadata field with a value."""

    field: str = ask_for(
        "The name of a metadata field, exactly as listed.", "元数据字段的名称，与列出的完全一致。"
    )
    operator: str = ask_for(
        "eq, ne, gt, gte, lt, lte, in, nin or contain.", "eq、ne、gt、gte、lt、lte、in、nin 或 contain 之一。"
    )
    value: Value = ask_for(
        "The value; a list for in and nin; null asks for documents without the field.",
        "用来比较的值；in 和 nin 用列表；null 表示要找没有该字段的文档。",
    )


class FilterGroup(Form):
    """Conditions joined by and, or, not."""

    join: str = ask_for(
        '"and": all hold; "or": at least one holds; "not": none holds.',
        '"and"：全部成立；"or"：至少一个成立；"not"：一个都不成立。',
    )
    conditions: list["FilterCondition | FilterGroup"] = ask_for(
        "Conditions, or further groups.", "若干条件，或者嵌套的条件组。"
    )


class SelfQuery(Form):
    """A question as a text to search for and a filter."""

    query: str = ask_for(
        "What to look for in the texts, without what the filter says; may be empty.",
        "要在正文中查找的内容，不含过滤条件已经表达的部分；可以为空。",
    )
    filter: FilterCondition | FilterGroup | None = ask_for(
        "The filter; null where none is asked for.", "过滤条件；问题没有提出条件时为 null。"
    )
    sort_by: str | None = ask_for(
        "The field to sort by, for the latest or largest; else null.",
        "要求最新、最大等时用来排序的字段；否则为 null。",
    )
    descending: bool = ask_for("True for the latest or largest first.", "最新或最大的排在最前时为 true。")
    limit: int | None = ask_for(
        "How many documents are asked for; null where not said.", "要求返回多少篇文档；没有说明时为 null。"
    )

    @model_validator(mode="before")
    @classmethod
    def _accept_loose_fields(cls, data: Any) -> Any:
        """Fields may be missing or of another type; other names of the filter are read, too."""
        if not isinstance(data, Mapping):
            return data
        query, sort_by, limit = data.get("query"), data.get("sort_by"), data.get("limit")
        if isinstance(limit, str) and limit.strip().isdecimal():
            limit = int(limit)
        return {
            "query": query if isinstance(query, str) else "",
            "filter": _top_filter(data),
            "sort_by": sort_by if isinstance(sort_by, str) and sort_by.strip() else None,
            "descending": str(data.get("descending", True)).lower() not in ("false", "asc", "0", "no"),
            "limit": limit if isinstance(limit, int) and not isinstance(limit, bool) else None,
        }

    @field_validator("filter", mode="before")
    @classmethod
    def _accept_any_shape(cls, value: Any) -> Any:
        if isinstance(value, (FilterCondition, FilterGroup)):
            return value
        return read_filter(value)


def read_filter(value: Any) -> dict[str, Any] | None:
    """Read a filter in any usual shape as conditions and groups; what cannot be read is marked, to be noted.

    Read are this form's own names, LangChain's (``comparator``, ``attribute``, ``arguments``), lists, and
    Mongo-style mappings such as ``{"year": {"$gte": 2010}}``.

    Example:
        >>> read_filter([{"attribute": "year", "comparator": "gt", "value": 2010}])
        {'field': 'year', 'operator': 'gt', 'value': 2010}
        >>> read_filter("year > 2010")
        {'field': 'it is no form of a filter', 'operator': 'unreadable', 'value': 'year > 2010'}
    """
    parts = _joined("and", _read_parts(value, 0))
    return parts[0] if parts else None


def _top_filter(data: Mapping[str, Any]) -> Any:
    """Return the filter of an answer, joined or negated as the answer says beside it."""
    where = next((data[key] for key in ("filter", "filters", "where", "conditions") if data.get(key)), None)
    beside = {name: data[name] for name in _LOGIC if _join_of(data.get(name))}
    beside |= {name: data[name] for name in _NOT if isinstance(data.get(name), bool)}
    return {**beside, "conditions": where} if beside and isinstance(where, (list, Mapping)) else where


def _unreadable(value: Any, why: str) -> list[dict[str, Any]]:
    return [{"field": why, "operator": UNREADABLE, "value": str(value)[:60]}]


def _join_of(word: Any) -> str | None:
    """Return the join that a word means; None if it means none."""
    return _JOINS.get(word.strip().lower().lstrip("$")) if isinstance(word, str) else None


def _take(entries: dict[str, Any], names: Sequence[str]) -> Any:
    """Remove the entries of some names; return the first value that is not null."""
    name = next((name for name in names if entries.get(name) is not None), None)
    return None if name is None else entries.pop(name)


def _not_understood(entries: dict[str, Any]) -> str:
    """Return why the entries left over make a condition or group unreadable; "" if they say nothing."""
    left = [name for name, operand in entries.items() if operand not in (None, "", [], {})]
    return f"its key {left[0][:40]!r} is not understood" if left else ""


def _joined(join: str, parts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Join parts into a group; a single part needs none."""
    if not parts or (len(parts) == 1 and join != "not"):
        return parts
    # what joins nothing is mended, and noted, where conditions are checked
    return [{"join": join[:20], "conditions": parts}]


def _read_parts(value: Any, depth: int) -> list[dict[str, Any]]:
    """Read the conditions and groups in a filter of any shape; all of them must hold."""
    if depth > MAX_DEPTH:
        return _unreadable("a group", f"it is nested deeper than {MAX_DEPTH} levels")
    if isinstance(value, list):
        return _read_list(None, value, depth)
    if not isinstance(value, Mapping):
        # true or false, like null, holds no condition that would be lost
        empty = value is None or value == "" or isinstance(value, bool)
        return [] if empty else _unreadable(value, "it is no form of a filter")
    entries = {str(name): operand for name, operand in value.items()}
    group = any(isinstance(entries.get(name), (list, Mapping)) for name in _PARTS)
    if any(isinstance(entries.get(name), str) for name in _FIELD) and (
        "field" in entries or "attribute" in entries or not entries.keys().isdisjoint(_OPERATOR + _VALUE)
    ):
        negated = [*_take_flags(entries, _NOT), _join_of(_take(entries, _LOGIC)) == "not"]
        parts = _read_condition(entries, value, depth)
    elif group:
        negated = _take_flags(entries, _NOT)
        parts = _read_group(entries, value, depth)
    else:
        negated = _take_flags(entries, ("not", "$not")) if len(entries) > 1 else []
        parts = [part for name, operand in entries.items() for part in _read_entry(name, operand, depth)]
    return _joined("not", _joined("and", parts)) if sum(negated) % 2 else parts


def _take_flags(entries: dict[str, Any], names: Sequence[str]) -> list[bool]:
    """Remove the entries of some names that are true or false; return their values."""
    return [entries.pop(name) for name in names if isinstance(entries.get(name), bool)]


def _read_condition(entries: dict[str, Any], value: Any, depth: int) -> list[dict[str, Any]]:
    """Read a condition; one with an unknown key is marked, to be dropped and noted."""
    field = entries.pop(next(name for name in _FIELD if isinstance(entries.get(name), str)))
    operator, valued = _take(entries, _OPERATOR), entries.keys() & {*_VALUE}
    operand, why = _take(entries, _VALUE), _not_understood(entries)
    if why and operator is None and not valued:  # its operators are keys: {"field": "year", ">=": 2010}
        return [part for name, inner in entries.items() for part in _read_operator(field, name, inner, depth)]
    if why or (operator is None and not valued):
        return _unreadable(value, why or "it has no value")
    return [_condition(field, "eq" if operator is None else operator, operand)]


def _read_operator(field: str, name: str, operand: Any, depth: int) -> list[dict[str, Any]]:
    """Read an entry ``operator: value``, or ``not: {operator: value}``, as conditions."""
    if _join_of(name) == "not" and isinstance(operand, Mapping):
        return _joined("not", _joined("and", _read_parts({"field": field, **operand}, depth + 1)))
    return [_condition(field, name, operand)]


def _read_group(entries: dict[str, Any], value: Any, depth: int) -> list[dict[str, Any]]:
    """Read a group."""
    parts, join = _take(entries, _PARTS), _take(entries, _LOGIC + _OPERATOR)
    if why := _not_understood(entries):
        return _unreadable(value, why)
    return _read_list(join and str(join), parts, depth)


def _read_list(join: str | None, value: Any, depth: int) -> list[dict[str, Any]]:
    """Read the parts of a group, joined by `join`, else by the words between or inside them, else by "and"."""
    entries = value if isinstance(value, list) else [value]
    items = [entry for entry in entries if not isinstance(value, list) or _join_of(entry) is None]
    between = [_join_of(entry) for entry in value if _join_of(entry)] if isinstance(value, list) else []
    conditions = [item for item in items if isinstance(item, Mapping) and "field" in item]
    joins = [_join_of(condition.get(name)) for condition in conditions for name in _LOGIC]
    inside = [join for join in joins if join in ("and", "or")]
    words = {*between, *inside, *([_join_of(join) or join.lower()] if join else [])}
    # "a or b" has one word between, or one in each, or in all but the first or last
    if len(words) > 1 or (not join and words and max(len(between), len(inside)) < len(items) - 1):
        return _unreadable(value, "how its conditions are joined is not clear")
    word = next(iter(words), None) or "and"
    read = [_read_parts(item, depth + 1) for item in items]
    if isinstance(value, Mapping) and word == "or":
        return _joined("or", read[0])
    if word != "and":
        read = [_joined("and", parts) for parts in read]
    return _joined(word, [part for parts in read for part in parts])


def _read_entry(name: str, operand: Any, depth: int) -> list[dict[str, Any]]:
    """Read an entry ``name: operand``: "$and" with a group, a field with operators or with its value."""
    if _join_of(name) and isinstance(operand, (list, Mapping)):
        return _read_list(name, operand, depth + 1)
    if isinstance(operand, Mapping) and "date" not in operand:
        return _read_parts({**operand, "field": name}, depth + 1)
    return [_condition(name, "in" if isinstance(operand, list) and len(operand) > 1 else "eq", operand)]


def _condition(field: str, operator: Any, value: Any) -> dict[str, Any]:
    """Make a condition on a plain value or a list of them."""
    if isinstance(value, list):
        plain = [_plain_value(item) for item in value[:_MAX_VALUES]]
        if not all(isinstance(item, Scalar) for item in plain):
            return _unreadable({field: {operator: value}}, "its list holds more than plain values")[0]
        return {"field": field, "operator": str(operator), "value": plain}
    return {"field": field, "operator": str(operator), "value": _plain_value(value)}


def _plain_value(value: Any) -> Any:
    """Return a scalar or None; some models write dates as objects."""
    if isinstance(value, Mapping):
        value = value.get("date", "")
    return value if isinstance(value, Scalar) or value is None else str(value)
