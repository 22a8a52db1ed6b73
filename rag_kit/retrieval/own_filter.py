"""The filter that a retriever holds by itself, for what is fetched past it: parents, neighbours, listed rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable, RunnableConfig, RunnableSequence, RunnableWithFallbacks
from langchain_core.runnables.base import RunnableBindingBase
from langchain_core.runnables.configurable import DynamicRunnable
from langchain_core.vectorstores import VectorStoreRetriever

from rag_kit.documents import Filter, combine_filters
from rag_kit.errors import FilterError

_MAX_DEPTH = 16
_ONE = ("retriever", "base_retriever")
_SEVERAL = ("retrievers", "sources")


def own_filter(
    retriever: Any, config: RunnableConfig | None = None, *, strict: bool = False
) -> Filter | None:
    """The filter that all documents of a retriever pass because of how it was made.

    That is its own filter and those of what is inside, of several inside the one or the other. What is fetched
    past the retriever, by id or by place, has to keep to it too.

    Args:
        retriever: Any runnable from a string to documents.
        config: The config of the call, where it may choose between retrievers or set their filter.
        strict: Raise if a filter is there that cannot be read; otherwise it is passed over.

    Returns:
        The filter; ``None`` if there is none.

    Raises:
        FilterError: With ``strict``: a filter is in the language of a store, or is a function.

    Example:
        >>> from rag_kit.retrieval import BM25Retriever, EnsembleRetriever
        >>> words = BM25Retriever.from_texts(["a"], filter={"tenant": "t"})
        >>> own_filter(EnsembleRetriever(retrievers=[words, words.with_retry()], filter={"year": 1}))
        {'$and': [{'year': 1}, {'tenant': 't'}]}
    """
    return _Reader(config, strict).of(retriever, 0)


class _Reader:
    def __init__(self, config: RunnableConfig | None, strict: bool) -> None:
        self.config = config
        self.strict = strict

    def of(self, retriever: Any, depth: int) -> Filter | None:
        if depth > _MAX_DEPTH:
            self.unread(retriever, "it is nested too deep")
            return None
        if isinstance(retriever, RunnableBindingBase):
            inner = self.of(retriever.bound, depth + 1)
            return self.both(retriever, retriever.kwargs.get("filter"), inner)
        if isinstance(retriever, DynamicRunnable):
            return self.of(retriever.prepare(self.config)[0], depth + 1)
        if isinstance(retriever, RunnableWithFallbacks):
            return self.either([retriever.runnable, *retriever.fallbacks], depth)
        if isinstance(retriever, RunnableSequence):
            return self.of(retriever.first, depth + 1)
        if isinstance(retriever, VectorStoreRetriever):
            return self.both(retriever, retriever.search_kwargs.get("filter"), None)
        if isinstance(retriever, BaseRetriever):
            return self.both(retriever, getattr(retriever, "filter", None), self.inside(retriever, depth))
        return None

    def inside(self, retriever: Any, depth: int) -> Filter | None:
        for name in _ONE:
            if isinstance(inner := getattr(retriever, name, None), Runnable):
                return self.of(inner, depth + 1)
        for name in _SEVERAL:
            several = getattr(retriever, name, None)
            if isinstance(several, (list, tuple)) and several:
                # a source of a router is no runnable; it has one
                return self.either([getattr(one, "retriever", one) for one in several], depth)
        return None

    def either(self, retrievers: Iterable[Any], depth: int) -> Filter | None:
        """What holds whichever of them gave a document; nothing does if one of them has no filter."""
        found: list[Filter] = []
        for retriever in retrievers:
            where = self.of(retriever, depth + 1)
            if where is None:
                return None
            if where not in found:
                found.append(where)
        return found[0] if len(found) == 1 else {"$or": found}

    def both(self, retriever: Any, outer: Any, inner: Filter | None) -> Filter | None:
        if outer is None or outer == {}:
            return inner
        if not isinstance(outer, Mapping):
            self.unread(retriever, f"it is {type(outer).__name__}")
            return inner
        try:
            return dict(outer) if outer == inner else combine_filters(outer, inner)
        except FilterError as error:
            self.unread(retriever, str(error))
            return inner

    def unread(self, retriever: Any, why: str) -> None:
        if self.strict:
            name = retriever.get_name() if isinstance(retriever, Runnable) else type(retriever).__name__
            raise FilterError(
                f"{name} has a filter that cannot be read ({why}), so what is fetched past it cannot be "
                "checked against it. "
                "Give the filter as a mapping such as {'tenant': 'a'}."
            )
