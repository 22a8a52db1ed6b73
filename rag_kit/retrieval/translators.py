"""A filter of the kit in LangChain's own form, for its translators of stores that the kit has none for."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Mapping
from typing import Any

from langchain_core.structured_query import (
    Comparator,
    Comparison,
    FilterDirective,
    Operation,
    Operator,
    StructuredQuery,
    Visitor,
)
from langchain_core.vectorstores import VectorStore

from rag_kit.documents import Filter, validate_filter
from rag_kit.errors import FilterError

_PLAIN = frozenset({"$eq", "$gt", "$gte", "$lt", "$lte", "$in"})
_KNOWN: dict[type, bool] = {}
_COMPARATORS = {
    "$eq": Comparator.EQ, "$ne": Comparator.NE, "$gt": Comparator.GT, "$gte": Comparator.GTE,
    "$lt": Comparator.LT, "$lte": Comparator.LTE, "$in": Comparator.IN, "$nin": Comparator.NIN,
    "$contains": Comparator.CONTAIN,
}  # fmt: skip


def to_directive(where: Filter | None) -> FilterDirective | None:
    """A filter of the kit in LangChain's form; ``$exists`` is a comparison with ``None``.

    Raises:
        FilterError: The filter is malformed, or LangChain's form has no such operator.

    Example:
        >>> to_directive({"year": {"$gte": 2010, "$lt": 2015}}).operator.value
        'and'
    """
    validate_filter(where)
    return _directive(where) if where else None


def _directive(where: Filter) -> FilterDirective:
    parts: list[FilterDirective] = []
    for key, value in where.items():
        if key in ("$and", "$or"):
            parts.append(_joined(Operator(key[1:]), [_directive(part) for part in value]))
        elif key == "$not":
            parts.append(Operation(Operator.NOT, [_directive(value)]))
        else:
            known = value if isinstance(value, Mapping) else {"$eq": value}
            parts.extend(_comparison(key, operator, operand) for operator, operand in known.items())
    return _joined(Operator.AND, parts)


def _joined(operator: Operator, parts: list[FilterDirective]) -> FilterDirective:
    return parts[0] if len(parts) == 1 else Operation(operator, parts)


def _comparison(key: str, operator: str, operand: Any) -> FilterDirective:
    if operator == "$exists":
        return Comparison(Comparator.NE if operand else Comparator.EQ, key, None)
    if operator not in _COMPARATORS:
        raise FilterError(f"{operator} on {key!r} has no comparator in LangChain's language of filters.")
    several = operator in ("$in", "$nin")
    return Comparison(_COMPARATORS[operator], key, list(operand) if several else operand)


def by_langchain(store: VectorStore, where: Filter, given: Visitor | None = None) -> Any | None:
    """A filter in a store's language by LangChain's translator, if there is one and the filter is plain.

    Only comparisons joined by and, or are handed over: stores differ in what they find for ``$ne``, ``$not`` and
    missing keys, and the results could not be made right afterwards.

    Args:
        store: A store of a LangChain integration package.
        where: The filter.
        given: The translator; ``None`` for langchain_classic's own, if that is installed.

    Returns:
        What the store's ``filter`` argument takes, or ``None``.
    """
    translator = (given or _translator(store)) if _plain(where) else None
    if translator is None:
        return None
    try:
        directive = to_directive(where)
        _, kwargs = translator.visit_structured_query(StructuredQuery(query="", filter=directive))
    except (FilterError, ValueError, NotImplementedError, TypeError, KeyError, AttributeError):
        return None  # it cannot say this
    return kwargs.get("filter") if set(kwargs) == {"filter"} else None


def _translator(store: VectorStore) -> Visitor | None:
    kind = type(store)
    package = kind.__module__.split(".")[0]
    if not package.startswith("langchain_") or package == "langchain_core" or _KNOWN.get(kind) is False:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            base = importlib.import_module("langchain_classic.retrievers.self_query.base")
            found = base._get_builtin_translator(store)
    except (ImportError, ValueError, AttributeError):
        found = None
    _KNOWN[kind] = found is not None
    return found if isinstance(found, Visitor) else None


def _plain(where: Filter) -> bool:
    """Whether a filter holds nothing but plain comparisons, and, or."""
    for key, value in where.items():
        if key == "$not":
            return False
        if key in ("$and", "$or"):
            if not all(_plain(part) for part in value):
                return False
        elif isinstance(value, Mapping) and not (value.keys() <= _PLAIN and value.get("$in", [0])):
            return False
    return True
