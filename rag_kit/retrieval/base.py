"""The base of the kit's retrievers: per-call ``k`` and ``filter``, the config passed down, own errors."""

from __future__ import annotations

import logging
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import partial, reduce
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar

from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.runnables.config import ensure_config
from langchain_core.runnables.utils import ConfigurableFieldSpec, get_unique_config_specs
from pydantic import ConfigDict, PrivateAttr, ValidationError, field_validator

from rag_kit.concurrency.bridge import run_in_thread
from rag_kit.concurrency.steps import Logic, Step, arun, run
from rag_kit.documents import add_note, combine_filters, validate_filter
from rag_kit.documents.fields import fields_of_filter, read_fields
from rag_kit.documents.provenance import compact_provenance, retriever_depth
from rag_kit.errors import InvalidInputError
from rag_kit.models.clients import share_vectors
from rag_kit.models.runnables import has_listeners, silent_manager
from rag_kit.retrieval.call import ALL, Call, Job, group_queries, plural
from rag_kit.retrieval.fields import (
    Cap,
    InnerRetriever,
    OptionalCount,
    Seconds,
    as_invalid_input,
    check_count,
    translate_arguments,
    unknown_arguments,
)
from rag_kit.retrieval.fusion import Search, first_positions, identify
from rag_kit.retrieval.inside import check_fields, fields_inside

_log = logging.getLogger(__name__)
T = TypeVar("T")
_MAX_LISTED = 16  # values looked at in a field that is a list, which may hold a corpus
_LANGCHAIN_ARGUMENTS = frozenset({"verbose", "run_id"})


def blocking_step(name: str, func: Callable[..., T], *arguments: Any) -> Step[T]:
    """Make a step that calls a function; on an event loop it runs on a thread."""
    # a step takes two functions of its context: one for blocking code, one to be awaited on an event loop
    return Step[T](name, lambda _: func(*arguments), lambda _: run_in_thread(func, *arguments))


class HasRunnables:
    """A part of a retriever that asks models or retrievers of its own: a reranker, a compressor."""

    @property
    def config_specs(self) -> list[ConfigurableFieldSpec]:
        """The configurable fields of the runnables among its attributes."""
        runnables = (value for value in vars(self).values() if isinstance(value, Runnable))
        return [spec for runnable in runnables for spec in runnable.config_specs]


