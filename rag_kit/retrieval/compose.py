"""Call any LangChain retriever with a ``k`` and a ``filter``, whether it takes them or not.

What takes them natively gets them: the kit's retrievers, vector-store retrievers, retrievers whose method
names the arguments, and all of these inside ``bind``, ``with_config``, ``with_retry``, ``with_fallbacks``,
configurable fields and sequences. For the rest the results are filtered and cut afterwards.
"""

from __future__ import annotations

import inspect
import threading
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Annotated, Any, Literal, TypeVar

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
from langchain_core.runnables.configurable import DynamicRunnable, RunnableConfigurableAlternatives
from langchain_core.vectorstores import VectorStoreRetriever
from pydantic import BeforeValidator

from rag_kit.concurrency.branches import FanOut
from rag_kit.concurrency.bridge import run_in_thread
from rag_kit.concurrency.budget import check_seconds
from rag_kit.documents import Filter, combine_filters, compile_filter
from rag_kit.errors import BranchError, BudgetExceededError, InvalidInputError
from rag_kit.models.runnables import acall_runnable
from rag_kit.retrieval.base import OptionalCount, RagKitRetriever, Request
from rag_kit.retrieval.fusion import check_weights
from rag_kit.retrieval.stores import deeper, native_async, native_filter

T = TypeVar("T")


def _list_of_weights(value: Any) -> list[float] | None:
    if value is None:
        return None
    weights = list(value) if isinstance(value, Iterable) and not isinstance(value, (str, Mapping)) else []
    if not weights:
        raise InvalidInputError(f"weights={value!r} was given; give a list of numbers >= 0, or None.")
    return check_weights(weights, len(weights))


Weights = Annotated[list[float] | None, BeforeValidator(_list_of_weights)]
"""A field for the weights of lists, >= 0; ``None`` for equal ones."""
Seconds = Annotated[float | None, BeforeValidator(lambda v, info: check_seconds(info.field_name, v))]


class BranchingRetriever(RagKitRetriever):
    """Base of the retrievers that call others."""

    fetch_k: OptionalCount = None
    on_error: Literal["raise", "skip"] = "skip"
    timeout: Seconds = None
    max_concurrency: OptionalCount = None


def raise_all_failed(tasks: str, result: FanOut[Any]) -> None:
    """Raise where there was something to do, and all of it failed; a used-up budget as it is."""
    errors = [outcome.error for outcome in result.outcomes]
    if None in errors or not errors:
        return
    for error in errors:
        if isinstance(error, BudgetExceededError):
            raise error
    raise BranchError(f"All {tasks} failed. {'; '.join(result.degradations)}") from errors[0]


def call_retriever(
    retriever: Runnable[str, list[Document]],
    query: str,
    *,
    config: RunnableConfig | None = None,
    k: int | None = None,
    filter: Filter | None = None,
) -> list[Document]:
    """Call a runnable from a string to documents, with the whole ``config``.

    The documents come as it gave them (not copied): at most ``k``, those that pass the filter. What returns something
    else than documents raises ``InvalidInputError``.
    """
    plan = _plan(retriever, k, filter)
    documents: list[Document] = []
    for kwargs in plan.attempts():
        documents = _check_documents(retriever, retriever.invoke(query, config, **kwargs))
        if plan.enough(documents, kwargs):
            break
    return plan.finish(documents)


async def acall_retriever(
    retriever: Runnable[str, list[Document]],
    query: str,
    *,
    config: RunnableConfig | None = None,
    k: int | None = None,
    filter: Filter | None = None,
) -> list[Document]:
    """As ``call_retriever``; a retriever without async code of its own runs on the shared pool of threads."""
    plan = _plan(retriever, k, filter)
    native = _native_async(retriever)
    documents: list[Document] = []
    for kwargs in plan.attempts():
        if native:
            result = await acall_runnable(retriever, query, config, **kwargs)
        else:
            result = await run_in_thread(partial(retriever.invoke, query, config, **kwargs))
        documents = _check_documents(retriever, result)
        if plan.enough(documents, kwargs):
            break
    return plan.finish(documents)


@dataclass(frozen=True)
class _Plan:
    """How to call one retriever: arguments it takes, where to cut, what is left to filter afterwards."""

    kwargs: Mapping[str, Any] = field(default_factory=dict)
    k: int | None = None
    post_filter: Filter | None = None

    def attempts(self) -> Iterator[dict[str, Any]]:
        """Arguments for one call after the other: what is filtered afterwards has to be fetched deeper."""
        k = self.kwargs.get("k")
        if self.post_filter is None or k is None:
            yield dict(self.kwargs)
            return
        yield from ({**self.kwargs, "k": fetch} for fetch in deeper(k))

    def enough(self, documents: list[Document], kwargs: Mapping[str, Any]) -> bool:
        if self.post_filter is None or self.k is None:
            return True
        return len(documents) < kwargs.get("k", 0) or len(self.finish(documents)) >= self.k

    def finish(self, documents: list[Document]) -> list[Document]:
        """Filter what the retriever did not, and cut."""
        if self.post_filter is not None:
            passes = compile_filter(self.post_filter)
            documents = [doc for doc in documents if passes(doc.metadata)]
        return documents if self.k is None else documents[: self.k]


