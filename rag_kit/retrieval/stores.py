"""Differences of vector stores: the language of their filters, and whether they are asynchronous by themselves."""

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

from rag_kit.documents.filter_translations import translator_of
from rag_kit.documents.filters import Filter, translate
from rag_kit.errors import FilterError

_PORTABLE_OPERATORS = frozenset({"$eq", "$gt", "$gte", "$lt", "$lte", "$in"})
_FETCH_FACTORS = (4, 16, 64)  # times k, one search after the other
_MAX_FETCH = 10_000  # documents of one search
_COMPARATORS = {
    "$eq": Comparator.EQ, "$gt": Comparator.GT, "$gte": Comparator.GTE, "$lt": Comparator.LT, "$lte": Comparator.LTE,
    "$in": Comparator.IN, "$contains": Comparator.CONTAIN,
}  # fmt: skip
_NEGATED_COMPARATORS = {"$eq": Comparator.NE, "$in": Comparator.NIN}


def native_filter(
    store: VectorStore, where: Filter, *, static: Any = None, translator: Visitor | None = None
) -> Any | None:
    """Translate a filter into the store's own language, ANDed with ``static``, a filter in that language.

    Returns ``None`` if that is impossible, so that the results have to be filtered afterwards. For a store that the kit
    does not know, LangChain's translator is used, which takes plain comparisons alone.
    """
    translate_for_store = translator_of(store)
    if translate_for_store is None:
        return _translate_by_langchain(store, where, translator) if static is None else None
    try:
        return _and(static, translate_for_store(where))
    except FilterError:
        return None


def _and(static: Any, added: Any) -> Any | None:
    """AND two filters in a store's own language; ``None`` if they cannot be combined."""
    if static is None:
        return added
    if added is None:
        return static
    if callable(added) and callable(static):  # InMemoryVectorStore
        return lambda document: added(document) and bool(static(document))
    if isinstance(added, Mapping) and isinstance(static, Mapping):  # Chroma
        return {"$and": [static, added]}
    if callable(added) or isinstance(added, Mapping) or not isinstance(static, type(added)):
        return None  # they are of different kinds
    return type(added)(must=[static, added])  # Qdrant


def deeper(k: int) -> list[int]:
    """Return how many documents to fetch in one search after the other, where a filter is applied afterwards."""
    return [max(k, min(k * factor, _MAX_FETCH)) for factor in _FETCH_FACTORS]


def left_out(name: str, count: int) -> str:
    """Write the note that a filter applied to a retriever's results removed ``count`` of them and left too few."""
    return f"degraded: {name} does not search by the filter: {count} that it found were left out, more may be behind"


def is_native(store: VectorStore, method: str) -> bool:
    """Tell whether a store has a method of its own; LangChain's coroutines run on asyncio's small pool of threads."""
    own = getattr(type(store), method, None)
    return own is not None and own is not getattr(VectorStore, method, None)


def to_directive(where: Filter | None) -> FilterDirective | None:
    """Translate a filter into LangChain's form, ``None`` if all documents pass; ``FilterError`` if it has no form."""
    directive = translate(where, _to_comparison, _join)
    if directive is False:
        raise FilterError(
            f"No document can pass the filter {where!r:.80}, which LangChain's form cannot say."
        )
    return None if directive is True else directive


def _to_comparison(key: str, operator: str, operand: Any, negated: bool) -> FilterDirective:
    """Translate a condition into LangChain's form; ``$exists`` is a comparison with ``None``."""
    if operator == "$exists":
        must_exist = operand is not negated  # {"$exists": True}, or {"$exists": False} under a negation
        return Comparison(Comparator.NE if must_exist else Comparator.EQ, key, None)
    if operator not in _COMPARATORS:
        raise FilterError(f"{operator} on {key!r} has no comparator in LangChain's language of filters.")
    if negated and operator in _NEGATED_COMPARATORS:
        return Comparison(_NEGATED_COMPARATORS[operator], key, operand)
    comparison = Comparison(_COMPARATORS[operator], key, operand)
    return Operation(Operator.NOT, [comparison]) if negated else comparison


def _to_portable_comparison(key: str, operator: str, operand: Any, negated: bool) -> FilterDirective:
    """Translate as `_to_comparison`, but refuse conditions in which stores differ."""
    if negated or operator not in _PORTABLE_OPERATORS:
        raise FilterError(f"{operator} on {key!r} means different things in different stores.")
    return _to_comparison(key, operator, operand, negated)


def _join(word: str, parts: list[FilterDirective]) -> FilterDirective:
    return Operation(Operator(word), parts)


def _translate_by_langchain(store: VectorStore, where: Filter, translator: Visitor | None) -> Any | None:
    """Translate a filter by LangChain's translator for a store, or another; ``None`` if there is none, or it cannot."""
    try:
        directive = translate(where, _to_portable_comparison, _join)
        translator = translator or _langchain_translator(store)
        if translator is None or isinstance(directive, bool):
            return None
        _, kwargs = translator.visit_structured_query(StructuredQuery(query="", filter=directive))
    except (FilterError, ValueError, NotImplementedError, TypeError, KeyError, AttributeError):
        return None  # the translator cannot express this filter
    # some stores take it under another name ("expr", "pre_filter"); the kit searches with ``filter=`` alone
    return kwargs["filter"] if set(kwargs) == {"filter"} else None


def _langchain_translator(store: VectorStore) -> Visitor | None:
    """Return LangChain's translator into a store's own language, if it has one."""
    package = type(store).__module__.split(".")[0]
    # LangChain's stores in PostgreSQL raise in the search for some filters, or find nothing
    if not package.startswith("langchain_") or package in ("langchain_core", "langchain_postgres"):
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            base = importlib.import_module("langchain_classic.retrievers.self_query.base")
            translator = base._get_builtin_translator(store)
    except (ImportError, ValueError, AttributeError):
        return None
    return translator if isinstance(translator, Visitor) else None