class RagKitRetriever(BaseRetriever):
    """Base class of retrievers: implement ``_search``, once for sync and async.

    ``invoke(query, config, k=..., filter=...)`` overrides ``k`` and narrows by ``filter``, which is ANDed
    with the retriever's own. The same goes through ``batch``, ``bind`` and the retrievers that wrap others.
    An empty query (white space only) finds nothing and gives ``[]``.

    Args:
        k: Most documents to return, >= 1.
        filter: Metadata filter for every call (``rag_kit.documents``).
        id_key: Metadata key that identifies a document; without it ``Document.id``, else the text.

    Raises:
        InvalidInputError: An argument is not allowed, or a filter names a field that no document has, as far as known.

    Example:
        >>> class First(RagKitRetriever):
        ...     texts: list[str]
        ...     async def _search(self, query, call):
        ...         return [Document(text) for text in self.texts]
        >>> [doc.page_content for doc in First(texts=["a", "b", "c"]).invoke("q", k=2)]
        ['a', 'b']
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")
    call_arguments: ClassVar[frozenset[str]] = frozenset()
    # What other libraries call an argument: the name here, which takes its place, or what to do instead.
    other_names: ClassVar[Mapping[str, str]] = {}
    takes_search_kwargs: ClassVar[bool] = False
    k_may_be_none: ClassVar[bool] = False
    # The models' share of a deadline; a slow model would leave no time for the search that follows.
    model_share: ClassVar[float] = 0.75
    #: Models are asked, and their calls counted, also where there is no cap on them.
    asks_models: ClassVar[bool] = False
    #: The searches for several queries share work, see ``prepare``.
    searches_together: ClassVar[bool] = False

    k: int = 4
    filter: Mapping[str, Any] | None = None
    id_key: str | None = None

    _known_fields: set[str] = PrivateAttr(default_factory=set)  # of filters that were checked

    if not TYPE_CHECKING:  # type checkers read the fields

        def __init__(self, *unnamed: Any, **values: Any) -> None:
            if unnamed:
                raise InvalidInputError(f"{type(self).__name__} takes its arguments by name, such as k=4.")
            try:
                super().__init__(**translate_arguments(type(self), values))
            except ValidationError as error:
                raise as_invalid_input(type(self), error) from None

    @field_validator("k", mode="before")
    @classmethod
    def _check_k(cls, value: Any) -> Any:
        return None if value is None and cls.k_may_be_none else check_count("k", value)

    @field_validator("filter")
    @classmethod
    def _filter_is_allowed(cls, value: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
        validate_filter(value)
        return value

    @abstractmethod
    def _search(self, query: str, call: Call) -> Logic[list[Document]]:
        """Find documents, best first; more than ``call.k`` are cut off.

        A coroutine function that awaits steps alone (``rag_kit.concurrency.steps``), such as those of ``call``, or
        ``blocking_step(name, function, ...)`` for blocking work: so it serves ``invoke`` and ``ainvoke``.
        """

    async def prepare(self, queries: Sequence[str]) -> None:
        """Do the work that the searches for several queries share, such as embedding the queries in one request.

        Each search that follows uses the result. By default the inner retrievers are prepared. Like ``_search`` it
        awaits steps alone.
        """
        if self.searches_together:
            await self._prepare_inner(self.inner_retrievers(), queries)

    async def _prepare_inner(self, retrievers: Sequence[Any], queries: Sequence[str]) -> None:
        """Prepare some of the inner retrievers for all queries, within the time-out of this one."""
        call = Call(self, "", k=ALL, filter=None, config={}, run_manager=None)
        with call.bounds():
            await call.prepare(group_queries([(inner, query) for inner in retrievers for query in queries]))

    def inner_retrievers(self) -> Sequence[Any]:
        """The retrievers that this one asks: that of its field ``retriever``, if it has one."""
        inner = getattr(self, "retriever", None)
        return () if inner is None else [inner]

    def searched(self) -> Sequence[Any]:
        """The index, store or documents that are searched, or the inner retrievers."""
        index = getattr(self, "index", None)
        return [index] if hasattr(index, "metadata_rows") else self.inner_retrievers()

    def known_fields(self, needed: set[str]) -> set[str] | None:
        """Read the metadata fields of the documents until all needed ones were seen; ``None`` if not all are known."""
        index: Any = getattr(self, "index", None)
        if hasattr(index, "metadata_rows"):
            return read_fields(index.metadata_rows(), needed)
        return fields_inside(self.inner_retrievers(), needed)

    def invoke(self, input: str, config: RunnableConfig | None = None, **kwargs: Any) -> list[Document]:
        """Find documents for a query.

        Args:
            input: The query.
            config: LangChain's config; all of it reaches the retrievers and models inside.
            **kwargs: ``k`` and ``filter`` for this call.

        Returns:
            Copies of the documents, best first, with provenance.

        Raises:
            InvalidInputError: The query is not a string, or an argument is not allowed.
        """
        full_config = ensure_config(config)
        if has_listeners(full_config) or not _LANGCHAIN_ARGUMENTS.isdisjoint(kwargs):
            return super().invoke(input, config, call_config=full_config, **kwargs)
        # nobody listens to the run: LangChain's bookkeeping is left out
        manager = silent_manager(CallbackManagerForRetrieverRun, full_config)
        return run(self._answer(self._make_call(input, manager, full_config, kwargs)))

    async def ainvoke(
        self, input: str, config: RunnableConfig | None = None, **kwargs: Any
    ) -> list[Document]:
        """Find documents for a query without blocking the event loop; arguments and errors are those of ``invoke``."""
        full_config = ensure_config(config)
        if has_listeners(full_config) or not _LANGCHAIN_ARGUMENTS.isdisjoint(kwargs):
            return await super().ainvoke(input, config, call_config=full_config, **kwargs)
        manager = silent_manager(AsyncCallbackManagerForRetrieverRun, full_config)
        return await arun(self._answer(self._make_call(input, manager, full_config, kwargs)))

    def _get_relevant_documents(
        self, query: str, *, run_manager: Any, call_config: RunnableConfig | None = None, **arguments: Any
    ) -> list[Document]:
        """Search; called by LangChain where the run has listeners."""
        return run(self._answer(self._make_call(query, run_manager, call_config, arguments)))

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: Any, call_config: RunnableConfig | None = None, **arguments: Any
    ) -> list[Document]:
        return await arun(self._answer(self._make_call(query, run_manager, call_config, arguments)))

    def search_many(
        self,
        queries: Sequence[str],
        config: RunnableConfig | Sequence[RunnableConfig] | None = None,
        *,
        return_exceptions: bool = False,
        **arguments: Any,
    ) -> list[Any]:
        """Search for several queries, side by side; embedded in one request where the model can.

        Args:
            queries: The queries.
            config: LangChain's config, or one a query; each query is a run of its own.
            return_exceptions: Give the exception in the place of a search that failed, as ``batch`` does.
            **arguments: ``k`` and ``filter`` for all.

        Returns:
            What each query found, in their order, as separate calls would have.

        Raises:
            InvalidInputError: An argument is not allowed.
            RagKitError: A search failed.

        Example:
            >>> from langchain_core.embeddings import DeterministicFakeEmbedding
            >>> from rag_kit.retrieval import ExactVectorRetriever
            >>> documents = [Document("sun"), Document("moon")]
            >>> retriever = ExactVectorRetriever.from_documents(documents, DeterministicFakeEmbedding(size=8))
            >>> [found[0].page_content for found in retriever.search_many(["moon", "sun"], k=1)]
            ['moon', 'sun']
        """
        return run(self._search_each(queries, config, arguments, return_exceptions))

    async def asearch_many(
        self,
        queries: Sequence[str],
        config: RunnableConfig | Sequence[RunnableConfig] | None = None,
        *,
        return_exceptions: bool = False,
        **arguments: Any,
    ) -> list[Any]:
        """Search for several queries without blocking the event loop; arguments are those of ``search_many``."""
        return await arun(self._search_each(queries, config, arguments, return_exceptions))

    async def _answer(self, call: Call) -> list[Document]:
        """Check the filter, search, and cut the result to ``k`` documents."""
        depth = retriever_depth.get()  # how many retrievers this one is inside
        # an outer retriever has checked the call's filter already
        unchecked_filter = self.filter if depth else call.filter
        unseen_fields = fields_of_filter(unchecked_filter) - self._known_fields if unchecked_filter else set()
        if unseen_fields:
            seen_fields = await blocking_step("fields", check_fields, self, unseen_fields, call.config)
            self._known_fields |= seen_fields
        retriever_depth.set(depth + 1)
        try:
            with call.bounds():
                documents = await self._search(call.query, call) if call.query.strip() else []
        finally:
            retriever_depth.set(depth)
        if len(documents) > call.k:
            documents = documents[: call.k]
        # a retriever inside others keeps records as they are, since those add to the provenance
        return documents if depth else compact_provenance(list(documents))

    async def _search_each(
        self, queries: Any, config: Any, arguments: Mapping[str, Any], return_exceptions: bool
    ) -> list[Any]:
        """Search for several queries side by side, each a run of its own."""
        if isinstance(queries, str) or not all(isinstance(query, str) for query in queries):
            raise InvalidInputError(
                "queries must be a list of strings; for one query use the retriever's invoke."
            )
        configs = config if isinstance(config, Sequence) else [config] * len(queries)
        # made before the searches, as it refuses wrong arguments
        call = self._make_call("", None, configs[0] if configs else None, arguments)
        jobs = []
        for query, query_config in zip(queries, configs, strict=True):
            sync = partial(self.invoke, query, query_config, **arguments)
            native = partial(self.ainvoke, query, query_config, **arguments)
            jobs.append(Job(self.get_name(), sync, native))
        with share_vectors():
            await call.prepare(group_queries([(self, query) for query in queries]))
            outcomes = await call.side_by_side(jobs, timed=False)
        errors = [outcome.error for outcome in outcomes if outcome.error is not None]
        if errors and not return_exceptions:
            raise errors[0]
        return [outcome.value_or_error for outcome in outcomes]

    def _make_call(
        self, query: Any, run_manager: Any, config: RunnableConfig | None, arguments: Mapping[str, Any]
    ) -> Call:
        """Make the call of one query from its arguments, else the retriever's fields; refuse unknown arguments."""
        if not isinstance(query, str):
            raise InvalidInputError(f"A query must be a string, not {type(query).__name__}.")
        own_arguments = {name: arguments[name] for name in arguments if name in self.call_arguments}
        allowed = {"k", "filter", "question", *own_arguments} | _LANGCHAIN_ARGUMENTS
        if unknown := sorted(arguments.keys() - allowed):
            problem = unknown_arguments(unknown, {"k", "filter", *self.call_arguments}, {})
            raise InvalidInputError(f"{self.get_name()} was called with unknown arguments: {problem}.")
        filter = arguments.get("filter")
        k = self.k if arguments.get("k") is None else arguments["k"]
        return Call(
            self,
            query,
            k=ALL if k is None else check_count("k", k),  # the field too, which may have been set since
            filter=combine_filters(self.filter, filter) if self.filter or filter is not None else None,
            config=ensure_config() if config is None else config,  # invoke has filled it in
            run_manager=run_manager,
            question=arguments.get("question") or "",
            arguments=own_arguments,
        )

    @property
    def config_specs(self) -> list[ConfigurableFieldSpec]:
        """The configurable fields of all runnables inside: inner retrievers, models, and those of a reranker."""
        values: list[Any] = [*self.inner_retrievers()]
        for name in type(self).model_fields:
            field = getattr(self, name)
            values += field[:_MAX_LISTED] if isinstance(field, list) else [field]
        specs: list[ConfigurableFieldSpec] = []
        for value in values:
            if isinstance(value, (Runnable, HasRunnables)):
                specs += value.config_specs
        return get_unique_config_specs(specs)