def _plan(retriever: Runnable[Any, Any], k: int | None, where: Filter | None) -> _Plan:
    """How to call a runnable, by its kind: which of ``k`` and the filter it takes, and what is done afterwards."""
    arguments = {name: value for name, value in (("k", k), ("filter", where or None)) if value is not None}
    if isinstance(retriever, RagKitRetriever):
        return _Plan(arguments, k)
    if isinstance(retriever, RunnableBindingBase):
        return _bound_plan(retriever, k, where)
    if isinstance(retriever, DynamicRunnable):
        return _common_plan(_alternatives(retriever), k, where)
    if isinstance(retriever, RunnableWithFallbacks):
        return _common_plan([retriever.runnable, *retriever.fallbacks], k, where)
    if isinstance(retriever, RunnableSequence):
        # Later steps may reorder, so the first one must not be cut; it may be filtered.
        first = _plan(retriever.first, None, where)
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


def _bound_plan(binding: RunnableBindingBase[Any, Any], k: int | None, where: Filter | None) -> _Plan:
    """A filter bound with ``bind(filter=...)`` would be overwritten by ours: AND the two."""
    bound = binding.kwargs.get("filter")
    plan = _plan(binding.bound, k, where)
    if bound is None or "filter" not in plan.kwargs:
        return plan
    if isinstance(bound, Mapping) and isinstance(plan.kwargs["filter"], Mapping):
        return replace(plan, kwargs={**plan.kwargs, "filter": combine_filters(bound, plan.kwargs["filter"])})
    kwargs = {name: value for name, value in plan.kwargs.items() if name != "filter"}
    return _Plan(kwargs, k, where or None)


def _common_plan(runnables: list[Runnable[Any, Any]], k: int | None, where: Filter | None) -> _Plan:
    """One of several will run, and gets our arguments only if all of them take these."""
    plans = [_plan(runnable, k, where) for runnable in runnables]
    if all(plan == plans[0] for plan in plans):
        return plans[0]
    return _Plan({}, k, where or None)


def _alternatives(dynamic: DynamicRunnable[Any, Any]) -> list[Runnable[Any, Any]]:
    others = dynamic.alternatives.values() if isinstance(dynamic, RunnableConfigurableAlternatives) else ()
    return [dynamic.default, *(other for other in others if isinstance(other, Runnable))]


def _native_async(retriever: Runnable[Any, Any]) -> bool:
    """Whether ``ainvoke`` waits without a thread of asyncio's own small pool."""
    if isinstance(retriever, RunnableBindingBase):
        return _native_async(retriever.bound)
    if isinstance(retriever, DynamicRunnable):
        return all(_native_async(runnable) for runnable in _alternatives(retriever))
    if isinstance(retriever, RunnableLambda):
        return hasattr(retriever, "afunc")
    if isinstance(retriever, VectorStoreRetriever):
        return native_async(retriever.vectorstore)
    if isinstance(retriever, BaseRetriever):
        name = type(retriever)._aget_relevant_documents.__qualname__
        return name != "BaseRetriever._aget_relevant_documents" and "__init_subclass__" not in name
    return True


def _check_documents(retriever: Runnable[Any, Any], result: Any) -> list[Document]:
    """What a retriever returned, if it is documents."""
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


class SearchGroup:
    """Queries that one retriever is about to be asked."""

    def __init__(self, queries: Sequence[str]) -> None:
        self.queries = tuple(dict.fromkeys(queries))
        # by the id of what is searched: that itself, the request of the first call, and what is found for each query
        self._rounds: dict[int, tuple[object, Request, Future[Any]]] = {}
        self._lock = threading.Lock()

    def call(self, function: Callable[..., T], *args: Any, **kwargs: Any) -> T:
        """Make one of the calls."""
        token = current_group.set(self)
        try:
            return function(*args, **kwargs)
        finally:
            current_group.reset(token)

    async def acall(self, function: Callable[..., Awaitable[T]], *args: Any, **kwargs: Any) -> T:
        """Make one of the calls, natively asynchronous."""
        token = current_group.set(self)
        try:
            return await function(*args, **kwargs)
        finally:
            current_group.reset(token)

    def join(self, resource: object, query: str, request: Request) -> tuple[Future[Any] | None, bool]:
        """The future of the round that a search belongs to, and whether it is this one that has to do it.

        There is one round for what is searched. A call with another k or filter searches for itself: were there
        a round for each of them, five calls would search five times for five queries.
        """
        if len(self.queries) < 2 or query not in self.queries:
            return None, False
        with self._lock:
            leads = id(resource) not in self._rounds
            _, first, future = self._rounds.setdefault(id(resource), (resource, request, Future()))
        is_same = first.k == request.k and first.filter == request.filter
        return (future if is_same else None), leads


current_group: ContextVar[SearchGroup | None] = ContextVar("rag_kit_search_group", default=None)


def groups_of(searches: Sequence[tuple[object, str]]) -> list[SearchGroup]:
    """The group of each (retriever, query): one for those with the same retriever."""
    queries: dict[int, list[str]] = {}
    for retriever, query in searches:
        queries.setdefault(id(retriever), []).append(query)
    groups = {key: SearchGroup(texts) for key, texts in queries.items()}
    return [groups[id(retriever)] for retriever, _ in searches]
