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
from rag_kit.models.runnables import is_kit_retriever


def inside(retriever: Any, config: RunnableConfig | None = None) -> Sequence[Any]:
    """Return the retrievers inside one of the kit's, or a LangChain wrapper; none inside others."""
    if is_kit_retriever(retriever):
        inner: Sequence[Any] = retriever.inner_retrievers()
        return inner
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
    retriever: Any, config: RunnableConfig | None = None, *, strict: bool = False
) -> Filter | None:
    """Return the filter that all documents of a retriever pass: its own, ANDed with those of its inner retrievers.

    Documents that are fetched by id or position, and not by the retriever, must pass it too. A filter that cannot be
    read is ignored, or raises ``FilterError`` with ``strict``.
    """
    outer: Any = None
    if isinstance(retriever, RunnableBindingBase):
        outer = retriever.kwargs.get("filter")
        config = merge_configs(retriever.config, config)
    elif isinstance(retriever, VectorStoreRetriever):
        outer = retriever.search_kwargs.get("filter")
    elif is_kit_retriever(retriever):
        outer = retriever.filter
    parts = inside(retriever, config)
    inner = _or_filters([own_filter(part, config, strict=strict) for part in parts])
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


def _or_filters(filters: Sequence[Filter | None]) -> Filter | None:
    """OR the filters of several retrievers; None if one of them lets everything pass."""
    distinct: list[Filter] = []
    for where in filters:
        if where is None:
            return None
        if where not in distinct:
            distinct.append(where)
    if len(distinct) > 1:
        return {"$or": distinct}
    return distinct[0] if distinct else None


def _refuse_unreadable(retriever: Any, why: str, strict: bool) -> None:
    """Raise for a filter that cannot be read, if ``strict``."""
    if strict:
        name = retriever.get_name() if isinstance(retriever, Runnable) else type(retriever).__name__
        raise FilterError(
            f"{name} has a filter that cannot be read ({why}), so what is fetched past it cannot be checked against "
            "it. Give the filter as a mapping such as {'tenant': 'a'}."
        )


def fields_inside(
    retrievers: Sequence[Any], needed: set[str], config: RunnableConfig | None = None
) -> set[str] | None:
    """Return names of metadata fields of the retrievers' documents, among them all ``needed`` ones that exist.

    Returns None if a retriever does not know the fields of its documents.
    """
    if not retrievers:
        return None
    fields: set[str] = set()
    for retriever in retrievers:
        if is_kit_retriever(retriever):
            more = retriever.known_fields(needed - fields)
        else:
            more = fields_inside(inside(retriever, config), needed - fields, config)
        if more is None:
            return None
        fields |= more
        if needed and needed <= fields:
            break
    return fields


def check_fields(retriever: Any, needed: set[str], config: RunnableConfig | None) -> set[str]:
    """Refuse a filter that needs fields which no document has; return the fields that need not be checked again.

    Nothing is refused if there are no documents, or their fields are not known (a foreign store, a function). The error
    lists the known fields, unless a filter of the retriever's own keeps documents from the caller.
    """
    try:
        known = fields_inside([retriever], needed, config)
    except Exception:  # noqa: BLE001 - the search of the part that cannot be read meets it, and may be one of several
        return set()
    if known is None:
        return needed
    if not known or needed <= known:
        return needed & known
    missing, own = needed - known, own_filter(retriever, config)
    may_list = own is None or not missing.isdisjoint(fields_of_filter(own))
    raise unknown_field_error(missing, known, listed=may_list)