class AskingRetriever(RagKitRetriever):
    """Base of the retrievers that ask others, and models.

    Args:
        fetch_k: How many documents each retriever inside is asked for; ``None`` for ``k``, never fewer than ``k``.
        on_error: ``"skip"`` what fails and report it, or ``"raise"`` it; if all searches fail, that raises always.
        timeout: Seconds that one model request, and one search, may take.
        max_concurrency: Most calls at a time; ``None`` for the config's ``max_concurrency``, else all.
        max_calls: Most model calls, those of retrievers inside included.
        max_tokens: Most tokens in and out; the call that goes over is kept, the next one is refused.
        deadline: Seconds for the whole. Models asked before a search get three quarters of them.
    """

    asks_models: ClassVar[bool] = True

    fetch_k: OptionalCount = None
    on_error: Literal["raise", "skip"] = "skip"
    timeout: Seconds = None
    max_concurrency: OptionalCount = None
    max_calls: Cap = None
    max_tokens: Cap = None
    deadline: Seconds = None


class RefiningRetriever(AskingRetriever):
    """Base of the retrievers that ask another retriever and then work on its documents.

    Args:
        retriever: Any LangChain retriever, or another runnable from a string to documents.
        **more: See ``AskingRetriever``. A failing inner retriever raises always.
    """

    model_share: ClassVar[float] = 1.0  # the search comes first
    other_names: ClassVar[Mapping[str, str]] = {"base_retriever": "retriever"}
    searches_together: ClassVar[bool] = True

    retriever: InnerRetriever

    @abstractmethod
    def _refine(self, documents: list[Document], call: Call) -> Logic[list[Document]]:
        """Reorder, cut or shorten documents, given best first and without repeats; notes are added afterwards."""

    def _fetch_size(self, k: int) -> int:
        """Return how many documents to ask the inner retriever for, without a ``fetch_k``."""
        return k

    async def _search(self, query: str, call: Call) -> list[Document]:
        """Search deep enough, drop repeats, refine, and add the notes of the call."""
        fetch = self._fetch_size(call.k) if self.fetch_k is None else self.fetch_k
        documents = await call.search(self.retriever, query, max(call.k, fetch))
        distinct = self._distinct(documents, call)
        refined = (await self._refine(distinct, call)) if distinct else []
        notes = call.report()
        if not refined:  # no document is left that could hold them
            _log.info("%s: %s", self.get_name(), "; ".join(notes))
        return [reduce(add_note, notes, doc) for doc in refined]

    def _distinct(self, documents: Sequence[Document], call: Call) -> list[Document]:
        """Keep the first of documents that are the same, and note how many others were left out."""
        [keys], notes = identify([Search(call.query, None, documents=documents)], self.id_key)
        positions = first_positions(keys)
        if count := len(documents) - len(positions):
            notes.append(f"{plural(count, 'repeated passage')} of the inner retriever left out")
        for note in notes:
            call.note(note)
        return [documents[position] for position in positions.values()]
