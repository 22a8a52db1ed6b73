"""The one way to call the retrievers inside others: with ``k`` and ``filter``, whether they take them or not.

Configured fields and bound arguments are resolved first; then filters are ANDed, and a bound ``k`` holds. The kit's
retrievers, vector-store retrievers, and retrievers whose method names the arguments get them; so do all of these
inside ``bind``, ``with_config``, ``with_retry``, ``with_fallbacks``, configurable fields and sequences. For the rest
the results are filtered and cut afterwards.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeGuard

from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import (
    Runnable,
    RunnableConfig,
    RunnableLambda,
    RunnableSequence,
    RunnableWithFallbacks,
)
from langchain_core.runnables.base import RunnableBindingBase
from langchain_core.runnables.config import merge_configs
from langchain_core.runnables.configurable import DynamicRunnable
from langchain_core.vectorstores import VectorStoreRetriever

from rag_kit.concurrency.branches import note_fallback
from rag_kit.concurrency.bridge import run_in_thread
from rag_kit.concurrency.notes import write_note
from rag_kit.documents import Filter, combine_filters, compile_filter
from rag_kit.errors import BudgetExceededError, InvalidInputError
from rag_kit.models.runnables import acall_runnable
from rag_kit.models.wrapped import OnRefusal, change_models, models_inside
from rag_kit.retrieval.stores import deeper, is_native, native_filter

AnyRetriever = Runnable[str, list[Document]]


def is_kit_retriever(value: Any) -> TypeGuard[Any]:
    """Tell whether a retriever is one of the kit's: a ``RagKitRetriever``, which imports this file."""
    return hasattr(type(value), "inner_retrievers")


def call_retriever(
    retriever: AnyRetriever,
    query: str,
    *,
    config: RunnableConfig | None = None,
    k: int | None = None,
    filter: Filter | None = None,
    **arguments: Any,
) -> list[Document]:
    """Call a runnable from a string to documents, with the whole ``config``.

    The documents come as it gave them (not copied): at most ``k``, those that pass the filter. ``arguments`` reach the
    kit's own retrievers. What returns something else than documents raises ``InvalidInputError``.
    """
    plan, asked = _plan(retriever, config, k, filter, arguments), _noting_failures(retriever, config)
    documents: list[Document] = []
    for kwargs in plan.attempts():
        documents = _check_documents(retriever, asked.invoke(query, config, **kwargs))
        if plan.enough(documents, kwargs):
            break
    return plan.finish(documents, retriever.get_name(), kwargs.get("k", 0))


async def acall_retriever(
    retriever: AnyRetriever,
    query: str,
    *,
    config: RunnableConfig | None = None,
    k: int | None = None,
    filter: Filter | None = None,
    **arguments: Any,
) -> list[Document]:
    """As ``call_retriever``; a retriever without async code of its own runs on the shared pool of threads."""
    plan, asked = _plan(retriever, config, k, filter, arguments), _noting_failures(retriever, config)
    if is_kit_retriever(retriever):
        call: Callable[..., Awaitable[Any]] = retriever.ainvoke
    elif _native_async(retriever):
        call = partial(acall_runnable, asked)
    else:
        call = partial(_call_on_thread, asked)
    documents: list[Document] = []
    for kwargs in plan.attempts():
        documents = _check_documents(retriever, await call(query, config, **kwargs))
        if plan.enough(documents, kwargs):
            break
    return plan.finish(documents, retriever.get_name(), kwargs.get("k", 0))


async def _call_on_thread(retriever: AnyRetriever, *arguments: Any, **kwargs: Any) -> Any:
    return await run_in_thread(partial(retriever.invoke, *arguments, **kwargs))


def by_prepared_retriever(asked: Sequence[tuple[Any, str]]) -> list[tuple[Any, list[str]]]:
    """Group queries by the retriever that prepares them together; groups of one query are left out."""
    if len(asked) < 2:
        return []
    queries: dict[int, tuple[Any, dict[str, None]]] = {}
    for retriever, query in asked:
        while isinstance(retriever, RunnableBindingBase):
            retriever = retriever.bound
        if is_kit_retriever(retriever) and retriever.searches_together and query.strip():
            queries.setdefault(id(retriever), (retriever, {}))[1][query] = None
    return [(retriever, [*texts]) for retriever, texts in queries.values() if len(texts) > 1]


@dataclass(frozen=True)
class _Plan:
    """How to call a retriever: the arguments it takes, where to cut, and the filter to apply afterwards."""

    kwargs: Mapping[str, Any] = field(default_factory=dict)
    k: int | None = None
    post_filter: Filter | None = None

    def attempts(self) -> Iterator[dict[str, Any]]:
        """Yield the arguments of one call after the other; a filter applied afterwards needs deeper calls."""
        k = self.kwargs.get("k")
        if self.post_filter is None or k is None:
            yield dict(self.kwargs)
            return
        yield from ({**self.kwargs, "k": fetch} for fetch in deeper(k))

    def enough(self, documents: list[Document], kwargs: Mapping[str, Any]) -> bool:
        """Tell whether no deeper call is needed."""
        if self.post_filter is None or self.k is None:
            return True
        return len(documents) < kwargs.get("k", 0) or len(self._passing(documents)) >= self.k

    def finish(self, documents: list[Document], name: str, fetched: int) -> list[Document]:
        """Apply the filter that the retriever did not, and cut; note where nothing is left and there may be more."""
        passing = self._passing(documents)
        if documents and not passing and len(documents) >= fetched:
            how = "all that it found, which it does not search by the filter, was left out"
            write_note(f"degraded: {name}: {how}", unsearched=True)
        return passing if self.k is None else passing[: self.k]

    def _passing(self, documents: list[Document]) -> list[Document]:
        if self.post_filter is None:
            return documents
        passes = compile_filter(self.post_filter)
        return [doc for doc in documents if passes(doc.metadata)]


