"""The one way to call the retrievers inside others: with ``k`` and ``filter``, whether they take them or not.

Configured fields and bound arguments are resolved first; then filters are ANDed, and a bound ``k`` holds. The kit's
retrievers, vector-store retrievers, and retrievers whose method names the arguments get them; so do all of these
inside ``bind``, ``with_config``, ``with_retry``, ``with_fallbacks``, configurable fields and sequences. For the rest
the results are filtered and cut afterwards.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import (
    Runnable,
    RunnableConfig,
    RunnableLambda,
    RunnableSequence,
    RunnableWithFallbacks,
)
from langchain_core.runnables.base import RunnableBinding, RunnableBindingBase
from langchain_core.runnables.config import merge_configs
from langchain_core.runnables.configurable import DynamicRunnable
from langchain_core.vectorstores import VectorStoreRetriever

from rag_kit.concurrency.bridge import run_in_thread
from rag_kit.concurrency.notes import write_note
from rag_kit.concurrency.steps import arun, call_step, run
from rag_kit.documents import Filter, combine_filters, compile_filter
from rag_kit.errors import InvalidInputError
from rag_kit.models.runnables import acall_runnable, ended_runs, is_kit_retriever, note_handled, shield
from rag_kit.retrieval.stores import deeper, is_native, left_out, native_filter

AnyRetriever = Runnable[str, list[Document]]


def call_retriever(retriever: AnyRetriever, query: str, **settings: Any) -> list[Document]:
    """Call a runnable from a string to documents, with the whole ``config``.

    Returns its documents, not copied: at most ``k``, which all pass the ``filter``. Further arguments reach the kit's
    own retrievers alone. ``InvalidInputError`` is raised if the runnable returns anything but documents.
    """
    return run(_search(retriever, query, **settings))


async def acall_retriever(retriever: AnyRetriever, query: str, **settings: Any) -> list[Document]:
    """Call a retriever as ``call_retriever`` does, without blocking: on a thread if it has no coroutine of its own."""
    return await arun(_search(retriever, query, **settings))


async def _search(
    retriever: AnyRetriever,
    query: str,
    *,
    config: RunnableConfig | None = None,
    k: int | None = None,
    filter: Filter | None = None,
    **arguments: Any,
) -> list[Document]:
    """Call a retriever as planned; if the filter is applied to its results, fetch more until enough of them pass."""
    plan = _plan(retriever, config, k, filter, arguments)
    runnable = shield(retriever if plan.runnable is None else plan.runnable)
    documents: list[Document] = []
    # Chains and functions may handle a failure inside without a word: it is watched for and noted. The kit's retrievers
    # note failures themselves, and a vector store's retriever holds no runnable that could fail.
    may_hide_failures = not is_kit_retriever(retriever) and not isinstance(retriever, VectorStoreRetriever)
    for call_arguments in plan.attempts():
        guarded_run = note_handled(config) if may_hide_failures else ended_runs(config)
        with guarded_run as inner_config:
            blocking = partial(runnable.invoke, query, inner_config, **call_arguments)
            native = partial(_await_search, retriever, runnable, query, inner_config, **call_arguments)
            result = await call_step("search", blocking, native)
        documents = _check_documents(retriever, result)
        if plan.is_enough(documents, call_arguments):
            break
    return plan.filtered(documents, retriever.get_name(), call_arguments.get("k", 0))


def _await_search(retriever: AnyRetriever, runnable: Any, *arguments: Any, **settings: Any) -> Awaitable[Any]:
    """Call ``runnable``, a retriever's shielded copy, by its coroutine if the retriever has one, else on a thread."""
    if is_kit_retriever(retriever):
        return runnable.ainvoke(*arguments, **settings)  # type: ignore[no-any-return]
    if _has_own_coroutine(retriever):
        return acall_runnable(runnable, *arguments, **settings)
    return run_in_thread(partial(runnable.invoke, *arguments, **settings))


@dataclass(frozen=True)
class _Plan:
    """A way to call a retriever."""

    arguments: Mapping[str, Any]  # passed to it, such as `k` and `filter`
    k: int | None  # most documents to keep of its results; None for all
    post_filter: Filter | None = None  # one that it does not take, applied to its results
    runnable: Any = None  # called in its place, if there are fallbacks in it

    def attempts(self) -> Iterator[dict[str, Any]]:
        """Yield the arguments of each call to try: one, or with a ``post_filter`` several that fetch ever more."""
        k = self.arguments.get("k")
        if self.post_filter is None or k is None:
            yield dict(self.arguments)
            return
        for fetch in deeper(k):
            yield {**self.arguments, "k": fetch}

    def is_enough(self, documents: list[Document], call_arguments: Mapping[str, Any]) -> bool:
        """Tell whether ``k`` documents pass, or the retriever has no more than it returned in this call."""
        if self.post_filter is None or self.k is None:
            return True
        return len(documents) < call_arguments.get("k", 0) or len(self._passing(documents)) >= self.k

    def filtered(self, documents: list[Document], name: str, fetched: int) -> list[Document]:
        """Return at most ``k`` documents that pass; note if they are too few, though there may be more to fetch."""
        passing = self._passing(documents)
        too_few_pass = len(passing) < min(self.k or len(documents), len(documents))
        may_be_more = len(documents) >= fetched  # 0: the retriever takes no number
        if too_few_pass and may_be_more:
            write_note(left_out(name, len(documents) - len(passing)), unsearched=True)
        return passing[: self.k]

    def _passing(self, documents: list[Document]) -> list[Document]:
        if self.post_filter is None:
            return documents
        passes = compile_filter(self.post_filter)
        return [doc for doc in documents if passes(doc.metadata)]


