"""Facts about the retrievers inside others: the filters they hold, and the fields their documents have.

The kit's retrievers state them, and LangChain's wrappers are opened. About anything else nothing is claimed: no foreign
object is inspected, and no row of a foreign store is read.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.runnables import RunnableConfig, RunnableSequence, RunnableWithFallbacks
from langchain_core.runnables.base import RunnableBindingBase
from langchain_core.runnables.config import merge_configs
from langchain_core.runnables.configurable import DynamicRunnable
from langchain_core.vectorstores import VectorStoreRetriever

from rag_kit.documents import Filter, combine_filters, validate_filter
from rag_kit.documents.fields import fields_of_filter, unknown_field_error
from rag_kit.errors import FilterError
from rag_kit.models.runnables import is_kit_retriever

# names in `search_kwargs` that may hide rows in a store's own words ("where_document", "pre_filter", "expr")
_HIDING_NAME = re.compile(
    r"filter|where|expr|namespace|tenant|partition|collection|condition|predicate|custom_query|subquery|"
    r"^(?:must|must_not|ids|acl|roles?|users?|groups?|owners?|permissions?|database|dataset|index|index_name)$|"
    r"(?:user|group|owner|doc|document|role)_ids?$",
    re.IGNORECASE,
)


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
        return [retriever.first]  # the later steps work on documents, they find none
    return []


def indexes_inside(retriever: Any, config: RunnableConfig | None = None) -> list[Any]:
    """Return the stored indexes that a retriever of the kit and those inside it search, each once."""
    if hasattr(retriever, "token_vectors"):
        return [retriever]
    parts = retriever.searched() if is_kit_retriever(retriever) else inside(retriever, config)
    return list(dict.fromkeys(index for part in parts for index in indexes_inside(part, config)))


def asks_all(retriever: Any) -> bool:
    """Tell whether a retriever asks several others and joins what all of them find, as an ensemble does."""
    return is_kit_retriever(retriever) and len(retriever.searched()) > 1


def asks_several(retriever: Any, config: RunnableConfig | None = None) -> bool:
    """Tell whether a retriever, or one inside it, has more than one to ask."""
    _, inner_config = filter_around(retriever, config, strict=False)
    retrievers = inside(retriever, inner_config)
    return len(retrievers) > 1 or any(asks_several(inner, inner_config) for inner in retrievers)


def own_filter(
    retriever: Any,
    config: RunnableConfig | None = None,
    *,
    strict: bool = False,
    every: bool = False,
    foreign: bool = False,
) -> Filter | None:
    """Return the filter that all documents of a retriever pass: its own, ANDed with those of its inner retrievers.

    It is for documents that are fetched by id or position, past the retriever: they must pass it too. The filters of
    several inner retrievers are ORed. Functions and foreign retrievers, which may hide rows by a filter that nobody can
    read, do not count beside retrievers of a known type. Of a retriever and its fallbacks, the first that counts
    decides: behind a function it is a fallback, for the filter of a tenant must not be lost.

    Args:
        strict: Raise ``FilterError`` for a filter that cannot be read; else it counts as none.
        every: AND the filters of several inner retrievers, unless all are asked and their results joined.
        foreign: If results are joined, a function or foreign retriever counts, as one without a filter.
    """
    _, where = _known_filter(retriever, config, strict, every, foreign)
    return where


def _known_filter(
    retriever: Any, config: RunnableConfig | None, strict: bool, every: bool, foreign: bool
) -> tuple[bool, Filter | None]:
    """Return whether it is known which rows a retriever hides, and the filter that ``own_filter`` returns."""
    outer_filter, inner_config = filter_around(retriever, config, strict=strict)
    retrievers = inside(retriever, inner_config)
    found = [_known_filter(inner, inner_config, strict, every, foreign) for inner in retrievers]
    known_filters = [where for is_known, where in found if is_known]
    if isinstance(retriever, RunnableWithFallbacks):
        known_filters = known_filters[:1]  # the others belong to later fallbacks
    joins_results = asks_all(retriever)
    counted = [where for _, where in found] if joins_results and foreign else known_filters
    inner_filter = _combine(counted, every=every and not joins_results)
    has_known_type = is_kit_retriever(retriever) or isinstance(retriever, VectorStoreRetriever)
    is_known = bool(known_filters or outer_filter or (has_known_type and not retrievers))
    return is_known, _combine([outer_filter, inner_filter], every=True)


def filter_around(
    retriever: Any, config: RunnableConfig | None = None, *, strict: bool = True
) -> tuple[Filter | None, RunnableConfig | None]:
    """Return a retriever's own filter, without those of retrievers inside it, and the config that reaches these.

    ``strict`` refuses a filter that is no mapping, such as a store's own object; otherwise it counts as none.
    """
    where: Any = None
    if isinstance(retriever, RunnableBindingBase):
        where = retriever.kwargs.get("filter")
        config = merge_configs(retriever.config, config)
    elif isinstance(retriever, VectorStoreRetriever):
        where = retriever.search_kwargs.get("filter")
        if hiding := [name for name, value in retriever.search_kwargs.items() if _hides_rows(name, value)]:
            where = f"search_kwargs with {', '.join(sorted(hiding))}"  # no filter: it is refused below
    elif is_kit_retriever(retriever):
        where = retriever.filter
    try:
        validate_filter(where)
    except FilterError as error:
        if strict:
            raise FilterError(
                f"{retriever.get_name()} has a filter that cannot be read ({error}), so what is fetched past it "
                "cannot be checked against it. Give the filter as a mapping such as {'tenant': 'a'}; "
                "a SelfQueryRetriever can do with a schema= in place of the rows."
            ) from None
        where = None
    return where, config


def _hides_rows(name: str, value: Any) -> bool:
    """Tell whether an entry of ``search_kwargs`` may hide rows in a store's own words: ``where_document={...}``."""
    if name == "filter" or value is None:  # "filter" itself is read, by `filter_around`
        return False
    if _HIDING_NAME.search(name):
        return True
    entries = value.items() if isinstance(value, Mapping) else ()
    return any(key == "filter" or _hides_rows(str(key), item) for key, item in entries)


def _combine(filters: Sequence[Filter | None], *, every: bool) -> Filter | None:
    """AND the filters if a document must pass ``every`` one, else OR them; None if all documents pass."""
    if not every and not all(filters):  # one of them lets all documents pass
        return None
    distinct = [where for position, where in enumerate(filters) if where and where not in filters[:position]]
    return combine_filters(*distinct) if every or len(distinct) < 2 else {"$or": distinct}


def fields_inside(
    retrievers: Sequence[Any], needed: set[str], config: RunnableConfig | None = None
) -> set[str] | None:
    """Return the metadata fields of the retrievers' documents, read until all ``needed`` ones were seen.

    Returns None if a retriever does not know the fields of its documents, or there is no retriever.
    """
    if not retrievers:
        return None
    fields: set[str] = set()
    for retriever in retrievers:
        if is_kit_retriever(retriever):
            known = retriever.known_fields(needed - fields)
        else:
            known = fields_inside(inside(retriever, config), needed - fields, config)
        if known is None:
            return None
        fields |= known
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
    except Exception:  # noqa: BLE001 - the search meets it too, and may do without the retriever that fails
        return set()
    if known is None:  # nor will they be known at the next call
        return needed
    if not known or needed <= known:  # there are no documents yet, or all fields are known
        return needed & known
    missing, hiding_filter = needed - known, own_filter(retriever, config)
    may_list = hiding_filter is None or not missing.isdisjoint(fields_of_filter(hiding_filter))
    raise unknown_field_error(missing, known, listed=may_list)