def _noting_failures(retriever: Any, config: RunnableConfig | None) -> Any:
    """A retriever whose fallbacks, in whatever wrappers, are not asked without a note."""
    if is_kit_retriever(retriever) or len(models_inside(retriever, config)) == 1:
        return retriever

    def noting(inner: Any, arguments: Mapping[str, Any], first: bool) -> Any:
        note = partial(note_fallback, inner.get_name())
        bound = inner.bind(**arguments) if arguments else inner
        return OnRefusal(bound, note, lambda: None) if first else bound

    return change_models(retriever, noting, config, {})


def _plan(
    retriever: Runnable[Any, Any],
    config: RunnableConfig | None,
    k: int | None,
    where: Filter | None,
    more: Mapping[str, Any],
) -> _Plan:
    """Decide how to call a runnable by its kind: whether it takes ``k`` and the filter, and what is done afterwards."""
    arguments = {name: value for name, value in (("k", k), ("filter", where or None)) if value is not None}
    if is_kit_retriever(retriever):
        return _Plan({**arguments, **more}, k)
    if isinstance(retriever, DynamicRunnable):
        chosen, chosen_config = retriever.prepare(config)
        return _plan(chosen, chosen_config, k, where, more)
    if isinstance(retriever, RunnableBindingBase):
        return _bound_plan(retriever, config, k, where, more)
    if isinstance(retriever, RunnableWithFallbacks):
        # one of several will run, and gets our arguments only if all of them take these
        runnables = [retriever.runnable, *retriever.fallbacks]
        plans = [_plan(runnable, config, k, where, more) for runnable in runnables]
        return plans[0] if all(plan == plans[0] for plan in plans) else _Plan({}, k, where or None)
    if isinstance(retriever, RunnableSequence):
        # Later steps may reorder, so the first one must not be cut; it may be filtered.
        first = _plan(retriever.first, config, None, where, more)
        return _Plan(first.kwargs, k, where or None)
    if isinstance(retriever, VectorStoreRetriever):
        static = retriever.search_kwargs.get("filter")
        native = native_filter(retriever.vectorstore, where, static=static) if where else None
        arguments = {name: value for name, value in (("k", k), ("filter", native)) if value is not None}
        return _Plan(arguments, k, None if native is not None else where or None)
    if isinstance(retriever, BaseRetriever):
        named = inspect.signature(retriever._get_relevant_documents).parameters
        kwargs = {name: value for name, value in arguments.items() if name in named}
        return _Plan(kwargs, k, where or None)
    return _Plan({}, k, where or None)


def _bound_plan(
    binding: RunnableBindingBase[Any, Any],
    config: RunnableConfig | None,
    k: int | None,
    where: Filter | None,
    more: Mapping[str, Any],
) -> _Plan:
    """Keep a bound ``k``; AND a bound filter with ours, which would replace it."""
    bound = binding.kwargs
    asked = None if bound.get("k") is not None else k
    plan = _plan(binding.bound, merge_configs(binding.config, config), asked, where, more)
    kwargs = {name: value for name, value in plan.kwargs.items() if bound.get(name) is None}
    post_filter = plan.post_filter
    bound_filter, new_filter = bound.get("filter"), plan.kwargs.get("filter")
    if bound_filter is not None and new_filter is not None:
        if isinstance(bound_filter, Mapping) and isinstance(new_filter, Mapping):
            kwargs["filter"] = combine_filters(bound_filter, new_filter)
        else:  # a store's own objects cannot be combined: ours is applied afterwards
            post_filter = where
    return _Plan(kwargs, k, post_filter)


def _native_async(retriever: Runnable[Any, Any]) -> bool:
    """Tell whether ``ainvoke`` waits without a thread of asyncio's small pool."""
    if isinstance(retriever, RunnableBindingBase):
        return _native_async(retriever.bound)
    if isinstance(retriever, DynamicRunnable):
        return _native_async(retriever.default)
    if isinstance(retriever, RunnableLambda):
        return hasattr(retriever, "afunc")
    if isinstance(retriever, VectorStoreRetriever):
        return is_native(retriever.vectorstore, "asimilarity_search")
    if isinstance(retriever, BaseRetriever) and not is_kit_retriever(retriever):
        name = type(retriever)._aget_relevant_documents.__qualname__
        return name != "BaseRetriever._aget_relevant_documents" and "__init_subclass__" not in name
    return True


def _check_documents(retriever: Runnable[Any, Any], result: Any) -> list[Document]:
    """Return what a retriever returned; refuse anything but documents."""
    if isinstance(result, BudgetExceededError):
        raise result
    if not isinstance(result, (list, tuple)):
        raise InvalidInputError(
            f"{retriever.get_name()} returned {type(result).__name__}; retrievers return lists of documents."
        )
    if wrong := [item for item in result if not isinstance(item, Document)]:
        raise InvalidInputError(
            f"{retriever.get_name()} returned a list that holds {type(wrong[0]).__name__}; a retriever must return "
            "documents: Document(page_content=text)."
        )
    return list(result)