class _Member(Runnable[str, list[Document]]):
    """One of the retrievers of ``with_fallbacks``, called by its own plan with ``arguments``: ``k``, filter..."""

    def __init__(self, retriever: AnyRetriever, arguments: Mapping[str, Any]) -> None:
        self.retriever, self.arguments, self.name = retriever, arguments, retriever.get_name()

    def invoke(self, input: str, config: RunnableConfig | None = None, **bound: Any) -> list[Document]:
        return call_retriever(self._bind(bound), input, config=config, **self.arguments)

    async def ainvoke(self, input: str, config: RunnableConfig | None = None, **bound: Any) -> list[Document]:
        return await acall_retriever(self._bind(bound), input, config=config, **self.arguments)

    def _bind(self, bound: Mapping[str, Any]) -> AnyRetriever:
        """Bind to the retriever the arguments that were bound to the whole of ``with_fallbacks``."""
        return RunnableBinding(bound=self.retriever, kwargs=bound) if bound else self.retriever


def _plan(
    retriever: Runnable[Any, Any],
    config: RunnableConfig | None,
    k: int | None,
    where: Filter | None,
    kit_arguments: Mapping[str, Any],
) -> _Plan:
    """Decide how to call a runnable: which of ``k`` and the filter ``where`` are passed to it.

    Those that it does not take are applied to its results. ``kit_arguments`` are for the kit's own retrievers.
    """
    where = where or None
    limits = {"k": k, "filter": where}
    arguments = {name: value for name, value in limits.items() if value is not None}
    if is_kit_retriever(retriever):
        return _Plan({**arguments, **kit_arguments}, k)
    if isinstance(retriever, DynamicRunnable):
        chosen, chosen_config = retriever.prepare(config)
        return _plan(chosen, chosen_config, k, where, kit_arguments)
    if isinstance(retriever, RunnableBindingBase):
        return _bound_plan(retriever, config, k, where, kit_arguments)
    if isinstance(retriever, RunnableWithFallbacks):  # each member makes a plan of its own when it is called
        main, *others = (_Member(member, {**arguments, **kit_arguments}) for member in retriever.runnables)
        planned_copy = retriever.model_copy(update={"runnable": main, "fallbacks": others})
        return _Plan({}, k, runnable=planned_copy)
    if isinstance(retriever, RunnableSequence):
        # Later steps may reorder, so the first one gets the filter but no `k`; fallbacks in it must agree on arguments.
        first = retriever.first
        members = first.runnables if isinstance(first, RunnableWithFallbacks) else [first]
        first_plan, *other_plans = (_plan(member, config, None, where, kit_arguments) for member in members)
        agree = all(plan.arguments == first_plan.arguments for plan in other_plans)
        return _Plan(first_plan.arguments if agree else {}, k, where)
    if isinstance(retriever, VectorStoreRetriever):
        own_filter = retriever.search_kwargs.get("filter")
        store_filter = native_filter(retriever.vectorstore, where, static=own_filter) if where else None
        if store_filter is None:  # there is no filter, or the store cannot check it
            arguments.pop("filter", None)
            return _Plan(arguments, k, where)
        return _Plan({**arguments, "filter": store_filter}, k)
    if isinstance(retriever, BaseRetriever):  # it gets those that its method names
        parameters = inspect.signature(retriever._get_relevant_documents).parameters
        return _Plan({name: arguments[name] for name in arguments if name in parameters}, k, where)
    return _Plan({}, k, where)


def _bound_plan(
    binding: RunnableBindingBase[Any, Any],
    config: RunnableConfig | None,
    k: int | None,
    where: Filter | None,
    kit_arguments: Mapping[str, Any],
) -> _Plan:
    """Decide how to call a retriever inside ``bind``: a bound ``k`` holds, a bound filter is ANDed with ``where``.

    LangChain lets an argument of the call replace the bound one of its name, so one that is bound is not passed.
    """
    bound = binding.kwargs
    unbound_k = k if bound.get("k") is None else None
    plan = _plan(binding.bound, merge_configs(binding.config, config), unbound_k, where, kit_arguments)
    arguments = {name: value for name, value in plan.arguments.items() if bound.get(name) is None}
    post_filter = plan.post_filter
    bound_filter, planned_filter = bound.get("filter"), plan.arguments.get("filter")
    if bound_filter is not None:
        if planned_filter is None:
            arguments["filter"] = bound_filter  # else one that is bound around this would replace it
        elif isinstance(bound_filter, Mapping) and isinstance(planned_filter, Mapping):
            arguments["filter"] = combine_filters(bound_filter, planned_filter)
        else:  # a store's own objects cannot be combined: ours is applied afterwards
            post_filter = where
    planned_copy = None if plan.runnable is None else binding.model_copy(update={"bound": plan.runnable})
    return _Plan(arguments, k, post_filter, planned_copy)


def _has_own_coroutine(retriever: Runnable[Any, Any]) -> bool:
    """Tell whether a retriever has a coroutine of its own; LangChain's default takes a thread of asyncio's few."""
    if isinstance(retriever, RunnableBindingBase):
        return _has_own_coroutine(retriever.bound)
    if isinstance(retriever, DynamicRunnable):
        return _has_own_coroutine(retriever.default)
    if isinstance(retriever, RunnableLambda):
        return hasattr(retriever, "afunc")
    if isinstance(retriever, VectorStoreRetriever):
        return is_native(retriever.vectorstore, "asimilarity_search")
    if isinstance(retriever, BaseRetriever) and not is_kit_retriever(retriever):
        name = type(retriever)._aget_relevant_documents.__qualname__
        # LangChain's default is the base class's method, or one that its `__init_subclass__` put into the class
        return name != "BaseRetriever._aget_relevant_documents" and "__init_subclass__" not in name
    return True


def _check_documents(retriever: Runnable[Any, Any], result: Any) -> list[Document]:
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
