"""Facts about the retrievers inside others: the filters they hold, and the fields their documents have.

The kit's retrievers say it, LangChain's wrappers are looked through, and of anything else nothing is claimed: no
foreign object is inspected, and no row of a foreign store is read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.runnables import Runnable, RunnableConfig, RunnableSequence, RunnableWithFallbacks
from langchain_core.runnables.base import RunnableBindingBase
from langchain_core.runnables.config import merge_configs
from langchain_core.runnables.configurable import DynamicRunnable
from langchain_core.vectorstores import VectorStoreRetriever

from rag_kit.documents import Filter, combine_filters
from rag_kit.documents.fields import fields_of_filter, unknown_field_error
from rag_kit.errors import FilterError
from rag_kit.retrieval.inner import is_kit_retriever

_MAX_DEPTH = 16  # retrievers inside one another; one that holds itself has no end


def inside(retriever: Any, config: RunnableConfig | None = None) -> Sequence[Any]:
    """Return the retrievers inside one of the kit's, or a LangChain wrapper; none inside others."""
    if is_kit_retriever(retriever):
        asked: Sequence[Any] = retriever.inner_retrievers()
        return asked
    if isinstance(retriever, RunnableBindingBase):
        return [retriever.bound]
    if isinstance(retriever, DynamicRunnable):
        return [retriever.prepare(config)[0]]
    if isinstance(retriever, RunnableWithFallbacks):
        return [retriever.runnable, *retriever.fallbacks]
    if isinstance(retriever, RunnableSequence):
        return [retriever.first]
    return []


def own_filter(
    retriever: Any, config: RunnableConfig | None = None, *, strict: bool = False, _depth: int = 0
) -> Filter | None:
    """Return the filter that all documents of a retriever pass, from how it and its inner retrievers were made.

    What is fetched past the retriever, by id or by position, has to keep to it too. A filter that cannot be read is
    passed over, or raises ``FilterError`` with ``strict``.
    """
    if _depth > _MAX_DEPTH:
        _refuse_unreadable(retriever, "it is nested too deep", strict)
        return None
    outer: Any = None
    if isinstance(retriever, RunnableBindingBase):
        outer = retriever.kwargs.get("filter")
        config = merge_configs(retriever.config, config)
    elif isinstance(retriever, VectorStoreRetriever):
        outer = retriever.search_kwargs.get("filter")
    elif is_kit_retriever(retriever):
        outer = retriever.filter
    parts = inside(retriever, config)
    inner = _any_of([own_filter(part, config, strict=strict, _depth=_depth + 1) for part in parts])
    if outer is None or outer == {}:
        return inner
    if not isinstance(outer, Mapping):
        _refuse_unreadable(retriever, f"it is {type(outer).__name__}", strict)
        return inner
    try:
        return dict(outer) if outer == inner else combine_filters(outer, inner)
    except FilterError as error:
        _refuse_unreadable(retriever, str(error), strict)
        return inner


def _any_of(filters: Sequence[Filter | None]) -> Filter | None:
    """OR the filters of several retrievers; None if one of them lets everything pass."""
    distinct = [where for n, where in enumerate(filters) if where is not None and where not in filters[:n]]
    if not distinct or None in filters:
        return None
    return distinct[0] if len(distinct) == 1 else {"$or": distinct}


def _refuse_unreadable(retriever: Any, why: str, strict: bool) -> None:
    """Raise for a filter that cannot be read, if ``strict``."""
    if strict:
        name = retriever.get_name() if isinstance(retriever, Runnable) else type(retriever).__name__
        raise FilterError(
            f"{name} has a filter that cannot be read ({why}), so what is fetched past it cannot be checked against "
            "it. Give the filter as a mapping such as {'tenant': 'a'}."
        )


def fields_inside(
    retrievers: Sequence[Any], needed: set[str], config: RunnableConfig | None = None, depth: int = 0
) -> set[str] | None:
    """Return the metadata fields of some retrievers' documents; None if one does not know them."""
    if not retrievers or depth > _MAX_DEPTH:
        return None
    found: set[str] = set()
    for retriever in retrievers:
        if is_kit_retriever(retriever):
            fields = retriever.known_fields(needed - found)
        else:
            fields = fields_inside(inside(retriever, config), needed - found, config, depth + 1)
        if fields is None:
            return None
        found |= fields
        if needed and needed <= found:
            break
    return found


def check_fields(retriever: Any, needed: set[str], config: RunnableConfig | None = None) -> set[str]:
    """Refuse a filter on a field that no document has; returns the fields that need not be looked for again.

    The message lists the fields there are; it lists none where the retriever has a filter that keeps the caller from
    some of the documents. Nothing is refused where the fields are not known for free (a foreign store, a function), and
    where there are no documents.
    """
    known = fields_inside([retriever], needed, config)
    if known is None:
        return needed
    if not known or needed <= known:
        return needed & known
    missing, own = needed - known, own_filter(retriever, config)
    raise unknown_field_error(
        missing, known, listed=own is None or not missing.isdisjoint(fields_of_filter(own))
    )
