"""Walk a filter for a store's translation: negations pushed down, what always or never holds folded away."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from rag_kit.documents.filters import Filter, validate_filter

ALWAYS: Final = True
NEVER: Final = False
# The store's condition, or whether it always or never holds.
Clause = Any
Leaf = Callable[[str, str, Any, bool], Clause]
Join = Callable[[str, list[Any]], Any]


def translate(where: Filter | None, leaf: Leaf, join: Join) -> Clause:
    """Translate a filter condition by condition.

    Args:
        where: The filter.
        leaf: Gives the condition for key, operator, operand, negated; or ``ALWAYS`` or ``NEVER``.
        join: Joins at least two conditions with ``"and"`` or ``"or"``.

    Returns:
        The store's filter, ``ALWAYS`` or ``NEVER``.

    Raises:
        FilterError: As ``validate_filter``, and what ``leaf`` raises.

    Example:
        >>> leaf = lambda key, operator, operand, negated: f"{'not ' * negated}{key}{operator}{operand}"
        >>> translate({"$not": {"a": 1, "b": {"$gt": 2}}}, leaf, lambda word, parts: f" {word} ".join(parts))
        'not a$eq1 or not b$gt2'
    """
    validate_filter(where)
    return _where(where or {}, False, leaf, join)


def _where(where: Filter, negate: bool, leaf: Leaf, join: Join) -> Clause:
    parts: list[Clause] = []
    for key, value in where.items():
        if key in ("$and", "$or"):
            inner = [_where(part, negate, leaf, join) for part in value]
            parts.append(joined("and" if (key == "$and") != negate else "or", inner, join))
        elif key == "$not":
            parts.append(_where(value, not negate, leaf, join))
        else:
            conditions = value if isinstance(value, Mapping) else {"$eq": value}
            parts.extend(leaf(key, operator, operand, negate) for operator, operand in conditions.items())
    return joined("or" if negate else "and", parts, join)


def joined(word: str, parts: Sequence[Clause], join: Join) -> Clause:
    """Join conditions; what decides nothing is left out, what decides all is the result."""
    neutral = word == "and"
    if any(part is (not neutral) for part in parts):
        return not neutral
    kept = [part for part in parts if not isinstance(part, bool)]
    if not kept:
        return neutral
    return kept[0] if len(kept) == 1 else join(word, kept)
