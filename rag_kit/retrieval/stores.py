"""What vector stores differ in: the language of their filters, and whether they are asynchronous by themselves."""

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
from rag_kit.indexing.store_filters import translator_of

_PLAIN = frozenset({"$eq", "$gt", "$gte", "$lt", "$lte", "$in"})
_GROWTH = (4, 16, 64)
_MAX_FETCH = 10_000
_COMPARATORS = {
    "$eq": Comparator.EQ, "$ne": Comparator.NE, "$gt": Comparator.GT, "$gte": Comparator.GTE,
    "$lt": Comparator.LT, "$lte": Comparator.LTE, "$in": Comparator.IN, "$nin": Comparator.NIN,
    "$contains": Comparator.CONTAIN,
}  # fmt: skip


def native_filter(
    store: VectorStore, where: Filter, *, static: Any = None, translator: Visitor | None = None
) -> Any | None:
    """A filter in the store's own language, ANDed with the store's own static one.

    ``None`` if the store is unknown or cannot say it, so that the results have to be filtered afterwards. Plain
    comparisons go to the stores that LangChain has a translator for, too.
    """
    translate = translator_of(store)
    if translate is None:
        return _by_langchain(store, where, translator) if static is None else None
    try:
        return _both(static, translate(where))
    except FilterError:
        return None


def _both(static: Any, mine: Any) -> Any | None:
    """Two filters of one store, ANDed; ``None`` where they are not of one kind."""
    if mine is None or static is None:
        return mine if mine is not None else static
    if callable(mine):
        return (lambda document: mine(document) and bool(static(document))) if callable(static) else None
    if isinstance(mine, Mapping):
        return {"$and": [static, mine]} if isinstance(static, Mapping) else None
    return type(mine)(must=[static, mine]) if isinstance(static, type(mine)) else None


def deeper(k: int) -> list[int]:
    """How many documents to fetch, one time after the other, where they are filtered afterwards."""
    return [max(k, min(k * factor, _MAX_FETCH)) for factor in _GROWTH]


def native_async(store: VectorStore) -> bool:
    """Whether the store searches asynchronously by itself, rather than through asyncio's small pool."""
    return type(store).asimilarity_search is not VectorStore.asimilarity_search


def native_async_scores(store: VectorStore) -> bool:
    """As ``native_async``, for the search with scores."""
    return type(store).asimilarity_search_with_score is not VectorStore.asimilarity_search_with_score


def to_directive(where: Filter | None) -> FilterDirective | None:
    """A filter of the kit in LangChain's form, which raises ``FilterError`` for an operator that has none there."""
    validate_filter(where)
    return _to_directive(where) if where else None


def _to_directive(where: Filter) -> FilterDirective:
    """A filter in LangChain's language of filters."""
    parts: list[FilterDirective] = []
    for key, value in where.items():
        if key in ("$and", "$or"):
            parts.append(_joined(Operator(key[1:]), [_to_directive(part) for part in value]))
        elif key == "$not":
            parts.append(Operation(Operator.NOT, [_to_directive(value)]))
        else:
            operators = value if isinstance(value, Mapping) else {"$eq": value}
            parts.extend(_to_comparison(key, operator, operand) for operator, operand in operators.items())
    return _joined(Operator.AND, parts)


def _joined(operator: Operator, parts: list[FilterDirective]) -> FilterDirective:
    return parts[0] if len(parts) == 1 else Operation(operator, parts)


def _to_comparison(key: str, operator: str, operand: Any) -> FilterDirective:
    if operator == "$exists":
        return Comparison(Comparator.NE if operand else Comparator.EQ, key, None)
    if operator not in _COMPARATORS:
        raise FilterError(f"{operator} on {key!r} has no comparator in LangChain's language of filters.")
    several = operator in ("$in", "$nin")
    return Comparison(_COMPARATORS[operator], key, list(operand) if several else operand)


def _by_langchain(store: VectorStore, where: Filter, translator: Visitor | None = None) -> Any | None:
    """A filter in a store's language by LangChain's translator (or another), if there is one and it is plain.

    Stores differ in what they find for ``$ne``, ``$not`` and missing keys, so these are not handed over.
    """
    translator = (translator or _langchain_translator(store)) if _is_portable(where) else None
    if translator is None:
        return None
    try:
        directive = to_directive(where)
        _, kwargs = translator.visit_structured_query(StructuredQuery(query="", filter=directive))
    except (FilterError, ValueError, NotImplementedError, TypeError, KeyError, AttributeError):
        return None  # it cannot say this
    return kwargs.get("filter") if set(kwargs) == {"filter"} else None


def _langchain_translator(store: VectorStore) -> Visitor | None:
    """LangChain's translator into a store's own language, if it has one."""
    package = type(store).__module__.split(".")[0]
    if not package.startswith("langchain_") or package == "langchain_core":
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            base = importlib.import_module("langchain_classic.retrievers.self_query.base")
            translator = base._get_builtin_translator(store)
    except (ImportError, ValueError, AttributeError):
        return None
    return translator if isinstance(translator, Visitor) else None


def _is_portable(where: Filter) -> bool:
    """Whether a filter holds nothing but comparisons that all stores understand alike, and, or."""
    for key, value in where.items():
        if key == "$not":
            return False
        if key in ("$and", "$or"):
            if not all(_is_portable(part) for part in value):
                return False
        elif isinstance(value, Mapping) and not (value.keys() <= _PLAIN and value.get("$in") != []):
            return False
    return True
