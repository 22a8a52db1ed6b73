"""From LangChain's structured-query IR to the kit's filters, and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.structured_query import Comparator, Comparison, FilterDirective, Operation, Operator

from rag_kit.documents import Filter, validate_filter
from rag_kit.errors import FilterError

_WORDS = {
    Comparator.EQ: "$eq", Comparator.NE: "$ne", Comparator.GT: "$gt", Comparator.GTE: "$gte",
    Comparator.LT: "$lt", Comparator.LTE: "$lte", Comparator.IN: "$in", Comparator.NIN: "$nin",
    Comparator.CONTAIN: "$contains",
}  # fmt: skip
_COMPARATORS = {word: comparator for comparator, word in _WORDS.items()}


def to_filter(directive: FilterDirective | None) -> dict[str, Any] | None:
    """Turn a directive into a filter of the kit.

    Args:
        directive: Comparisons and operations; ``None`` lets everything pass. A comparison ``eq`` or ``ne`` with
            ``None`` asks whether the key is missing.

    Raises:
        FilterError: It asks for ``like``, which the kit's filters lack, or the filter is malformed.

    Example:
        >>> both = [Comparison(Comparator.GTE, "year", 2010), Comparison(Comparator.CONTAIN, "tags", "a")]
        >>> to_filter(Operation(Operator.AND, both))
        {'$and': [{'year': {'$gte': 2010}}, {'tags': {'$contains': 'a'}}]}
    """
    if directive is None:
        return None
    where = _filter(directive)
    validate_filter(where)
    return where


def _filter(directive: FilterDirective) -> dict[str, Any]:
    if isinstance(directive, Operation):
        parts = [_filter(part) for part in directive.arguments]
        if directive.operator == Operator.NOT:
            return {"$not": parts[0] if len(parts) == 1 else {"$or": parts}}
        if not parts:
            raise FilterError(
                f"The operation {directive.operator.value!r} has no arguments; give at least one."
            )
        return parts[0] if len(parts) == 1 else {f"${directive.operator.value}": parts}
    if not isinstance(directive, Comparison):
        raise FilterError(f"{type(directive).__name__} is no comparison and no operation.")
    if directive.value is None and directive.comparator in (Comparator.EQ, Comparator.NE):
        return {directive.attribute: {"$exists": directive.comparator == Comparator.NE}}
    if directive.comparator not in _WORDS:
        raise FilterError(
            f"{directive.comparator.value!r} on {directive.attribute!r} is no operator of the kit's filters. "
            f"Allowed: {', '.join(comparator.value for comparator in _WORDS)}."
        )
    value = directive.value
    return {directive.attribute: {_WORDS[directive.comparator]: list(value) if _many(value) else value}}


def to_directive(where: Filter | None) -> FilterDirective | None:
    """Turn a filter of the kit into a directive, for LangChain's translators.

    Raises:
        FilterError: The filter is malformed.

    Example:
        >>> to_directive({"year": {"$gte": 2010, "$lt": 2015}}).operator.value
        'and'
        >>> to_filter(to_directive({"$not": {"tags": {"$contains": "a"}}}))
        {'$not': {'tags': {'$contains': 'a'}}}
    """
    validate_filter(where)
    return _directive(where) if where else None


def _directive(where: Filter) -> FilterDirective:
    parts: list[FilterDirective] = []
    for key, value in where.items():
        if key in ("$and", "$or"):
            parts.append(_join(Operator(key[1:]), [_directive(part) for part in value]))
        elif key == "$not":
            parts.append(Operation(Operator.NOT, [_directive(value)]))
        else:
            conditions = value if isinstance(value, Mapping) else {"$eq": value}
            parts.extend(_comparison(key, word, operand) for word, operand in conditions.items())
    return _join(Operator.AND, parts)


def _join(operator: Operator, parts: Sequence[FilterDirective]) -> FilterDirective:
    return parts[0] if len(parts) == 1 else Operation(operator, list(parts))


def _comparison(key: str, word: str, operand: Any) -> FilterDirective:
    if word == "$exists":
        return Comparison(Comparator.NE if operand else Comparator.EQ, key, None)
    if word not in _COMPARATORS:
        raise FilterError(f"{word} on {key!r} has no comparator in LangChain's language of filters.")
    return Comparison(_COMPARATORS[word], key, list(operand) if _many(operand) else operand)


def _many(value: Any) -> bool:
    return isinstance(value, (list, tuple, set, frozenset))
