"""LangChain's own translators, for stores that the kit has none for."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Mapping
from typing import Any

from langchain_core.structured_query import StructuredQuery, Visitor
from langchain_core.vectorstores import VectorStore

from rag_kit.documents import Filter
from rag_kit.errors import FilterError
from rag_kit.retrieval.structured_filter import to_directive

_PLAIN = frozenset({"$eq", "$gt", "$gte", "$lt", "$lte", "$in"})
_KNOWN: dict[type, bool] = {}


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
