"""LangChain's structured-query IR: what conditions are joined with. Filters from it and to it stand below."""

from __future__ import annotations

from collections.abc import Sequence

from langchain_core.structured_query import FilterDirective, Operation, Operator

from rag_kit.errors import FilterError
from rag_kit.retrieval.structured_filter import to_filter

__all__ = ["all_of", "any_of", "bounded", "conditions", "none_of", "to_filter"]


def _joined(operator: Operator, parts: Sequence[FilterDirective]) -> FilterDirective | None:
    flat: list[FilterDirective] = []
    for part in parts:
        nested = isinstance(part, Operation) and part.operator == operator
        flat.extend(part.arguments if nested else [part])  # type: ignore[attr-defined]
    return Operation(operator, flat) if len(flat) > 1 else next(iter(flat), None)


def all_of(parts: Sequence[FilterDirective]) -> FilterDirective | None:
    """AND of some directives, flat; ``None`` for none."""
    return _joined(Operator.AND, parts)


def any_of(parts: Sequence[FilterDirective]) -> FilterDirective | None:
    """OR of some directives, flat; ``None`` for none."""
    return _joined(Operator.OR, parts)


def none_of(part: FilterDirective) -> FilterDirective:
    """The negation of a directive."""
    if isinstance(part, Operation) and part.operator == Operator.NOT and len(part.arguments) == 1:
        return part.arguments[0]
    return Operation(Operator.NOT, [part])


def conditions(directive: FilterDirective | None) -> list[FilterDirective]:
    """The conditions that are ANDed at the top."""
    if isinstance(directive, Operation) and directive.operator == Operator.AND:
        return list(directive.arguments)
    return [] if directive is None else [directive]


def bounded(directive: FilterDirective | None) -> tuple[FilterDirective | None, str | None]:
    """A directive within the bounds of filters: what is said twice goes first, then the last conditions.

    Returns:
        The directive, and in words what was dropped.

    Example:
        >>> from langchain_core.structured_query import Comparator, Comparison
        >>> year = Comparison(Comparator.GT, "year", 2010)
        >>> bounded(all_of([year] * 2000)) == (year, None)
        True
    """
    why = _why_not(directive)
    if why is None:
        return directive, None
    kept = list({repr(part): part for part in conditions(directive)}.values())
    fits, beyond = 0, len(kept) + 1
    while beyond - fits > 1:
        middle = (fits + beyond) // 2
        fits, beyond = (middle, beyond) if _why_not(all_of(kept[:middle])) is None else (fits, middle)
    dropped = len(kept) - fits
    return all_of(
        kept[:fits]
    ), f"dropped the last {dropped} of {len(kept)} conditions: {why}" if dropped else None


def _why_not(directive: FilterDirective | None) -> str | None:
    try:
        to_filter(directive)
    except FilterError as error:
        return str(error)
    return None
