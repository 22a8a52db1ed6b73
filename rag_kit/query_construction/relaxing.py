"""Which conditions are dropped, in which order, when nothing passes all of them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from langchain_core.structured_query import Comparison, FilterDirective, Operation

from rag_kit.query_construction.ir import all_of, conditions, to_filter


def relaxed(
    directive: FilterDirective | None, order: bool | Sequence[str], most: int
) -> Iterator[tuple[FilterDirective | None, str]]:
    """Weaker and weaker filters.

    Args:
        directive: The conditions; those that are ANDed at the top are dropped one by one, never parts of them.
        order: True: the last one named goes first. Names of fields: only conditions on these go, in that order.
            False: none go.
        most: Most steps; the last step drops all that may go.

    Yields:
        What is left, and a text that says what was dropped.

    Example:
        >>> from langchain_core.structured_query import Comparator
        >>> from rag_kit.query_construction.ir import all_of
        >>> both = all_of([Comparison(Comparator.EQ, "a", 1), Comparison(Comparator.EQ, "b", 2)])
        >>> [text for _, text in relaxed(both, True, 4)]
        ['{"b": {"$eq": 2}}', '{"b": {"$eq": 2}} and {"a": {"$eq": 1}}']
    """
    kept = conditions(directive)
    going = _going(kept, order)
    dropped: list[FilterDirective] = []
    for step, part in enumerate(going, start=1):
        last = step == most
        for one in going[step - 1 :] if last else [part]:
            kept = [item for item in kept if item is not one]
            dropped.append(one)
        yield all_of(kept), " and ".join(show(item) for item in dropped)
        if last:
            return


def _going(parts: Sequence[FilterDirective], order: bool | Sequence[str]) -> list[FilterDirective]:
    if isinstance(order, bool):
        return list(reversed(parts)) if order else []
    going = []
    for name in order:
        going += [part for part in reversed(parts) if fields_of(part) == {name} and part not in going]
    return going


def fields_of(directive: FilterDirective) -> set[str]:
    """The fields that a directive uses."""
    if isinstance(directive, Operation):
        return (
            set().union(*(fields_of(part) for part in directive.arguments)) if directive.arguments else set()
        )
    return {directive.attribute} if isinstance(directive, Comparison) else set()


def show(directive: FilterDirective) -> str:
    """A directive as one short line.

    Example:
        >>> from langchain_core.structured_query import Comparator
        >>> show(Comparison(Comparator.GT, "year", 2010))
        '{"year": {"$gt": 2010}}'
    """
    text = json.dumps(to_filter(directive), ensure_ascii=False)
    return text if len(text) <= 300 else text[:299] + "…"
